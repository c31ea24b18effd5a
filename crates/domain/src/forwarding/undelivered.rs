//! Counts events that were not delivered, by network, event name and reason.

use super::delivery::DeliveryStatus;
use super::plan::SkipReason;
use super::skipped::SKIPPED_SCANNED_MAX;
use crate::integration::Network;
use crate::vocabulary::time::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Which events to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndeliveredQuery {
    /// Start of the period.
    pub since: Timestamp,
    /// Count only this network.
    pub network: Option<Network>,
    /// Count only events with this name.
    pub event: Option<String>,
}

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
    complete_since: Option<Timestamp>,
}

/// Events that were not delivered to a network for one reason, by event name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndeliveredGroup {
    /// The network.
    pub network: Network,
    /// The reason.
    pub reason: UndeliveredReason,
    /// Number of events.
    pub count: u64,
    /// Event names with their counts, most frequent first. `None` for removed events.
    pub events: Vec<(Option<String>, u64)>,
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

    /// Removes the counts of other networks.
    pub fn retain(&mut self, network: Network) {
        self.counts.retain(|events, _| events.network == network);
    }

    /// Returns whether a statement that read this many rows stopped at [`SKIPPED_SCANNED_MAX`].
    pub const fn is_cut(rows: u64) -> bool {
        rows >= SKIPPED_SCANNED_MAX as u64
    }

    /// Records that one statement read only the rows since a time.
    pub fn note_cut(&mut self, oldest: Timestamp) {
        self.complete_since = self.complete_since.max(Some(oldest));
    }

    /// Returns the time from which on all events are counted, if older events of the period are
    /// missing.
    pub const fn complete_since(&self) -> Option<Timestamp> {
        self.complete_since
    }

    /// Returns the counts by network and reason, most frequent first.
    pub fn groups(&self) -> Vec<UndeliveredGroup> {
        let mut groups: BTreeMap<(Network, &UndeliveredReason), UndeliveredGroup> = BTreeMap::new();
        for (events, count) in &self.counts {
            let key = (events.network, &events.reason);
            let group = groups.entry(key).or_insert_with(|| UndeliveredGroup {
                network: events.network,
                reason: events.reason.clone(),
                count: 0,
                events: Vec::new(),
            });
            group.count = group.count.saturating_add(*count);
            group.events.push((events.event.clone(), *count));
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        for group in &mut groups {
            group.events.sort_by_key(|(_, count)| Reverse(*count));
        }
        // The sort is stable, so equal counts stay in the order of networks and reasons.
        groups.sort_by_key(|group| Reverse(group.count));
        groups
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
    fn counts_are_grouped_by_network_and_reason() {
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
        let group =
            |network, reason: &UndeliveredReason, events: &[(&str, u64)]| UndeliveredGroup {
                network,
                reason: reason.clone(),
                count: events.iter().map(|(_, count)| count).sum(),
                events: events
                    .iter()
                    .map(|(name, count)| (Some((*name).to_owned()), *count))
                    .collect(),
            };
        let skipped = UndeliveredReason::Skipped;
        let expected = [
            group(
                Network::C,
                &skipped(SkipReason::TooOld),
                &[("sign_up", 9), ("purchase", 2)],
            ),
            group(Network::C, &failed.reason, &[("purchase", 4)]),
            group(
                Network::A,
                &skipped(SkipReason::Consent),
                &[("purchase", 3)],
            ),
        ];
        assert_eq!(counts.groups(), expected);
    }

    #[rstest]
    #[case::all(19_999, false)]
    #[case::as_many_as_are_read(20_000, true)]
    fn a_full_answer_may_be_a_part(#[case] rows: u64, #[case] expected: bool) {
        assert_eq!(UndeliveredCounts::is_cut(rows), expected);
    }

    #[test]
    fn counts_are_complete_since_the_latest_cut() {
        let mut counts = UndeliveredCounts::default();
        assert_eq!(counts.complete_since(), None);
        for oldest in [5, 9, 7] {
            counts.note_cut(Timestamp::from_millis(oldest));
        }
        assert_eq!(counts.complete_since(), Some(Timestamp::from_millis(9)));
    }
}
