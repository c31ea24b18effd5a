//! Subscriptions of an erased device. They stay with it, so that a renewal is credited as the payments before it.

use super::{Erasure, is_pseudonym};
use crate::billing::join::Join;
use crate::billing::{Notification, NotificationMeaning, Subscriber};
use crate::device::{DeviceKey, UserKey};
use crate::vocabulary::time::Timestamp;

impl Erasure {
    /// What remains of a notification: everything but who it is about. One that is another device's loses the erased ids
    /// alone.
    #[must_use]
    pub fn erase_notification(&self, mut one: Notification) -> Notification {
        let is_others = |device: &DeviceKey| *device != self.device;
        let stays = one.settled.device.as_ref().is_some_and(is_others);
        let who = &mut one.content.subscriber;
        if stays || !self.concerns(who, one.settled.device.as_ref()) {
            who.device.take_if(|device| *device == self.device);
            who.people.retain(|person| !self.people.contains(person));
            who.advertising.retain(|id| !self.advertising.contains(id));
        } else {
            // One that no device was found for keeps the name as a mark: its provider goes on naming the person.
            let waits = one.settled.device.is_none();
            *who = Subscriber {
                device: waits.then(|| self.pseudonym.clone()),
                ..Subscriber::default()
            };
        }
        if let NotificationMeaning::Transfer { from, to } = &mut one.content.meaning {
            let is_known = |person: &UserKey| !self.people.contains(person);
            from.retain(is_known);
            to.retain(is_known);
        }
        one.join = one.join.map(|join| Join {
            device: self.pseudonymised(join.device),
            ..join
        });
        if !stays {
            one.settled.user = None;
        }
        let user = &mut one.settled.user;
        user.take_if(|user| self.people.contains(user));
        one.settled.device = one.settled.device.map(|device| self.pseudonymised(device));
        one
    }

    fn concerns(&self, who: &Subscriber, stands_on: Option<&DeviceKey>) -> bool {
        stands_on == Some(&self.device)
            || who.device.as_ref() == Some(&self.device)
            || who.people.iter().any(|one| self.people.contains(one))
            || who
                .advertising
                .iter()
                .any(|one| self.advertising.contains(one))
    }

    fn pseudonymised(&self, device: DeviceKey) -> DeviceKey {
        if device == self.device {
            self.pseudonym.clone()
        } else {
            device
        }
    }
}

/// Whether something new of a subscription belongs to an erased device, so that nothing is kept of who it is about.
///
/// Nobody knows the erased id any more. A device that is named is therefore believed only if another part of the
/// subscription stands on it already; where none is named, the neighbour in time tells.
pub fn continues_erased_subscription(
    subscription: &[Notification],
    named: Option<&DeviceKey>,
    at: Timestamp,
) -> bool {
    let mut standing: Vec<(Timestamp, &DeviceKey)> = subscription
        .iter()
        .filter_map(|one| {
            let mark = one.content.subscriber.device.as_ref();
            let mark = mark.filter(|device| is_pseudonym(device));
            Some((one.happened_at, one.settled.device.as_ref().or(mark)?))
        })
        .collect();
    if !standing.iter().any(|(_, device)| is_pseudonym(device)) {
        return false;
    }
    if let Some(named) = named {
        return is_pseudonym(named) || standing.iter().all(|(_, device)| *device != named);
    }
    standing.sort_by_key(|(happened_at, _)| *happened_at);
    let before = standing.iter().rev().find(|(then, _)| *then <= at);
    let neighbour = before.or_else(|| standing.first());
    neighbour.is_some_and(|(_, device)| is_pseudonym(device))
}
