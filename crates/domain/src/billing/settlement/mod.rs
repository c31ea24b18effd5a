//! Settlement: computes the effects of everything known about connected subscribers.
//!
//! A pure function of notifications, joins and transfers. The order of arrival is not an input, so
//! late, repeated and reordered notifications cannot change the result.

use super::chain::{ChainEntry, EarlierPayment, by_time, first_reports, settle as settle_chain};
use super::hold::{self, Trial};
use super::join::{AdvertisingLink, DeviceClaim, PersonLink, devices, find_claim, pick};
use super::payment::{SharedPayments, WebPayment};
use super::{
    Chain, JOIN_WINDOW, Notification, NotificationMeaning, PERSON_IDS_MAX, SettledNotification,
    device_key, person_key,
};
use crate::access::Environment;
use crate::app::BillingProvider;
use crate::device::{DeviceKey, UserKey};
use crate::vocabulary::id::{AppId, EventId};
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Input of a settlement: all known data about connected subscribers of one app and environment.
/// Data about other subscribers cannot change the outcome.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectedSubscriptions {
    /// Stored notifications.
    pub notifications: Vec<Notification>,
    /// Links from users to devices.
    pub people: Vec<PersonLink>,
    /// Links from advertising ids to devices.
    pub advertising: Vec<AdvertisingLink>,
    /// Held trials.
    pub trials: BTreeMap<Chain, Trial>,
    /// Website events for the payments.
    pub web_payments: Vec<WebPayment>,
}

/// A notification whose effect differs from what is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationChange {
    /// Stored form; `None` if it must be added.
    pub before: Option<Notification>,
    /// New form; `None` if it must be removed.
    pub now: Option<Notification>,
}

impl NotificationChange {
    fn versions(&self) -> impl Iterator<Item = &Notification> {
        self.before.iter().chain(&self.now)
    }

    /// Returns the notification's subscription.
    pub fn chain(&self) -> Option<Chain> {
        self.versions().next().map(Chain::of)
    }

    /// Returns the devices whose first payment may change.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceKey> {
        let payments = self.versions();
        let payments =
            payments.filter(|one| matches!(one.content.meaning, NotificationMeaning::Payment(_)));
        payments.filter_map(|one| one.settled.device.as_ref())
    }

    /// Returns the transactions whose verified events may change.
    pub fn verified_transactions(&self) -> BTreeSet<(AppId, Environment, &str)> {
        let named = self.versions().filter_map(|one| {
            let transaction = one.verified_transaction()?;
            Some((one.app, one.content.environment, transaction))
        });
        named.collect()
    }

    /// Returns the change in the number of events, and of events with a device.
    pub fn event_count_change(&self) -> (i64, i64) {
        let step = |is: fn(&SettledNotification) -> bool| {
            let is = |one: &Notification| is(&one.settled);
            let count = |one: &Option<Notification>| i64::from(one.as_ref().is_some_and(is));
            count(&self.now) - count(&self.before)
        };
        (
            step(SettledNotification::makes_event),
            step(SettledNotification::is_matched),
        )
    }
}

/// Changes to write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BillingSettlement {
    /// Changed notifications. Notifications that lose their event come first, because another
    /// notification may take over the event.
    pub changed: Vec<NotificationChange>,
    /// Trials whose state changed.
    pub trials: Vec<(Chain, Trial)>,
}

impl BillingSettlement {
    /// Keeps only the changes to these subscriptions; `None` keeps all.
    #[must_use]
    pub fn restricted_to(mut self, written: Option<&BTreeSet<Chain>>) -> Self {
        let Some(written) = written else { return self };
        let is_written = |chain: &Chain| written.contains(chain);
        self.trials.retain(|(chain, _)| is_written(chain));
        self.changed
            .retain(|changed| changed.chain().as_ref().is_some_and(is_written));
        self
    }

    /// Returns the current effect of a notification.
    pub fn settled_for<'a>(&'a self, one: &'a Notification) -> &'a SettledNotification {
        let now = self
            .changed
            .iter()
            .filter_map(|changed| changed.now.as_ref());
        let mut now = now.filter(|now| id(now) == id(one));
        now.next().map_or(&one.settled, |now| &now.settled)
    }

    /// Returns the devices that gain, keep or lose events.
    pub fn devices(&self) -> BTreeSet<&DeviceKey> {
        let all = self.changed.iter().flat_map(NotificationChange::versions);
        all.filter_map(|one| one.settled.device.as_ref()).collect()
    }
}

impl ConnectedSubscriptions {
    /// Returns the subscriptions whose held trials the store must load: those with a trial start.
    pub fn trial_chains(&self) -> BTreeSet<Chain> {
        let all = self.notifications.iter();
        let starts = all.filter(|one| one.content.meaning == NotificationMeaning::TrialStart);
        starts.map(Chain::of).collect()
    }

    /// Returns the ids under which a website may report the payments.
    pub fn shared_payment_ids(&self) -> BTreeSet<&str> {
        let all = self.notifications.iter();
        all.flat_map(Notification::shared_payment_ids).collect()
    }

    /// Returns the events that report the payment with this id, which Stripe took.
    pub fn payment_events(&self, id: &str) -> BTreeSet<EventId> {
        let all: Vec<&Notification> = self.notifications.iter().collect();
        let shared = SharedPayments::of(&all, &[]);
        let payment = shared.payment_of_id(id);
        let reports = all.iter().filter(|one| {
            one.settled.makes_event()
                && matches!(one.content.meaning, NotificationMeaning::Payment(_))
                && one.shared_payment_ids().next().is_some()
                && shared.payment(one) == Some(payment)
        });
        reports.map(|one| one.event).collect()
    }

    /// Settles all notifications as of `now`. `device` is a device whose properties changed. Its
    /// notifications are returned even if they are unchanged, because their events contain copies
    /// of these properties.
    pub fn settle(&self, now: Timestamp, device: Option<&DeviceKey>) -> BillingSettlement {
        let (mut after, trials) = self.outcome(now);
        let mut changed: Vec<NotificationChange> = self
            .notifications
            .iter()
            .map(|before| {
                // If the event gets another time, it also gets another id. The notification is then
                // removed and added again.
                let is_same = after
                    .get(&id(before))
                    .is_some_and(|now| now.event == before.event);
                let now = is_same.then(|| after.remove(&id(before))).flatten();
                NotificationChange {
                    now,
                    before: Some(before.clone()),
                }
            })
            .filter(|changed| {
                let on = changed.now.as_ref().map(|now| now.settled.device.as_ref());
                changed.before != changed.now || (device.is_some() && on == Some(device))
            })
            .collect();
        changed.extend(after.into_values().map(|now| NotificationChange {
            before: None,
            now: Some(now),
        }));
        let keeps_event = |one: &NotificationChange| {
            one.now
                .as_ref()
                .is_some_and(|now| now.settled.name.is_some())
        };
        changed.sort_by_key(keeps_event);
        BillingSettlement { changed, trials }
    }

    fn outcome(&self, now: Timestamp) -> (Outcome, Vec<(Chain, Trial)>) {
        let mut sorted: Vec<&Notification> = self
            .notifications
            .iter()
            .filter(|one| !hold::is_qualified(one))
            .collect();
        sorted.sort_by_key(|one| by_time(one));
        let transfers = TransferGraph::of(&sorted);
        let claims: Vec<Option<DeviceClaim>> = sorted
            .iter()
            .map(|one| self.claim(one, &transfers))
            .collect();
        let shared = SharedPayments::of(&sorted, &self.web_payments);
        let subscriptions: Vec<String> =
            sorted.iter().map(|one| shared.subscription(one)).collect();
        let mut chains: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (position, subscription) in subscriptions.iter().enumerate() {
            chains.entry(subscription).or_default().push(position);
        }
        let mut is_first_report = vec![false; sorted.len()];
        let mut devices_of = vec![None; sorted.len()];
        for positions in chains.values() {
            let chain: Vec<&Notification> =
                positions.iter().map(|position| sorted[*position]).collect();
            let own = positions.iter().map(|position| claims[*position].as_ref());
            let own: Vec<Option<&DeviceClaim>> = own.collect();
            let found = first_reports(&chain, &shared)
                .into_iter()
                .zip(devices(&own));
            for (position, (is_first, device)) in positions.iter().zip(found) {
                is_first_report[*position] = is_first;
                devices_of[*position] = device;
            }
        }
        let mut before = PaymentHistory {
            sorted: &sorted,
            is_first_report: &is_first_report,
            devices: &devices_of,
            subscriptions: &subscriptions,
        }
        .earlier_payments(&transfers);
        let mut outcome = Outcome::new();
        let mut trials = Vec::new();
        for positions in chains.values() {
            let entries: Vec<ChainEntry<'_>> = positions
                .iter()
                .map(|position| ChainEntry {
                    one: sorted[*position],
                    is_first_report: is_first_report[*position],
                    device: devices_of[*position].clone(),
                    earlier_payment: before[*position].take(),
                })
                .collect();
            let mut settled = Vec::new();
            for (position, effect) in positions.iter().zip(settle_chain(&entries, &shared)) {
                let mut one = sorted[*position].clone();
                one.join = claims[*position].as_ref().map(DeviceClaim::join);
                one.settled = self.with_user(&one, effect);
                settled.push(one);
            }
            let (qualified, changed) = self.settle_trials(&settled, now);
            trials.extend(changed);
            settled.extend(qualified);
            outcome.extend(settled.into_iter().map(|one| (id(&one), one)));
        }
        (outcome, trials)
    }

    /// Settles the held trials of a subscription. Returns the notifications of trials that qualify,
    /// and the trials whose state changed.
    fn settle_trials(
        &self,
        settled: &[Notification],
        now: Timestamp,
    ) -> (Vec<Notification>, Vec<(Chain, Trial)>) {
        let chains: BTreeSet<Chain> = settled.iter().map(Chain::of).collect();
        let (mut qualified, mut changed) = (Vec::new(), Vec::new());
        for chain in chains {
            let Some(trial) = self.trials.get(&chain) else {
                continue;
            };
            let (state, notification) = hold::settle(*trial, settled, now);
            qualified.extend(notification);
            if state != trial.state {
                changed.push((chain, Trial { state, ..*trial }));
            }
        }
        (qualified, changed)
    }

    /// Finds the best claim to a single notification. Ignores links that were made more than
    /// [`JOIN_WINDOW`] after the notification arrived.
    fn claim(&self, one: &Notification, transfers: &TransferGraph) -> Option<DeviceClaim> {
        if one.content.meaning == NotificationMeaning::Receipt {
            return None;
        }
        let who = &one.content.subscriber;
        let people = transfers.with_transferred(&who.people);
        let people = self.people.iter().filter(|link| people.contains(&link.id));
        let people: Vec<&PersonLink> = people.collect();
        let ids = self.advertising.iter();
        let ids = ids.filter(|link| who.advertising.contains(&link.id));
        let ids: Vec<&AdvertisingLink> = ids.collect();
        find_claim(one, &people, &ids, one.received_at.plus(JOIN_WINDOW))
    }

    fn with_user(&self, one: &Notification, effect: SettledNotification) -> SettledNotification {
        if effect.name.is_none() || !one.content.subscriber.people.is_empty() {
            return effect;
        }
        let device = effect.device.as_ref();
        let links = self.people.iter();
        let users: Vec<(Timestamp, UserKey)> = links
            .filter(|link| link.is_used && Some(&link.device) == device)
            .map(|link| (link.latest, link.id.clone()))
            .collect();
        SettledNotification {
            user: pick(&users, one.happened_at).map(|(_, user)| user.clone()),
            ..effect
        }
    }
}

/// Notifications by provider and external id.
type Outcome = BTreeMap<(BillingProvider, String), Notification>;

fn id(one: &Notification) -> (BillingProvider, String) {
    (one.provider, one.content.external_id.clone())
}

/// For each user, the previous owners of purchases that were transferred to the user. The user
/// inherits the previous owners' links and payments.
struct TransferGraph<'a>(BTreeMap<&'a UserKey, BTreeSet<&'a UserKey>>);

impl<'a> TransferGraph<'a> {
    fn of(notifications: &[&'a Notification]) -> Self {
        let mut previous_owners: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for one in notifications {
            if let NotificationMeaning::Transfer { from, to } = &one.content.meaning {
                for to in to {
                    previous_owners.entry(to).or_default().extend(from);
                }
            }
        }
        Self(previous_owners)
    }

    /// Returns the users and all direct and indirect previous owners of their purchases.
    fn with_transferred<'b>(&self, people: &'b [UserKey]) -> BTreeSet<&'b UserKey>
    where
        'a: 'b,
    {
        let mut all: BTreeSet<&UserKey> = people.iter().collect();
        let mut todo: Vec<&UserKey> = people.iter().collect();
        while let Some(person) = todo.pop() {
            for owner in self.0.get(person).into_iter().flatten() {
                if all.len() < PERSON_IDS_MAX && all.insert(owner) {
                    todo.push(owner);
                }
            }
        }
        all
    }
}

/// Notifications sorted by time, with what is known about each of them.
struct PaymentHistory<'a> {
    sorted: &'a [&'a Notification],
    is_first_report: &'a [bool],
    devices: &'a [Option<DeviceKey>],
    /// Key of each notification's subscription.
    subscriptions: &'a [String],
}

impl PaymentHistory<'_> {
    /// Finds for each subscription payment the latest earlier payment by the same user: in the same
    /// subscription, under any of the user's ids, or on the same device.
    fn earlier_payments(&self, transfers: &TransferGraph<'_>) -> Vec<Option<EarlierPayment>> {
        let mut latest: BTreeMap<String, usize> = BTreeMap::new();
        let mut before = vec![None; self.sorted.len()];
        for (position, one) in self.sorted.iter().enumerate() {
            if !self.is_first_report[position] || !one.is_period() {
                continue;
            }
            let people = &one.content.subscriber.people;
            let own = std::iter::once(self.subscriptions[position].clone())
                .chain(self.devices[position].as_ref().map(device_key));
            let own: Vec<String> = own.collect();
            let owners = transfers.with_transferred(people);
            let keys = owners.into_iter().map(person_key);
            let found = keys
                .chain(own.iter().cloned())
                .filter_map(|key| latest.get(&key));
            before[position] = found.max().map(|paid| EarlierPayment {
                product: self.sorted[*paid].content.product.clone(),
            });
            if one.is_paid_period() {
                let keys = people.iter().map(person_key).chain(own);
                latest.extend(keys.map(|key| (key, position)));
            }
        }
        before
    }
}

#[cfg(test)]
mod tests;
