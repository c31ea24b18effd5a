//! Settling subscriptions: gathers what is connected, lets the domain settle it, and writes what differs.

use crate::duplicates::{reported, settle_reported};
use crate::first_payment::settle_first_payment;
use crate::plan::{self, Replanning, surroundings};
use crate::tables::Tables;
use crate::tally::Tally;
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::app::FraudPolicy;
use tributary_domain::billing::connected::Search;
use tributary_domain::billing::settlement::{Changed, Settlement};
use tributary_domain::billing::{
    Before, Chain, EventChange, Notification, event_change, needs_reported,
};
use tributary_domain::click::Click;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::event::Event;
use tributary_domain::event::duplicate::Replacement;
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::Known;
use tributary_domain::ledger::MoneyPolicy;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::billing_event;

/// Under which circumstances subscriptions are settled.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Timestamp,
    /// Whether the app holds back what suspicious installs do.
    pub(crate) holds_suspicious: bool,
}

impl Moment {
    /// Reads the circumstances of an app.
    pub(crate) async fn of<T: Tables>(
        tables: &T,
        app: AppId,
        now: Timestamp,
    ) -> Result<Self, T::Failure> {
        let app = tables.app(app).await?;
        Ok(Self {
            now,
            holds_suspicious: app.is_some_and(|app| app.attribution.fraud == FraudPolicy::Hold),
        })
    }

    fn facts<'a>(&self, known: &'a Known, click: Option<&'a Click>) -> DeviceFacts<'a> {
        DeviceFacts {
            known,
            click,
            holds_suspicious: self.holds_suspicious,
            policy: MoneyPolicy::Count,
            now: self.now,
        }
    }
}

/// Settles subscriptions of one app and environment, and everything that is connected with them. The events of a device
/// that changed are compared even where their notifications come to the same. The app is locked.
pub(crate) async fn settle<T: Tables>(
    tables: &T,
    moment: Moment,
    chains: BTreeSet<Chain>,
    device: Option<&DeviceKey>,
    tally: &mut Tally,
) -> Result<Settlement, T::Failure> {
    let Some((app, environment)) = chains.first().map(|it| (it.app, it.environment)) else {
        return Ok(Settlement::default());
    };
    let mut search = Search::of(chains);
    while let Some(need) = search.next_need() {
        search.add(tables.connected((app, environment), &need).await?);
    }
    let (mut connected, written) = search.finish();
    for chain in connected.trial_chains() {
        if let Some(trial) = tables.trial(&chain).await? {
            connected.trials.insert(chain, trial);
        }
    }
    let settlement = connected.settle(moment.now, device).only(written.as_ref());
    for (chain, trial) in &settlement.trials {
        tables.write_trial(chain, *trial).await?;
    }
    let of_app = |key| DeviceRef {
        app,
        environment,
        key,
    };
    let devices = settlement.devices().into_iter().map(of_app).collect();
    tables.lock_devices(&devices, moment.now).await?;
    let mut payers: BTreeSet<DeviceKey> = BTreeSet::new();
    for changed in &settlement.changed {
        write_notification(tables, changed).await?;
        tally.count_changed(changed);
        write_event(tables, moment, changed, tally).await?;
        for id in changed.verified_transactions() {
            payers.extend(settle_reported(tables, id, moment.now, tally).await?);
        }
        payers.extend(changed.devices().cloned());
    }
    for device in &payers {
        settle_first_payment(tables, of_app(device), tally).await?;
    }
    Ok(settlement)
}

async fn write_notification<T: Tables>(tables: &T, changed: &Changed) -> Result<(), T::Failure> {
    match (&changed.before, &changed.now) {
        (None, Some(now)) => {
            // It follows from others, so it has no body of its own.
            let digest = Digest::of(now.said.given_id.as_bytes());
            tables.insert_notification(now, digest, None).await?;
        }
        (Some(before), Some(now)) if before != now => tables.update_notification(now).await?,
        (Some(before), None) => tables.remove_notification(before).await?,
        _ => {}
    }
    match &changed.now {
        Some(now) => {
            tables
                .insert_keys(&Chain::of(now), &now.lookup_keys())
                .await
        }
        None => Ok(()),
    }
}

/// Writes what becomes of the event of a notification. This is the only place where a billing event is added.
async fn write_event<T: Tables>(
    tables: &T,
    moment: Moment,
    changed: &Changed,
    tally: &mut Tally,
) -> Result<(), T::Failure> {
    let before = stored_event(tables, changed.before.as_ref()).await?;
    let (now, known) = event_now(tables, moment, changed.now.as_ref()).await?;
    let reported = match (&changed.now, &now) {
        (Some(one), Some(event)) if needs_reported(&before, Some(event)) => {
            reserve(tables, one).await?
        }
        _ => None,
    };
    match event_change(before, now, reported.as_ref()) {
        EventChange::None => Ok(()),
        EventChange::Record(event) => {
            let around = surroundings(tables, event.app, event.credit.as_ref()).await?;
            let facts = moment.facts(&known, around.click.as_ref());
            // Another provider's event may have this id. The notification is kept all the same.
            plan::record(tables, *event, &facts, &around.integrations, tally).await
        }
        EventChange::Replace {
            event,
            withdraws,
            why,
        } => {
            if withdraws {
                tables.withdraw(&event.after).await?;
            }
            replace(tables, moment, *event, &known, why, tally).await
        }
        EventChange::Remove(event) => {
            tables.withdraw(&event).await?;
            tables.delete_event(&event).await?;
            tally.increments.remove_event(&event);
            Ok(())
        }
    }
}

async fn replace<T: Tables>(
    tables: &T,
    moment: Moment,
    Replacement { before, mut after }: Replacement,
    known: &Known,
    why: &'static str,
    tally: &mut Tally,
) -> Result<(), T::Failure> {
    tables.replace_events(&[&after]).await?;
    tally.increments.replace_event(&before, &after);
    let around = surroundings(tables, after.app, after.credit.as_ref()).await?;
    let facts = moment.facts(known, around.click.as_ref());
    let again = Replanning {
        facts: &facts,
        integrations: &around.integrations,
        why,
    };
    let events = std::slice::from_mut(&mut after);
    plan::replan(tables, before.app, events, &again, tally).await
}

async fn stored_event<T: Tables>(
    tables: &T,
    before: Option<&Notification>,
) -> Result<Before, T::Failure> {
    let Some(before) = before.filter(|before| before.standing.name.is_some()) else {
        return Ok(Before::None);
    };
    let of = (before.app, before.said.environment);
    let stored = tables.events(of, &BTreeSet::from([before.event])).await?;
    let stored = stored.into_iter().next();
    Ok(stored.map_or(Before::Erased, |event| Before::Stored(Box::new(event))))
}

/// The event that a notification makes now, and what is known of its device.
async fn event_now<T: Tables>(
    tables: &T,
    moment: Moment,
    now: Option<&Notification>,
) -> Result<(Option<Event>, Known), T::Failure> {
    let Some(now) = now.filter(|now| now.standing.name.is_some()) else {
        return Ok((None, Known::default()));
    };
    let known = match &now.standing.device {
        Some(key) => {
            let device = DeviceRef {
                app: now.app,
                environment: now.said.environment,
                key,
            };
            tables.lock_device(device, moment.now).await?
        }
        None => Known::default(),
    };
    Ok((billing_event(now, &known), known))
}

/// Reserves the transaction of an event, and finds the SDK event that reported the same.
async fn reserve<T: Tables>(tables: &T, now: &Notification) -> Result<Option<Event>, T::Failure> {
    let Some(transaction) = now.verified_transaction() else {
        return Ok(None);
    };
    let id: (AppId, Environment, &str) = (now.app, now.said.environment, transaction);
    tables.reserve_transactions(&BTreeSet::from([id])).await?;
    reported(tables, id).await
}
