//! Imports exported events, one batch per transaction and one statement per table.
//!
//! Ids that sources share are reserved first, then devices are locked. Other ids are read without a
//! lock and claimed when the events are written; if another transaction was first, the batch is
//! decided again.

use crate::clicks::KeptClicks;
use crate::devices::bulk::{self, NewDevice};
use crate::devices::{find_import_facts, mark_installed};
use crate::params::column;
use crate::rows::{id, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore, clicks, duplicates, event_rows, rollups, statistics};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::event::EventSource;
use tributary_domain::event::import::{
    ClickUse, ImportChanges, ImportDeviceFacts, ImportKey, ImportKeyHolder, ImportOutcome,
    ImportedEvent, ImportedRecord,
};
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::duplicates::VerifiedEvents;
use tributary_recording::{ImportTable, SharedId, import_events};
use tributary_store::{ImportMode, Imports, StoreResult};
use uuid::Uuid;

/// Number of batches after which an import waits until their increments are merged. They count many
/// devices, and would otherwise pile up if batches are stored faster than the background task merges.
/// Then, and after the first batch, it also collects the first statistics of tables: with a plan for an
/// empty table, each lookup would read all events of the app.
const BATCHES_PER_UPKEEP: u64 = 8;

#[async_trait]
impl Imports for PostgresStore {
    async fn import_events(
        &self,
        app: AppId,
        batch: Arc<[ImportedEvent]>,
        mode: ImportMode,
        at: Timestamp,
    ) -> StoreResult<Vec<ImportOutcome>> {
        let name = "import_events";
        if mode == ImportMode::DryRun {
            return self
                .read(name, async move |tx| {
                    Ok(import_events(tx, app, &batch, (mode, at)).await?.0)
                })
                .await;
        }
        let outcomes = self
            .write(name, async move |tx| {
                let (outcomes, increments) = import_events(tx, app, &batch, (mode, at)).await?;
                rollups::store_increments(tx, &increments).await?;
                Ok(outcomes)
            })
            .await?;
        let imported = self.imported_batches.fetch_add(1, Ordering::Relaxed) + 1;
        if (imported == 1 || imported.is_multiple_of(BATCHES_PER_UPKEEP))
            && let Err(error) = statistics::collect_missing(&self.pool).await
        {
            tracing::debug!(%error, "cannot collect statistics");
        }
        if imported.is_multiple_of(BATCHES_PER_UPKEEP)
            && let Err(error) = rollups::merge_app(&self.pool, app).await
        {
            tracing::warn!(%error, "failed to merge roll-up increments; retrying later");
        }
        Ok(outcomes)
    }
}

impl ImportTable for Tx {
    async fn key_holders<'a>(
        &self,
        app: AppId,
        keys: &BTreeSet<ImportKey<'a>>,
    ) -> Result<BTreeMap<ImportKey<'a>, ImportKeyHolder>, Failure> {
        let keys: Vec<ImportKey<'a>> = keys.iter().copied().collect();
        // One index lookup per id, because of the grouping (see `devices::bulk::rows_of`).
        let rows = self
            .query(
                "select wanted.number, taken.event_id, taken.fingerprint is null
                 from unnest($2, $3, $4) with ordinality
                      as wanted (environment, source, given_id, number)
                 cross join lateral
                      (select event_id, fingerprint from event_keys
                       where app_id = $1 and environment = wanted.environment
                         and source = wanted.source and given_id = wanted.given_id
                       group by app_id, environment, source, given_id) as taken",
                &[
                    &uuid(app.as_bytes()),
                    &column(&keys, |(environment, ..)| environment.as_str()),
                    &column(&keys, |(_, source, _)| source.as_str()),
                    &column(&keys, |(.., given_id)| *given_id),
                ],
            )
            .await?;
        let holder = |row: &Row| {
            let number: i64 = row.try_get(0)?;
            let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
            let key = *keys.get(index).ok_or(Failure::Conflict)?;
            let has_no_fingerprint: bool = row.try_get(2)?;
            let holder = ImportKeyHolder {
                event: EventId::from_bytes(id(row, 1)?),
                is_reservation: key.1 == EventSource::Web && has_no_fingerprint,
            };
            Ok((key, holder))
        };
        rows.iter().map(holder).collect()
    }

    async fn stored_event_ids(
        &self,
        (app, environment): (AppId, Environment),
        ids: &BTreeSet<EventId>,
    ) -> Result<BTreeSet<EventId>, Failure> {
        let ids: Vec<Uuid> = ids.iter().map(|id| uuid(id.as_bytes())).collect();
        let rows = self
            .query(
                "select event_id from events
                 where app_id = $1 and environment = $2 and event_id = any($3)",
                &[&uuid(app.as_bytes()), &environment.as_str(), &ids],
            )
            .await?;
        let found = rows.iter().map(|row| Ok(EventId::from_bytes(id(row, 0)?)));
        found.collect()
    }

    async fn reserve_ids<'a>(
        &self,
        wanted: &[(SharedId<'a>, EventId)],
    ) -> Result<VerifiedEvents<'a>, Failure> {
        duplicates::reserve(self, wanted).await
    }

    async fn existing_links(
        &self,
        app: AppId,
        links: &BTreeSet<LinkId>,
    ) -> Result<BTreeSet<LinkId>, Failure> {
        if links.is_empty() {
            return Ok(BTreeSet::new());
        }
        let links: Vec<Uuid> = links.iter().map(|link| uuid(link.as_bytes())).collect();
        let sql = "select link_id from links where app_id = $1 and link_id = any($2)";
        let rows = self.query(sql, &[&uuid(app.as_bytes()), &links]).await?;
        let found = rows.iter().map(|row| Ok(LinkId::from_bytes(id(row, 0)?)));
        found.collect()
    }

    async fn click_uses(
        &self,
        app: AppId,
        clicks: &BTreeSet<ClickId>,
    ) -> Result<BTreeMap<ClickId, ClickUse>, Failure> {
        if clicks.is_empty() {
            return Ok(BTreeMap::new());
        }
        let clicks: Vec<Uuid> = clicks.iter().map(|click| uuid(click.as_bytes())).collect();
        let sql = "select click_id, kept, taken_by from clicks
                   where app_id = $1 and click_id = any($2)";
        let rows = self.query(sql, &[&uuid(app.as_bytes()), &clicks]).await?;
        let click = |row: &Row| {
            let taken_by: Option<String> = row.try_get(2)?;
            let found = ClickUse {
                is_kept: row.try_get(1)?,
                taken_by: taken_by.map(DeviceKey::stored),
            };
            Ok((ClickId::from_bytes(id(row, 0)?), found))
        };
        rows.iter().map(click).collect()
    }

    async fn import_devices<'a>(
        &self,
        devices: &BTreeSet<DeviceRef<'a>>,
    ) -> Result<BTreeMap<DeviceRef<'a>, ImportDeviceFacts>, Failure> {
        find_import_facts(self, devices).await
    }

    async fn devices_with_events(
        &self,
        (app, environment): (AppId, Environment),
        devices: &BTreeSet<&DeviceKey>,
    ) -> Result<BTreeSet<DeviceKey>, Failure> {
        let devices: Vec<&str> = devices.iter().map(|device| device.as_str()).collect();
        let rows = self
            .query(
                "select wanted.device_id from unnest($3) as wanted (device_id)
                 cross join lateral
                      (select device_id from events
                       where app_id = $1 and environment = $2 and device_id = wanted.device_id
                       group by app_id, environment, device_id) as stored",
                &[&uuid(app.as_bytes()), &environment.as_str(), &devices],
            )
            .await?;
        let found = rows.iter();
        let found = found.map(|row| Ok(DeviceKey::stored(row.try_get(0)?)));
        found.collect()
    }

    async fn write_import(&self, app: AppId, changes: &ImportChanges<'_>) -> Result<(), Failure> {
        let events = column(&changes.recorded, |record| &record.event);
        let devices = column(&changes.devices, |(of, device, attribution)| NewDevice {
            of: *of,
            device,
            attribution,
            address_hash: None,
        });
        let kept = changes.clicks.iter();
        let kept = kept.map(|(click, device)| ((app, *click), device.map(DeviceKey::as_str)));
        let kept: KeptClicks<'_> = kept.collect();
        take_over(self, app, changes).await?;
        // Pipelined in this order, which the server keeps. The event ids come first, so that if an id
        // is already in use, this conflict is found first and everything is rolled back. Boxed
        // because the futures of many concurrent statements are large.
        Box::pin(async {
            tokio::try_join!(
                biased;
                claim_ids(self, changes),
                add_refunds(self, app, changes),
                add_transactions(self, app, changes),
                event_rows::insert(self, &events),
                bulk::insert_devices(self, &devices),
                mark_installed(self, &changes.installed),
                bulk::claim_first_payments(self, &changes.payers),
                bulk::check_first_payments(self, &changes.payers),
                clicks::keep(self, &kept),
            )
        })
        .await?;
        Ok(())
    }
}

/// Claims the ids of new events. Reports a conflict if another transaction claimed one of them first.
async fn claim_ids(tx: &Tx, changes: &ImportChanges<'_>) -> Result<(), Failure> {
    let free = changes.recorded.iter();
    let free = free.filter(|record| record.reserved_by.is_none());
    let keys: Vec<_> = free.map(ImportedRecord::key).collect();
    let claimed = event_rows::claim(tx, &keys).await?;
    if claimed.contains(&false) {
        return Err(Failure::Conflict);
    }
    Ok(())
}

/// Reassigns reserved ids to web events of this batch.
async fn take_over(tx: &Tx, app: AppId, changes: &ImportChanges<'_>) -> Result<(), Failure> {
    let reserved = changes.recorded.iter().filter_map(|record| {
        let event = &record.event;
        let id = (app, event.environment, event.external_id.as_str());
        Some((id, record.reserved_by?, event.id, record.fingerprint?))
    });
    duplicates::take_over(tx, &reserved.collect::<Vec<_>>()).await
}

/// Adds refunds to payments. A refund that is recorded at the same time finds another version and is
/// decided again.
async fn add_refunds(tx: &Tx, app: AppId, changes: &ImportChanges<'_>) -> Result<(), Failure> {
    if changes.refunded.is_empty() {
        return Ok(());
    }
    let refunded: Vec<_> = changes.refunded.iter().collect();
    tx.execute(
        "insert into refunded_payments as stored (app_id, given_id, refunded_micros, version)
         select $1, given_id, refunded_micros, refunds
         from unnest($2, $3, $4) as new (given_id, refunded_micros, refunds)
         on conflict (app_id, given_id) do update
         set refunded_micros = stored.refunded_micros + excluded.refunded_micros,
             version = stored.version + excluded.version",
        &[
            &uuid(app.as_bytes()),
            &column(&refunded, |(given_id, _)| **given_id),
            &column(&refunded, |(_, refunds)| refunds.total.micros()),
            &column(&refunded, |(_, refunds)| refunds.count),
        ],
    )
    .await?;
    Ok(())
}

/// Adds the lookup keys of billing events.
async fn add_transactions(tx: &Tx, app: AppId, changes: &ImportChanges<'_>) -> Result<(), Failure> {
    let added = &changes.transactions;
    if added.is_empty() {
        return Ok(());
    }
    tx.execute(
        "insert into billing_keys (app_id, environment, lookup_key, provider, chain)
         select $1, environment, lookup_key, provider, chain
         from unnest($2, $3, $4, $5) as new (environment, lookup_key, provider, chain)
         on conflict (app_id, environment, lookup_key, provider, chain) do nothing",
        &[
            &uuid(app.as_bytes()),
            &column(added, |(chain, _)| chain.environment.as_str()),
            &column(added, |(_, key)| key.as_str()),
            &column(added, |(chain, _)| chain.provider.as_str()),
            &column(added, |(chain, _)| chain.name.as_str()),
        ],
    )
    .await?;
    Ok(())
}
