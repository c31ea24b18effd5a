//! Settles subscriptions: reads all connected subscriptions, lets the domain settle them, and
//! writes the changes.

use crate::duplicates::{find_sdk_event, find_web_payments, settle_sdk_event};
use crate::first_payment::settle_first_payment;
use crate::plan::{self, ReplanContext, read_plan_context};
use crate::tables::Tables;
use crate::tally::TransactionTally;
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::billing::connected::Search;
use tributary_domain::billing::settlement::{
    BillingSettlement, ConnectedSubscriptions, NotificationChange,
};
use tributary_domain::billing::{
    Chain, EventChange, Notification, NotificationMeaning, PreviousEvent, WebPayment, event_change,
    needs_sdk_event,
};
use tributary_domain::click::Click;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::event::Event;
use tributary_domain::event::duplicate::{EventReplacement, credit_refund};
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::DeviceState;
use tributary_domain::ledger::MoneyPolicy;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::billing_event;

/// What the planning of a settled subscription's events depends on, besides the device.
#[derive(Clone, Copy)]
struct SettleContext<'a> {
    now: Timestamp,
    /// Website events for the payments.
    web_payments: &'a [WebPayment],
    /// Whether the app forwards events only for devices with a verified attestation.
    requires_attestation: bool,
}

impl SettleContext<'_> {
    /// Credits the refund of a payment that a website reported. If retention removed the website's
    /// event, the refund is credited as before.
    fn credit_refund(&self, refund: &mut Event, of: &Notification, before: &PreviousEvent) {
        let is_payment = matches!(of.content.meaning, NotificationMeaning::Payment(_));
        let Some(web) = of.settled.web_payment.filter(|_| !is_payment) else {
            return;
        };
        let mut payments = self.web_payments.iter().map(|payment| &payment.event);
        match (payments.find(|payment| payment.id == web), before) {
            (Some(payment), _) => credit_refund(refund, payment),
            (None, PreviousEvent::Stored(stored)) => credit_refund(refund, stored),
            (None, _) => {}
        }
    }

    /// Returns the facts for planning billing events, whose amounts always count.
    const fn facts<'a>(&self, state: &'a DeviceState, click: Option<&'a Click>) -> DeviceFacts<'a> {
        DeviceFacts {
            state,
            click,
            policy: MoneyPolicy::Count,
            now: self.now,
            requires_attestation: self.requires_attestation,
        }
    }
}

/// Finds all subscriptions that are connected to these, and the ones whose changes may be written;
/// `None` for all.
pub(crate) async fn find_connected<T: Tables>(
    tables: &T,
    scope: (AppId, Environment),
    chains: BTreeSet<Chain>,
) -> Result<(ConnectedSubscriptions, Option<BTreeSet<Chain>>), T::Failure> {
    let mut search = Search::of(chains);
    while let Some(query) = search.next_query() {
        search.add(tables.find_connected(scope, &query).await?);
    }
    Ok(search.finish())
}

/// Settles subscriptions of one app and environment, and all subscriptions connected to them.
/// `device` is a device whose properties changed: its events are updated even if their
/// notifications did not change. The caller holds the lock on the app.
pub(crate) async fn settle<T: Tables>(
    tables: &T,
    now: Timestamp,
    chains: BTreeSet<Chain>,
    device: Option<&DeviceKey>,
    tally: &mut TransactionTally,
) -> Result<BillingSettlement, T::Failure> {
    let Some((app, environment)) = chains.first().map(|chain| (chain.app, chain.environment))
    else {
        return Ok(BillingSettlement::default());
    };
    let (mut connected, written) = find_connected(tables, (app, environment), chains).await?;
    for chain in connected.trial_chains() {
        if let Some(trial) = tables.trial(&chain).await? {
            connected.trials.insert(chain, trial);
        }
    }
    connected.web_payments =
        find_web_payments(tables, (app, environment), &connected.shared_payment_ids()).await?;
    let settlement = connected
        .settle(now, device)
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
    tables.lock_devices(&devices, now).await?;
    let context = SettleContext {
        now,
        web_payments: &connected.web_payments,
        requires_attestation: !settlement.changed.is_empty()
            && (tables.app(app).await?).is_some_and(|app| app.requires_attestation()),
    };
    let mut payers: BTreeSet<DeviceKey> = BTreeSet::new();
    for change in &settlement.changed {
        write_notification(tables, change).await?;
        tally.count_changed(change);
        write_event(tables, context, change, tally).await?;
        for id in change.verified_transactions() {
            payers.extend(settle_sdk_event(tables, id, now, tally).await?);
        }
        payers.extend(change.devices().cloned());
    }
    for device in &payers {
        settle_first_payment(tables, of_app(device), tally).await?;
    }
    Ok(settlement)
}

async fn write_notification<T: Tables>(
    tables: &T,
    change: &NotificationChange,
) -> Result<(), T::Failure> {
    match (&change.before, &change.now) {
        (None, Some(now)) => {
            // A derived notification has no body, so the digest is that of its id.
            let digest = Digest::of(now.content.external_id.as_bytes());
            tables.insert_notification(now, digest, None).await?;
        }
        (Some(before), Some(now)) if before != now => tables.update_notification(now).await?,
        (Some(before), None) => tables.remove_notification(before).await?,
        _ => {}
    }
    match &change.now {
        Some(now) => {
            tables
                .insert_keys(&Chain::of(now), &now.lookup_keys())
                .await
        }
        None => Ok(()),
    }
}

/// Writes the event of a changed notification. This is the only place that adds billing events.
async fn write_event<T: Tables>(
    tables: &T,
    context: SettleContext<'_>,
    change: &NotificationChange,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let before = stored_event(tables, change.before.as_ref()).await?;
    let (mut now, state) = current_event(tables, context.now, change.now.as_ref()).await?;
    if let (Some(event), Some(notification)) = (&mut now, &change.now) {
        context.credit_refund(event, notification, &before);
    }
    let sdk_event = match (&change.now, &now) {
        (Some(notification), Some(event)) if needs_sdk_event(&before, Some(event)) => {
            reserve_transaction(tables, notification).await?
        }
        _ => None,
    };
    match event_change(before, now, sdk_event.as_ref()) {
        EventChange::None => Ok(()),
        EventChange::Record(event) => {
            let plan_context = read_plan_context(tables, event.app, event.credit.as_ref()).await?;
            let facts = context.facts(&state, plan_context.click.as_ref());
            // An event from another provider may already have this id. The notification is stored
            // anyway.
            plan::record_event(tables, *event, &facts, &plan_context.integrations, tally).await
        }
        EventChange::Replace {
            event,
            withdraws,
            cancel_reason,
        } => {
            if withdraws {
                tables.remove_unsent(&event.after).await?;
            }
            replace(tables, context, *event, &state, cancel_reason, tally).await
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
    context: SettleContext<'_>,
    EventReplacement { before, mut after }: EventReplacement,
    state: &DeviceState,
    cancel_reason: &'static str,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    tables.replace_events(&[&after]).await?;
    tally.increments.replace_event(&before, &after);
    let plan_context = read_plan_context(tables, after.app, after.credit.as_ref()).await?;
    let facts = context.facts(state, plan_context.click.as_ref());
    let replan = ReplanContext {
        facts: &facts,
        integrations: &plan_context.integrations,
        cancel_reason,
    };
    let events = std::slice::from_mut(&mut after);
    plan::replan(tables, before.app, events, &replan, tally).await
}

async fn stored_event<T: Tables>(
    tables: &T,
    before: Option<&Notification>,
) -> Result<PreviousEvent, T::Failure> {
    let Some(before) = before.filter(|before| before.settled.name.is_some()) else {
        return Ok(PreviousEvent::None);
    };
    let scope = (before.app, before.content.environment);
    let stored = tables
        .events(scope, &BTreeSet::from([before.event]))
        .await?;
    let stored = stored.into_iter().next();
    Ok(stored.map_or(PreviousEvent::Erased, |event| {
        PreviousEvent::Stored(Box::new(event))
    }))
}

/// Builds a notification's current event. Returns it with the state of its device.
async fn current_event<T: Tables>(
    tables: &T,
    at: Timestamp,
    now: Option<&Notification>,
) -> Result<(Option<Event>, DeviceState), T::Failure> {
    let Some(now) = now.filter(|now| now.settled.name.is_some()) else {
        return Ok((None, DeviceState::default()));
    };
    let state = match &now.settled.device {
        Some(key) => {
            let device = DeviceRef {
                app: now.app,
                environment: now.content.environment,
                key,
            };
            tables.lock_device(device, at).await?
        }
        None => DeviceState::default(),
    };
    Ok((billing_event(now, &state), state))
}

/// Reserves the store transaction of a notification, and finds the SDK event that reported the same
/// transaction.
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
