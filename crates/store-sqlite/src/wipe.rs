//! Wiping the test data of an app.

use crate::clicks::CLICK_COLUMNS;
use crate::rows::read_row;
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, params};
use std::collections::BTreeSet;
use tributary_domain::access::{Authorized, Environment, TestDataWipe};
use tributary_domain::audit::AuditContext;
use tributary_domain::billing::transaction_key;
use tributary_domain::click::Click;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::EventSource;
use tributary_domain::report::Rollup;
use tributary_domain::report::cohort::CohortTable;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::wipe::WipeStep;
use tributary_recording::{WipeTable, WipedEvent, wipe_test_data};
use tributary_store::records::{ClickRow, cohort_table, rollup_table};
use tributary_store::{RollupDay, StoreResult, TestData, WipeBatch, wipe_transaction};

/// The environment that is wiped, as stored.
const TEST: &str = Environment::Test.as_str();
/// Sorts after every id, because ids begin with a time.
const AFTER_EVERY_ID: [u8; 16] = [u8::MAX; 16];
/// Condition for events without a stored notification. `?3` is the source of billing events.
const NOT_OF_NOTIFICATION: &str = "(source <> ?3 or event_id not in (
     select event_id from notifications where app_id = ?1 and environment = ?2))";
/// Tables with rows for each device, by its id.
const DEVICE_TABLES: [&str; 6] = [
    "devices",
    "identities",
    "ad_services_tokens",
    "user_links",
    "erase_tokens",
    "cohort_devices",
];

#[async_trait]
impl TestData for SqliteStore {
    async fn wipe_test_data(
        &self,
        caller: &Authorized<TestDataWipe>,
        app: AppId,
        step: WipeStep,
        origin: AuditContext,
    ) -> StoreResult<WipeBatch> {
        let organization = caller.organization_of(app)?;
        let begun = std::time::Instant::now();
        let name = wipe_transaction(step);
        let work = move |connection: &Connection| {
            let tables = SqliteTables(connection);
            run(wipe_test_data(&tables, organization, app, step, &origin))
        };
        let outcome = self.writer.run_after_increments(name, work).await;
        tributary_store::metrics::record_transaction(name, &outcome, begun.elapsed());
        outcome
    }
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn count_of(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

fn wiped_event(row: &Row<'_>) -> rusqlite::Result<WipedEvent> {
    let device: Option<String> = row.get(1)?;
    Ok(WipedEvent {
        id: EventId::from_bytes(row.get(0)?),
        device: device.map(DeviceKey::stored),
        source: row.get(2)?,
        external_id: row.get(3)?,
    })
}

/// Returns the tables with figures by bucket.
fn figure_tables() -> impl Iterator<Item = &'static str> {
    let rollups = Rollup::ALL.map(rollup_table);
    rollups
        .into_iter()
        .chain(CohortTable::ALL.map(cohort_table))
}

impl SqliteTables<'_> {
    /// Reads events. `?1` is the app and `?2` the environment.
    fn wiped_events(
        &self,
        condition: &str,
        values: impl Params,
    ) -> Result<Vec<WipedEvent>, Failure> {
        let sql = format!(
            "select event_id, device_id, source, given_id from events
             where app_id = ?1 and environment = ?2 and {condition}"
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let found = find.query_map(values, wiped_event)?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>, Failure> {
        Ok(self.0.prepare_cached(sql)?)
    }
}

impl WipeTable for SqliteTables<'_> {
    async fn remove_test_notifications(
        &self,
        app: AppId,
        limit: usize,
    ) -> Result<Vec<EventId>, Failure> {
        let mut remove = self.prepare(
            "delete from notifications where (app_id, provider, given_id) in (
                 select app_id, provider, given_id from notifications
                 where app_id = ?1 and environment = ?2 limit ?3)
             returning event_id",
        )?;
        let values = params![app.as_bytes(), TEST, limit_of(limit)];
        let removed = remove.query_map(values, |row| Ok(EventId::from_bytes(row.get(0)?)))?;
        Ok(removed.collect::<Result<_, _>>()?)
    }

    async fn remove_test_billing_days(&self, app: AppId) -> Result<(), Failure> {
        self.prepare("delete from billing_days where app_id = ?1 and environment = ?2")?
            .execute(params![app.as_bytes(), TEST])?;
        Ok(())
    }

    async fn test_events_by_id(
        &self,
        app: AppId,
        ids: &[EventId],
    ) -> Result<Vec<WipedEvent>, Failure> {
        let mut events = Vec::new();
        for id in ids {
            let values = params![app.as_bytes(), TEST, id.as_bytes()];
            events.extend(self.wiped_events("event_id = ?3", values)?);
        }
        Ok(events)
    }

    async fn first_test_events(
        &self,
        app: AppId,
        limit: usize,
    ) -> Result<Vec<WipedEvent>, Failure> {
        let condition = format!("{NOT_OF_NOTIFICATION} order by event_id limit ?4");
        let billing = EventSource::Billing.as_str();
        let values = params![app.as_bytes(), TEST, billing, limit_of(limit)];
        self.wiped_events(&condition, values)
    }

    async fn first_test_events_of(
        &self,
        app: AppId,
        devices: &BTreeSet<DeviceKey>,
        limit: usize,
    ) -> Result<Vec<WipedEvent>, Failure> {
        let condition =
            format!("{NOT_OF_NOTIFICATION} and device_id = ?4 order by event_id limit ?5");
        let mut events = Vec::new();
        let billing = EventSource::Billing.as_str();
        for device in devices {
            let rest = limit_of(limit.saturating_sub(events.len()));
            let values = params![app.as_bytes(), TEST, billing, device.as_str(), rest];
            events.extend(self.wiped_events(&condition, values)?);
        }
        Ok(events)
    }

    async fn remove_test_events(&self, app: AppId, events: &[WipedEvent]) -> Result<u64, Failure> {
        let mut remove = self.prepare(
            "delete from events where app_id = ?1 and environment = ?2 and event_id = ?3",
        )?;
        // An SDK event also reserves its id among those of web events.
        let mut remove_keys = self.prepare(
            "delete from event_keys
             where app_id = ?1 and environment = ?2 and source in (?3, ?4) and given_id = ?5
               and event_id = ?6",
        )?;
        let web = EventSource::Web.as_str();
        let mut removed = 0;
        for event in events {
            let id = event.id.as_bytes();
            removed += count_of(remove.execute(params![app.as_bytes(), TEST, id])?);
            remove_keys.execute(params![
                app.as_bytes(),
                TEST,
                event.source,
                web,
                event.external_id,
                id
            ])?;
        }
        Ok(removed)
    }

    async fn first_test_device_at(&self, app: AppId) -> Result<Option<Timestamp>, Failure> {
        let first: Option<i64> = self
            .prepare(
                "select min(first_seen_at) from devices where app_id = ?1 and environment = ?2",
            )?
            .query_row(params![app.as_bytes(), TEST], |row| row.get(0))?;
        Ok(first.map(Timestamp::from_millis))
    }

    async fn remove_test_clicks(
        &self,
        app: AppId,
        from: ClickId,
        limit: usize,
    ) -> Result<(u64, Option<ClickId>), Failure> {
        let next: Option<[u8; 16]> = self
            .prepare(
                "select click_id from clicks where app_id = ?1 and click_id >= ?2
                 order by click_id limit 1 offset ?3",
            )?
            .query_row(
                params![app.as_bytes(), from.as_bytes(), limit_of(limit)],
                |row| row.get(0),
            )
            .optional()?;
        let until = next.unwrap_or(AFTER_EVERY_ID);
        let removed = self
            .prepare(
                "delete from clicks
                 where app_id = ?1 and click_id >= ?2 and click_id < ?3 and environment = ?4",
            )?
            .execute(params![app.as_bytes(), from.as_bytes(), until, TEST])?;
        Ok((count_of(removed), next.map(ClickId::from_bytes)))
    }

    async fn test_clicks_between(
        &self,
        app: AppId,
        (from, until): (ClickId, ClickId),
    ) -> Result<Vec<Click>, Failure> {
        let sql = format!(
            "select {CLICK_COLUMNS} from clicks
             where app_id = ?1 and click_id >= ?2 and click_id < ?3 and environment = ?4"
        );
        let mut find = self.prepare(&sql)?;
        let values = params![app.as_bytes(), from.as_bytes(), until.as_bytes(), TEST];
        let rows = find.query_map(values, read_row::<ClickRow>)?;
        rows.map(|row| Ok(ClickRow::read(row?)?)).collect()
    }

    async fn some_test_devices(
        &self,
        app: AppId,
        limit: usize,
    ) -> Result<BTreeSet<DeviceKey>, Failure> {
        let mut devices = BTreeSet::new();
        for table in DEVICE_TABLES {
            let sql = format!(
                "select distinct device_id from {table} where app_id = ?1 and environment = ?2
                 limit ?3"
            );
            let rest = limit_of(limit.saturating_sub(devices.len()));
            let mut find = self.prepare(&sql)?;
            let values = params![app.as_bytes(), TEST, rest];
            for id in find.query_map(values, |row| row.get(0))? {
                devices.insert(DeviceKey::stored(id?));
            }
        }
        Ok(devices)
    }

    async fn remove_test_devices(
        &self,
        app: AppId,
        devices: &BTreeSet<DeviceKey>,
    ) -> Result<u64, Failure> {
        let mut removed = 0;
        for table in DEVICE_TABLES {
            let sql = format!(
                "delete from {table} where app_id = ?1 and environment = ?2 and device_id = ?3"
            );
            let mut remove = self.prepare(&sql)?;
            for device in devices {
                let rows = remove.execute(params![app.as_bytes(), TEST, device.as_str()])?;
                if table == "devices" {
                    removed += count_of(rows);
                }
            }
        }
        Ok(removed)
    }

    async fn remove_test_billing_keys(&self, app: AppId, limit: usize) -> Result<usize, Failure> {
        let removed = self
            .prepare(
                "delete from billing_keys
                 where (app_id, environment, lookup_key, provider, chain) in (
                     select app_id, environment, lookup_key, provider, chain
                     from billing_keys as unused
                     where app_id = ?1 and environment = ?2 and not exists (
                         select 1 from notifications as one
                         where one.app_id = ?1 and one.environment = ?2
                           and one.provider = unused.provider and one.chain = unused.chain)
                     limit ?3)",
            )?
            .execute(params![app.as_bytes(), TEST, limit_of(limit)])?;
        Ok(removed)
    }

    async fn remove_test_event_keys(&self, app: AppId, limit: usize) -> Result<usize, Failure> {
        let removed = self
            .prepare(
                "delete from event_keys where (app_id, environment, source, given_id) in (
                     select app_id, environment, source, given_id from event_keys as unused
                     where app_id = ?1 and environment = ?2
                       and not exists (
                           select 1 from events as one
                           where one.app_id = ?1 and one.environment = ?2
                             and one.event_id = unused.event_id)
                       and not exists (
                           select 1 from billing_keys as one
                           where one.app_id = ?1 and one.environment = ?2
                             and one.lookup_key = ?3 || unused.given_id)
                     limit ?4)",
            )?
            .execute(params![
                app.as_bytes(),
                TEST,
                transaction_key(""),
                limit_of(limit)
            ])?;
        Ok(removed)
    }

    async fn next_test_figures(&self, app: AppId, from: Day) -> Result<Option<Day>, Failure> {
        let mut first: Option<Day> = None;
        for table in figure_tables() {
            let sql = format!(
                "select min(bucket) from {table}
                 where app_id = ?1 and environment = ?2 and grain = 1440 and bucket >= ?3"
            );
            let values = params![app.as_bytes(), TEST, from.begins_at().as_millis()];
            let bucket: Option<i64> = self.prepare(&sql)?.query_row(values, |row| row.get(0))?;
            let day = bucket.map(|bucket| Day::of(Timestamp::from_millis(bucket)));
            first = first.into_iter().chain(day).min();
        }
        let day: Option<i32> = self
            .prepare(
                "select min(day) from rollup_values
                 where app_id = ?1 and environment = ?2 and day >= ?3",
            )?
            .query_row(params![app.as_bytes(), TEST, from.as_days()], |row| {
                row.get(0)
            })?;
        Ok(first.into_iter().chain(day.map(Day::from_days)).min())
    }

    async fn remove_figures(&self, day: RollupDay) -> Result<u64, Failure> {
        let (begin, end) = (day.day.begins_at(), day.day.following().begins_at());
        let mut removed = 0;
        for table in figure_tables() {
            let sql = format!(
                "delete from {table} where app_id = ?1 and environment = ?2
                   and grain in (-1440, -15, 15, 60, 1440) and bucket >= ?3 and bucket < ?4"
            );
            removed += count_of(self.prepare(&sql)?.execute(params![
                day.app.as_bytes(),
                day.environment.as_str(),
                begin.as_millis(),
                end.as_millis()
            ])?);
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::OpenFlags;
    use std::path::Path;
    use std::sync::Arc;
    use tributary_store::contract::fixtures::{SharedStore, rebuild};
    use tributary_store::contract::wipe_fixtures::{
        RowCount, assert_app_tables_are_listed, assert_wiped_as_listed, wipe_scenario,
    };

    fn open_for_reading(path: &Path) -> Connection {
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
    }

    /// Returns the columns of all tables.
    fn columns(path: &Path) -> Vec<(String, String)> {
        let connection = open_for_reading(path);
        let mut find = connection
            .prepare(
                "select tables.name, columns.name
                 from sqlite_schema as tables, pragma_table_info(tables.name) as columns
                 where tables.type = 'table'",
            )
            .unwrap();
        let rows = find.query_map((), |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    }

    /// Counts the rows of all tables with rows of apps.
    fn counts(path: &Path) -> Vec<RowCount> {
        let connection = open_for_reading(path);
        let columns = columns(path);
        let has = |table: &str, column: &str| {
            let mut columns = columns.iter();
            columns.any(|(name, one)| name == table && one == column)
        };
        let tables = columns.iter().filter(|(_, column)| column == "app_id");
        let mut counts = Vec::new();
        for (table, _) in tables {
            let environment = if has(table, "environment") {
                "coalesce(environment, 'live')"
            } else {
                "''"
            };
            let sql = format!("select {environment}, count(*) from {table} group by 1");
            let mut find = connection.prepare(&sql).unwrap();
            let rows = find.query_map((), |row| Ok((table.clone(), row.get(0)?, row.get(1)?)));
            counts.extend(rows.unwrap().map(Result::unwrap));
        }
        counts
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_table_with_rows_of_apps_is_wiped_or_kept_for_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tributary.db");
        let opened = path.clone();
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
        let store: SharedStore = Arc::new(opened.unwrap().unwrap());
        assert_app_tables_are_listed(&columns(&path));
        let app = wipe_scenario(&store).await;
        app.fill(Environment::Live).await;
        app.fill(Environment::Test).await;
        // Merges the counts, which stores figures and cohorts.
        rebuild(&store).await;
        let before = counts(&path);
        app.wipe().await;
        assert_wiped_as_listed(&before, &counts(&path));
    }
}
