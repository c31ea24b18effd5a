//! Settling subscribers: what everything that is known of them comes to.
//!
//! A pure function of the set of notifications, joins and transfers. The order of arrival is not an input, so late,
//! repeated and reordered notifications cannot change the outcome.

use super::chain::{ChainEntry, EarlierPayment, by_time, first_reports, settle as settle_chain};
use super::hold::{self, Trial};
use super::join::{AdvertisingLink, Join, PersonLink, devices, find_join, pick};
use super::{
    Chain, JOIN_WINDOW, Notification, NotificationMeaning, PERSON_IDS_MAX, SettledNotification,
    chain_key, device_key, person_key,
};
use crate::access::Environment;
use crate::app::BillingProvider;
use crate::device::{DeviceKey, UserKey};
use crate::vocabulary::id::AppId;
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is known of connected subscribers of one app and environment. More than that does no harm.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectedSubscriptions {
    /// Their notifications, as they are stored.
    pub notifications: Vec<Notification>,
    /// The devices of people.
    pub people: Vec<PersonLink>,
    /// The devices of advertising ids.
    pub advertising: Vec<AdvertisingLink>,
    /// Trials on hold.
    pub trials: BTreeMap<Chain, Trial>,
}

/// A notification that comes to something else than what is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationChange {
    /// As it is stored; nothing when it has to be added.
    pub before: Option<Notification>,
    /// As it has to be; nothing when it has to be removed.
    pub now: Option<Notification>,
}

impl NotificationChange {
    fn versions(&self) -> impl Iterator<Item = &Notification> {
        self.before.iter().chain(&self.now)
    }

    /// The subscription that it is of.
    pub fn chain(&self) -> Option<Chain> {
        self.versions().next().map(Chain::of)
    }

    /// The devices whose first payment may change with it.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceKey> {
        let payments = self.versions();
        let payments =
            payments.filter(|one| matches!(one.content.meaning, NotificationMeaning::Payment(_)));
        payments.filter_map(|one| one.settled.device.as_ref())
    }

    /// The transactions whose verified events may change with it.
    pub fn verified_transactions(&self) -> BTreeSet<(AppId, Environment, &str)> {
        let named = self.versions().filter_map(|one| {
            let transaction = one.verified_transaction()?;
            Some((one.app, one.content.environment, transaction))
        });
        named.collect()
    }

    /// How many events, and how many of those with a device, there are more than before.
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

/// What has to be written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BillingSettlement {
    /// Notifications, those first that lose their event: another one may take it over.
    pub changed: Vec<NotificationChange>,
    /// Trials whose state changed.
    pub trials: Vec<(Chain, Trial)>,
}

impl BillingSettlement {
    /// Keeps only the rows of these subscriptions; no filter keeps all.
    #[must_use]
    pub fn restricted_to(mut self, written: Option<&BTreeSet<Chain>>) -> Self {
        let Some(written) = written else { return self };
        let is_written = |chain: &Chain| written.contains(chain);
        self.trials.retain(|(chain, _)| is_written(chain));
        self.changed
            .retain(|changed| changed.chain().as_ref().is_some_and(is_written));
        self
    }

    /// What a notification comes to now.
    pub fn settled_for<'a>(&'a self, one: &'a Notification) -> &'a SettledNotification {
        let now = self
            .changed
            .iter()
            .filter_map(|changed| changed.now.as_ref());
        let mut now = now.filter(|now| id(now) == id(one));
        now.next().map_or(&one.settled, |now| &now.settled)
    }

    /// The devices that events are on, and those that they leave.
    pub fn devices(&self) -> BTreeSet<&DeviceKey> {
        let all = self.changed.iter().flat_map(NotificationChange::versions);
        all.filter_map(|one| one.settled.device.as_ref()).collect()
    }
}

impl ConnectedSubscriptions {
    /// The subscriptions whose trials have to be known.
    pub fn trial_chains(&self) -> BTreeSet<Chain> {
        let all = self.notifications.iter();
        let starts = all.filter(|one| one.content.meaning == NotificationMeaning::TrialStart);
        starts.map(Chain::of).collect()
    }

    /// Settles the set at a moment. Notifications on a device whose own facts changed are given back even where they
    /// come to the same, since their events may not.
    pub fn settle(&self, now: Timestamp, device: Option<&DeviceKey>) -> BillingSettlement {
        let (mut after, trials) = self.outcome(now);
        let mut changed: Vec<NotificationChange> = self
            .notifications
            .iter()
            .map(|before| {
                // One whose event gets another time, and so another id, is removed and added.
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
        let keeps = |one: &NotificationChange| {
            one.now
                .as_ref()
                .is_some_and(|now| now.settled.name.is_some())
        };
        changed.sort_by_key(keeps);
        BillingSettlement { changed, trials }
    }

    fn outcome(&self, now: Timestamp) -> (Outcome, Vec<(Chain, Trial)>) {
        let mut sorted: Vec<&Notification> = self
            .notifications
            .iter()
            .filter(|one| !hold::is_qualified(one))
            .collect();
        sorted.sort_by_key(|one| by_time(one));
        let memory = TransferGraph::of(&sorted);
        let joins: Vec<Option<Join>> = sorted.iter().map(|one| self.join(one, &memory)).collect();
        let mut chains: BTreeMap<Chain, Vec<usize>> = BTreeMap::new();
        for (place, one) in sorted.iter().enumerate() {
            chains.entry(Chain::of(one)).or_default().push(place);
        }
        let mut stands = vec![false; sorted.len()];
        let mut devices_of = vec![None; sorted.len()];
        for places in chains.values() {
            let chain: Vec<&Notification> = places.iter().map(|place| sorted[*place]).collect();
            let own: Vec<Option<&Join>> = places.iter().map(|it| joins[*it].as_ref()).collect();
            let found = first_reports(&chain).into_iter().zip(devices(&own));
            for (place, (is_standing, device)) in places.iter().zip(found) {
                stands[*place] = is_standing;
                devices_of[*place] = device;
            }
        }
        let mut before = earlier_payments(&sorted, &stands, &devices_of, &memory);
        let mut outcome = Outcome::new();
        let mut trials = Vec::new();
        for (chain, places) in &chains {
            let placed: Vec<ChainEntry<'_>> = places
                .iter()
                .map(|place| ChainEntry {
                    one: sorted[*place],
                    is_first_report: stands[*place],
                    device: devices_of[*place].clone(),
                    earlier_payment: before[*place].take(),
                })
                .collect();
            let mut settled = Vec::new();
            for (place, standing) in places.iter().zip(settle_chain(&placed)) {
                let mut one = sorted[*place].clone();
                one.join.clone_from(&joins[*place]);
                one.settled = self.with_user(&one, standing);
                settled.push(one);
            }
            if let Some(trial) = self.trials.get(chain) {
                let (state, qualified) = hold::settle(*trial, &settled, now);
                settled.extend(qualified);
                if state != trial.state {
                    trials.push((chain.clone(), Trial { state, ..*trial }));
                }
            }
            outcome.extend(settled.into_iter().map(|one| (id(&one), one)));
        }
        (outcome, trials)
    }

    /// The device that a notification has by itself. Evidence that came long after it counts no more.
    fn join(&self, one: &Notification, memory: &TransferGraph) -> Option<Join> {
        if one.content.meaning == NotificationMeaning::Receipt {
            return None;
        }
        let until = one.received_at.plus(JOIN_WINDOW);
        let who = &one.content.subscriber;
        let people = memory.with_transferred(&who.people);
        let people = self.people.iter().filter(|link| people.contains(&link.id));
        let people = people.map(|link| (link.since, link.device.clone()));
        let ids = self.advertising.iter();
        let ids = ids.filter(|link| who.advertising.contains(&link.id));
        let ids = ids.map(|link| (link.since, link.device.clone()));
        find_join(
            one,
            people.filter(|(since, _)| *since <= until).collect(),
            ids.filter(|(since, _)| *since <= until).collect(),
        )
    }

    fn with_user(&self, one: &Notification, standing: SettledNotification) -> SettledNotification {
        if standing.name.is_none() || !one.content.subscriber.people.is_empty() {
            return standing;
        }
        let device = standing.device.as_ref();
        let links = self.people.iter();
        let users: Vec<(Timestamp, UserKey)> = links
            .filter(|link| Some(&link.device) == device)
            .map(|link| (link.since, link.id.clone()))
            .collect();
        SettledNotification {
            user: pick(&users, one.happened_at).map(|(_, user)| user.clone()),
            ..standing
        }
    }
}

/// Notifications by their provider's ids.
type Outcome = BTreeMap<(BillingProvider, String), Notification>;

fn id(one: &Notification) -> (BillingProvider, String) {
    (one.provider, one.content.external_id.clone())
}

/// Whose links and payments people have beside their own: those of people who were transferred to them.
struct TransferGraph<'a>(BTreeMap<&'a UserKey, BTreeSet<&'a UserKey>>);

impl<'a> TransferGraph<'a> {
    fn of(notifications: &[&'a Notification]) -> Self {
        let mut givers: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for one in notifications {
            if let NotificationMeaning::Transfer { from, to } = &one.content.meaning {
                for to in to {
                    givers.entry(to).or_default().extend(from);
                }
            }
        }
        Self(givers)
    }

    /// Some people, and everyone whose memory they have. What was given on is given on.
    fn with_transferred<'b>(&self, people: &'b [UserKey]) -> BTreeSet<&'b UserKey>
    where
        'a: 'b,
    {
        let mut all: BTreeSet<&UserKey> = people.iter().collect();
        let mut todo: Vec<&UserKey> = people.iter().collect();
        while let Some(person) = todo.pop() {
            for giver in self.0.get(person).into_iter().flatten() {
                if all.len() < PERSON_IDS_MAX && all.insert(giver) {
                    todo.push(giver);
                }
            }
        }
        all
    }
}

/// Finds the latest earlier payment of the same person for each payment of a period: of the same subscription, of any
/// id of the person, or of the same device. Notifications are in the order of their time.
fn earlier_payments(
    sorted: &[&Notification],
    stands: &[bool],
    devices: &[Option<DeviceKey>],
    memory: &TransferGraph<'_>,
) -> Vec<Option<EarlierPayment>> {
    let mut latest: BTreeMap<String, usize> = BTreeMap::new();
    let mut before = vec![None; sorted.len()];
    for (place, one) in sorted.iter().enumerate() {
        if !stands[place] || !one.is_period() {
            continue;
        }
        let people = &one.content.subscriber.people;
        let own = std::iter::once(chain_key(one.provider, &one.chain()))
            .chain(devices[place].as_ref().map(device_key));
        let own: Vec<String> = own.collect();
        let remembered = memory.with_transferred(people);
        let keys = remembered.into_iter().map(person_key);
        let found = keys
            .chain(own.iter().cloned())
            .filter_map(|key| latest.get(&key));
        before[place] = found.max().map(|paid| EarlierPayment {
            product: sorted[*paid].content.product.clone(),
        });
        if one.is_paid_period() {
            let keys = people.iter().map(person_key).chain(own);
            latest.extend(keys.map(|key| (key, place)));
        }
    }
    before
}

#[cfg(test)]
mod tests;
