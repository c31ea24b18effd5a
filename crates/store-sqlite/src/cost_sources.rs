//! Cost sources, and the costs that are imported from them.

use crate::rows::{read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{OptionalExtension as _, params};
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

impl CostSourceTable for SqliteTables<'_> {
    async fn lock_cost_source(
        &self,
        app: AppId,
        network: Network,
    ) -> Result<Option<CostSource>, Failure> {
        let sql = format!("select {COLUMNS} from cost_sources where app_id = ?1 and network = ?2");
        let row = self
            .0
            .prepare_cached(&sql)?
            .query_row(
                params![app.as_bytes(), network.as_str()],
                read_row::<CostSourceRow>,
            )
            .optional()?;
        Ok(row.map(CostSourceRow::read).transpose()?)
    }

    async fn write_cost_source(&self, source: &CostSource) -> Result<(), Failure> {
        let row = CostSourceRow::write(source);
        let sql = format!(
            "insert or replace into cost_sources ({COLUMNS})
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
        );
        self.0.prepare_cached(&sql)?.execute(params![
            row.app_id,
            row.network,
            row.enabled,
            row.settings,
            row.credentials,
            row.due_at,
            row.last_pull_at,
            row.last_success_at,
            row.pulled_until,
            row.failures,
            row.problem,
            row.updated_at,
            row.revision
        ])?;
        Ok(())
    }

    async fn delete_cost_source(&self, app: AppId, network: Network) -> Result<(), Failure> {
        self.0.execute(
            "delete from cost_sources where app_id = ?1 and network = ?2",
            params![app.as_bytes(), network.as_str()],
        )?;
        Ok(())
    }

    async fn due_cost_source(
        &self,
        now: Timestamp,
    ) -> Result<Option<(OrganizationId, AppId, Network)>, Failure> {
        let found: Option<([u8; 16], [u8; 16], String)> = self
            .0
            .prepare_cached(
                "select apps.organization_id, apps.app_id, network
                 from cost_sources join apps on apps.app_id = cost_sources.app_id
                 where due_at <= ?1 and not archived
                 order by due_at, apps.app_id, network limit 1",
            )?
            .query_row([now.as_millis()], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        let Some((organization, app, network)) = found else {
            return Ok(None);
        };
        let app = AppId::from_bytes(app);
        let network = Network::parse(&network)
            .ok_or_else(|| StoreError::corrupt("cost_sources", "network", app))?;
        Ok(Some((
            OrganizationId::from_bytes(organization),
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
        let (first, last) = (CostKey::first_of(first), CostKey::first_of(last));
        self.0.execute(
            "delete from costs
             where app_id = ?1 and network = ?2 and source = 'imported'
               and cost_id >= ?3 and cost_id < ?4",
            params![
                app.as_bytes(),
                network.as_str(),
                first.as_bytes(),
                last.as_bytes()
            ],
        )?;
        Ok(())
    }
}

#[async_trait]
impl CostSources for SqliteStore {
    async fn cost_sources(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<CostSource>> {
        let organization = caller.organization_of(app)?;
        self.read("cost_sources", move |connection| {
            require_app(connection, organization, app)?;
            let sql = format!("select {COLUMNS} from cost_sources where app_id = ?1");
            let rows = connection
                .prepare_cached(&sql)?
                .query_map([app.as_bytes()], read_row::<CostSourceRow>)?
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
        self.write("put_cost_source", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::put_cost_source(
                &tables,
                of,
                &draft,
                &precondition,
                &origin,
            ))
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
        self.write("remove_cost_source", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::remove_cost_source(
                &tables,
                of,
                with_costs,
                &precondition,
                &origin,
            ))
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
        self.write("pull_cost_source", move |connection| {
            run(admin::pull_cost_source(
                &SqliteTables(connection),
                of,
                &origin,
            ))
        })
        .await
    }

    async fn lease_cost_source(
        &self,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Option<LeasedCostSource>> {
        self.write("lease_cost_source", move |connection| {
            run(admin::lease_cost_source(
                &SqliteTables(connection),
                now,
                until,
            ))
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
        self.write("store_imported_costs", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::store_imported_costs(
                &tables, &lease, span, &costs, at,
            ))
        })
        .await
    }

    async fn settle_cost_source(
        &self,
        lease: LeasedCostSource,
        outcome: PullOutcome,
        now: Timestamp,
    ) -> StoreResult<bool> {
        self.write("settle_cost_source", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::settle_cost_source(&tables, &lease, &outcome, now))
        })
        .await
    }
}
