//! Imports exported events, one batch per transaction. There is only one writer, so facts that were
//! read stay valid until the commit.

use crate::event_rows::{claim_all, insert_all};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore, devices, duplicates};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
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
use tributary_recording::{BillingKeyTable as _, ImportTable, SharedId, import_events};
use tributary_store::{ImportMode, Imports, StoreError, StoreResult};

/// Pause after a batch if another process has the database open. A process that waits for the write
/// lock tries again every 100 milliseconds, so it gets the lock during this pause.
const PAUSE_FOR_OTHERS: Duration = Duration::from_millis(110);

#[async_trait]
impl Imports for SqliteStore {
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
                .read(name, move |connection| {
                    let tables = SqliteTables(connection);
                    Ok(run(import_events(&tables, app, &batch, (mode, at)))?.0)
                })
                .await;
        }
        // Another batch would use the pause, or become part of the same transaction.
        let turn = match &self.import_turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        let outcomes = self
            .write_decided(name, move |current| {
                let tables = SqliteTables(current.connection);
                let (outcomes, counted) = run(import_events(&tables, app, &batch, (mode, at)))?;
                current.count(|increments| increments.merge(counted));
                Ok(outcomes)
            })
            .await?;
        if turn.is_some() {
            tokio::time::sleep(PAUSE_FOR_OTHERS).await;
        }
        Ok(outcomes)
    }
}

impl ImportTable for SqliteTables<'_> {
    async fn key_holders<'a>(
        &self,
        app: AppId,
        keys: &BTreeSet<ImportKey<'a>>,
    ) -> Result<BTreeMap<ImportKey<'a>, ImportKeyHolder>, Failure> {
        let mut find = self.0.prepare_cached(
            "select event_id, fingerprint is null from event_keys
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4",
        )?;
        let mut holders = BTreeMap::new();
        for key in keys {
            let (environment, source, given_id) = *key;
            let columns = params![
                app.as_bytes(),
                environment.as_str(),
                source.as_str(),
                given_id
            ];
            let read = |row: &Row<'_>| {
                let has_no_fingerprint: bool = row.get(1)?;
                Ok(ImportKeyHolder {
                    event: EventId::from_bytes(row.get(0)?),
                    is_reservation: source == EventSource::Web && has_no_fingerprint,
                })
            };
            if let Some(holder) = find.query_row(columns, read).optional()? {
                holders.insert(*key, holder);
            }
        }
        Ok(holders)
    }

    async fn stored_event_ids(
        &self,
        (app, environment): (AppId, Environment),
        ids: &BTreeSet<EventId>,
    ) -> Result<BTreeSet<EventId>, Failure> {
        let mut find = self.0.prepare_cached(
            "select 1 from events where app_id = ?1 and environment = ?2 and event_id = ?3",
        )?;
        let mut stored = BTreeSet::new();
        for id in ids {
            if find.exists((app.as_bytes(), environment.as_str(), id.as_bytes()))? {
                stored.insert(*id);
            }
        }
        Ok(stored)
    }

    async fn reserve_ids<'a>(
        &self,
        wanted: &[(SharedId<'a>, EventId)],
    ) -> Result<VerifiedEvents<'a>, Failure> {
        duplicates::reserve_all(self.0, wanted)
    }

    async fn existing_links(
        &self,
        app: AppId,
        links: &BTreeSet<LinkId>,
    ) -> Result<BTreeSet<LinkId>, Failure> {
        let sql = "select 1 from links where app_id = ?1 and link_id = ?2";
        let mut find = self.0.prepare_cached(sql)?;
        let mut existing = BTreeSet::new();
        for link in links {
            if find.exists((app.as_bytes(), link.as_bytes()))? {
                existing.insert(*link);
            }
        }
        Ok(existing)
    }

    async fn click_uses(
        &self,
        app: AppId,
        clicks: &BTreeSet<ClickId>,
    ) -> Result<BTreeMap<ClickId, ClickUse>, Failure> {
        let sql = "select kept, taken_by from clicks where app_id = ?1 and click_id = ?2";
        let mut find = self.0.prepare_cached(sql)?;
        let mut uses = BTreeMap::new();
        for click in clicks {
            let read = |row: &Row<'_>| {
                let taken_by: Option<String> = row.get(1)?;
                Ok(ClickUse {
                    is_kept: row.get(0)?,
                    taken_by: taken_by.map(DeviceKey::stored),
                })
            };
            let found = find.query_row((app.as_bytes(), click.as_bytes()), read);
            if let Some(found) = found.optional()? {
                uses.insert(*click, found);
            }
        }
        Ok(uses)
    }

    async fn import_devices<'a>(
        &self,
        wanted: &BTreeSet<DeviceRef<'a>>,
    ) -> Result<BTreeMap<DeviceRef<'a>, ImportDeviceFacts>, Failure> {
        let mut find = self.0.prepare_cached(
            "select attribution_revision from devices
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?;
        let mut facts = BTreeMap::new();
        for device in wanted {
            let (environment, key) = (device.environment.as_str(), device.key.as_str());
            let columns = (device.app.as_bytes(), environment, key);
            let revision: Option<i64> = find.query_row(columns, |row| row.get(0)).optional()?;
            let found = ImportDeviceFacts {
                is_registered: revision.is_some(),
                is_installed: revision.is_some_and(|revision| revision > 0),
                first_payment: devices::find_first_payment(self.0, *device)?,
            };
            facts.insert(*device, found);
        }
        Ok(facts)
    }

    async fn devices_with_events(
        &self,
        (app, environment): (AppId, Environment),
        wanted: &BTreeSet<&DeviceKey>,
    ) -> Result<BTreeSet<DeviceKey>, Failure> {
        let mut find = self.0.prepare_cached(
            "select 1 from events
             where app_id = ?1 and environment = ?2 and device_id = ?3 limit 1",
        )?;
        let mut found = BTreeSet::new();
        for device in wanted {
            let columns = (app.as_bytes(), environment.as_str(), device.as_str());
            if find.exists(columns)? {
                found.insert((*device).clone());
            }
        }
        Ok(found)
    }

    async fn write_import(&self, app: AppId, changes: &ImportChanges<'_>) -> Result<(), Failure> {
        let connection = self.0;
        claim_ids(connection, changes)?;
        insert_all(
            connection,
            changes.recorded.iter().map(|record| &record.event),
        )?;
        for (of, device, attribution) in &changes.devices {
            devices::insert_device(connection, *of, (device, attribution), None)?;
        }
        mark_installed(connection, &changes.installed)?;
        for record in &changes.recorded {
            if record.event.first_payment {
                devices::note_first_payment(connection, &record.event)?;
            }
        }
        add_refunds(connection, app, changes)?;
        for (chain, key) in &changes.transactions {
            run(self.insert_keys(chain, &BTreeSet::from([key.clone()])))?;
        }
        let mut keep = connection.prepare_cached(
            "update clicks set kept = 1, taken_by = coalesce(?3, taken_by)
             where app_id = ?1 and click_id = ?2",
        )?;
        for (click, device) in &changes.clicks {
            let device = device.map(DeviceKey::as_str);
            keep.execute((app.as_bytes(), click.as_bytes(), device))?;
        }
        Ok(())
    }
}

/// Claims the ids of new events, and reassigns reserved ids to web events.
fn claim_ids(connection: &Connection, changes: &ImportChanges<'_>) -> Result<(), Failure> {
    let (free, reserved): (Vec<&ImportedRecord>, Vec<&ImportedRecord>) = changes
        .recorded
        .iter()
        .partition(|record| record.reserved_by.is_none());
    let mut claimed = claim_all(connection, free.into_iter().map(ImportedRecord::key))?;
    for record in reserved {
        if let Some(fingerprint) = &record.fingerprint {
            let fingerprint = fingerprint.as_bytes();
            claimed &= duplicates::take_over(connection, &record.event, fingerprint)?;
        }
    }
    if claimed {
        return Ok(());
    }
    let error = "bug: an id is in use although it was free before";
    Err(StoreError::unavailable("import_events", error).into())
}

/// Marks registered devices as installed, because their installs are stored now.
fn mark_installed(
    connection: &Connection,
    installed: &BTreeSet<DeviceRef<'_>>,
) -> Result<(), Failure> {
    let mut mark = connection.prepare_cached(
        "update devices set attribution_revision = 1
         where app_id = ?1 and environment = ?2 and device_id = ?3 and attribution_revision = 0",
    )?;
    for device in installed {
        let (environment, key) = (device.environment.as_str(), device.key.as_str());
        mark.execute((device.app.as_bytes(), environment, key))?;
    }
    Ok(())
}

/// Adds refunds to payments.
fn add_refunds(
    connection: &Connection,
    app: AppId,
    changes: &ImportChanges<'_>,
) -> Result<(), Failure> {
    let mut add = connection.prepare_cached(
        "insert into refunded_payments (app_id, given_id, refunded_micros, version)
         values (?1, ?2, ?3, ?4)
         on conflict (app_id, given_id) do update
         set refunded_micros = refunded_micros + excluded.refunded_micros,
             version = version + excluded.version",
    )?;
    for (given_id, refunds) in &changes.refunded {
        let total = refunds.total.micros();
        add.execute(params![app.as_bytes(), given_id, total, refunds.count])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use tributary_store::contract::fixtures::{SharedStore, at};
    use tributary_store::contract::imports::exported_payments;

    #[tokio::test]
    async fn other_processes_get_a_pause_after_every_batch() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let open = async || {
            let path = path.clone();
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await;
            opened.unwrap().unwrap()
        };
        let server: SharedStore = Arc::new(open().await);
        let (app, lines) = exported_payments(&server, 4).await;
        let importing = Arc::new(open().await);
        let begun = Instant::now();
        let mut batches = tokio::task::JoinSet::new();
        for line in &lines {
            let (store, batch) = (importing.clone(), Arc::from([line.clone()]));
            batches.spawn(async move {
                let imported = store.import_events(app, batch, ImportMode::Write, at(500));
                imported.await.unwrap()
            });
        }
        assert_eq!(batches.join_all().await.len(), 4);
        assert!(begun.elapsed() >= PAUSE_FOR_OTHERS * 4);
        server.close().await;
    }
}
