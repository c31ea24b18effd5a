//! Links from a device to the data that is erased with it.

use super::{Erasure, ErasureReach, clicks_of_person};
use crate::billing::{Notification, advertising_key, device_key, person_key};
use crate::click::StoredClick;
use crate::device::{DeviceKey, DeviceRef, UserKey};
use crate::event::EventSource;
use crate::install::DeviceState;
use crate::vocabulary::id::{ClickId, EventId};
use std::collections::BTreeSet;

/// References to other data, from an event of an erased device or user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Event id.
    pub event: EventId,
    /// Source of the event.
    pub source: EventSource,
    /// Id assigned by the sender.
    pub external_id: String,
    /// User id in the event.
    pub user: Option<UserKey>,
    /// Click that the event is credited to.
    pub click: Option<ClickId>,
}

/// Returns a device's user ids: the current one, those linked to the device, and those in its
/// events.
pub fn people_of(
    known: &DeviceState,
    linked: BTreeSet<UserKey>,
    traces: &[Trace],
) -> BTreeSet<UserKey> {
    let of_events = traces.iter().filter_map(|trace| trace.user.clone());
    let own = known.identity.user.clone();
    linked.into_iter().chain(own).chain(of_events).collect()
}

/// Returns the external ids of the billing events.
pub fn billing_event_ids(traces: &[Trace]) -> BTreeSet<&str> {
    let billed = traces
        .iter()
        .filter(|trace| trace.source == EventSource::Billing);
    billed.map(|trace| trace.external_id.as_str()).collect()
}

/// Returns a device's clicks: those that its events are credited to, and those that its decision
/// names.
pub fn clicks_to_erase(known: &DeviceState, traces: &[Trace]) -> BTreeSet<ClickId> {
    let decided = known.attribution.as_ref();
    let decided = decided.map(|attribution| clicks_of_person(&attribution.decision));
    let of_events = traces.iter().filter_map(|trace| trace.click);
    of_events.chain(decided.into_iter().flatten()).collect()
}

/// Remaining data of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErasedChain {
    /// Notifications of the subscription.
    pub notifications: Vec<Notification>,
    /// Keys that still find the subscription.
    pub lookup_keys: BTreeSet<String>,
    /// Keys that no longer find the subscription.
    pub removed_keys: BTreeSet<String>,
}

impl Erasure {
    /// Creates the erasure of a device, and of users that no other device is linked to.
    pub fn of(
        device: DeviceKey,
        pseudonym: DeviceKey,
        known: &DeviceState,
        reach: ErasureReach,
    ) -> Self {
        let device_known = known.device.as_ref();
        let advertising = device_known.and_then(|device| device.advertising_id.clone());
        let advertising = advertising.filter(|_| reach.follows_advertising_id);
        Self {
            device,
            pseudonym,
            people: reach.people.into_iter().collect(),
            advertising: advertising.into_iter().collect(),
        }
    }

    /// Returns the keys of subscriptions that may contain the erased ids.
    pub fn subscription_keys(&self) -> Vec<String> {
        let people = self.people.iter().map(person_key);
        let advertising = self.advertising.iter().map(advertising_key);
        let device = [device_key(&self.device)];
        people.chain(advertising).chain(device).collect()
    }

    /// Returns the ids to search for in notifications without a subscription, mainly transfers. No
    /// key finds these notifications, and some name a user only in the received body.
    pub fn ids(&self) -> Vec<&str> {
        let people = self.people.iter().map(UserKey::as_str);
        people.chain([self.device.as_str()]).collect()
    }

    /// Returns what remains of a subscription with these notifications.
    pub fn erase_chain(&self, notifications: Vec<Notification>) -> ErasedChain {
        let before: BTreeSet<String> = notifications.iter().flat_map(Notification::keys).collect();
        let notifications: Vec<Notification> = notifications
            .into_iter()
            .map(|one| self.erase_notification(one))
            .collect();
        let after = notifications.iter().flat_map(Notification::keys).collect();
        ErasedChain {
            lookup_keys: notifications
                .iter()
                .flat_map(Notification::lookup_keys)
                .collect(),
            removed_keys: before.difference(&after).cloned().collect(),
            notifications,
        }
    }

    /// Returns what remains of the device's clicks. Clicks that are credited with another device's
    /// install are left out and stay as they are.
    pub fn erase_clicks(
        &self,
        device: DeviceRef<'_>,
        clicks: Vec<StoredClick>,
    ) -> Vec<StoredClick> {
        let is_own = |one: &StoredClick| one.taken_by.is_none() || one.is_taken_by(device);
        let own = clicks.into_iter().filter(is_own);
        own.map(|one| StoredClick {
            click: self.erase_click(one.click),
            taken_by: one.taken_by.map(|_| self.pseudonym.clone()),
        })
        .collect()
    }
}
