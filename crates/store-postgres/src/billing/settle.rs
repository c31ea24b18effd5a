//! Settling subscriptions: loads what is connected, lets the domain settle it, and writes what differs.

use super::counts::Count;
use super::{counts, keys, notifications, people, trials};
use crate::devices::{self, DeviceRef, lock_known, locked};
use crate::event_rows::{self, EventKey};
use crate::outbox::ends::Ends;
use crate::params::column;
use crate::planned::Replanning;
use crate::rows::uuid;
use crate::tx::Tx;
use crate::{Failure, duplicates, planned};
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::billing::connected::{Found, KEY_SUBSCRIPTIONS_MAX, Need, Search};
use tributary_domain::billing::settlement::Changed;
use tributary_domain::billing::{Chain, Meaning, Notification, RENEWAL, transaction_key};
use tributary_domain::device::{AdvertisingId, DeviceKey, UserKey};
use tributary_domain::event::Event;
use tributary_domain::event::duplicate::join_root;
use tributary_domain::forwarding::course::{ATTRIBUTION_CHANGED, NOT_FIRST_PAYMENT};
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::Known;
use tributary_domain::ledger::MoneyPolicy;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{PlannedRow, billing_event};

/// Under which circumstances subscriptions are settled.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Timestamp,
    /// Whether the app holds back what suspicious installs do.
    pub(crate) holds_suspicious: bool,
}

/// Settlements in one transaction.
pub(super) struct Settling<'a> {
    tx: &'a Tx,
    moment: Moment,
    increments: Increments,
    /// Devices whose first payment may change.
    payers: BTreeSet<DeviceKey>,
}

impl<'a> Settling<'a> {
    pub(super) fn new(tx: &'a Tx, moment: Moment) -> Self {
        Self {
            tx,
            moment,
            increments: Increments::default(),
            payers: BTreeSet::new(),
        }
    }

    pub(super) fn into_increments(self) -> Increments {
        self.increments
    }

    /// Settles subscriptions and everything that is connected with them. The events of a device that changed are
    /// compared even where their notifications come to the same.
    pub(super) async fn settle(
        &mut self,
        chains: BTreeSet<Chain>,
        device: Option<&DeviceKey>,
    ) -> Result<(), Failure> {
        let Some(of) = chains.first().map(|it| (it.app, it.environment)) else {
            return Ok(());
        };
        let mut search = Search::of(chains);
        while let Some(need) = search.next_need() {
            search.add(load(self.tx, of, &need).await?);
        }
        let (mut connected, written) = search.finish();
        let with_trial = connected.notifications.iter();
        let with_trial = with_trial.filter(|one| one.said.meaning == Meaning::TrialStart);
        let with_trial: BTreeSet<Chain> = with_trial.map(Chain::of).collect();
        for chain in with_trial {
            if let Some(trial) = trials::find(self.tx, &chain).await? {
                connected.trials.insert(chain, trial);
            }
        }
        let settlement = connected.settle(self.moment.now, device);
        let is_written = |chain: &Chain| written.as_ref().is_none_or(|it| it.contains(chain));
        for (chain, trial) in settlement.trials {
            if is_written(&chain) {
                trials::write_state(self.tx, &chain, trial).await?;
            }
        }
        lock(self.tx, of, &settlement.changed, self.moment.now).await?;
        for changed in settlement.changed {
            if changed.chain().is_some_and(|chain| is_written(&chain)) {
                self.write(&changed).await?;
                self.payers.extend(changed.devices().cloned());
            }
        }
        for device in std::mem::take(&mut self.payers) {
            let increments = &mut self.increments;
            devices::settle_first_payment(self.tx, of, &device, increments).await?;
        }
        Ok(())
    }

    async fn write(&mut self, changed: &Changed) -> Result<(), Failure> {
        let (before, now) = (changed.before.as_ref(), changed.now.as_ref());
        match (before, now) {
            (None, Some(now)) => notifications::insert_derived(self.tx, now).await?,
            (Some(before), Some(now)) if before != now => {
                notifications::update(self.tx, now).await?;
            }
            (Some(before), None) => notifications::remove(self.tx, before).await?,
            _ => {}
        }
        if let Some(now) = now {
            keys::insert(self.tx, now).await?;
        }
        self.count(changed).await?;
        let has_event = |one: &&Notification| one.standing.name.is_some();
        let stored = match before.filter(has_event) {
            Some(before) => Some(find_event(self.tx, before).await?),
            None => None,
        };
        match (stored, now.filter(has_event)) {
            (None, Some(now)) => self.record(now).await?,
            (Some(Some(stored)), Some(now)) => self.replace(&stored, now).await?,
            (Some(Some(stored)), None) => self.remove(&stored).await?,
            // The event was erased, or there is none.
            (Some(None), _) | (None, None) => {}
        }
        self.settle_reported(changed).await
    }

    /// Decides about the SDK events that report the same.
    async fn settle_reported(&mut self, changed: &Changed) -> Result<(), Failure> {
        for id in changed.verified_transactions() {
            let (now, increments) = (self.moment.now, &mut self.increments);
            let payer = duplicates::settle_reported(self.tx, id, now, increments).await?;
            self.payers.extend(payer);
        }
        Ok(())
    }

    /// Reserves the event's transaction, and lets the event take the root of the SDK event that reported the same.
    async fn join_reported(&self, event: &mut Event, now: &Notification) -> Result<(), Failure> {
        let Some(transaction) = now.verified_transaction() else {
            return Ok(());
        };
        let id = (event.app, event.environment, transaction);
        duplicates::reserve_transactions(self.tx, BTreeSet::from([id])).await?;
        if let Some(reported) = duplicates::reported(self.tx, id).await? {
            join_root(event, &reported);
        }
        Ok(())
    }

    async fn count(&self, changed: &Changed) -> Result<(), Failure> {
        let Some(one) = changed.now.as_ref().or(changed.before.as_ref()) else {
            return Ok(());
        };
        let (events, matched) = changed.counted();
        if events == 0 && matched == 0 {
            return Ok(());
        }
        let count = Count {
            events,
            matched,
            ..Count::default()
        };
        let (app, environment) = (one.app, one.said.environment);
        let at = one.received_at;
        counts::add(self.tx, app, one.provider, environment, at, count).await
    }

    async fn event(&self, now: &Notification) -> Result<(Option<Event>, Known), Failure> {
        let (app, environment) = (now.app, now.said.environment);
        let known = match &now.standing.device {
            Some(key) => {
                let device = DeviceRef {
                    app,
                    environment,
                    key,
                };
                lock_known(self.tx, device, self.moment.now).await?
            }
            None => Known::default(),
        };
        Ok((billing_event(now, &known), known))
    }

    /// Records an event. This is the only place where a billing event is added.
    async fn record(&mut self, now: &Notification) -> Result<(), Failure> {
        let (Some(mut event), known) = self.event(now).await? else {
            return Ok(());
        };
        self.join_reported(&mut event, now).await?;
        let around = planned::surroundings_of(self.tx, &event).await?;
        let facts = self.facts(&known, around.click.as_ref());
        let plan = facts.plan(&mut event, &around.integrations);
        let key = EventKey {
            app: event.app,
            environment: event.environment,
            source: event.source,
            given_id: &event.given_id,
            event: event.id,
            fingerprint: None,
        };
        if event_rows::claim(self.tx, &[key]).await? != [true] {
            // Another provider's event has this id. The notification is kept all the same.
            return Ok(());
        }
        event_rows::insert(self.tx, std::slice::from_ref(&event)).await?;
        let row = |one| PlannedRow::write(&event, one, self.moment.now);
        let rows: Vec<PlannedRow> = plan.planned.iter().map(row).collect();
        planned::insert_new(self.tx, event.app, rows).await?;
        self.increments.add_event(&event);
        Ok(())
    }

    /// Writes an event that comes to something else, moves its figures, and plans its deliveries again.
    async fn replace(&mut self, stored: &Event, now: &Notification) -> Result<(), Failure> {
        let (Some(mut event), known) = self.event(now).await? else {
            return Ok(());
        };
        event.skipped.clone_from(&stored.skipped);
        event.first_payment = stored.first_payment && stored.device == event.device;
        event.dedup_root = stored.dedup_root;
        if stored.name != event.name {
            self.join_reported(&mut event, now).await?;
        }
        if *stored == event {
            return Ok(());
        }
        if stored.name != event.name && event.name != RENEWAL {
            planned::withdraw(self.tx, &event).await?;
        }
        event_rows::replace(self.tx, &event).await?;
        self.increments.replace_event(stored, &event);
        let around = planned::surroundings_of(self.tx, &event).await?;
        let facts = self.facts(&known, around.click.as_ref());
        let again = Replanning {
            facts: &facts,
            integrations: &around.integrations,
            why: if stored.name == event.name {
                ATTRIBUTION_CHANGED
            } else {
                NOT_FIRST_PAYMENT
            },
        };
        let mut ends = Ends::default();
        let events = std::slice::from_mut(&mut event);
        planned::replan(self.tx, stored.app, events, &again, &mut ends).await?;
        ends.count(self.tx, self.moment.now).await?;
        Ok(())
    }

    /// Removes an event whose notification makes none any more. Deliveries that have not left are withdrawn.
    async fn remove(&mut self, stored: &Event) -> Result<(), Failure> {
        planned::withdraw(self.tx, stored).await?;
        event_rows::delete(self.tx, stored).await?;
        self.increments.remove_event(stored);
        Ok(())
    }

    fn facts<'f>(
        &self,
        known: &'f Known,
        click: Option<&'f tributary_domain::click::Click>,
    ) -> DeviceFacts<'f> {
        DeviceFacts {
            known,
            click,
            holds_suspicious: self.moment.holds_suspicious,
            policy: MoneyPolicy::Count,
            now: self.moment.now,
        }
    }
}

/// Locks the devices that events are on and those that they leave, together and in the order of their keys, as everybody
/// does who writes events of devices.
async fn lock(
    tx: &Tx,
    (app, environment): (AppId, Environment),
    changed: &[Changed],
    now: Timestamp,
) -> Result<(), Failure> {
    let notifications = changed
        .iter()
        .flat_map(|one| one.before.iter().chain(&one.now));
    let devices: BTreeSet<&DeviceKey> = notifications
        .filter_map(|one| one.standing.device.as_ref())
        .collect();
    if devices.is_empty() {
        return Ok(());
    }
    let devices = devices.into_iter().map(|key| {
        let device = DeviceRef {
            app,
            environment,
            key,
        };
        (device, now)
    });
    locked::lock(tx, devices).await?;
    Ok(())
}

/// Loads what a search has to know.
async fn load(tx: &Tx, of: (AppId, Environment), need: &Need) -> Result<Found, Failure> {
    let limit = i64::try_from(KEY_SUBSCRIPTIONS_MAX + 1).unwrap_or(i64::MAX);
    let wanted: Vec<&str> = need.keys.iter().map(String::as_str).collect();
    let users: Vec<&str> = need.people.iter().map(UserKey::as_str).collect();
    let ids: Vec<&str> = need.advertising.iter().map(AdvertisingId::as_str).collect();
    let devices: Vec<&str> = need.devices.iter().map(DeviceKey::as_str).collect();
    // Sent together: one round trip.
    let (notifications, keyed, people, advertising) = tokio::try_join!(
        notifications::chains(tx, need.chains.iter()),
        keys::find(tx, of, &wanted, limit),
        people::people(tx, of, users, devices.clone()),
        people::advertising(tx, of, ids, devices)
    )?;
    Ok(Found {
        notifications,
        keyed,
        people,
        advertising,
    })
}

async fn find_event(tx: &Tx, one: &Notification) -> Result<Option<Event>, Failure> {
    let found = event_rows::find(
        tx,
        "app_id = $1 and environment = $2 and event_id = $3",
        &[
            &uuid(one.app.as_bytes()),
            &one.said.environment.as_str(),
            &uuid(one.event.as_bytes()),
        ],
    )
    .await?
    .pop();
    Ok(found)
}

/// The billing events of store transactions.
pub(crate) async fn of_transactions<'a>(
    tx: &Tx,
    (app, environment): (AppId, Environment),
    transactions: &[&'a str],
) -> Result<Vec<(&'a str, Event)>, Failure> {
    let limit = i64::try_from(KEY_SUBSCRIPTIONS_MAX).unwrap_or(i64::MAX);
    let keys = column(transactions, |transaction| transaction_key(transaction));
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let found = keys::find(tx, (app, environment), &keys, limit).await?;
    let chains: BTreeSet<Chain> = found.into_iter().map(|(_, chain)| chain).collect();
    let mut events = Vec::new();
    for one in notifications::chains(tx, chains.iter()).await? {
        let named = one.verified_transaction();
        let wanted = transactions.iter().find(|it| Some(**it) == named);
        if let Some(transaction) = wanted {
            let event = find_event(tx, &one).await?;
            events.extend(event.map(|event| (*transaction, event)));
        }
    }
    Ok(events)
}
