//! Pivots and payers: their history, and filling it.

use crate::clicks::CLICK_COLUMNS;
use crate::rows::{read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::click::Click;
use tributary_domain::report::PivotHistory;
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{PivotTable, apply_pivots, fill_payers, prepare_pivots};
use tributary_store::records::ClickRow;
use tributary_store::{Pivots, StoreResult};

impl PivotTable for SqliteTables<'_> {
    async fn pivot_history(&self, app: AppId) -> Result<Option<PivotHistory>, Failure> {
        let found = self
            .0
            .prepare_cached("select complete_from, version from pivot_history where app_id = ?1")?
            .query_row([app.as_bytes()], |row| {
                Ok(PivotHistory {
                    complete_from: Timestamp::from_millis(row.get(0)?),
                    version: row.get(1)?,
                })
            })
            .optional()?;
        Ok(found)
    }

    async fn write_pivot_history(
        &self,
        app: AppId,
        version: i64,
        complete_from: Option<Timestamp>,
    ) -> Result<bool, Failure> {
        let key = (app.as_bytes(), version);
        let changed = match complete_from {
            Some(from) => self
                .0
                .prepare_cached(
                    "update pivot_history set complete_from = ?3, version = version + 1
                     where app_id = ?1 and version = ?2",
                )?
                .execute((key.0, key.1, from.as_millis()))?,
            None => self
                .0
                .prepare_cached("delete from pivot_history where app_id = ?1 and version = ?2")?
                .execute(key)?,
        };
        Ok(changed > 0)
    }

    async fn touch_pivot_history(&self, app: AppId) -> Result<(), Failure> {
        self.0
            .prepare_cached("update pivot_history set version = version + 1 where app_id = ?1")?
            .execute([app.as_bytes()])?;
        Ok(())
    }

    async fn latest_figures(
        &self,
        (app, environment): (AppId, Environment),
        before: Timestamp,
    ) -> Result<Option<Timestamp>, Failure> {
        let latest: Option<i64> = self
            .0
            .prepare_cached(
                "select max(bucket) from rollup_networks
                 where app_id = ?1 and environment = ?2 and grain = 15 and bucket < ?3",
            )?
            .query_row(
                params![app.as_bytes(), environment.as_str(), before.as_millis()],
                |row| row.get(0),
            )?;
        Ok(latest.map(Timestamp::from_millis))
    }

    async fn payers_from(&self, app: AppId) -> Result<Option<Timestamp>, Failure> {
        let found = self
            .0
            .prepare_cached("select complete_from from payer_history where app_id = ?1")?
            .query_row([app.as_bytes()], |row| row.get(0))
            .optional()?;
        Ok(found.map(Timestamp::from_millis))
    }

    async fn write_payers_from(
        &self,
        app: AppId,
        complete_from: Option<Timestamp>,
    ) -> Result<(), Failure> {
        match complete_from {
            Some(from) => self
                .0
                .prepare_cached("update payer_history set complete_from = ?2 where app_id = ?1")?
                .execute((app.as_bytes(), from.as_millis()))?,
            None => self
                .0
                .prepare_cached("delete from payer_history where app_id = ?1")?
                .execute([app.as_bytes()])?,
        };
        Ok(())
    }

    async fn latest_installs(
        &self,
        (app, environment): (AppId, Environment),
        before: Timestamp,
    ) -> Result<Option<Timestamp>, Failure> {
        let latest: Option<i64> = self
            .0
            .prepare_cached(
                "select max(bucket) from rollup_cohort_places
                 where app_id = ?1 and environment = ?2 and grain = 60 and bucket < ?3",
            )?
            .query_row(
                params![app.as_bytes(), environment.as_str(), before.as_millis()],
                |row| row.get(0),
            )?;
        Ok(latest.map(Timestamp::from_millis))
    }

    async fn clicks_between(
        &self,
        app: AppId,
        (from, until): (ClickId, ClickId),
        limit: usize,
    ) -> Result<Vec<Click>, Failure> {
        let sql = format!(
            "select {CLICK_COLUMNS} from clicks
             where app_id = ?1 and click_id >= ?2 and click_id < ?3 order by click_id limit ?4"
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let key = params![app.as_bytes(), from.as_bytes(), until.as_bytes(), limit];
        let rows = find.query_map(key, read_row::<ClickRow>)?;
        rows.map(|row| Ok(ClickRow::read(row?)?)).collect()
    }
}

#[async_trait]
impl Pivots for SqliteStore {
    async fn pivots_complete_from(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Option<Timestamp>> {
        let organization = caller.organization_of(app)?;
        self.read("pivots_complete_from", move |connection| {
            require_app(connection, organization, app)?;
            let history = run(SqliteTables(connection).pivot_history(app))?;
            Ok(history.map(|history| history.complete_from))
        })
        .await
    }

    async fn apps_to_fill(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<AppId>> {
        self.read("apps_to_fill", move |connection| {
            let mut find = connection.prepare_cached(
                "select app_id from pivot_history where due_at <= ?1 order by app_id limit ?2",
            )?;
            let rows = find.query_map((now.as_millis(), limit), |row| {
                Ok(AppId::from_bytes(row.get(0)?))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn fill_pivots(&self, app: AppId) -> StoreResult<bool> {
        let prepare = move |connection: &_| run(prepare_pivots(&SqliteTables(connection), app));
        let Some(step) = self.read("prepare_pivots", prepare).await? else {
            return Ok(false);
        };
        self.write("fill_pivots", move |connection| {
            run(apply_pivots(&SqliteTables(connection), &step))
        })
        .await
    }

    async fn payers_complete_from(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Option<Timestamp>> {
        let organization = caller.organization_of(app)?;
        self.read("payers_complete_from", move |connection| {
            require_app(connection, organization, app)?;
            run(SqliteTables(connection).payers_from(app))
        })
        .await
    }

    async fn apps_without_payers(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<AppId>> {
        self.read("apps_without_payers", move |connection| {
            let mut find = connection.prepare_cached(
                "select app_id from payer_history where due_at <= ?1 order by app_id limit ?2",
            )?;
            let rows = find.query_map((now.as_millis(), limit), |row| {
                Ok(AppId::from_bytes(row.get(0)?))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn fill_payers(&self, app: AppId) -> StoreResult<bool> {
        self.write("fill_payers", move |connection| {
            run(fill_payers(&SqliteTables(connection), app))
        })
        .await
    }
}
