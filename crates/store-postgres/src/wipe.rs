//! Wiping the test data of an app.

use crate::clicks::CLICK_COLUMNS;
use crate::params::{Param, column};
use crate::rows::{id, read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::collections::BTreeSet;
use tokio_postgres::Row;
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
use uuid::Uuid;

/// The environment that is wiped, as stored.
const TEST: &str = Environment::Test.as_str();
/// Sorts after every id, because ids begin with a time.
const AFTER_EVERY_ID: [u8; 16] = [u8::MAX; 16];
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
impl TestData for PostgresStore {
    async fn wipe_test_data(
        &self,
        caller: &Authorized<TestDataWipe>,
        app: AppId,
        step: WipeStep,
        origin: AuditContext,
    ) -> StoreResult<WipeBatch> {
        let organization = caller.organization_of(app)?;
        self.write(wipe_transaction(step), async move |tx| {
            // Boxed because the futures of many statements are large.
            Box::pin(wipe_test_data(tx, organization, app, step, &origin)).await
        })
        .await
    }
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn wiped_events(rows: &[Row]) -> Result<Vec<WipedEvent>, Failure> {
    let event = |row: &Row| {
        let device: Option<String> = row.try_get(1)?;
        Ok(WipedEvent {
            id: EventId::from_bytes(id(row, 0)?),
            device: device.map(DeviceKey::stored),
            source: row.try_get(2)?,
            external_id: row.try_get(3)?,
        })
    };
    rows.iter().map(event).collect()
}

/// Returns the tables with figures by bucket.
fn figure_tables() -> impl Iterator<Item = &'static str> {
    let rollups = Rollup::ALL.map(rollup_table);
    rollups
        .into_iter()
        .chain(CohortTable::ALL.map(cohort_table))
}

impl WipeTable for Tx {
    async fn remove_test_notifications(
        &self,
        app: AppId,
        limit: usize,
    ) -> Result<Vec<EventId>, Failure> {
        let rows = self
            .query(
                "delete from notifications
                 where app_id = $1 and (provider, given_id) in (
                     select provider, given_id from notifications
                     where app_id = $1 and environment = $2 limit $3)
                 returning event_id",
                &[&uuid(app.as_bytes()), &TEST, &limit_of(limit)],
            )
            .await?;
        let event = |row| Ok(EventId::from_bytes(id(row, 0)?));
        rows.iter().map(event).collect()
    }

    async fn remove_test_billing_days(&self, app: AppId) -> Result<(), Failure> {
        self.execute(
            "delete from billing_days where app_id = $1 and environment = $2",
            &[&uuid(app.as_bytes()), &TEST],
        )
        .await
    }

    async fn test_events_by_id(
        &self,
        app: AppId,
        ids: &[EventId],
    ) -> Result<Vec<WipedEvent>, Failure> {
        let ids: Vec<Uuid> = column(ids, |id| uuid(id.as_bytes()));
        let rows = self
            .query(
                "select event_id, device_id, source, given_id from events
                 where app_id = $1 and environment = $2 and event_id = any($3)",
                &[&uuid(app.as_bytes()), &TEST, &ids],
            )
            .await?;
        wiped_events(&rows)
    }

    async fn first_test_events(
        &self,
        app: AppId,
        limit: usize,
    ) -> Result<Vec<WipedEvent>, Failure> {
        let billing = EventSource::Billing.as_str();
        let rows = self
            .query(
                "select event_id, device_id, source, given_id from events
                 where app_id = $1 and environment = $2
                   and (source <> $3 or event_id not in (
                       select event_id from notifications
                       where app_id = $1 and environment = $2))
                 order by event_id limit $4",
                &[&uuid(app.as_bytes()), &TEST, &billing, &limit_of(limit)],
            )
            .await?;
        wiped_events(&rows)
    }

    async fn first_test_events_of(
        &self,
        app: AppId,
        devices: &BTreeSet<DeviceKey>,
        limit: usize,
    ) -> Result<Vec<WipedEvent>, Failure> {
        let billing = EventSource::Billing.as_str();
        let devices: Vec<&str> = devices.iter().map(DeviceKey::as_str).collect();
        let app = uuid(app.as_bytes());
        let rows = self
            .query(
                "select event_id, device_id, source, given_id from events
                 where app_id = $1 and environment = $2
                   and (source <> $3 or event_id not in (
                       select event_id from notifications
                       where app_id = $1 and environment = $2))
                   and device_id = any($4)
                 limit $5",
                &[&app, &TEST, &billing, &devices, &limit_of(limit)],
            )
            .await?;
        wiped_events(&rows)
    }

    async fn remove_test_events(&self, app: AppId, events: &[WipedEvent]) -> Result<u64, Failure> {
        if events.is_empty() {
            return Ok(0);
        }
        let app = uuid(app.as_bytes());
        let ids: Vec<Uuid> = column(events, |event| uuid(event.id.as_bytes()));
        let sources: Vec<&str> = column(events, |event| event.source.as_str());
        let external_ids: Vec<&str> = column(events, |event| event.external_id.as_str());
        let removed = self
            .execute_counting(
                "delete from events
                 where app_id = $1 and environment = $2 and event_id = any($3)",
                &[&app, &TEST, &ids],
            )
            .await?;
        // An SDK event also reserves its id among those of web events.
        let web = vec![EventSource::Web.as_str(); events.len()];
        for sources in [&sources, &web] {
            self.execute(
                "delete from event_keys as stored
                 using unnest($3, $4, $5) as gone (source, given_id, event_id)
                 where stored.app_id = $1 and stored.environment = $2
                   and stored.source = gone.source and stored.given_id = gone.given_id
                   and stored.event_id = gone.event_id",
                &[&app, &TEST, sources, &external_ids, &ids],
            )
            .await?;
        }
        Ok(removed)
    }

    async fn first_test_device_at(&self, app: AppId) -> Result<Option<Timestamp>, Failure> {
        let row = self
            .query_one(
                "select min(first_seen_at) from devices where app_id = $1 and environment = $2",
                &[&uuid(app.as_bytes()), &TEST],
            )
            .await?;
        let first: Option<i64> = row.try_get(0)?;
        Ok(first.map(Timestamp::from_millis))
    }

    async fn remove_test_clicks(
        &self,
        app: AppId,
        from: ClickId,
        limit: usize,
    ) -> Result<(u64, Option<ClickId>), Failure> {
        let (app, from) = (uuid(app.as_bytes()), uuid(from.as_bytes()));
        let row = self
            .query_opt(
                "select click_id from clicks where app_id = $1 and click_id >= $2
                 order by click_id limit 1 offset $3",
                &[&app, &from, &limit_of(limit)],
            )
            .await?;
        let next = row.as_ref().map(|row| id(row, 0)).transpose()?;
        let until = uuid(&next.unwrap_or(AFTER_EVERY_ID));
        let removed = self
            .execute_counting(
                "delete from clicks
                 where app_id = $1 and click_id >= $2 and click_id < $3 and environment = $4",
                &[&app, &from, &until, &TEST],
            )
            .await?;
        Ok((removed, next.map(ClickId::from_bytes)))
    }

    async fn test_clicks_between(
        &self,
        app: AppId,
        (from, until): (ClickId, ClickId),
    ) -> Result<Vec<Click>, Failure> {
        let sql = format!(
            "select {CLICK_COLUMNS} from clicks
             where app_id = $1 and click_id >= $2 and click_id < $3 and environment = $4"
        );
        let (from, until) = (uuid(from.as_bytes()), uuid(until.as_bytes()));
        let key: [&dyn Param; 4] = [&uuid(app.as_bytes()), &from, &until, &TEST];
        let rows = self.query(&sql, &key).await?;
        rows.iter()
            .map(|row| Ok(ClickRow::read(read_row::<ClickRow>(row)?)?))
            .collect()
    }

    async fn some_test_devices(
        &self,
        app: AppId,
        limit: usize,
    ) -> Result<BTreeSet<DeviceKey>, Failure> {
        let app = uuid(app.as_bytes());
        let mut devices = BTreeSet::new();
        for table in DEVICE_TABLES {
            let sql = format!(
                "select distinct device_id from {table} where app_id = $1 and environment = $2
                 limit $3"
            );
            let rest = limit_of(limit.saturating_sub(devices.len()));
            for row in &self.query(&sql, &[&app, &TEST, &rest]).await? {
                devices.insert(DeviceKey::stored(row.try_get(0)?));
            }
        }
        Ok(devices)
    }

    async fn remove_test_devices(
        &self,
        app: AppId,
        devices: &BTreeSet<DeviceKey>,
    ) -> Result<u64, Failure> {
        let app = uuid(app.as_bytes());
        let devices: Vec<&str> = devices.iter().map(DeviceKey::as_str).collect();
        let mut removed = 0;
        for table in DEVICE_TABLES {
            let sql = format!(
                "delete from {table}
                 where app_id = $1 and environment = $2 and device_id = any($3)"
            );
            let rows = self
                .execute_counting(&sql, &[&app, &TEST, &devices])
                .await?;
            if table == "devices" {
                removed += rows;
            }
        }
        Ok(removed)
    }

    async fn remove_test_billing_keys(&self, app: AppId, limit: usize) -> Result<usize, Failure> {
        let removed = self
            .execute_counting(
                "delete from billing_keys
                 where app_id = $1 and environment = $2 and (lookup_key, provider, chain) in (
                     select lookup_key, provider, chain from billing_keys as unused
                     where unused.app_id = $1 and unused.environment = $2 and not exists (
                         select 1 from notifications as one
                         where one.app_id = $1 and one.environment = $2
                           and one.provider = unused.provider and one.chain = unused.chain)
                     limit $3)",
                &[&uuid(app.as_bytes()), &TEST, &limit_of(limit)],
            )
            .await?;
        Ok(usize::try_from(removed).unwrap_or(usize::MAX))
    }

    async fn remove_test_event_keys(&self, app: AppId, limit: usize) -> Result<usize, Failure> {
        let transaction = transaction_key("");
        let removed = self
            .execute_counting(
                "delete from event_keys
                 where app_id = $1 and environment = $2 and (source, given_id, event_id) in (
                     select source, given_id, event_id from event_keys as unused
                     where unused.app_id = $1 and unused.environment = $2
                       and not exists (
                           select 1 from events as one
                           where one.app_id = $1 and one.environment = $2
                             and one.event_id = unused.event_id)
                       and not exists (
                           select 1 from billing_keys as one
                           where one.app_id = $1 and one.environment = $2
                             and one.lookup_key = $3 || unused.given_id)
                     limit $4)",
                &[&uuid(app.as_bytes()), &TEST, &transaction, &limit_of(limit)],
            )
            .await?;
        Ok(usize::try_from(removed).unwrap_or(usize::MAX))
    }

    async fn next_test_figures(&self, app: AppId, from: Day) -> Result<Option<Day>, Failure> {
        let app = uuid(app.as_bytes());
        let begin = from.begins_at().as_millis();
        let mut first: Option<Day> = None;
        for table in figure_tables() {
            let sql = format!(
                "select bucket from {table}
                 where app_id = $1 and environment = $2 and grain = 1440 and bucket >= $3
                 order by bucket limit 1"
            );
            let row = self.query_opt(&sql, &[&app, &TEST, &begin]).await?;
            let bucket: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
            let day = bucket.map(|bucket| Day::of(Timestamp::from_millis(bucket)));
            first = first.into_iter().chain(day).min();
        }
        let row = self
            .query_opt(
                "select day from rollup_values
                 where app_id = $1 and environment = $2 and day >= $3 order by day limit 1",
                &[&app, &TEST, &i64::from(from.as_days())],
            )
            .await?;
        let day: Option<i32> = row.map(|row| row.try_get(0)).transpose()?;
        Ok(first.into_iter().chain(day.map(Day::from_days)).min())
    }

    async fn remove_figures(&self, day: RollupDay) -> Result<u64, Failure> {
        let app = uuid(day.app.as_bytes());
        let environment = day.environment.as_str();
        let begin = day.day.begins_at().as_millis();
        let end = day.day.following().begins_at().as_millis();
        let mut removed = 0;
        for table in figure_tables() {
            let sql = format!(
                "delete from {table} where app_id = $1 and environment = $2
                   and grain in (-1440, -15, 15, 60, 1440) and bucket >= $3 and bucket < $4"
            );
            removed += self
                .execute_counting(&sql, &[&app, &environment, &begin, &end])
                .await?;
        }
        Ok(removed)
    }
}
