//! Settling subscriptions: gathers what is connected, lets the domain settle it, and writes what differs.

use crate::duplicates::{find_sdk_event, settle_sdk_event};
use crate::first_payment::settle_first_payment;
use crate::plan::{self, ReplanContext, read_plan_context};
use crate::tables::Tables;
use crate::tally::TransactionTally;
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::app::FraudPolicy;
use tributary_domain::billing::connected::Search;
use tributary_domain::billing::settlement::{BillingSettlement, NotificationChange};
use tributary_domain::billing::{
    Chain, EventChange, Notification, PreviousEvent, event_change, needs_sdk_event,
};
use tributary_domain::click::Click;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::event::Event;
use tributary_domain::event::duplicate::EventReplacement;
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::DeviceState;
use tributary_domain::ledger::MoneyPolicy;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::billing_event;

/// Under which circumstances subscriptions are settled.
#[derive(Clone, Copy)]
pub(crate) struct SettleContext {
    pub(crate) now: Timestamp,
    /// Whether the app holds back what suspicious installs do.
    pub(crate) holds_suspicious: bool,
}

impl SettleContext {
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

    fn facts<'a>(&self, known: &'a DeviceState, click: Option<&'a Click>) -> DeviceFacts<'a> {
        DeviceFacts {
            state: known,
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
    moment: SettleContext,
    chains: BTreeSet<Chain>,
    device: Option<&DeviceKey>,
    tally: &mut TransactionTally,
) -> Result<BillingSettlement, T::Failure> {
    let Some((app, environment)) = chains.first().map(|it| (it.app, it.environment)) else {
        return Ok(BillingSettlement::default());
    };
    let mut search = Search::of(chains);
    while let Some(need) = search.next_query() {
        search.add(tables.find_connected((app, environment), &need).await?);
    }
    let (mut connected, written) = search.finish();
    for chain in connected.trial_chains() {
        if let Some(trial) = tables.trial(&chain).await? {
            connected.trials.insert(chain, trial);
        }
    }
    let settlement = connected
        .settle(moment.now, device)
        .restricted_to(written.as_ref());
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
            payers.extend(settle_sdk_event(tables, id, moment.now, tally).await?);
        }
        payers.extend(changed.devices().cloned());
    }
    for device in &payers {
        settle_first_payment(tables, of_app(device), tally).await?;
    }
    Ok(settlement)
}

async fn write_notification<T: Tables>(
    tables: &T,
    changed: &NotificationChange,
) -> Result<(), T::Failure> {
    match (&changed.before, &changed.now) {
        (None, Some(now)) => {
            // It follows from others, so it has no body of its own.
            let digest = Digest::of(now.content.external_id.as_bytes());
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
    moment: SettleContext,
    changed: &NotificationChange,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let before = stored_event(tables, changed.before.as_ref()).await?;
    let (now, known) = current_event(tables, moment, changed.now.as_ref()).await?;
    let reported = match (&changed.now, &now) {
        (Some(one), Some(event)) if needs_sdk_event(&before, Some(event)) => {
            reserve_transaction(tables, one).await?
        }
        _ => None,
    };
    match event_change(before, now, reported.as_ref()) {
        EventChange::None => Ok(()),
        EventChange::Record(event) => {
            let around = read_plan_context(tables, event.app, event.credit.as_ref()).await?;
            let facts = moment.facts(&known, around.click.as_ref());
            // Another provider's event may have this id. The notification is kept all the same.
            plan::record_event(tables, *event, &facts, &around.integrations, tally).await
        }
        EventChange::Replace {
            event,
            withdraws,
            cancel_reason: why,
        } => {
            if withdraws {
                tables.remove_unsent(&event.after).await?;
            }
            replace(tables, moment, *event, &known, why, tally).await
        }
        EventChange::Remove(event) => {
            tables.remove_unsent(&event).await?;
            tables.delete_event(&event).await?;
            tally.increments.remove_event(&event);
            Ok(())
        }
    }
}

async fn replace<T: Tables>(
    tables: &T,
    moment: SettleContext,
    EventReplacement { before, mut after }: EventReplacement,
    known: &DeviceState,
    why: &'static str,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    tables.replace_events(&[&after]).await?;
    tally.increments.replace_event(&before, &after);
    let around = read_plan_context(tables, after.app, after.credit.as_ref()).await?;
    let facts = moment.facts(known, around.click.as_ref());
    let again = ReplanContext {
        facts: &facts,
        integrations: &around.integrations,
        cancel_reason: why,
    };
    let events = std::slice::from_mut(&mut after);
    plan::replan(tables, before.app, events, &again, tally).await
}

async fn stored_event<T: Tables>(
    tables: &T,
    before: Option<&Notification>,
) -> Result<PreviousEvent, T::Failure> {
    let Some(before) = before.filter(|before| before.settled.name.is_some()) else {
        return Ok(PreviousEvent::None);
    };
    let of = (before.app, before.content.environment);
    let stored = tables.events(of, &BTreeSet::from([before.event])).await?;
    let stored = stored.into_iter().next();
    Ok(stored.map_or(PreviousEvent::Erased, |event| {
        PreviousEvent::Stored(Box::new(event))
    }))
}

/// The event that a notification makes now, and what is known of its device.
async fn current_event<T: Tables>(
    tables: &T,
    moment: SettleContext,
    now: Option<&Notification>,
) -> Result<(Option<Event>, DeviceState), T::Failure> {
    let Some(now) = now.filter(|now| now.settled.name.is_some()) else {
        return Ok((None, DeviceState::default()));
    };
    let known = match &now.settled.device {
        Some(key) => {
            let device = DeviceRef {
                app: now.app,
                environment: now.content.environment,
                key,
            };
            tables.lock_device(device, moment.now).await?
        }
        None => DeviceState::default(),
    };
    Ok((billing_event(now, &known), known))
}

/// Reserves the transaction of an event, and finds the SDK event that reported the same.
async fn reserve_transaction<T: Tables>(
    tables: &T,
    now: &Notification,
) -> Result<Option<Event>, T::Failure> {
    let Some(transaction) = now.verified_transaction() else {
        return Ok(None);
    };
    let id: (AppId, Environment, &str) = (now.app, now.content.environment, transaction);
    tables.reserve_transactions(&BTreeSet::from([id])).await?;
    find_sdk_event(tables, id).await
}
