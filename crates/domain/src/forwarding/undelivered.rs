//! Counts events that were not delivered, by network, event name and reason.

use super::delivery::DeliveryStatus;
use super::plan::SkipReason;
use super::skipped::SKIPPED_SCANNED_MAX;
use crate::integration::Network;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Final statuses of deliveries that did not arrive.
pub const UNDELIVERED_STATUSES: [DeliveryStatus; 4] = [
    DeliveryStatus::Failed,
    DeliveryStatus::Expired,
    DeliveryStatus::Unconfirmed,
    DeliveryStatus::Cancelled,
];

/// Why events were not delivered to a network.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum UndeliveredReason {
    /// No delivery was planned.
    Skipped(SkipReason),
    /// The delivery ended with this status and code.
    Ended(DeliveryStatus, Option<String>),
}

impl UndeliveredReason {
    /// Returns whether the network lost a conversion. An event that belongs to another source, or
    /// that is never forwarded, is not lost.
    pub const fn loses_conversion(&self) -> bool {
        match self {
            Self::Skipped(skip) => skip.loses_conversion(),
            Self::Ended(status, _) => status.counts_as_failed(),
        }
    }
}

/// Events with one name that were not delivered to a network for one reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UndeliveredEvents {
    /// The network.
    pub network: Network,
    /// Event name. `None` if the event was removed.
    pub event: Option<String>,
    /// The reason.
    pub reason: UndeliveredReason,
}

/// Counts of an app's events that were not delivered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UndeliveredCounts {
    counts: BTreeMap<UndeliveredEvents, u64>,
    stopped_early: bool,
}

impl UndeliveredCounts {
    /// Adds events with one name that were skipped when they were planned.
    pub fn add_skipped(&mut self, event: &str, skipped: &[(Network, SkipReason)], count: u64) {
        for (network, skip) in skipped {
            self.add(
                UndeliveredEvents {
                    network: *network,
                    event: Some(event.to_owned()),
                    reason: UndeliveredReason::Skipped(*skip),
                },
                count,
            );
        }
    }

    /// Adds events whose deliveries ended without arriving.
    pub fn add(&mut self, events: UndeliveredEvents, count: u64) {
        let counted = self.counts.entry(events).or_default();
        *counted = counted.saturating_add(count);
    }

    /// Records how many rows one statement read.
    pub fn note_scanned(&mut self, rows: u64) {
        self.stopped_early |= rows >= u64::from(SKIPPED_SCANNED_MAX);
    }

    /// Returns whether a statement stopped at [`SKIPPED_SCANNED_MAX`] rows, so that older events are
    /// missing.
    pub const fn stopped_early(&self) -> bool {
        self.stopped_early
    }

    /// Returns the counts, most frequent first.
    pub fn most_frequent_first(&self) -> Vec<(&UndeliveredEvents, u64)> {
        let mut all: Vec<_> = self
            .counts
            .iter()
            .map(|(key, count)| (key, *count))
            .collect();
        // The sort is stable, so equal counts stay in the order of networks and names.
        all.sort_by_key(|(_, count)| Reverse(*count));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn ended(status: DeliveryStatus) -> UndeliveredReason {
        UndeliveredReason::Ended(status, Some("100".to_owned()))
    }

    #[rstest]
    #[case::no_consent(UndeliveredReason::Skipped(SkipReason::Consent), true)]
    #[case::of_another_source(UndeliveredReason::Skipped(SkipReason::NotAttributed), false)]
    #[case::rejected(ended(DeliveryStatus::Failed), true)]
    #[case::too_old(ended(DeliveryStatus::Expired), true)]
    #[case::withdrawn(ended(DeliveryStatus::Cancelled), false)]
    fn which_reasons_lose_a_conversion(#[case] reason: UndeliveredReason, #[case] expected: bool) {
        assert_eq!(reason.loses_conversion(), expected);
    }

    #[test]
    fn counts_are_separate_by_network_name_and_reason() {
        let mut counts = UndeliveredCounts::default();
        let skips = [
            (Network::A, SkipReason::Consent),
            (Network::C, SkipReason::TooOld),
        ];
        counts.add_skipped("purchase", &skips, 2);
        counts.add_skipped("purchase", &skips[..1], 1);
        counts.add_skipped("sign_up", &skips[1..], 9);
        let failed = UndeliveredEvents {
            network: Network::C,
            event: Some("purchase".to_owned()),
            reason: ended(DeliveryStatus::Failed),
        };
        counts.add(failed.clone(), 4);
        let found = counts.most_frequent_first();
        let short = |(one, count): &(&UndeliveredEvents, u64)| {
            (one.network, one.event.clone().unwrap_or_default(), *count)
        };
        let expected = [
            (Network::C, "sign_up".to_owned(), 9),
            (Network::C, "purchase".to_owned(), 4),
            (Network::A, "purchase".to_owned(), 3),
            (Network::C, "purchase".to_owned(), 2),
        ];
        assert_eq!(found.iter().map(short).collect::<Vec<_>>(), expected);
        assert_eq!(*found[1].0, failed);
    }

    #[rstest]
    #[case::all(19_999, false)]
    #[case::as_many_as_are_read(20_000, true)]
    fn a_count_reports_that_it_stopped_early(#[case] rows: u64, #[case] expected: bool) {
        let mut counts = UndeliveredCounts::default();
        counts.note_scanned(rows);
        counts.note_scanned(0);
        assert_eq!(counts.stopped_early(), expected);
    }
}
