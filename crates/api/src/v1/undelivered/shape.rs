//! JSON form of the counts of undelivered events.

use crate::page::List;
use crate::time_text::rfc3339;
use serde::Serialize;
use serde_json::{Value, json};
use tributary_domain::forwarding::undelivered::{
    UndeliveredCounts, UndeliveredGroup, UndeliveredReason,
};
use utoipa::ToSchema;

/// Groups in a response. The networks' own codes have no limit, and rare ones explain little.
const GROUPS_MAX: usize = 200;
/// Event names in a group, the most frequent ones. The filter `event` counts others.
const EVENTS_MAX: usize = 10;

/// OpenAPI schema of the response.
pub(super) type UndeliveredEnvelope = List<UndeliveredOut, UndeliveredMeta>;

/// Events that a network did not receive for one reason.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "UndeliveredGroup")]
pub(crate) struct UndeliveredOut {
    #[schema(inline, value_type = crate::choices::NetworkChoice)]
    network: &'static str,
    /// `skipped` if no delivery was planned; otherwise the final status of the deliveries.
    status: &'static str,
    /// Reason code on the events or deliveries; null if there is none.
    reason: Option<String>,
    /// Whether the network should have received the events. False for intended reasons, such as
    /// `not_attributed` and `not_mapped`.
    loses_conversion: bool,
    count: u64,
    /// The most frequent event names, at most 10.
    events: Vec<UndeliveredEventOut>,
}

/// The number of undelivered events with one name.
#[derive(Debug, Serialize, ToSchema)]
struct UndeliveredEventOut {
    /// Null for deleted events.
    name: Option<String>,
    count: u64,
}

/// About the groups.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UndeliveredMeta {
    /// Time from which on all events are counted, if earlier events of the period are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    complete_from: Option<String>,
    /// Number of further groups, which are the smallest.
    more_groups: usize,
}

impl UndeliveredOut {
    pub(super) fn all(groups: Vec<UndeliveredGroup>) -> Vec<Self> {
        groups
            .into_iter()
            .take(GROUPS_MAX)
            .map(Self::from)
            .collect()
    }
}

impl From<UndeliveredGroup> for UndeliveredOut {
    fn from(group: UndeliveredGroup) -> Self {
        let loses_conversion = group.reason.loses_conversion();
        let (status, reason) = match group.reason {
            UndeliveredReason::Skipped(skip) => ("skipped", Some(skip.as_str().to_owned())),
            UndeliveredReason::Ended(status, reason) => (status.as_str(), reason),
        };
        let events = group.events.into_iter().take(EVENTS_MAX);
        Self {
            network: group.network.as_str(),
            status,
            reason,
            loses_conversion,
            count: group.count,
            events: events
                .map(|(name, count)| UndeliveredEventOut { name, count })
                .collect(),
        }
    }
}

impl UndeliveredMeta {
    pub(super) fn of(counts: &UndeliveredCounts, groups: usize) -> Self {
        Self {
            complete_from: counts.complete_since().map(rfc3339),
            more_groups: groups.saturating_sub(GROUPS_MAX),
        }
    }
}

/// Returns an example response for the OpenAPI description.
pub(super) fn example() -> Value {
    json!({
        "data": [{
            "network": "network_c",
            "status": "skipped",
            "reason": "integration_disabled",
            "losesConversion": true,
            "count": 24,
            "events": [{"name": "purchase", "count": 24}]
        }],
        "meta": {"moreGroups": 0}
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::forwarding::undelivered::UndeliveredEvents;
    use tributary_domain::forwarding::{DeliveryStatus, SkipReason};
    use tributary_domain::integration::Network;

    fn ended(reason: String, event: usize) -> UndeliveredEvents {
        UndeliveredEvents {
            network: Network::C,
            event: Some(format!("event_{event}")),
            reason: UndeliveredReason::Ended(DeliveryStatus::Failed, Some(reason)),
        }
    }

    #[test]
    fn groups_and_their_events_are_limited() {
        let mut counts = UndeliveredCounts::default();
        for event in 0..=EVENTS_MAX {
            counts.add(ended("40002".to_owned(), event), 2);
        }
        for reason in 0..GROUPS_MAX {
            counts.add(ended(format!("rare_{reason}"), 0), 1);
        }
        let groups = counts.groups();
        let meta = UndeliveredMeta::of(&counts, groups.len());
        assert_eq!(json!(meta), json!({"moreGroups": 1}));
        let all = UndeliveredOut::all(groups);
        assert_eq!(all.len(), GROUPS_MAX);
        assert_eq!((all[0].count, all[0].events.len()), (22, EVENTS_MAX));
        assert!(all[0].loses_conversion && all[0].status == "failed");
    }

    #[test]
    fn skipped_events_have_the_status_skipped() {
        let mut counts = UndeliveredCounts::default();
        counts.add_skipped("purchase", &[(Network::A, SkipReason::Consent)], 3);
        let all = json!(UndeliveredOut::all(counts.groups()));
        assert_eq!(
            all,
            json!([{
                "network": "network_a", "status": "skipped", "reason": SkipReason::Consent.as_str(),
                "losesConversion": true, "count": 3, "events": [{"name": "purchase", "count": 3}],
            }])
        );
    }
}
