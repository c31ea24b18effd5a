//! Counts skipped conversions by reason.

use super::plan::SkipReason;
use crate::integration::Network;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// Period in which skipped conversions are counted, by event time.
pub const SKIPPED_WINDOW: Duration = Duration::from_hours(7 * 24);
/// Maximum number of rows that a count reads, newest first. The limit applies separately to events
/// (skipped when planned) and to deliveries (no longer sendable).
pub const SKIPPED_SCANNED_MAX: u32 = 20_000;

/// Returns the start of the counting period.
pub fn skipped_since(now: Timestamp) -> Timestamp {
    let millis = i64::try_from(SKIPPED_WINDOW.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis).max(0))
}

impl SkipReason {
    /// Returns whether the network lost a conversion. Other skips are intended: the event belongs
    /// to another network, repeats another event, or is never forwarded.
    pub const fn loses_conversion(self) -> bool {
        match self {
            Self::IntegrationDisabled
            | Self::Fraud
            | Self::Attestation
            | Self::Probabilistic
            | Self::Consent
            | Self::TooOld
            | Self::AmountNotForwardable
            | Self::NoConversionAction
            | Self::NoClickId
            | Self::InsufficientIdentity => true,
            Self::Sandbox
            | Self::Erased
            | Self::DuplicateOfVerified
            | Self::ReportingOnly
            | Self::NotAttributed
            | Self::NotMapped
            | Self::EnabledLater
            | Self::BillingSource => false,
        }
    }
}

/// Skipped conversions for one network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkippedConversions {
    /// Count per reason, most frequent first.
    pub by_reason: Vec<(String, u64)>,
    /// Whether the count stopped at [`SKIPPED_SCANNED_MAX`] rows and misses older conversions.
    pub stopped_early: bool,
}

/// Running counts of an app's skipped conversions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkippedCounts {
    counts: BTreeMap<(Network, String), u64>,
    stopped_early: bool,
}

impl SkippedCounts {
    /// Adds events that were skipped when they were planned.
    pub fn add_planned(&mut self, skipped: &[(Network, SkipReason)], count: u64) {
        for (network, skip) in skipped {
            if skip.loses_conversion() {
                self.add(*network, skip.as_str(), count);
            }
        }
    }

    /// Adds deliveries that became unsendable before their first attempt.
    pub fn add(&mut self, network: Network, reason: &str, count: u64) {
        let total = self.counts.entry((network, reason.to_owned())).or_default();
        *total = total.saturating_add(count);
    }

    /// Records how many rows were read.
    pub fn note_scanned(&mut self, rows: u64) {
        self.stopped_early |= rows >= u64::from(SKIPPED_SCANNED_MAX);
    }

    /// Returns the counts for one network.
    pub fn of(&self, network: Network) -> SkippedConversions {
        let of_network = self.counts.iter().filter(|((of, _), _)| *of == network);
        let mut by_reason: Vec<(String, u64)> = of_network
            .map(|((_, reason), count)| (reason.clone(), *count))
            .collect();
        // The sort is stable, so equal counts stay in alphabetical order.
        by_reason.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        SkippedConversions {
            by_reason,
            stopped_early: self.stopped_early,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::no_user_agent(SkipReason::InsufficientIdentity, true)]
    #[case::no_click_id(SkipReason::NoClickId, true)]
    #[case::disabled(SkipReason::IntegrationDisabled, true)]
    #[case::no_consent(SkipReason::Consent, true)]
    #[case::no_proof(SkipReason::Attestation, true)]
    #[case::of_another_network(SkipReason::NotAttributed, false)]
    #[case::not_mapped(SkipReason::NotMapped, false)]
    #[case::test_data(SkipReason::Sandbox, false)]
    #[case::before_it_was_enabled(SkipReason::EnabledLater, false)]
    #[case::reported_twice(SkipReason::DuplicateOfVerified, false)]
    fn which_skips_lose_a_conversion(#[case] skip: SkipReason, #[case] expected: bool) {
        assert_eq!(skip.loses_conversion(), expected);
        let mut counts = SkippedCounts::default();
        counts.add_planned(&[(Network::A, skip)], 2);
        let by_reason = counts.of(Network::A).by_reason;
        assert_eq!(
            by_reason,
            if expected {
                vec![(skip.as_str().to_owned(), 2)]
            } else {
                vec![]
            }
        );
    }

    #[test]
    fn the_most_frequent_reason_comes_first() {
        let mut counts = SkippedCounts::default();
        counts.add_planned(
            &[
                (Network::A, SkipReason::Consent),
                (Network::C, SkipReason::TooOld),
            ],
            1,
        );
        counts.add_planned(&[(Network::A, SkipReason::InsufficientIdentity)], 2);
        counts.add(Network::A, "insufficient_identity", 3);
        counts.add(Network::A, "no_source_url", 1);
        let expected = [
            ("insufficient_identity", 5),
            ("consent", 1),
            ("no_source_url", 1),
        ];
        let expected = expected.map(|(reason, count)| (reason.to_owned(), count));
        assert_eq!(counts.of(Network::A).by_reason, expected);
        assert_eq!(counts.of(Network::C).by_reason, [("too_old".to_owned(), 1)]);
        assert_eq!(counts.of(Network::D), SkippedConversions::default());
    }

    #[rstest]
    #[case::all(19_999, false)]
    #[case::as_many_as_are_read(20_000, true)]
    fn a_count_reports_that_it_stopped_early(#[case] rows: u64, #[case] expected: bool) {
        let mut counts = SkippedCounts::default();
        counts.note_scanned(rows);
        counts.note_scanned(0);
        assert_eq!(counts.of(Network::A).stopped_early, expected);
    }
}
