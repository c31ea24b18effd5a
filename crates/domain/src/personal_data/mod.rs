//! Which stored data is about one person. Erasure and export use the same rules.
//!
//! A request names a device or a user. The ids that belong together are collected first: the
//! device's users that no other device has, or the devices that are proven to be the user's. The
//! rules here then tell whose an event, a click or a billing notification is.

mod linked;
mod references;

pub use linked::{LeftOutDevice, LeftOutReason, LinkedDevices, UserLink};
pub use references::{EventReferences, clicks_of_device, users_of_device};

use crate::access::Environment;
use crate::attribution::{ConsideredCandidate, Decision, MatchMethod};
use crate::billing::{
    Notification, NotificationMeaning, Subscriber, advertising_key, device_key, person_key,
};
use crate::click::StoredClick;
use crate::device::{AdvertisingId, DeviceKey, DeviceRef, UserKey};
use crate::erasure::is_pseudonym;
use crate::event::Event;
use std::collections::BTreeSet;

/// Whose data is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataSubject {
    /// The user of a device.
    Device(DeviceKey),
    /// A user, by the app's user id.
    User(UserKey),
}

/// Ids that belong to one person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersonIds {
    /// Devices.
    pub devices: BTreeSet<DeviceKey>,
    /// User ids that no other device has. All data with these ids is the person's.
    pub users: BTreeSet<UserKey>,
    /// Advertising ids of the devices.
    pub advertising: BTreeSet<AdvertisingId>,
}

impl PersonIds {
    /// Returns the keys of subscriptions that may contain the ids.
    pub fn subscription_keys(&self) -> Vec<String> {
        let users = self.users.iter().map(person_key);
        let advertising = self.advertising.iter().map(advertising_key);
        let devices = self.devices.iter().map(device_key);
        users.chain(advertising).chain(devices).collect()
    }

    /// Returns the ids to search for in notifications without a subscription, mainly transfers. No
    /// key finds these notifications, and some name a user only in the received body.
    pub fn texts(&self) -> Vec<&str> {
        let users = self.users.iter().map(UserKey::as_str);
        users
            .chain(self.devices.iter().map(DeviceKey::as_str))
            .collect()
    }

    /// Returns whether a notification is about the person. A notification that is joined to another
    /// device is that device's, even if it names one of the ids. An erased device has no other ids,
    /// so its notifications are also found by the ids that they name.
    pub fn own_notification(&self, one: &Notification) -> bool {
        let settled = one.settled.device.as_ref();
        settled.is_some_and(|device| self.devices.contains(device))
            || (settled.is_none_or(is_pseudonym) && self.names(&one.content.subscriber))
    }

    /// Returns whether a provider's description of a subscriber contains one of the ids.
    fn names(&self, subscriber: &Subscriber) -> bool {
        let devices = subscriber.device.iter();
        devices.into_iter().any(|one| self.devices.contains(one))
            || subscriber.people.iter().any(|one| self.users.contains(one))
            || subscriber
                .advertising
                .iter()
                .any(|one| self.advertising.contains(one))
    }

    /// Returns whether a transfer of purchases moved them from or to the person.
    pub fn own_transfer(&self, one: &Notification) -> bool {
        let NotificationMeaning::Transfer { from, to } = &one.content.meaning else {
            return false;
        };
        from.iter().chain(to).any(|user| self.users.contains(user))
    }

    /// Returns whether the received body of a notification may be shown to the person. All users of a
    /// transfer must be theirs. If a user asks, so must all users that the notification names.
    pub fn may_see_body(&self, subject: &DataSubject, one: &Notification) -> bool {
        let is_own = |user: &UserKey| self.users.contains(user);
        match (&one.content.meaning, subject) {
            (_, DataSubject::User(_)) => one.people().all(is_own),
            (NotificationMeaning::Transfer { from, to }, DataSubject::Device(_)) => {
                from.iter().chain(to).all(is_own)
            }
            _ => true,
        }
    }

    /// Returns a notification without the ids of other people, and the number of users that were left
    /// out: those of a transfer, and the subscriber of a notification that is another person's. If a
    /// user asks, a device does not prove that the subscriber's other ids are theirs.
    pub fn without_others(
        &self,
        subject: &DataSubject,
        mut one: Notification,
    ) -> (Notification, usize) {
        let is_own = self.own_notification(&one);
        let is_own_device = |device: &DeviceKey| self.devices.contains(device);
        let mut others = 0;
        let mut keep = |users: &mut Vec<UserKey>| {
            let before = users.len();
            users.retain(|user| self.users.contains(user));
            others += before - users.len();
        };
        if let NotificationMeaning::Transfer { from, to } = &mut one.content.meaning {
            keep(from);
            keep(to);
        }
        let subscriber = &mut one.content.subscriber;
        subscriber.device.take_if(|device| !is_own_device(device));
        if !is_own || matches!(subject, DataSubject::User(_)) {
            keep(&mut subscriber.people);
            one.settled.user.take_if(|user| !self.users.contains(user));
        }
        if !is_own {
            let own = |id: &AdvertisingId| self.advertising.contains(id);
            subscriber.advertising.retain(own);
        }
        one.join.take_if(|join| !is_own_device(&join.device));
        one.settled.device.take_if(|device| !is_own_device(device));
        (one, others)
    }

    /// Returns whether a click is the person's: it led to the install of one of the devices, or to
    /// no install. Only the clicks of [`clicks_of_device`] are examined.
    pub fn own_click(&self, environment: Environment, click: &StoredClick) -> bool {
        let app = click.click.app;
        let device = |key| DeviceRef {
            app,
            environment,
            key,
        };
        let mut devices = self.devices.iter().map(device);
        click.taken_by.is_none() || devices.any(|device| click.is_taken_by(device))
    }
}

impl DataSubject {
    /// Returns whether an event of one of the person's devices is included. A user who asks gets no
    /// events with the id of another user of the same device.
    pub fn includes(&self, ids: &PersonIds, event: &Event) -> bool {
        match self {
            Self::Device(_) => true,
            Self::User(_) => event
                .user
                .as_ref()
                .is_none_or(|user| ids.users.contains(user)),
        }
    }

    /// Returns whether a billing notification about one of the person's devices is included. A user
    /// who asks gets none of another user of the same device. Billing providers add anonymous ids that
    /// no app claimed, so a notification that also names the user is theirs.
    pub fn includes_notification(&self, ids: &PersonIds, one: &Notification) -> bool {
        match self {
            Self::Device(_) => true,
            Self::User(_) => {
                let mut named = one.people().chain(&one.settled.user).peekable();
                named.peek().is_none() || named.any(|user| ids.users.contains(user))
            }
        }
    }

    /// Returns whether a user id of one of the person's devices is included.
    pub fn includes_user(&self, ids: &PersonIds, user: &UserKey) -> bool {
        match self {
            Self::Device(_) => true,
            Self::User(_) => ids.users.contains(user),
        }
    }
}

/// Returns the candidates for a device's install that are the user's: the winner, and those found by
/// an id. A probabilistic candidate that lost belongs to another person.
pub fn own_candidates(decision: &Decision) -> impl Iterator<Item = &ConsideredCandidate> {
    let is_winner = |one: &ConsideredCandidate| one.click.is_some() && one.click == decision.click;
    let candidates = decision.candidates.iter();
    candidates.filter(move |one| one.method != MatchMethod::Probabilistic || is_winner(one))
}

#[cfg(test)]
mod tests;
