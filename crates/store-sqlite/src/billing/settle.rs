//! Settling subscriptions: loads what is connected, lets the domain settle it, and writes what differs.

use super::counts::Count;
use super::people::By;
use super::{counts, keys, notifications, people, trials};
use crate::duplicates::SharedId;
use crate::events::{delete_event, insert_event, replace_event};
use crate::{Failure, devices, duplicates, planned};
use rusqlite::Connection;
use std::collections::BTreeSet;
use tributary_domain::billing::connected::{Found, KEY_SUBSCRIPTIONS_MAX, Need, Search};
use tributary_domain::billing::settlement::Changed;
use tributary_domain::billing::{Chain, Meaning, Notification, RENEWAL, transaction_key};
use tributary_domain::device::DeviceKey;
use tributary_domain::event::Event;
use tributary_domain::event::duplicate::join_root;
use tributary_domain::forwarding::course::{ATTRIBUTION_CHANGED, NOT_FIRST_PAYMENT};
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::Known;
use tributary_domain::ledger::MoneyPolicy;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::billing_event;

/// Under which circumstances subscriptions are settled.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Timestamp,
    /// Whether the app holds back what suspicious installs do.
    pub(crate) holds_suspicious: bool,
}

/// Settlements in one transaction.
pub(super) struct Settling<'a> {
    connection: &'a Connection,
    moment: Moment,
    increments: Increments,
    /// Devices whose first payment may change.
    payers: BTreeSet<DeviceKey>,
}

impl<'a> Settling<'a> {
    pub(super) fn new(connection: &'a Connection, moment: Moment) -> Self {
        Self {
            connection,
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
    pub(super) fn settle(
        &mut self,
        chains: BTreeSet<Chain>,
        device: Option<&DeviceKey>,
    ) -> Result<(), Failure> {
        let Some(of) = chains.first().map(|it| (it.app, it.environment)) else {
            return Ok(());
        };
        let mut search = Search::of(chains);
        while let Some(need) = search.next_need() {
            search.add(load(self.connection, of, &need)?);
        }
        let (mut connected, written) = search.finish();
        let with_trial = connected.notifications.iter();
        let with_trial = with_trial.filter(|one| one.said.meaning == Meaning::TrialStart);
        let with_trial: BTreeSet<Chain> = with_trial.map(Chain::of).collect();
        for chain in with_trial {
            if let Some(trial) = trials::find(self.connection, &chain)? {
                connected.trials.insert(chain, trial);
            }
        }
        let settlement = connected.settle(self.moment.now, device);
        let is_written = |chain: &Chain| written.as_ref().is_none_or(|it| it.contains(chain));
        for (chain, trial) in settlement.trials {
            if is_written(&chain) {
                trials::write_state(self.connection, &chain, trial)?;
            }
        }
        for changed in settlement.changed {
            if changed.chain().is_some_and(|chain| is_written(&chain)) {
                self.write(&changed)?;
                self.payers.extend(changed.devices().cloned());
            }
        }
        for device in std::mem::take(&mut self.payers) {
            let increments = &mut self.increments;
            devices::settle_first_payment(self.connection, of, &device, increments)?;
        }
        Ok(())
    }

    fn write(&mut self, changed: &Changed) -> Result<(), Failure> {
        let (before, now) = (changed.before.as_ref(), changed.now.as_ref());
        match (before, now) {
            (None, Some(now)) => notifications::insert_derived(self.connection, now)?,
            (Some(before), Some(now)) if before != now => {
                notifications::update(self.connection, now)?;
            }
            (Some(before), None) => notifications::remove(self.connection, before)?,
            _ => {}
        }
        if let Some(now) = now {
            keys::insert(self.connection, now)?;
        }
        self.count(changed)?;
        let has_event = |one: &&Notification| one.standing.name.is_some();
        let stored = match before.filter(has_event) {
            Some(before) => Some(find_event(self.connection, before)?),
            None => None,
        };
        match (stored, now.filter(has_event)) {
            (None, Some(now)) => self.record(now)?,
            (Some(Some(stored)), Some(now)) => self.replace(&stored, now)?,
            (Some(Some(stored)), None) => self.remove(&stored)?,
            // The event was erased, or there is none.
            (Some(None), _) | (None, None) => {}
        }
        self.settle_reported(changed)
    }

    /// Decides about the SDK events that report the same.
    fn settle_reported(&mut self, changed: &Changed) -> Result<(), Failure> {
        for id in changed.verified_transactions() {
            let (now, increments) = (self.moment.now, &mut self.increments);
            let payer = duplicates::settle_reported(self.connection, id, now, increments)?;
            self.payers.extend(payer);
        }
        Ok(())
    }

    /// Reserves the event's transaction, and lets the event take the root of the SDK event that reported the same.
    fn join_reported(&self, event: &mut Event, now: &Notification) -> Result<(), Failure> {
        let Some(transaction) = now.verified_transaction() else {
            return Ok(());
        };
        let id = (event.app, event.environment, transaction);
        duplicates::reserve_transaction(self.connection, id)?;
        if let Some(reported) = duplicates::reported(self.connection, id)? {
            join_root(event, &reported);
        }
        Ok(())
    }

    fn count(&self, changed: &Changed) -> Result<(), Failure> {
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
        counts::add(self.connection, app, one.provider, environment, at, count)
    }

    fn event(&self, now: &Notification) -> Result<(Option<Event>, Known), Failure> {
        let (app, environment) = (now.app, now.said.environment);
        let known = match &now.standing.device {
            Some(device) => devices::find_known(self.connection, app, environment, device)?,
            None => Known::default(),
        };
        Ok((billing_event(now, &known), known))
    }

    /// Records an event. This is the only place where a billing event is added.
    fn record(&mut self, now: &Notification) -> Result<(), Failure> {
        let (Some(mut event), known) = self.event(now)? else {
            return Ok(());
        };
        self.join_reported(&mut event, now)?;
        let credit = event.credit.clone();
        let around = planned::surroundings(self.connection, event.app, credit.as_ref())?;
        let facts = self.facts(&known, around.click.as_ref());
        let plan = facts.plan(&mut event, &around.integrations);
        if !insert_event(self.connection, &event)? {
            // Another provider's event has this id. The notification is kept all the same.
            return Ok(());
        }
        planned::insert(self.connection, &event, &plan.planned, self.moment.now)?;
        self.increments.add_event(&event);
        Ok(())
    }

    /// Writes an event that comes to something else, moves its figures, and plans its deliveries again.
    fn replace(&mut self, stored: &Event, now: &Notification) -> Result<(), Failure> {
        let (Some(mut event), known) = self.event(now)? else {
            return Ok(());
        };
        event.skipped.clone_from(&stored.skipped);
        event.first_payment = stored.first_payment && stored.device == event.device;
        event.dedup_root = stored.dedup_root;
        if stored.name != event.name {
            self.join_reported(&mut event, now)?;
        }
        if *stored == event {
            return Ok(());
        }
        if stored.name != event.name && event.name != RENEWAL {
            planned::withdraw(self.connection, &event)?;
        }
        replace_event(self.connection, &event)?;
        self.increments.replace_event(stored, &event);
        let credit = event.credit.clone();
        let around = planned::surroundings(self.connection, event.app, credit.as_ref())?;
        let facts = self.facts(&known, around.click.as_ref());
        let why = if stored.name == event.name {
            ATTRIBUTION_CHANGED
        } else {
            NOT_FIRST_PAYMENT
        };
        planned::replan(
            self.connection,
            &mut event,
            &facts,
            &around.integrations,
            why,
        )
    }

    /// Removes an event whose notification makes none any more. Deliveries that have not left are withdrawn.
    fn remove(&mut self, stored: &Event) -> Result<(), Failure> {
        planned::withdraw(self.connection, stored)?;
        delete_event(self.connection, stored)?;
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

/// Loads what a search has to know.
fn load(
    connection: &Connection,
    of: (
        tributary_domain::vocabulary::id::AppId,
        tributary_domain::access::Environment,
    ),
    need: &Need,
) -> Result<Found, Failure> {
    let mut found = Found::default();
    for chain in &need.chains {
        found
            .notifications
            .extend(notifications::chain(connection, chain)?);
    }
    let limit = i64::try_from(KEY_SUBSCRIPTIONS_MAX + 1).unwrap_or(i64::MAX);
    for key in &need.keys {
        let chains = keys::find(connection, of, key, limit)?.into_iter();
        found.keyed.extend(chains.map(|chain| (key.clone(), chain)));
    }
    for person in &need.people {
        found
            .people
            .extend(people::people(connection, of, &By::Id(person.as_str()))?);
    }
    for id in &need.advertising {
        let by = By::Id(id.as_str());
        found
            .advertising
            .extend(people::advertising(connection, of, &by)?);
    }
    for device in &need.devices {
        let by = By::Device(device);
        found.people.extend(people::people(connection, of, &by)?);
        found
            .advertising
            .extend(people::advertising(connection, of, &by)?);
    }
    Ok(found)
}

fn find_event(connection: &Connection, one: &Notification) -> Result<Option<Event>, Failure> {
    duplicates::find(connection, one.app, one.said.environment, one.event)
}

/// The billing events of a store transaction.
pub(crate) fn of_transaction(
    connection: &Connection,
    (app, environment, transaction): SharedId<'_>,
) -> Result<Vec<Event>, Failure> {
    let limit = i64::try_from(KEY_SUBSCRIPTIONS_MAX).unwrap_or(i64::MAX);
    let key = transaction_key(transaction);
    let mut events = Vec::new();
    for chain in keys::find(connection, (app, environment), &key, limit)? {
        let all = notifications::chain(connection, &chain)?.into_iter();
        for one in all.filter(|one| one.verified_transaction() == Some(transaction)) {
            events.extend(find_event(connection, &one)?);
        }
    }
    Ok(events)
}
