//! Events that two sources report.
//!
//! An SDK event that a verified source may report too reserves its id among the ids of web events: a key without a
//! fingerprint. A web event that finds its id reserved learns of the SDK event by that, and takes the key over. A billing
//! event reserves the id of its store transaction for no event at all. The SDK event that comes later learns by that
//! that it has to look for billing events. All of them insert or lock the same key, so the second of two transactions
//! waits for the first and then finds its event.
//!
//! Ids are reserved before devices are locked, in the order in which web events take both.

use crate::plan::{self, PlanContext, ReplanContext, read_plan_context};
use crate::tables::{Conflict, SharedId, Tables};
use crate::tally::TransactionTally;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::app::{App, FraudPolicy};
use tributary_domain::billing::connected::KEY_SUBSCRIPTIONS_MAX;
use tributary_domain::billing::{Chain, transaction_key};
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::event::duplicate::{
    EventReplacement, SdkEventRules, is_verifiable, settle_duplicate,
};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::forwarding::lifecycle::DUPLICATE_OF_VERIFIED;
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::ledger::sdk_policy;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;

/// The verified events that have ids, those of each in the order of their ids.
pub type VerifiedEvents<'a> = BTreeMap<SharedId<'a>, Vec<Event>>;

/// Finds the SDK event of an id.
pub(crate) async fn find_sdk_event<T: Tables>(
    tables: &T,
    id: SharedId<'_>,
) -> Result<Option<Event>, T::Failure> {
    let found = tables
        .events_by_external_id(EventSource::Sdk, &[id])
        .await?;
    Ok(found.into_iter().next().map(|(_, event)| event))
}

/// Finds the verified events of ids: the website's, and those of store transactions.
pub async fn find_verified_events<'a, T: Tables>(
    tables: &T,
    ids: &[SharedId<'a>],
) -> Result<VerifiedEvents<'a>, T::Failure> {
    let mut holders = VerifiedEvents::new();
    for (id, event) in tables.events_by_external_id(EventSource::Web, ids).await? {
        holders.entry(id).or_default().push(event);
    }
    let mut of_apps: BTreeMap<(AppId, Environment), Vec<&'a str>> = BTreeMap::new();
    for (app, environment, id) in ids {
        of_apps.entry((*app, *environment)).or_default().push(*id);
    }
    for (of, ids) in of_apps {
        for (id, event) in find_transaction_events(tables, of, &ids).await? {
            holders.entry((of.0, of.1, id)).or_default().push(event);
        }
    }
    for events in holders.values_mut() {
        events.sort_by_key(|event| event.id);
    }
    Ok(holders)
}

/// Finds the billing events of store transactions.
async fn find_transaction_events<'a, T: Tables>(
    tables: &T,
    of: (AppId, Environment),
    transactions: &[&'a str],
) -> Result<Vec<(&'a str, Event)>, T::Failure> {
    let keys: Vec<String> = transactions.iter().map(|id| transaction_key(id)).collect();
    let found = tables
        .chains_by_key(of, &keys, KEY_SUBSCRIPTIONS_MAX)
        .await?;
    let chains: BTreeSet<Chain> = found.into_iter().map(|(_, chain)| chain).collect();
    if chains.is_empty() {
        return Ok(Vec::new());
    }
    let mut named = BTreeMap::new();
    for one in tables.notifications(&chains).await? {
        let wanted = transactions.iter();
        let mut wanted = wanted.filter(|id| one.verified_transaction() == Some(**id));
        named.extend(wanted.next().map(|id| (one.event, *id)));
    }
    let events = tables.events(of, &named.keys().copied().collect()).await?;
    let of_transaction = |event: Event| Some((*named.get(&event.id)?, event));
    Ok(events.into_iter().filter_map(of_transaction).collect())
}

/// Locks the devices of SDK events that a verified source reports, and reads the events again: no other transaction
/// changes them until this one ends.
pub async fn lock_sdk_events<T: Tables>(
    tables: &T,
    events: &[&Event],
    at: Timestamp,
) -> Result<BTreeMap<EventId, Event>, T::Failure> {
    let is_reported = |event: &&&Event| event.source == EventSource::Sdk;
    let events: Vec<&Event> = events.iter().filter(is_reported).copied().collect();
    let devices = events.iter().filter_map(|event| device_of(event));
    tables.lock_devices(&devices.collect(), at).await?;
    let mut before: BTreeMap<(AppId, Environment), BTreeMap<EventId, &Event>> = BTreeMap::new();
    for event in events {
        let of_app = before.entry((event.app, event.environment)).or_default();
        of_app.insert(event.id, event);
    }
    let mut reported = BTreeMap::new();
    for (of, before) in before {
        for now in tables.events(of, &before.keys().copied().collect()).await? {
            let before = before.get(&now.id);
            if before.is_none_or(|before| before.device != now.device) {
                return Err(Conflict.into());
            }
            reported.insert(now.id, now);
        }
    }
    Ok(reported)
}

const fn shared_id((app, environment): (AppId, Environment), event: &Event) -> SharedId<'_> {
    (app, environment, event.external_id.as_str())
}

fn device_of(event: &Event) -> Option<DeviceRef<'_>> {
    Some(DeviceRef {
        app: event.app,
        environment: event.environment,
        key: event.device.as_ref()?,
    })
}

/// Stores SDK events that verified events make duplicates, and cancels what waits to be sent of them. Their devices are
/// locked. The caller counts the events, and settles the first payments of the devices when all else is written.
pub async fn demote<T: Tables>(
    tables: &T,
    demotions: &[(EventReplacement, Timestamp)],
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    if demotions.is_empty() {
        return Ok(());
    }
    let after: Vec<&Event> = demotions.iter().map(|(one, _)| &one.after).collect();
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

/// Decides about the SDK event of an id after the verified events of the id changed. Returns its device if that changed
/// it: the device's first payment has to be settled.
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
    let around = read_plan_context(tables, event.app, event.credit.as_ref()).await?;
    let terms = SdkEventRules {
        policy: sdk_policy(&app),
        revenue_events: &app.revenue_events,
        integrations: &around.integrations,
    };
    // Read after the lock was taken: what changes verified events decides about this event under the same lock.
    let verified = find_verified_events(tables, &[id])
        .await?
        .remove(&id)
        .unwrap_or_default();
    let Some(settled) = settle_duplicate(event, &verified, terms) else {
        return Ok(None);
    };
    tally
        .increments
        .replace_event(&settled.before, &settled.after);
    let device = settled.after.device.clone();
    if settled.is_demotion() {
        demote(tables, &[(settled, now)], tally).await?;
    } else {
        restore(tables, settled.after, &app, &around, now, tally).await?;
    }
    Ok(device)
}

/// Stores an SDK event that is no longer a duplicate, and plans its deliveries.
async fn restore<T: Tables>(
    tables: &T,
    mut event: Event,
    app: &App,
    around: &PlanContext,
    now: Timestamp,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    tables.replace_events(&[&event]).await?;
    let Some(device) = device_of(&event) else {
        return Ok(());
    };
    let known = tables.lock_device(device, now).await?;
    let facts = DeviceFacts {
        state: &known,
        click: around.click.as_ref(),
        holds_suspicious: app.attribution.fraud == FraudPolicy::Hold,
        policy: sdk_policy(app),
        now,
    };
    let again = ReplanContext {
        facts: &facts,
        integrations: &around.integrations,
        cancel_reason: DUPLICATE_OF_VERIFIED,
    };
    plan::replan(
        tables,
        app.id,
        std::slice::from_mut(&mut event),
        &again,
        tally,
    )
    .await
}

/// Decides about the SDK events of a stretch of the log that verified events have the ids of. It corrects what counts,
/// and leaves deliveries alone.
pub async fn correct_duplicates<T: Tables>(
    tables: &T,
    (app, environment): (AppId, Environment),
    span: (EventId, EventId),
    terms: SdkEventRules<'_>,
) -> Result<(), T::Failure> {
    let found = tables
        .duplicate_candidates((app, environment), span)
        .await?;
    if found.is_empty() {
        return Ok(());
    }
    // The moment is that of a device that is not stored, and these are.
    let at = Timestamp::from_millis(0);
    let locked = lock_sdk_events(tables, &found.iter().collect::<Vec<_>>(), at).await?;
    let id = |event| shared_id((app, environment), event);
    let verified = find_verified_events(tables, &found.iter().map(id).collect::<Vec<_>>()).await?;
    let corrected = locked.into_values().filter_map(|event| {
        let holders = verified.get(&(app, environment, event.external_id.as_str()));
        let EventReplacement { before, after } =
            settle_duplicate(event.clone(), holders.map_or(&[], Vec::as_slice), terms)?;
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
