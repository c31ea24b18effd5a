//! Settling subscriptions: what all that is kept of one comes to, and what of that is not written yet.

use super::counts::Count;
use super::notifications::Chain;
use super::people::Way;
use super::{counts, notifications, payments, people, trials, waiting};
use crate::events::{find_events, insert_event, replace_event};
use crate::{Failure, devices, planned};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::hold::{self, TrialState};
use tributary_domain::billing::join::{Join, joined};
use tributary_domain::billing::settling::{Changed, Settling};
use tributary_domain::billing::{Meaning, Notification, PaidBefore, RENEWAL};
use tributary_domain::device::DeviceKey;
use tributary_domain::event::Event;
use tributary_domain::forwarding::course::{ATTRIBUTION_CHANGED, NOT_FIRST_PAYMENT};
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::Known;
use tributary_domain::ledger::MoneyPolicy;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::billing_event;

/// Under which circumstances subscriptions are settled.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Timestamp,
    /// Whether the app holds back what suspicious installs do.
    pub(crate) holds_suspicious: bool,
}

/// Payments that somebody proved to have paid before, by provider and id.
type Demoted = BTreeMap<(BillingProvider, String), PaidBefore>;

/// Settlements in one transaction.
pub(super) struct Settlement<'a> {
    connection: &'a Connection,
    moment: Moment,
    /// Subscriptions that are still to be settled, since a payment of theirs is no first one any more.
    todo: Vec<Chain>,
    demoted: Demoted,
    increments: Increments,
}

impl<'a> Settlement<'a> {
    pub(super) fn new(connection: &'a Connection, moment: Moment) -> Self {
        Self {
            connection,
            moment,
            todo: Vec::new(),
            demoted: Demoted::new(),
            increments: Increments::default(),
        }
    }

    pub(super) fn into_increments(self) -> Increments {
        self.increments
    }

    /// Settles a subscription, and the others that this has consequences for.
    pub(super) fn settle(&mut self, chain: Chain, joins: bool) -> Result<(), Failure> {
        self.settle_one(&chain, joins)?;
        while let Some(chain) = self.todo.pop() {
            self.settle_one(&chain, false)?;
        }
        Ok(())
    }

    fn settle_one(&mut self, chain: &Chain, joins: bool) -> Result<(), Failure> {
        let mut settling = Settling::of(notifications::chain(self.connection, chain)?);
        if joins {
            for place in settling.unjoined() {
                if let Some(join) = find_join(self.connection, settling.get(place))? {
                    settling.join(place, join);
                }
            }
        }
        for ((provider, given_id), before) in &self.demoted {
            if let Some(place) = settling
                .place_of(given_id)
                .filter(|_| chain.provider == *provider)
            {
                settling.note_paid_before(place, before.clone());
            }
        }
        for place in settling.unplaced() {
            self.place(&mut settling, place)?;
        }
        for changed in settling.finish() {
            self.write(&changed)?;
        }
        Ok(())
    }

    /// Lets a payment take its place among those of its person: one before it makes it no first payment, and it makes
    /// none of the one after it.
    fn place(&mut self, settling: &mut Settling, place: usize) -> Result<(), Failure> {
        let one = settling.get(place).clone();
        let (app, environment) = (one.app, one.said.environment);
        let people = &one.said.subscriber.people;
        let around = |way| {
            let mut keys = people::person_keys(self.connection, app, environment, people, way)?;
            keys.extend(one.person_keys());
            Ok::<_, Failure>(keys)
        };
        let before = payments::paid_before(self.connection, &one, &around(Way::From)?)?;
        if let Some(before) = before {
            settling.note_paid_before(place, before);
        }
        if !one.is_paid_period() {
            return Ok(());
        }
        let at = (one.happened_at, one.said.given_id.as_str());
        let keys = around(Way::To)?;
        let after = payments::paid_after(self.connection, app, environment, at, &keys)?;
        for (provider, given_id) in after {
            let paid = PaidBefore {
                product: one.said.product.clone(),
            };
            match settling
                .place_of(&given_id)
                .filter(|_| provider == one.provider)
            {
                Some(place) => settling.note_paid_before(place, paid),
                None => self.demote(&one, provider, given_id, paid)?,
            }
        }
        payments::insert(self.connection, &one)
    }

    fn demote(
        &mut self,
        one: &Notification,
        provider: BillingProvider,
        given_id: String,
        paid: PaidBefore,
    ) -> Result<(), Failure> {
        let chain = notifications::chain_of(self.connection, one.app, provider, &given_id)?;
        self.todo.extend(chain);
        self.demoted.entry((provider, given_id)).or_insert(paid);
        Ok(())
    }

    /// What one person had is another's, too: whoever of the second paid later paid not for the first time, and who
    /// waited may be known by the first one's name.
    pub(super) fn transfer(&mut self, one: &Notification) -> Result<Vec<String>, Failure> {
        let Meaning::Transfer { from, to } = &one.said.meaning else {
            return Ok(Vec::new());
        };
        let (app, environment) = (one.app, one.said.environment);
        let connection = self.connection;
        let mut keys = Vec::new();
        for to in to {
            let key = tributary_domain::billing::person_key(to);
            for from in from {
                people::insert_transfer(connection, app, environment, from, to)?;
                let giver = tributary_domain::billing::person_key(from);
                let first = payments::first_paid(connection, app, environment, &giver)?;
                let Some((at, given_id, product)) = first else {
                    continue;
                };
                let keys = std::slice::from_ref(&key);
                let at = (at, given_id.as_str());
                for (provider, later) in
                    payments::paid_after(connection, app, environment, at, keys)?
                {
                    let paid = PaidBefore {
                        product: product.clone(),
                    };
                    self.demote(one, provider, later, paid)?;
                }
            }
            keys.push(key);
        }
        Ok(keys)
    }

    /// Looks after the trial of a subscription: one that is still alive when it is due counts, and so does one that is
    /// paid for.
    pub(super) fn hold(&mut self, chain: &Chain) -> Result<(), Failure> {
        let Some(mut trial) = trials::find(self.connection, chain)? else {
            return Ok(());
        };
        let known = notifications::chain(self.connection, chain)?;
        let state = hold::stands(trial, &known, self.moment.now);
        if state == trial.state {
            return Ok(());
        }
        trial.state = state;
        trials::write(self.connection, chain, trial)?;
        let start = known
            .iter()
            .find(|one| one.said.meaning == Meaning::TrialStart);
        let (TrialState::Qualified, Some(start)) = (state, start) else {
            return Ok(());
        };
        let qualified = hold::qualified(start, trial, self.moment.now);
        let digest = Digest::of(qualified.said.given_id.as_bytes());
        notifications::insert(self.connection, &qualified, digest.as_bytes(), None)?;
        self.settle(chain.clone(), false)
    }

    fn write(&mut self, changed: &Changed) -> Result<(), Failure> {
        let Changed { before, now } = changed;
        notifications::update(self.connection, now)?;
        self.count(before, now)?;
        let device = now.standing.device.as_ref();
        if now.standing.name.is_some() && device.is_none() {
            waiting::wait(self.connection, now)?;
        } else if before.standing.name.is_some() && before.standing.device.is_none() {
            waiting::found(self.connection, now)?;
        }
        let (app, environment) = (now.app, now.said.environment);
        let known = match device {
            Some(device) => devices::find_known(self.connection, app, environment, device)?,
            None => Known::default(),
        };
        let Some(event) = billing_event(now, &known) else {
            return Ok(());
        };
        let stored = match before.standing.name {
            Some(_) => find_event(self.connection, &event)?,
            None => None,
        };
        match stored {
            Some(stored) => self.replace(&stored, event, &known),
            None if before.standing.name.is_none() => self.record(event, &known),
            // Somebody erased it.
            None => Ok(()),
        }
    }

    fn count(&self, before: &Notification, now: &Notification) -> Result<(), Failure> {
        let is_event = |one: &Notification| one.standing.name.is_some();
        let is_matched = |one: &Notification| is_event(one) && one.standing.device.is_some();
        let step = |is: &dyn Fn(&Notification) -> bool| i64::from(is(now)) - i64::from(is(before));
        let count = Count {
            events: step(&is_event),
            matched: step(&is_matched),
            ..Count::default()
        };
        if count.events == 0 && count.matched == 0 {
            return Ok(());
        }
        let (app, environment) = (now.app, now.said.environment);
        let at = now.received_at;
        counts::add(self.connection, app, now.provider, environment, at, count)
    }

    fn record(&mut self, mut event: Event, known: &Known) -> Result<(), Failure> {
        let credit = event.credit.clone();
        let around = planned::surroundings(self.connection, event.app, credit.as_ref())?;
        let facts = self.facts(known, around.click.as_ref());
        let plan = facts.plan(&mut event, &around.integrations);
        if !insert_event(self.connection, &event)? {
            // Another provider's event has this id. The notification is kept all the same.
            return Ok(());
        }
        if event.first_payment {
            devices::note_first_payment(self.connection, &event)?;
        }
        planned::insert(self.connection, &event, &plan.planned, self.moment.now)?;
        self.increments.add_event(&event);
        Ok(())
    }

    /// Writes an event that is something else now, moves its figures, and plans anew who hears of it.
    fn replace(&mut self, stored: &Event, mut event: Event, known: &Known) -> Result<(), Failure> {
        event.skipped.clone_from(&stored.skipped);
        if *stored == event {
            return Ok(());
        }
        if stored.first_payment && stored.device != event.device {
            forget_first_payment(self.connection, stored)?;
        }
        if event.first_payment && known.first_payment.is_none() {
            devices::note_first_payment(self.connection, &event)?;
        }
        if stored.name != event.name && event.name != RENEWAL {
            planned::withdraw(self.connection, &event)?;
        }
        replace_event(self.connection, &event)?;
        self.increments.replace_event(stored, &event);
        let credit = event.credit.clone();
        let around = planned::surroundings(self.connection, event.app, credit.as_ref())?;
        let facts = self.facts(known, around.click.as_ref());
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

/// Whose device a notification is by itself.
pub(super) fn find_join(
    connection: &Connection,
    one: &Notification,
) -> Result<Option<Join>, Failure> {
    let (app, environment, who) = (one.app, one.said.environment, &one.said.subscriber);
    if who.device.is_some() {
        return Ok(joined(who, &[], &[], one.happened_at));
    }
    let people = people::people_links(connection, app, environment, who)?;
    let advertising = if people.is_empty() {
        people::advertising_links(connection, app, environment, who)?
    } else {
        Vec::new()
    };
    Ok(joined(who, &people, &advertising, one.happened_at))
}

fn find_event(connection: &Connection, event: &Event) -> Result<Option<Event>, Failure> {
    let (app, environment) = (event.app.as_bytes(), event.environment.as_str());
    let conditions = ["app_id = ?", "environment = ?", "event_id = ?"];
    let values: [&dyn rusqlite::ToSql; 3] = [app, &environment, event.id.as_bytes()];
    Ok(find_events(connection, &conditions, &values, 1)?.pop())
}

fn forget_first_payment(connection: &Connection, event: &Event) -> Result<(), Failure> {
    let device = event.device.as_ref().map(DeviceKey::as_str);
    connection
        .prepare_cached(
            "update identities set first_payment_id = null
             where app_id = ?1 and environment = ?2 and device_id = ?3 and first_payment_id = ?4",
        )?
        .execute(params![
            event.app.as_bytes(),
            event.environment.as_str(),
            device,
            event.id.as_bytes()
        ])?;
    Ok(())
}
