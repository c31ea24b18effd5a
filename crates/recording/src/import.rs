//! Imports a batch of exported events.

use crate::duplicates::{demote, device_of, find_verified_events, lock_sdk_events};
use crate::first_payment::settle_first_payment;
use crate::tables::{Conflict, ImportTable, SharedId};
use crate::tally::TransactionTally;
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::event::import::{
    ImportChanges, ImportFacts, ImportOutcome, ImportedEvent, decide, select,
};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::ImportMode;

/// Number of a device's events that are read per query.
const HISTORY_EVENTS_MAX: usize = 1_000;

/// Imports events of one app. Returns one outcome per event, and the increments for the roll-ups.
pub async fn import_events<T: ImportTable>(
    tables: &T,
    app: AppId,
    batch: &[ImportedEvent],
    (mode, now): (ImportMode, Timestamp),
) -> Result<(Vec<ImportOutcome>, Increments), T::Failure> {
    let Some(stored) = tables.app(app).await? else {
        return Err(Refusal::AppNotFound.into());
    };
    if stored.archived {
        return Err(Refusal::AppArchived.into());
    }
    let mut facts = ImportFacts::new(&stored, tables.integrations(app).await?);
    read_ids(tables, app, batch, &mut facts).await?;
    // Ids that sources share are reserved before devices are locked, and all devices are locked at once,
    // as for recorded events. Otherwise two transactions could wait for each other. The ids of new web
    // events are claimed later; the one transaction that the database then ends is run again.
    let reported = read_twins(tables, batch, mode, &mut facts).await?;
    facts.sdk_events = match mode {
        ImportMode::Write => {
            let mut devices: BTreeSet<DeviceRef<'_>> = devices_to_lock(batch, &facts);
            devices.extend(reported.iter().filter_map(|(_, event)| device_of(event)));
            tables.lock_devices(&devices, now).await?;
            read_locked(tables, &reported, now).await?
        }
        ImportMode::DryRun => reported.into_iter().collect(),
    };
    read_references(tables, app, batch, &mut facts).await?;
    let outcomes = select(batch, &facts);
    let decided = decide(batch, outcomes, &facts, now);
    let increments = match mode {
        ImportMode::Write => write(tables, app, &decided.changes).await?,
        ImportMode::DryRun => Increments::default(),
    };
    Ok((decided.outcomes, increments))
}

/// Reads which ids are used.
async fn read_ids<'a, T: ImportTable>(
    tables: &T,
    app: AppId,
    batch: &'a [ImportedEvent],
    facts: &mut ImportFacts<'a>,
) -> Result<(), T::Failure> {
    let keys = batch.iter().map(ImportedEvent::key).collect();
    facts.keys = tables.key_holders(app, &keys).await?;
    let mut ids: BTreeMap<Environment, BTreeSet<EventId>> = BTreeMap::new();
    for imported in unstored(batch, facts) {
        let of_environment = ids.entry(imported.event.environment).or_default();
        of_environment.insert(imported.event.id);
    }
    for (environment, ids) in ids {
        let stored = tables.stored_event_ids((app, environment), &ids).await?;
        let stored = stored.into_iter().map(|id| (environment, id));
        facts.stored_ids.extend(stored);
    }
    Ok(())
}

/// Returns the events whose ids are free or only reserved.
fn unstored<'a>(batch: &'a [ImportedEvent], facts: &ImportFacts<'a>) -> Vec<&'a ImportedEvent> {
    let is_free = |imported: &&ImportedEvent| {
        let holder = facts.keys.get(&imported.key());
        holder.is_none_or(|holder| holder.is_reservation)
    };
    batch.iter().filter(is_free).collect()
}

/// Returns the devices whose state decides about the batch. As for recorded events, a web event
/// without a payment does not depend on its device.
fn devices_to_lock<'a>(
    batch: &'a [ImportedEvent],
    facts: &ImportFacts<'a>,
) -> BTreeSet<DeviceRef<'a>> {
    let unstored = unstored(batch, facts).into_iter();
    let depending = unstored.filter(|imported| {
        imported.event.source != EventSource::Web || imported.event.payer().is_some()
    });
    depending.filter_map(ImportedEvent::device_ref).collect()
}

/// Reads the links, clicks and devices that the batch refers to.
async fn read_references<'a, T: ImportTable>(
    tables: &T,
    app: AppId,
    batch: &'a [ImportedEvent],
    facts: &mut ImportFacts<'a>,
) -> Result<(), T::Failure> {
    let unstored = unstored(batch, facts);
    let credits = || unstored.iter().filter_map(|one| one.event.credit.as_ref());
    let links = credits().filter_map(|credit| credit.link).collect();
    facts.links = tables.existing_links(app, &links).await?;
    let clicks = credits().filter_map(|credit| credit.click).collect();
    facts.clicks = tables.click_uses(app, &clicks).await?;
    let devices = unstored.iter().filter_map(|one| one.device_ref()).collect();
    facts.devices = tables.import_devices(&devices).await?;
    Ok(())
}

/// Reads the verified events that report the same events as the batch, and reserves the ids of new
/// events. Returns the stored SDK events that report the same events as the batch.
async fn read_twins<'a, T: ImportTable>(
    tables: &T,
    batch: &'a [ImportedEvent],
    mode: ImportMode,
    facts: &mut ImportFacts<'a>,
) -> Result<Vec<(SharedId<'a>, Event)>, T::Failure> {
    // Devices are not read yet. They decide only about installs, whose ids are not shared.
    let outcomes = select(batch, facts);
    let new = batch.iter().zip(&outcomes);
    let new = new.filter(|(_, outcome)| matches!(outcome, ImportOutcome::New(_)));
    let mut by_source: BTreeMap<EventSource, Vec<(SharedId<'a>, EventId)>> = BTreeMap::new();
    for (imported, _) in new {
        if let Some(id) = imported.shared_id() {
            let of_source = by_source.entry(imported.event.source).or_default();
            of_source.push((id, imported.event.id));
        }
    }
    let mut of = |source| by_source.remove(&source).unwrap_or_default();
    let (mut sdk, web, billing) = (
        of(EventSource::Sdk),
        of(EventSource::Web),
        of(EventSource::Billing),
    );
    let web: BTreeSet<SharedId<'a>> = web.into_iter().map(|(id, _)| id).collect();
    let billing: BTreeSet<SharedId<'a>> = billing.into_iter().map(|(id, _)| id).collect();
    // A web event of this batch claims its id.
    sdk.retain(|(id, _)| !web.contains(id));
    let transactions = billing.difference(&web).copied().collect();
    facts.verified = match mode {
        ImportMode::Write => {
            let verified = tables.reserve_ids(&sdk).await?;
            tables.reserve_transactions(&transactions).await?;
            verified
        }
        ImportMode::DryRun => {
            let ids: Vec<SharedId<'a>> = sdk.iter().map(|(id, _)| *id).collect();
            find_verified_events(tables, &ids).await?
        }
    };
    // An SDK event with the id of a web event has reserved the id.
    let is_reserved = |(_, environment, id): &SharedId<'a>| {
        let key = (*environment, EventSource::Web, *id);
        facts.keys.contains_key(&key)
    };
    let ids: BTreeSet<SharedId<'a>> = web.into_iter().filter(is_reserved).chain(billing).collect();
    let ids: Vec<SharedId<'a>> = ids.into_iter().collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    tables.events_by_external_id(EventSource::Sdk, &ids).await
}

/// Reads SDK events again, after their devices were locked.
async fn read_locked<'a, T: ImportTable>(
    tables: &T,
    found: &[(SharedId<'a>, Event)],
    now: Timestamp,
) -> Result<BTreeMap<SharedId<'a>, Event>, T::Failure> {
    let events: Vec<&Event> = found.iter().map(|(_, event)| event).collect();
    let mut locked = lock_sdk_events(tables, &events, now).await?;
    let current = found.iter().map(|(id, event)| {
        let event = locked.remove(&event.id).ok_or(Conflict)?;
        Ok((*id, event))
    });
    current.collect()
}

/// Writes the changes. Returns the increments.
async fn write<T: ImportTable>(
    tables: &T,
    app: AppId,
    changes: &ImportChanges<'_>,
) -> Result<Increments, T::Failure> {
    if changes.recorded.is_empty() {
        return Ok(Increments::default());
    }
    // Read before the events of this batch are stored.
    let history = read_history(tables, app, changes).await?;
    let mut tally = TransactionTally::default();
    tables.write_import(app, changes).await?;
    demote(tables, &changes.demotions, &mut tally).await?;
    changes.count(&mut tally.increments);
    for event in &history {
        tally.increments.add_to_cohort(event);
    }
    for (environment, key) in &changes.unsettled {
        let device = DeviceRef {
            app,
            environment: *environment,
            key,
        };
        settle_first_payment(tables, device, &mut tally).await?;
    }
    tally.write(tables).await
}

/// Reads the stored events of devices whose install is in this batch. They were counted outside the
/// cohorts.
async fn read_history<T: ImportTable>(
    tables: &T,
    app: AppId,
    changes: &ImportChanges<'_>,
) -> Result<Vec<Event>, T::Failure> {
    let mut installed: BTreeMap<Environment, BTreeSet<&DeviceKey>> = BTreeMap::new();
    for (environment, key) in changes.installs() {
        installed.entry(environment).or_default().insert(key);
    }
    let mut history = Vec::new();
    for (environment, keys) in installed {
        let scope = (app, environment);
        for key in &tables.devices_with_events(scope, &keys).await? {
            let device = DeviceRef {
                app,
                environment,
                key,
            };
            let mut last = None;
            loop {
                let events = tables
                    .events_to_credit(device, last, HISTORY_EVENTS_MAX)
                    .await?;
                let Some(latest) = events.last() else { break };
                last = Some(latest.id);
                history.extend(events);
            }
        }
    }
    Ok(history)
}
