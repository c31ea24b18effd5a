//! Pivots and payers: their history, and filling it.

use crate::clicks::CLICK_COLUMNS;
use crate::params::Param;
use crate::rows::{AppLockMode, id, read_row, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::click::Click;
use tributary_domain::report::PivotHistory;
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{PivotTable, apply_pivots, fill_payers, prepare_pivots};
use tributary_store::records::ClickRow;
use tributary_store::{Pivots, StoreResult};

impl PivotTable for Tx {
    async fn pivot_history(&self, app: AppId) -> Result<Option<PivotHistory>, Failure> {
        let sql = "select complete_from, version from pivot_history where app_id = $1";
        let rows = self.query(sql, &[&uuid(app.as_bytes())]).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        Ok(Some(PivotHistory {
            complete_from: Timestamp::from_millis(row.try_get(0)?),
            version: row.try_get(1)?,
        }))
    }

    async fn write_pivot_history(
        &self,
        app: AppId,
        version: i64,
        complete_from: Option<Timestamp>,
    ) -> Result<bool, Failure> {
        let app = uuid(app.as_bytes());
        let changed = if let Some(from) = complete_from {
            let sql = "update pivot_history set complete_from = $3, version = version + 1
                       where app_id = $1 and version = $2";
            self.execute_counting(sql, &[&app, &version, &from.as_millis()])
                .await?
        } else {
            let sql = "delete from pivot_history where app_id = $1 and version = $2";
            self.execute_counting(sql, &[&app, &version]).await?
        };
        Ok(changed > 0)
    }

    async fn touch_pivot_history(&self, app: AppId) -> Result<(), Failure> {
        let sql = "update pivot_history set version = version + 1 where app_id = $1";
        self.execute(sql, &[&uuid(app.as_bytes())]).await?;
        Ok(())
    }

    async fn latest_figures(
        &self,
        (app, environment): (AppId, Environment),
        before: Timestamp,
    ) -> Result<Option<Timestamp>, Failure> {
        let sql = "select bucket from rollup_networks
                   where app_id = $1 and environment = $2 and grain = 15 and bucket < $3
                   order by bucket desc limit 1";
        let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
        let key: [&dyn Param; 3] = [&app, &environment, &before.as_millis()];
        let rows = self.query(sql, &key).await?;
        let row = rows.first();
        let bucket = row.map(|row| row.try_get(0)).transpose()?;
        Ok(bucket.map(Timestamp::from_millis))
    }

    async fn payers_from(&self, app: AppId) -> Result<Option<Timestamp>, Failure> {
        let sql = "select complete_from from payer_history where app_id = $1";
        let row = self.query_opt(sql, &[&uuid(app.as_bytes())]).await?;
        let from = row.map(|row| row.try_get(0)).transpose()?;
        Ok(from.map(Timestamp::from_millis))
    }

    async fn write_payers_from(
        &self,
        app: AppId,
        complete_from: Option<Timestamp>,
    ) -> Result<(), Failure> {
        let app = uuid(app.as_bytes());
        if let Some(from) = complete_from {
            let sql = "update payer_history set complete_from = $2 where app_id = $1";
            self.execute(sql, &[&app, &from.as_millis()]).await?;
        } else {
            let sql = "delete from payer_history where app_id = $1";
            self.execute(sql, &[&app]).await?;
        }
        Ok(())
    }

    async fn latest_installs(
        &self,
        (app, environment): (AppId, Environment),
        before: Timestamp,
    ) -> Result<Option<Timestamp>, Failure> {
        let sql = "select bucket from rollup_cohort_places
                   where app_id = $1 and environment = $2 and grain = 60 and bucket < $3
                   order by bucket desc limit 1";
        let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
        let key: [&dyn Param; 3] = [&app, &environment, &before.as_millis()];
        let row = self.query_opt(sql, &key).await?;
        let bucket = row.map(|row| row.try_get(0)).transpose()?;
        Ok(bucket.map(Timestamp::from_millis))
    }

    async fn clicks_between(
        &self,
        app: AppId,
        (from, until): (ClickId, ClickId),
        limit: usize,
    ) -> Result<Vec<Click>, Failure> {
        let sql = format!(
            "select {CLICK_COLUMNS} from clicks
             where app_id = $1 and click_id >= $2 and click_id < $3 order by click_id limit $4"
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (from, until) = (uuid(from.as_bytes()), uuid(until.as_bytes()));
        let key: [&dyn Param; 4] = [&uuid(app.as_bytes()), &from, &until, &limit];
        let rows = self.query(&sql, &key).await?;
        rows.iter()
            .map(|row| Ok(ClickRow::read(read_row::<ClickRow>(row)?)?))
            .collect()
    }
}

#[async_trait]
impl Pivots for PostgresStore {
    async fn pivots_complete_from(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Option<Timestamp>> {
        let organization = caller.organization_of(app)?;
        self.read_for(caller, "pivots_complete_from", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let history = tx.pivot_history(app).await?;
            Ok(history.map(|history| history.complete_from))
        })
        .await
    }

    async fn apps_to_fill(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<AppId>> {
        self.read("apps_to_fill", async move |tx| {
            let sql = "select app_id from pivot_history where due_at <= $1
                       order by app_id limit $2";
            let rows = tx
                .query(sql, &[&now.as_millis(), &i64::from(limit)])
                .await?;
            let apps = rows.iter().map(|row| Ok(AppId::from_bytes(id(row, 0)?)));
            apps.collect::<Result<_, Failure>>()
        })
        .await
    }

    async fn fill_pivots(&self, app: AppId) -> StoreResult<bool> {
        let prepare = async move |tx: &Tx| Box::pin(prepare_pivots(tx, app)).await;
        let Some(step) = self.read("prepare_pivots", prepare).await? else {
            return Ok(false);
        };
        self.write("fill_pivots", async move |tx| apply_pivots(tx, &step).await)
            .await
    }

    async fn payers_complete_from(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Option<Timestamp>> {
        let organization = caller.organization_of(app)?;
        self.read_for(caller, "payers_complete_from", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            tx.payers_from(app).await
        })
        .await
    }

    async fn apps_without_payers(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<AppId>> {
        self.read("apps_without_payers", async move |tx| {
            let sql = "select app_id from payer_history where due_at <= $1
                       order by app_id limit $2";
            let rows = tx
                .query(sql, &[&now.as_millis(), &i64::from(limit)])
                .await?;
            let apps = rows.iter().map(|row| Ok(AppId::from_bytes(id(row, 0)?)));
            apps.collect::<Result<_, Failure>>()
        })
        .await
    }

    async fn fill_payers(&self, app: AppId) -> StoreResult<bool> {
        self.write("fill_payers", async move |tx| {
            Box::pin(fill_payers(tx, app)).await
        })
        .await
    }
}
