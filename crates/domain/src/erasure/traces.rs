//! Links from a device to the data that is erased with it.

use super::{Erasure, ErasureReach};
use crate::billing::Notification;
use crate::click::StoredClick;
use crate::device::{DeviceKey, DeviceRef, UserKey};
use crate::event::EventSource;
use crate::install::DeviceState;
use crate::personal_data::PersonIds;
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
            person: PersonIds {
                devices: BTreeSet::from([device.clone()]),
                users: reach.people,
                advertising: advertising.into_iter().collect(),
            },
            device,
            pseudonym,
        }
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
        let own = clicks
            .into_iter()
            .filter(|one| self.person.own_click(device.environment, one));
        own.map(|one| StoredClick {
            click: self.erase_click(one.click),
            taken_by: one.taken_by.map(|_| self.pseudonym.clone()),
        })
        .collect()
    }
}
