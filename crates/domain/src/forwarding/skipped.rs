//! Counts skipped conversions by reason.

use super::plan::SkipReason;
use crate::integration::Network;
use crate::vocabulary::time::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// Period in which skipped conversions are counted, by event time.
pub const SKIPPED_WINDOW: Duration = Duration::from_hours(7 * 24);
/// Maximum number of rows that a count reads, newest first. The limit applies separately to events
/// (skipped when planned) and to deliveries (no longer sendable).
pub const SKIPPED_SCANNED_MAX: u32 = 20_000;

/// Maximum number of event names listed for a reason.
pub const SKIPPED_EVENTS_MAX: usize = 10;

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

/// Conversions that were skipped for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedForReason {
    /// Code of the reason.
    pub reason: String,
    /// Number of conversions.
    pub count: u64,
    /// The most frequent event names, at most [`SKIPPED_EVENTS_MAX`]. Deliveries that became
    /// unsendable after planning count without a name.
    pub by_event: Vec<(String, u64)>,
}

/// Skipped conversions for one network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkippedConversions {
    /// Counts per reason, most frequent first.
    pub by_reason: Vec<SkippedForReason>,
    /// Whether the count stopped at [`SKIPPED_SCANNED_MAX`] rows and misses older conversions.
    pub stopped_early: bool,
}

/// Counts for one network and reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ReasonCount {
    count: u64,
    by_event: BTreeMap<String, u64>,
}

/// Running counts of an app's skipped conversions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkippedCounts {
    counts: BTreeMap<(Network, String), ReasonCount>,
    stopped_early: bool,
}

impl SkippedCounts {
    /// Adds events with one name that were skipped when they were planned.
    pub fn add_planned(&mut self, event: &str, skipped: &[(Network, SkipReason)], count: u64) {
        for (network, skip) in skipped {
            if skip.loses_conversion() {
                let counted = self.add(*network, skip.as_str(), count);
                let named = counted.by_event.entry(event.to_owned()).or_default();
                *named = named.saturating_add(count);
            }
        }
    }

    /// Adds deliveries that became unsendable before their first attempt.
    pub fn add_unsendable(&mut self, network: Network, reason: &str, count: u64) {
        self.add(network, reason, count);
    }

    fn add(&mut self, network: Network, reason: &str, count: u64) -> &mut ReasonCount {
        let counted = self.counts.entry((network, reason.to_owned())).or_default();
        counted.count = counted.count.saturating_add(count);
        counted
    }

    /// Records how many rows were read.
    pub fn note_scanned(&mut self, rows: u64) {
        self.stopped_early |= rows >= u64::from(SKIPPED_SCANNED_MAX);
    }

    /// Returns the counts for one network.
    pub fn of(&self, network: Network) -> SkippedConversions {
        let of_network = self.counts.iter().filter(|((of, _), _)| *of == network);
        let mut by_reason: Vec<_> = of_network
            .map(|((_, reason), counted)| SkippedForReason {
                reason: reason.clone(),
                count: counted.count,
                by_event: most_frequent(&counted.by_event),
            })
            .collect();
        // The sort is stable, so equal counts stay in alphabetical order.
        by_reason.sort_by_key(|one| Reverse(one.count));
        SkippedConversions {
            by_reason,
            stopped_early: self.stopped_early,
        }
    }
}

fn most_frequent(by_event: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut names: Vec<_> = by_event.clone().into_iter().collect();
    names.sort_by_key(|(_, count)| Reverse(*count));
    names.truncate(SKIPPED_EVENTS_MAX);
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn skipped(reason: &str, count: u64, by_event: &[(&str, u64)]) -> SkippedForReason {
        let owned = |(name, count): &(&str, u64)| ((*name).to_owned(), *count);
        SkippedForReason {
            reason: reason.to_owned(),
            count,
            by_event: by_event.iter().map(owned).collect(),
        }
    }

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
        counts.add_planned("purchase", &[(Network::A, skip)], 2);
        let one = skipped(skip.as_str(), 2, &[("purchase", 2)]);
        let expected = if expected { vec![one] } else { vec![] };
        assert_eq!(counts.of(Network::A).by_reason, expected);
    }

    #[test]
    fn the_most_frequent_reason_comes_first() {
        let mut counts = SkippedCounts::default();
        let skips = [
            (Network::A, SkipReason::Consent),
            (Network::C, SkipReason::TooOld),
        ];
        counts.add_planned("sign_up", &skips, 1);
        let unknown = [(Network::A, SkipReason::InsufficientIdentity)];
        counts.add_planned("sign_up", &unknown, 1);
        counts.add_planned("purchase", &unknown, 2);
        counts.add_unsendable(Network::A, "insufficient_identity", 3);
        counts.add_unsendable(Network::A, "no_source_url", 1);
        let expected = [
            skipped(
                "insufficient_identity",
                6,
                &[("purchase", 2), ("sign_up", 1)],
            ),
            skipped("consent", 1, &[("sign_up", 1)]),
            skipped("no_source_url", 1, &[]),
        ];
        assert_eq!(counts.of(Network::A).by_reason, expected);
        let expected = [skipped("too_old", 1, &[("sign_up", 1)])];
        assert_eq!(counts.of(Network::C).by_reason, expected);
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
