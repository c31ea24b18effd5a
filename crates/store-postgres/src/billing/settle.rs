//! Settling subscriptions: what all that is kept of one comes to, and what of that is not written yet.

use super::counts::Count;
use super::notifications::Chain;
use super::people::Way;
use super::{counts, notifications, payments, people, trials, waiting};
use crate::devices::{DeviceRef, lock_known, locked};
use crate::event_rows::{self, EventKey};
use crate::outbox::ends::Ends;
use crate::planned::Replanning;
use crate::rows::uuid;
use crate::tx::Tx;
use crate::{Failure, planned};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::hold::{self, TrialState};
use tributary_domain::billing::join::{Join, joined};
use tributary_domain::billing::settling::{Changed, Settling};
use tributary_domain::billing::{Meaning, Notification, PaidBefore, RENEWAL};
use tributary_domain::event::Event;
use tributary_domain::forwarding::course::{ATTRIBUTION_CHANGED, NOT_FIRST_PAYMENT};
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::Known;
use tributary_domain::ledger::MoneyPolicy;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{PlannedRow, billing_event};

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
    tx: &'a Tx,
    moment: Moment,
    /// Subscriptions that are still to be settled, since a payment of theirs is no first one any more.
    todo: Vec<Chain>,
    demoted: Demoted,
    increments: Increments,
}

impl<'a> Settlement<'a> {
    pub(super) fn new(tx: &'a Tx, moment: Moment) -> Self {
        Self {
            tx,
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
    pub(super) async fn settle(&mut self, chain: Chain, joins: bool) -> Result<(), Failure> {
        self.settle_one(&chain, joins).await?;
        while let Some(chain) = self.todo.pop() {
            self.settle_one(&chain, false).await?;
        }
        Ok(())
    }

    async fn settle_one(&mut self, chain: &Chain, joins: bool) -> Result<(), Failure> {
        let mut settling = Settling::of(notifications::chain(self.tx, chain).await?);
        if joins {
            for place in settling.unjoined() {
                if let Some(join) = find_join(self.tx, settling.get(place)).await? {
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
            self.place(&mut settling, place).await?;
        }
        for changed in settling.finish() {
            self.write(&changed).await?;
        }
        Ok(())
    }

    /// Lets a payment take its place among those of its person: one before it makes it no first payment, and it makes
    /// none of the one after it.
    async fn place(&mut self, settling: &mut Settling, place: usize) -> Result<(), Failure> {
        let one = settling.get(place).clone();
        let (app, environment) = (one.app, one.said.environment);
        let people = &one.said.subscriber.people;
        let own = one.person_keys();
        let mut keys = people::person_keys(self.tx, app, environment, people, Way::From).await?;
        keys.extend(own.iter().cloned());
        let before = payments::paid_before(self.tx, &one, &keys).await?;
        if let Some(before) = before {
            settling.note_paid_before(place, before);
        }
        if !one.is_paid_period() {
            return Ok(());
        }
        let at = (one.happened_at, one.said.given_id.as_str());
        let mut keys = people::person_keys(self.tx, app, environment, people, Way::To).await?;
        keys.extend(own);
        let after = payments::paid_after(self.tx, app, environment, at, &keys).await?;
        for (provider, given_id) in after {
            let paid = PaidBefore {
                product: one.said.product.clone(),
            };
            match settling
                .place_of(&given_id)
                .filter(|_| provider == one.provider)
            {
                Some(place) => settling.note_paid_before(place, paid),
                None => self.demote(&one, provider, given_id, paid).await?,
            }
        }
        payments::insert(self.tx, &one).await
    }

    async fn demote(
        &mut self,
        one: &Notification,
        provider: BillingProvider,
        given_id: String,
        paid: PaidBefore,
    ) -> Result<(), Failure> {
        let chain = notifications::chain_of(self.tx, one.app, provider, &given_id).await?;
        self.todo.extend(chain);
        self.demoted.entry((provider, given_id)).or_insert(paid);
        Ok(())
    }

    /// What one person had is another's, too: whoever of the second paid later paid not for the first time, and who
    /// waited may be known by the first one's name.
    pub(super) async fn transfer(&mut self, one: &Notification) -> Result<Vec<String>, Failure> {
        let Meaning::Transfer { from, to } = &one.said.meaning else {
            return Ok(Vec::new());
        };
        let (app, environment) = (one.app, one.said.environment);
        let tx = self.tx;
        let mut keys = Vec::new();
        for to in to {
            let key = tributary_domain::billing::person_key(to);
            for from in from {
                people::insert_transfer(tx, app, environment, from, to).await?;
                let giver = tributary_domain::billing::person_key(from);
                let first = payments::first_paid(tx, app, environment, &giver).await?;
                let Some((at, given_id, product)) = first else {
                    continue;
                };
                let keys = std::slice::from_ref(&key);
                let at = (at, given_id.as_str());
                let after = payments::paid_after(tx, app, environment, at, keys).await?;
                for (provider, later) in after {
                    let paid = PaidBefore {
                        product: product.clone(),
                    };
                    self.demote(one, provider, later, paid).await?;
                }
            }
            keys.push(key);
        }
        Ok(keys)
    }

    /// Looks after the trial of a subscription: one that is still alive when it is due counts, and so does one that is
    /// paid for.
    pub(super) async fn hold(&mut self, chain: &Chain) -> Result<(), Failure> {
        let Some(mut trial) = trials::find(self.tx, chain).await? else {
            return Ok(());
        };
        let known = notifications::chain(self.tx, chain).await?;
        let state = hold::stands(trial, &known, self.moment.now);
        if state == trial.state {
            return Ok(());
        }
        trial.state = state;
        trials::write(self.tx, chain, trial).await?;
        let start = known
            .iter()
            .find(|one| one.said.meaning == Meaning::TrialStart);
        let (TrialState::Qualified, Some(start)) = (state, start) else {
            return Ok(());
        };
        let qualified = hold::qualified(start, trial, self.moment.now);
        let digest = Digest::of(qualified.said.given_id.as_bytes());
        notifications::insert(self.tx, &qualified, digest.as_bytes(), None).await?;
        self.settle(chain.clone(), false).await
    }

    async fn write(&mut self, changed: &Changed) -> Result<(), Failure> {
        let Changed { before, now } = changed;
        notifications::update(self.tx, now).await?;
        self.count(before, now).await?;
        let device = now.standing.device.as_ref();
        if now.standing.name.is_some() && device.is_none() {
            waiting::wait(self.tx, now).await?;
        } else if before.standing.name.is_some() && before.standing.device.is_none() {
            waiting::found(self.tx, now).await?;
        }
        let (app, environment) = (now.app, now.said.environment);
        self.lock_both(before, now).await?;
        let known = match device {
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
        let Some(event) = billing_event(now, &known) else {
            return Ok(());
        };
        let stored = match before.standing.name {
            Some(_) => find_event(self.tx, &event).await?,
            None => None,
        };
        match stored {
            Some(stored) => self.replace(&stored, event, &known).await,
            None if before.standing.name.is_none() => self.record(event, &known).await,
            // Somebody erased it.
            None => Ok(()),
        }
    }

    /// Locks the device that an event leaves along with the one that it moves to: its figures change, too, and its event
    /// must not be credited anew meanwhile. Together, since everybody locks devices in the order of their keys.
    async fn lock_both(&self, before: &Notification, now: &Notification) -> Result<(), Failure> {
        let (left, device) = (&before.standing.device, &now.standing.device);
        if left.is_none() || left == device {
            return Ok(());
        }
        let devices = left.iter().chain(device).map(|key| {
            let device = DeviceRef {
                app: now.app,
                environment: now.said.environment,
                key,
            };
            (device, self.moment.now)
        });
        locked::lock(self.tx, devices).await?;
        Ok(())
    }

    async fn count(&self, before: &Notification, now: &Notification) -> Result<(), Failure> {
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
        counts::add(self.tx, app, now.provider, environment, at, count).await
    }

    async fn record(&mut self, mut event: Event, known: &Known) -> Result<(), Failure> {
        let around = surroundings(self.tx, &event).await?;
        let facts = self.facts(known, around.click.as_ref());
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
        if event.first_payment {
            note_first_payment(self.tx, &event).await?;
        }
        let row = |one| PlannedRow::write(&event, one, self.moment.now);
        let rows: Vec<PlannedRow> = plan.planned.iter().map(row).collect();
        planned::insert(self.tx, &rows).await?;
        self.increments.add_event(&event);
        Ok(())
    }

    /// Writes an event that is something else now, moves its figures, and plans anew who hears of it.
    async fn replace(
        &mut self,
        stored: &Event,
        mut event: Event,
        known: &Known,
    ) -> Result<(), Failure> {
        event.skipped.clone_from(&stored.skipped);
        if *stored == event {
            return Ok(());
        }
        if stored.first_payment && stored.device != event.device {
            forget_first_payment(self.tx, stored).await?;
        }
        if event.first_payment && known.first_payment.is_none() {
            note_first_payment(self.tx, &event).await?;
        }
        if stored.name != event.name && event.name != RENEWAL {
            planned::withdraw(self.tx, &event).await?;
        }
        event_rows::replace(self.tx, &event).await?;
        self.increments.replace_event(stored, &event);
        let around = surroundings(self.tx, &event).await?;
        let facts = self.facts(known, around.click.as_ref());
        let anew = Replanning {
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
        planned::replan(self.tx, stored.app, events, &anew, &mut ends).await?;
        ends.count(self.tx, self.moment.now).await?;
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

/// What planning an event needs beside it.
async fn surroundings(tx: &Tx, event: &Event) -> Result<planned::Surroundings, Failure> {
    if let Some(credit) = &event.credit {
        return planned::surroundings(tx, event.app, credit).await;
    }
    let mut touched = crate::integrations::touched(tx, &BTreeSet::from([event.app])).await?;
    Ok(planned::Surroundings {
        integrations: touched.remove(&event.app).unwrap_or_default(),
        click: None,
    })
}

/// Whose device a notification is by itself.
pub(super) async fn find_join(tx: &Tx, one: &Notification) -> Result<Option<Join>, Failure> {
    let (app, environment, who) = (one.app, one.said.environment, &one.said.subscriber);
    if who.device.is_some() {
        return Ok(joined(who, &[], &[], one.happened_at));
    }
    let people = people::people_links(tx, app, environment, who).await?;
    let advertising = if people.is_empty() {
        people::advertising_links(tx, app, environment, who).await?
    } else {
        Vec::new()
    };
    Ok(joined(who, &people, &advertising, one.happened_at))
}

async fn find_event(tx: &Tx, event: &Event) -> Result<Option<Event>, Failure> {
    let found = event_rows::find(
        tx,
        "app_id = $1 and environment = $2 and event_id = $3",
        &[
            &uuid(event.app.as_bytes()),
            &event.environment.as_str(),
            &uuid(event.id.as_bytes()),
        ],
    )
    .await?
    .pop();
    Ok(found)
}

/// Notes the first payment of a device that is locked, and so there.
async fn note_first_payment(tx: &Tx, event: &Event) -> Result<(), Failure> {
    let Some(device) = &event.device else {
        return Ok(());
    };
    tx.execute(
        "update identities set first_payment_id = $4
         where app_id = $1 and environment = $2 and device_id = $3",
        &[
            &uuid(event.app.as_bytes()),
            &event.environment.as_str(),
            &device.as_str(),
            &uuid(event.id.as_bytes()),
        ],
    )
    .await?;
    Ok(())
}

async fn forget_first_payment(tx: &Tx, event: &Event) -> Result<(), Failure> {
    let Some(device) = &event.device else {
        return Ok(());
    };
    tx.execute(
        "update identities set first_payment_id = null
         where app_id = $1 and environment = $2 and device_id = $3 and first_payment_id = $4",
        &[
            &uuid(event.app.as_bytes()),
            &event.environment.as_str(),
            &device.as_str(),
            &uuid(event.id.as_bytes()),
        ],
    )
    .await?;
    Ok(())
}
