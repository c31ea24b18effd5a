//! Events reported by two sources.
//!
//! An SDK event that a verified source may also report reserves its id among the ids of web events,
//! as a key without a fingerprint. A web event that finds its id reserved looks up the SDK event
//! and takes over the key. A billing event reserves the id of its store transaction, without
//! storing an event under that key. A later SDK event with this id then looks for billing events.
//! All of these transactions insert or lock the same key. The second of two transactions therefore
//! waits for the first one, and then finds the event that the first one stored.
//!
//! Ids are reserved before devices are locked, in the same order as for web events.
//!
//! A payment that Stripe took has several ids, and all of them are reserved. A web event that finds
//! its id reserved settles the subscriptions with this payment again, so that the billing event
//! stops counting. So does a web refund. To settle, a transaction locks the app before all else.

use crate::plan::{self, PlanContext, ReplanContext, read_plan_context};
use crate::settle::{find_connected, settle};
use crate::tables::{Conflict, SharedId, Tables};
use crate::tally::TransactionTally;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::app::App;
use tributary_domain::billing::connected::KEY_SUBSCRIPTIONS_MAX;
use tributary_domain::billing::{Chain, WebPayment, transaction_key};
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::event::duplicate::{
    EventReplacement, SdkEventRules, is_verifiable, is_web_payment, settle_duplicate,
};
use tributary_domain::event::web::RecordedWebEvent;
use tributary_domain::event::{Event, EventSource};
use tributary_domain::forwarding::lifecycle::DUPLICATE_OF_VERIFIED;
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::ledger::sdk_policy;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;

/// Verified events by their external id, sorted by event id.
pub type VerifiedEvents<'a> = BTreeMap<SharedId<'a>, Vec<Event>>;

/// Finds the SDK event with an external id.
pub(crate) async fn find_sdk_event<T: Tables>(
    tables: &T,
    id: SharedId<'_>,
) -> Result<Option<Event>, T::Failure> {
    let found = tables
        .events_by_external_id(EventSource::Sdk, &[id])
        .await?;
    Ok(found.into_iter().next().map(|(_, event)| event))
}

/// Finds the verified events with these ids: web events, and billing events for store transactions.
pub async fn find_verified_events<'a, T: Tables>(
    tables: &T,
    ids: &[SharedId<'a>],
) -> Result<VerifiedEvents<'a>, T::Failure> {
    let mut verified = VerifiedEvents::new();
    for (id, event) in tables.events_by_external_id(EventSource::Web, ids).await? {
        verified.entry(id).or_default().push(event);
    }
    let mut by_app: BTreeMap<(AppId, Environment), Vec<&'a str>> = BTreeMap::new();
    for (app, environment, id) in ids {
        by_app.entry((*app, *environment)).or_default().push(*id);
    }
    for (scope, ids) in by_app {
        for (id, event) in find_transaction_events(tables, scope, &ids).await? {
            verified
                .entry((scope.0, scope.1, id))
                .or_default()
                .push(event);
        }
    }
    for events in verified.values_mut() {
        events.sort_by_key(|event| event.id);
    }
    Ok(verified)
}

/// Finds the website's events for payments that Stripe took, given the payments' ids.
pub(crate) async fn find_web_payments<T: Tables>(
    tables: &T,
    (app, environment): (AppId, Environment),
    ids: &BTreeSet<&str>,
) -> Result<Vec<WebPayment>, T::Failure> {
    // Web events are always live.
    if ids.is_empty() || environment != Environment::Live {
        return Ok(Vec::new());
    }
    let ids: Vec<SharedId<'_>> = ids.iter().map(|id| (app, environment, *id)).collect();
    let mut found = tables.events_by_external_id(EventSource::Web, &ids).await?;
    found.retain(|(_, event)| is_web_payment(event));
    let refunded: Vec<&str> = found.iter().map(|((_, _, id), _)| *id).collect();
    let mut refunded = tables.refunded_amounts(app, &refunded).await?;
    let payments = found.into_iter().map(|((_, _, id), event)| WebPayment {
        external_id: id.to_owned(),
        event,
        refunded: refunded.remove(id).unwrap_or_default(),
    });
    Ok(payments.collect())
}

/// Finds the earliest billing event for the payment with this id, if Stripe took the payment.
pub async fn find_billed_payment<T: Tables>(
    tables: &T,
    (app, environment, id): SharedId<'_>,
) -> Result<Option<Event>, T::Failure> {
    let scope = (app, environment);
    let chains = find_subscriptions(tables, scope, &BTreeSet::from([id])).await?;
    if chains.is_empty() {
        return Ok(None);
    }
    let (connected, _) = find_connected(tables, scope, chains).await?;
    let events = connected.payment_events(id);
    let found = tables.events(scope, &events).await?;
    Ok(found.into_iter().min_by_key(|event| event.id))
}

/// Finds the subscriptions with these transactions. Imported events have none.
async fn find_subscriptions<T: Tables>(
    tables: &T,
    scope: (AppId, Environment),
    transactions: &BTreeSet<&str>,
) -> Result<BTreeSet<Chain>, T::Failure> {
    let keys: Vec<String> = transactions.iter().map(|id| transaction_key(id)).collect();
    let found = tables
        .chains_by_key(scope, &keys, KEY_SUBSCRIPTIONS_MAX)
        .await?;
    let chains = found.into_iter().map(|(_, chain)| chain);
    Ok(chains
        .filter(|chain| chain.imported_event().is_none())
        .collect())
}

/// Finds the subscriptions with payments that these web events report or refund, by app.
pub async fn find_billed_subscriptions<T: Tables>(
    tables: &T,
    recorded: &[RecordedWebEvent],
) -> Result<BTreeMap<AppId, BTreeSet<Chain>>, T::Failure> {
    let mut payments: BTreeMap<AppId, BTreeSet<&str>> = BTreeMap::new();
    for one in recorded {
        if let Some(payment) = one.billed_payment() {
            payments.entry(one.event.app).or_default().insert(payment);
        }
    }
    let mut subscriptions = BTreeMap::new();
    for (app, payments) in payments {
        let chains = find_subscriptions(tables, (app, Environment::Live), &payments).await?;
        if !chains.is_empty() {
            subscriptions.insert(app, chains);
        }
    }
    Ok(subscriptions)
}

/// Settles the subscriptions with payments that web events report or refund. The caller has stored
/// the web events, and holds the locks on the apps.
pub async fn settle_billed_subscriptions<T: Tables>(
    tables: &T,
    subscriptions: BTreeMap<AppId, BTreeSet<Chain>>,
    now: Timestamp,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    for chains in subscriptions.into_values() {
        settle(tables, now, chains, None, tally).await?;
    }
    Ok(())
}

/// Finds the billing events for store transactions.
async fn find_transaction_events<'a, T: Tables>(
    tables: &T,
    scope: (AppId, Environment),
    transactions: &[&'a str],
) -> Result<Vec<(&'a str, Event)>, T::Failure> {
    let keys: Vec<String> = transactions.iter().map(|id| transaction_key(id)).collect();
    let found = tables
        .chains_by_key(scope, &keys, KEY_SUBSCRIPTIONS_MAX)
        .await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let mut transaction_by_event = BTreeMap::new();
    let mut chains: BTreeSet<Chain> = BTreeSet::new();
    for (key, chain) in found {
        if let Some(event) = chain.imported_event() {
            let mut wanted = transactions.iter();
            let wanted = wanted.find(|id| transaction_key(id) == key);
            transaction_by_event.extend(wanted.map(|id| (event, *id)));
        } else {
            chains.insert(chain);
        }
    }
    for notification in tables.notifications(&chains).await? {
        let wanted = transactions.iter();
        let mut wanted = wanted.filter(|id| notification.verified_transaction() == Some(**id));
        transaction_by_event.extend(wanted.next().map(|id| (notification.event, *id)));
    }
    let events = tables
        .events(scope, &transaction_by_event.keys().copied().collect())
        .await?;
    let with_transaction = |event: Event| Some((*transaction_by_event.get(&event.id)?, event));
    Ok(events.into_iter().filter_map(with_transaction).collect())
}

/// Locks the devices of these SDK events and reads the events again, so that no other transaction
/// changes them until this one ends.
pub async fn lock_sdk_events<T: Tables>(
    tables: &T,
    events: &[&Event],
    at: Timestamp,
) -> Result<BTreeMap<EventId, Event>, T::Failure> {
    let is_sdk = |event: &&&Event| event.source == EventSource::Sdk;
    let events: Vec<&Event> = events.iter().filter(is_sdk).copied().collect();
    let devices = events.iter().filter_map(|event| device_of(event));
    tables.lock_devices(&devices.collect(), at).await?;
    let mut before: BTreeMap<(AppId, Environment), BTreeMap<EventId, &Event>> = BTreeMap::new();
    for event in events {
        let of_app = before.entry((event.app, event.environment)).or_default();
        of_app.insert(event.id, event);
    }
    let mut locked = BTreeMap::new();
    for (scope, before) in before {
        for now in tables
            .events(scope, &before.keys().copied().collect())
            .await?
        {
            let before = before.get(&now.id);
            if before.is_none_or(|before| before.device != now.device) {
                return Err(Conflict.into());
            }
            locked.insert(now.id, now);
        }
    }
    Ok(locked)
}

const fn shared_id((app, environment): (AppId, Environment), event: &Event) -> SharedId<'_> {
    (app, environment, event.external_id.as_str())
}

pub(crate) fn device_of(event: &Event) -> Option<DeviceRef<'_>> {
    Some(DeviceRef {
        app: event.app,
        environment: event.environment,
        key: event.device.as_ref()?,
    })
}

/// Stores SDK events that became duplicates of verified events, and cancels their pending
/// deliveries. The caller holds the locks on the events' devices, counts the events, and settles
/// the devices' first payments after all other writes.
pub async fn demote<T: Tables>(
    tables: &T,
    demotions: &[(EventReplacement, Timestamp)],
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    if demotions.is_empty() {
        return Ok(());
    }
    let after: Vec<&Event> = demotions
        .iter()
        .map(|(demotion, _)| &demotion.after)
        .collect();
    tables.replace_events(&after).await?;
    let mut by_app: BTreeMap<AppId, (Vec<EventId>, Timestamp)> = BTreeMap::new();
    for (demotion, at) in demotions {
        if let Some(device) = device_of(&demotion.before)
            && demotion.vacates_first_payment()
        {
            tables
                .clear_first_payment(device, demotion.before.id)
                .await?;
        }
        let of_app = by_app.entry(demotion.before.app);
        let of_app = of_app.or_insert((Vec::new(), *at));
        of_app.0.push(demotion.before.id);
    }
    for (app, (events, at)) in by_app {
        plan::cancel_all(tables, app, &events, (DUPLICATE_OF_VERIFIED, at), tally).await?;
    }
    Ok(())
}

/// Evaluates again whether the SDK event with this id is a duplicate. Called after the verified
/// events with this id changed. Returns the event's device if the event changed; the caller then
/// settles the device's first payment.
pub(crate) async fn settle_sdk_event<T: Tables>(
    tables: &T,
    id: SharedId<'_>,
    now: Timestamp,
    tally: &mut TransactionTally,
) -> Result<Option<DeviceKey>, T::Failure> {
    let event = find_sdk_event(tables, id).await?;
    let Some(event) = event.filter(|event| is_verifiable(&event.name)) else {
        return Ok(None);
    };
    let mut locked = lock_sdk_events(tables, &[&event], now).await?;
    let event = locked.remove(&event.id).ok_or(Conflict)?;
    let Some(app) = tables.app(event.app).await? else {
        return Ok(None);
    };
    let plan_context = read_plan_context(tables, event.app, event.credit.as_ref()).await?;
    let rules = SdkEventRules {
        policy: sdk_policy(&app),
        revenue_events: &app.revenue_events,
        integrations: &plan_context.integrations,
    };
    // Read while the SDK event's device is locked. Every transaction that changes these verified
    // events evaluates the SDK event under the same lock.
    let verified = find_verified_events(tables, &[id]).await?.remove(&id);
    // An imported event is not found by its transaction if it was erased before the export.
    let named = event.duplicate_of.into_iter().collect();
    let named = tables
        .events((event.app, event.environment), &named)
        .await?;
    let twins: Vec<Event> = verified.into_iter().flatten().chain(named).collect();
    let Some(settled) = settle_duplicate(event, &twins, rules) else {
        return Ok(None);
    };
    tally
        .increments
        .replace_event(&settled.before, &settled.after);
    let device = settled.after.device.clone();
    if settled.is_demotion() {
        demote(tables, &[(settled, now)], tally).await?;
    } else {
        restore(tables, settled.after, &app, &plan_context, now, tally).await?;
    }
    Ok(device)
}

/// Stores an SDK event that is no longer a duplicate, and plans its deliveries.
async fn restore<T: Tables>(
    tables: &T,
    mut event: Event,
    app: &App,
    plan_context: &PlanContext,
    now: Timestamp,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    tables.replace_events(&[&event]).await?;
    let Some(device) = device_of(&event) else {
        return Ok(());
    };
    let state = tables.lock_device(device, now).await?;
    let facts = DeviceFacts {
        state: &state,
        click: plan_context.click.as_ref(),
        policy: sdk_policy(app),
        now,
        requires_attestation: app.requires_attestation(),
    };
    let replan = ReplanContext {
        facts: &facts,
        integrations: &plan_context.integrations,
        cancel_reason: DUPLICATE_OF_VERIFIED,
    };
    plan::replan(
        tables,
        app.id,
        std::slice::from_mut(&mut event),
        &replan,
        tally,
    )
    .await
}

/// Evaluates again which SDK events in a range of event ids are duplicates of verified events.
/// Corrects their revenue and flags, and leaves deliveries unchanged.
pub async fn correct_duplicates<T: Tables>(
    tables: &T,
    (app, environment): (AppId, Environment),
    span: (EventId, EventId),
    rules: SdkEventRules<'_>,
) -> Result<(), T::Failure> {
    let found = tables
        .duplicate_candidates((app, environment), span)
        .await?;
    if found.is_empty() {
        return Ok(());
    }
    // The time would only be used to insert a missing device, and all of these devices exist.
    let at = Timestamp::from_millis(0);
    let locked = lock_sdk_events(tables, &found.iter().collect::<Vec<_>>(), at).await?;
    let id = |event| shared_id((app, environment), event);
    let verified = find_verified_events(tables, &found.iter().map(id).collect::<Vec<_>>()).await?;
    // An imported event is not found by its transaction if it was erased before the export.
    let named = found
        .iter()
        .filter_map(|event| event.duplicate_of)
        .collect();
    let named = tables.events((app, environment), &named).await?;
    let corrected = locked.into_values().filter_map(|event| {
        let found = verified.get(&(app, environment, event.external_id.as_str()));
        let named = named
            .iter()
            .filter(|named| event.duplicate_of == Some(named.id));
        let twins: Vec<Event> = found.into_iter().flatten().chain(named).cloned().collect();
        let EventReplacement { before, after } = settle_duplicate(event, &twins, rules)?;
        let skipped = before.skipped;
        Some(Event { skipped, ..after })
    });
    let corrected: Vec<Event> = corrected.collect();
    if corrected.is_empty() {
        return Ok(());
    }
    tables
        .replace_events(&corrected.iter().collect::<Vec<_>>())
        .await
}
