//! Cost sources, and the costs that are imported from them.

use crate::rows::{AppLockMode, id, read_row, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::cost_source::{CostSource, CostSourceDraft, DaySpan, PullOutcome};
use tributary_domain::integration::Network;
use tributary_domain::report::cost::{Cost, CostKey};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{CostSourceTable, admin};
use tributary_store::records::{Columns, CostSourceRow};
use tributary_store::{CostSources, LeasedCostSource, StoreError, StoreResult};

const COLUMNS: &str = CostSourceRow::COLUMNS;

impl CostSourceTable for Tx {
    async fn lock_cost_source(
        &self,
        app: AppId,
        network: Network,
    ) -> Result<Option<CostSource>, Failure> {
        let sql = format!(
            "select {COLUMNS} from cost_sources where app_id = $1 and network = $2 for update"
        );
        let key = uuid(app.as_bytes());
        let row = self.query_opt(&sql, &[&key, &network.as_str()]).await?;
        row.map(|row| Ok(read_row::<CostSourceRow>(&row)?.read()?))
            .transpose()
    }

    async fn write_cost_source(&self, source: &CostSource) -> Result<(), Failure> {
        let row = CostSourceRow::write(source);
        let sql = format!(
            "insert into cost_sources ({COLUMNS})
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
             on conflict (app_id, network) do update set
                 enabled = excluded.enabled, settings = excluded.settings,
                 credentials = excluded.credentials, due_at = excluded.due_at,
                 last_pull_at = excluded.last_pull_at, last_success_at = excluded.last_success_at,
                 pulled_until = excluded.pulled_until, failures = excluded.failures,
                 problem = excluded.problem, updated_at = excluded.updated_at,
                 revision = excluded.revision"
        );
        self.execute(
            &sql,
            &[
                &uuid(&row.app_id),
                &row.network,
                &row.enabled,
                &row.settings,
                &row.credentials,
                &row.due_at,
                &row.last_pull_at,
                &row.last_success_at,
                &row.pulled_until,
                &row.failures,
                &row.problem,
                &row.updated_at,
                &row.revision,
            ],
        )
        .await?;
        Ok(())
    }

    async fn delete_cost_source(&self, app: AppId, network: Network) -> Result<(), Failure> {
        let sql = "delete from cost_sources where app_id = $1 and network = $2";
        self.execute(sql, &[&uuid(app.as_bytes()), &network.as_str()])
            .await?;
        Ok(())
    }

    async fn due_cost_source(
        &self,
        now: Timestamp,
    ) -> Result<Option<(OrganizationId, AppId, Network)>, Failure> {
        let sql = "select apps.organization_id, apps.app_id, network
                   from cost_sources join apps on apps.app_id = cost_sources.app_id
                   where due_at <= $1 and not archived
                   order by due_at, apps.app_id, network limit 1";
        let Some(row) = self.query_opt(sql, &[&now.as_millis()]).await? else {
            return Ok(None);
        };
        let app = AppId::from_bytes(id(&row, 1)?);
        let network = Network::parse(row.try_get(2)?)
            .ok_or_else(|| StoreError::corrupt("cost_sources", "network", app))?;
        Ok(Some((
            OrganizationId::from_bytes(id(&row, 0)?),
            app,
            network,
        )))
    }

    async fn remove_imported_costs(
        &self,
        app: AppId,
        network: Network,
        span: Option<DaySpan>,
    ) -> Result<(), Failure> {
        let (first, last) = match span {
            Some(span) => (span.from, span.to.following()),
            None => (Day::from_days(i32::MIN), Day::from_days(i32::MAX)),
        };
        let first = uuid(CostKey::first_of(first).as_bytes());
        let last = uuid(CostKey::first_of(last).as_bytes());
        let sql = "delete from costs
                   where app_id = $1 and network = $2 and source = 'imported'
                     and cost_id >= $3 and cost_id < $4";
        let key = uuid(app.as_bytes());
        self.execute(sql, &[&key, &network.as_str(), &first, &last])
            .await?;
        Ok(())
    }
}

#[async_trait]
impl CostSources for PostgresStore {
    async fn cost_sources(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<CostSource>> {
        let organization = caller.organization_of(app)?;
        self.read("cost_sources", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let sql = format!("select {COLUMNS} from cost_sources where app_id = $1");
            let rows = tx.query(&sql, &[&uuid(app.as_bytes())]).await?;
            let rows = rows
                .iter()
                .map(read_row::<CostSourceRow>)
                .collect::<Result<_, _>>()?;
            Ok(CostSourceRow::read_all(app, rows)?)
        })
        .await
    }

    async fn put_cost_source(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        draft: CostSourceDraft,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<CostSource> {
        let of = (caller.organization_of(app)?, app, network);
        self.write("put_cost_source", async move |tx| {
            admin::put_cost_source(tx, of, &draft, &precondition, &origin).await
        })
        .await
    }

    async fn remove_cost_source(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        with_costs: bool,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let of = (caller.organization_of(app)?, app, network);
        self.write("remove_cost_source", async move |tx| {
            admin::remove_cost_source(tx, of, with_costs, &precondition, &origin).await
        })
        .await
    }

    async fn pull_cost_source(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        origin: AuditContext,
    ) -> StoreResult<CostSource> {
        let of = (caller.organization_of(app)?, app, network);
        self.write("pull_cost_source", async move |tx| {
            admin::pull_cost_source(tx, of, &origin).await
        })
        .await
    }

    async fn lease_cost_source(
        &self,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Option<LeasedCostSource>> {
        self.write("lease_cost_source", async move |tx| {
            admin::lease_cost_source(tx, now, until).await
        })
        .await
    }

    async fn store_imported_costs(
        &self,
        lease: LeasedCostSource,
        span: DaySpan,
        costs: Vec<Cost>,
        at: Timestamp,
    ) -> StoreResult<bool> {
        self.write("store_imported_costs", async move |tx| {
            admin::store_imported_costs(tx, &lease, span, &costs, at).await
        })
        .await
    }

    async fn settle_cost_source(
        &self,
        lease: LeasedCostSource,
        outcome: PullOutcome,
        now: Timestamp,
    ) -> StoreResult<bool> {
        self.write("settle_cost_source", async move |tx| {
            admin::settle_cost_source(tx, &lease, &outcome, now).await
        })
        .await
    }
}
