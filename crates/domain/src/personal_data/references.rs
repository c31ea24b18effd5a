//! References from a person's events to other data.

use super::own_candidates;
use crate::device::UserKey;
use crate::erasure::Trace;
use crate::event::EventSource;
use crate::install::DeviceState;
use crate::vocabulary::id::ClickId;
use std::collections::BTreeSet;

/// References from events of a device or a user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventReferences {
    /// User ids in the events.
    pub users: BTreeSet<UserKey>,
    /// Clicks that the events are credited to.
    pub clicks: BTreeSet<ClickId>,
    /// Notification ids of the events that a billing provider reported.
    pub payments: BTreeSet<String>,
}

impl EventReferences {
    /// Collects the references of events.
    pub fn of(traces: &[Trace]) -> Self {
        let billed = |trace: &&Trace| trace.source == EventSource::Billing;
        let payments = traces.iter().filter(billed);
        Self {
            users: traces.iter().filter_map(|one| one.user.clone()).collect(),
            clicks: traces.iter().filter_map(|one| one.click).collect(),
            payments: payments.map(|one| one.external_id.clone()).collect(),
        }
    }

    /// Returns the references of both.
    #[must_use]
    pub fn merged(mut self, other: Self) -> Self {
        self.users.extend(other.users);
        self.clicks.extend(other.clicks);
        self.payments.extend(other.payments);
        self
    }
}

/// Returns a device's user ids: the current one, those linked to the device, and those in its
/// events.
pub fn users_of_device(
    known: &DeviceState,
    linked: BTreeSet<UserKey>,
    references: &EventReferences,
) -> BTreeSet<UserKey> {
    let own = known.identity.user.clone();
    let of_events = references.users.iter().cloned();
    linked.into_iter().chain(own).chain(of_events).collect()
}

/// Returns a device's clicks: those that its events are credited to, and those that its decision
/// names, except the clicks of other people.
pub fn clicks_of_device(known: &DeviceState, references: &EventReferences) -> BTreeSet<ClickId> {
    let decision = known.attribution.as_ref().map(|one| &one.decision);
    let considered = decision.into_iter().flat_map(own_candidates);
    let considered = considered.filter_map(|one| one.click);
    let winner = decision.and_then(|decision| decision.click);
    let of_events = references.clicks.iter().copied();
    of_events.chain(considered).chain(winner).collect()
}
