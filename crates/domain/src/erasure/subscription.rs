//! Subscriptions of an erased device. They stay with the device, so that a renewal is credited like
//! the payments before it.

use super::{Erasure, is_pseudonym};
use crate::billing::join::Join;
use crate::billing::{Notification, NotificationMeaning, Subscriber};
use crate::device::{DeviceKey, UserKey};
use crate::vocabulary::time::Timestamp;

impl Erasure {
    /// Returns what remains of a notification: everything except its subscriber. A notification
    /// joined to another device loses only the erased ids.
    #[must_use]
    pub fn erase_notification(&self, mut one: Notification) -> Notification {
        let is_other_device = |device: &DeviceKey| *device != self.device;
        let belongs_to_other = one.settled.device.as_ref().is_some_and(is_other_device);
        let is_own = self.person.own_notification(&one);
        let subscriber = &mut one.content.subscriber;
        if is_own {
            // An unmatched notification keeps the pseudonym as a mark, because the provider keeps
            // naming the user in later notifications.
            let is_unmatched = one.settled.device.is_none();
            *subscriber = Subscriber {
                device: is_unmatched.then(|| self.pseudonym.clone()),
                ..Subscriber::default()
            };
        } else {
            let person = &self.person;
            subscriber.device.take_if(|device| *device == self.device);
            subscriber
                .people
                .retain(|user| !person.users.contains(user));
            subscriber
                .advertising
                .retain(|id| !person.advertising.contains(id));
        }
        if let NotificationMeaning::Transfer { from, to } = &mut one.content.meaning {
            let is_kept = |user: &UserKey| !self.person.users.contains(user);
            from.retain(is_kept);
            to.retain(is_kept);
        }
        one.join = one.join.map(|join| Join {
            device: self.pseudonymised(join.device),
            ..join
        });
        if is_own || !belongs_to_other {
            one.settled.user = None;
        }
        let user = &mut one.settled.user;
        user.take_if(|user| self.person.users.contains(user));
        one.settled.device = one.settled.device.map(|device| self.pseudonymised(device));
        one
    }

    fn pseudonymised(&self, device: DeviceKey) -> DeviceKey {
        if device == self.device {
            self.pseudonym.clone()
        } else {
            device
        }
    }
}

/// Returns whether a new notification belongs to an erased device. If so, the notification's
/// subscriber must not be stored.
///
/// The erased device id is no longer known. A named device is therefore accepted only if another of
/// the subscription's notifications is already joined to it. If no device is named, the new
/// notification belongs to the same device as the latest stored notification before it, otherwise
/// to that of the first stored notification.
pub fn continues_erased_subscription(
    subscription: &[Notification],
    named: Option<&DeviceKey>,
    at: Timestamp,
) -> bool {
    let mut devices: Vec<(Timestamp, &DeviceKey)> = subscription
        .iter()
        .filter_map(|one| {
            let mark = one.content.subscriber.device.as_ref();
            let mark = mark.filter(|device| is_pseudonym(device));
            Some((one.happened_at, one.settled.device.as_ref().or(mark)?))
        })
        .collect();
    if !devices.iter().any(|(_, device)| is_pseudonym(device)) {
        return false;
    }
    if let Some(named) = named {
        return is_pseudonym(named) || devices.iter().all(|(_, device)| *device != named);
    }
    devices.sort_by_key(|(happened_at, _)| *happened_at);
    let before = devices.iter().rev().find(|(then, _)| *then <= at);
    let closest = before.or_else(|| devices.first());
    closest.is_some_and(|(_, device)| is_pseudonym(device))
}
