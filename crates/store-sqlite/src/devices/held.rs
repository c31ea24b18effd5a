//! Installs that are held for a review.

use super::state::DEVICE_COLUMNS;
use crate::rows::{page_start, read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, ToSql, params_from_iter};
use tributary_domain::access::{AppsRead, Authorized, Environment, InstallsReview};
use tributary_domain::attribution::{Flag, HoldDecision, HoldFilter};
use tributary_domain::audit::AuditContext;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::vocabulary::id::{AppId, AttributionId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_recording::{HoldTable, review_install, review_installs};
use tributary_store::records::DeviceRow;
use tributary_store::{HeldInstall, HoldReviewCount, Holds, StoreResult};

#[async_trait]
impl Holds for SqliteStore {
    async fn held_installs(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: HoldFilter,
        page: PageRequest,
    ) -> StoreResult<Page<HeldInstall>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read("held_installs", move |connection| {
            require_app(connection, organization, app)?;
            let (scope, rows) = ((app, environment), page.limit.rows());
            let found = find(connection, scope, &filter, page.before, rows)?;
            Ok(Page::from_rows(found, page.limit))
        })
        .await
    }

    async fn review_install(
        &self,
        caller: &Authorized<InstallsReview>,
        app: AppId,
        device: DeviceKey,
        decision: HoldDecision,
        origin: AuditContext,
    ) -> StoreResult<HeldInstall> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.write_counted("review_install", move |connection| {
            let device = DeviceRef {
                app,
                environment,
                key: &device,
            };
            let tables = SqliteTables(connection);
            run(review_install(
                &tables,
                organization,
                device,
                decision,
                &origin,
            ))
        })
        .await
    }

    async fn review_installs(
        &self,
        caller: &Authorized<InstallsReview>,
        app: AppId,
        filter: HoldFilter,
        decision: HoldDecision,
        origin: AuditContext,
    ) -> StoreResult<HoldReviewCount> {
        let (organization, scope) = (caller.organization_of(app)?, (app, caller.environment()));
        self.write_counted("review_installs", move |connection| {
            let tables = SqliteTables(connection);
            run(review_installs(
                &tables,
                organization,
                scope,
                &filter,
                decision,
                &origin,
            ))
        })
        .await
    }
}

impl HoldTable for SqliteTables<'_> {
    async fn held_installs(
        &self,
        scope: (AppId, Environment),
        filter: &HoldFilter,
        before: Option<[u8; 16]>,
        limit: i64,
    ) -> Result<Vec<HeldInstall>, Failure> {
        find(self.0, scope, filter, before, limit)
    }
}

/// Finds held installs, newest first.
fn find(
    connection: &Connection,
    (app, environment): (AppId, Environment),
    filter: &HoldFilter,
    before: Option<[u8; 16]>,
    limit: i64,
) -> Result<Vec<HeldInstall>, Failure> {
    let (environment, state) = (environment.as_str(), filter.state.as_str());
    let before = page_start(before);
    let mut conditions = vec![
        "app_id = ?",
        "environment = ?",
        "hold = ?",
        "attribution_id < ?",
    ];
    let mut values: Vec<&dyn ToSql> = vec![app.as_bytes(), &environment, &state, &before];
    let from = filter.from.map(AttributionId::first_at);
    if let Some(from) = &from {
        conditions.push("attribution_id >= ?");
        values.push(from.as_bytes());
    }
    let until = filter.until.map(AttributionId::first_at);
    if let Some(until) = &until {
        conditions.push("attribution_id < ?");
        values.push(until.as_bytes());
    }
    if let Some(link) = &filter.link {
        conditions.push("link_id = ?");
        values.push(link.as_bytes());
    }
    let flag = filter.flag.map(Flag::as_str);
    if let Some(flag) = &flag {
        conditions.push("exists (select 1 from json_each(decision, '$.flags') where value = ?)");
        values.push(flag);
    }
    values.push(&limit);
    let sql = format!(
        "select {DEVICE_COLUMNS} from devices where {} order by attribution_id desc limit ?",
        conditions.join(" and ")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (device, attribution) = read_row::<DeviceRow>(row)?.read()?;
        found.push(HeldInstall {
            device,
            attribution,
        });
    }
    Ok(found)
}
