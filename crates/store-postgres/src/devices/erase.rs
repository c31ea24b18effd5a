//! Erasing a device: what it is and was stays under a pseudonym, and nothing says whose it was. What remains is
//! `domain::erasure`'s to say.
//!
//! The app's row is locked before, as by whoever settles subscriptions, then the device. Whoever waited for the device
//! finds none, and makes a new one.

use super::AsColumns;
use crate::params::column;
use crate::rows::{id, optional_id, uuid};
use crate::tx::Tx;
use crate::{Failure, billing, planned, rollups};
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef, Identity, UserKey};
use tributary_domain::erasure::{Erasure, clicks_of};
use tributary_domain::event::EventSource;
use tributary_domain::forwarding::course::ERASED;
use tributary_domain::install::Known;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{DeviceTable, Tally, cancel_all};
use tributary_store::records::{ClickRow, DeviceRow, ERASED_CLICK, ERASED_EVENT, IdentityRow};
use uuid::Uuid;

/// What an event leads to.
struct Trace {
    event: EventId,
    source: String,
    given_id: String,
    user: Option<String>,
    click: Option<ClickId>,
}

/// Erases a device of an app that is locked.
pub(super) async fn erase(
    tx: &Tx,
    of: DeviceRef<'_>,
    pseudonym: &DeviceKey,
    at: Timestamp,
) -> Result<(), Failure> {
    let known = tx.lock_device(of, at).await?;
    // While its events are still to be found: it would come back into its cohort otherwise.
    rollups::merge_or_discard(tx, of.app).await?;
    let mut traces = traces(tx, of, "device_id = any($3)", vec![of.device()]).await?;
    let unknown = known.device.is_none() && known.identity == Identity::default();
    if unknown && traces.is_empty() {
        // The row that was the lock goes with the transaction.
        return Err(Refusal::DeviceNotFound.into());
    }
    let advertising = known.device.as_ref();
    let advertising = advertising.and_then(|device| device.advertising_id.clone());
    let erasure = Erasure {
        device: of.key.clone(),
        pseudonym: pseudonym.clone(),
        people: people(tx, of, &known, &traces).await?,
        advertising: advertising.into_iter().collect(),
    };
    let nobodys = "user_id = any($3) and device_id is null";
    let people = column(&erasure.people, UserKey::as_str);
    traces.extend(self::traces(tx, of, nobodys, people).await?);
    let billed = traces.iter();
    let billed = billed.filter(|trace| trace.source == EventSource::Billing.as_str());
    let billed: BTreeSet<&str> = billed.map(|trace| trace.given_id.as_str()).collect();
    billing::erase(tx, of, &erasure, &billed).await?;
    write_events(tx, of, &erasure).await?;
    let mut clicks: BTreeSet<ClickId> = traces.iter().filter_map(|trace| trace.click).collect();
    if let Some(attribution) = &known.attribution {
        clicks.extend(clicks_of(&attribution.decision));
    }
    write_device(tx, of, known, &erasure).await?;
    write_clicks(tx, of, &erasure, clicks).await?;
    let events = column(&traces, |trace| trace.event);
    let mut tally = Tally::default();
    cancel_all(tx, of.app, &events, (ERASED, at), &mut tally).await?;
    tally.write(tx).await?;
    tx.execute(
        "update cohort_devices set device_id = $4
         where app_id = $1 and environment = $2 and device_id = $3",
        &[
            &of.app(),
            &of.environment.as_str(),
            &of.device(),
            &pseudonym.as_str(),
        ],
    )
    .await?;
    Ok(())
}

async fn traces(
    tx: &Tx,
    of: DeviceRef<'_>,
    condition: &str,
    values: Vec<&str>,
) -> Result<Vec<Trace>, Failure> {
    let sql = format!(
        "select event_id, source, given_id, user_id, click_id from events
         where app_id = $1 and environment = $2 and {condition}"
    );
    let (app, environment, _) = of.columns();
    let rows = tx.query(&sql, &[&app, &environment, &values]).await?;
    let trace = |row| {
        Ok(Trace {
            event: EventId::from_bytes(id(row, 0)?),
            source: row.try_get(1)?,
            given_id: row.try_get(2)?,
            user: row.try_get(3)?,
            click: optional_id(row, 4)?.map(ClickId::from_bytes),
        })
    };
    rows.iter().map(trace).collect()
}

/// The ids of people that the device went by, and no other does.
async fn people(
    tx: &Tx,
    of: DeviceRef<'_>,
    known: &Known,
    traces: &[Trace],
) -> Result<Vec<UserKey>, Failure> {
    let (app, environment, device) = of.columns();
    let mut ids: BTreeSet<String> = traces.iter().filter_map(|one| one.user.clone()).collect();
    ids.extend(
        known
            .identity
            .user
            .iter()
            .map(|user| user.as_str().to_owned()),
    );
    let linked = tx
        .query(
            "select user_id from user_links
             where app_id = $1 and environment = $2 and device_id = $3",
            &[&app, &environment, &device],
        )
        .await?;
    for row in &linked {
        ids.insert(row.try_get(0)?);
    }
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    let shared = tx
        .query(
            "select distinct user_id from user_links
             where app_id = $1 and environment = $2 and user_id = any($3) and device_id <> $4",
            &[&app, &environment, &all, &device],
        )
        .await?;
    for row in &shared {
        let id: String = row.try_get(0)?;
        ids.remove(&id);
    }
    Ok(ids.into_iter().map(UserKey::stored).collect())
}

async fn write_events(tx: &Tx, of: DeviceRef<'_>, erasure: &Erasure) -> Result<(), Failure> {
    let (app, environment, device) = of.columns();
    let sql = format!(
        "update events set {ERASED_EVENT}
         where app_id = $1 and environment = $2 and user_id = any($3) and device_id is null"
    );
    let people = column(&erasure.people, UserKey::as_str);
    tx.execute(&sql, &[&app, &environment, &people]).await?;
    let sql = format!(
        "update events set device_id = $4, {ERASED_EVENT}
         where app_id = $1 and environment = $2 and device_id = $3"
    );
    let pseudonym = erasure.pseudonym.as_str();
    tx.execute(&sql, &[&app, &environment, &device, &pseudonym])
        .await?;
    Ok(())
}

/// Writes what remains of the device, and of whoever was behind it.
async fn write_device(
    tx: &Tx,
    of: DeviceRef<'_>,
    known: Known,
    erasure: &Erasure,
) -> Result<(), Failure> {
    let (app, environment, device) = of.columns();
    let pseudonym = erasure.pseudonym.as_str();
    // The first payment stays known: what is paid later is no first one.
    let nobody = IdentityRow::write(&Identity::default());
    tx.execute(
        "update identities set device_id = $4, user_id = $5, matching = $6
         where app_id = $1 and environment = $2 and device_id = $3",
        &[
            &app,
            &environment,
            &device,
            &pseudonym,
            &nobody.user_id,
            &nobody.matching,
        ],
    )
    .await?;
    if let (Some(stored), Some(attribution)) = (known.device, known.attribution) {
        let row = DeviceRow::write(&erasure.device(stored), &erasure.attribution(attribution));
        tx.execute(
            "update devices set device_id = $4, traits = $5, advertising_id = $6, idfv = $7,
                                consent = $8, decision = $9, address_hash = null
             where app_id = $1 and environment = $2 and device_id = $3",
            &[
                &app,
                &environment,
                &device,
                &row.device_id,
                &row.traits,
                &row.advertising_id,
                &row.idfv,
                &row.consent,
                &row.decision,
            ],
        )
        .await?;
    }
    tx.execute(
        "delete from ad_services_tokens
         where app_id = $1 and environment = $2 and device_id = $3",
        &[&app, &environment, &device],
    )
    .await?;
    Ok(())
}

/// Writes what remains of clicks, but for those that another device has taken: they are that one's.
async fn write_clicks(
    tx: &Tx,
    of: DeviceRef<'_>,
    erasure: &Erasure,
    clicks: BTreeSet<ClickId>,
) -> Result<(), Failure> {
    if clicks.is_empty() {
        return Ok(());
    }
    // Locked in the order of their ids, as far as nobody else has them. Only live devices take clicks, and a test device
    // may go by the same id.
    let is_live = of.environment == Environment::Live;
    let taker = is_live.then_some(of.device());
    let ids: Vec<Uuid> = clicks.iter().map(|click| uuid(click.as_bytes())).collect();
    let rows = tx
        .query(
            "select click_id from clicks
             where app_id = $1 and click_id = any($2) and (taken_by is null or taken_by = $3)
             order by click_id for update",
            &[&of.app(), &ids, &taker],
        )
        .await?;
    let mut own: BTreeSet<(AppId, ClickId)> = BTreeSet::new();
    for row in &rows {
        own.insert((of.app, ClickId::from_bytes(id(row, 0)?)));
    }
    let found = planned::find_clicks(tx, own).await?;
    let remains: Vec<ClickRow> = found
        .into_values()
        .map(|click| ClickRow::write(&erasure.click(click)))
        .collect();
    let sql = format!(
        "update clicks set captured = new.captured,
                           taken_by = case when taken_by is not null then $4 end, {ERASED_CLICK}
         from unnest($2, $3) as new (click_id, captured)
         where clicks.app_id = $1 and clicks.click_id = new.click_id"
    );
    tx.execute(
        &sql,
        &[
            &of.app(),
            &column(&remains, |row| uuid(&row.click_id)),
            &column(&remains, |row| row.captured.as_str()),
            &erasure.pseudonym.as_str(),
        ],
    )
    .await?;
    Ok(())
}
