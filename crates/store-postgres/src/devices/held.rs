//! Installs that are held for a review.

use super::state::DEVICE_COLUMNS;
use crate::rows::{AppLockMode, Conditions, read_row, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore, rollups};
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, Authorized, Environment, InstallsReview};
use tributary_domain::attribution::{Flag, HoldDecision, HoldFilter};
use tributary_domain::audit::AuditContext;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::vocabulary::id::{AppId, AttributionId, LinkId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_recording::{HoldTable, review_install, review_installs};
use tributary_store::records::DeviceRow;
use tributary_store::{HeldInstall, HoldReviewCount, Holds, StoreResult};

#[async_trait]
impl Holds for PostgresStore {
    async fn held_installs(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: HoldFilter,
        page: PageRequest,
    ) -> StoreResult<Page<HeldInstall>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "held_installs", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let (scope, rows) = ((app, environment), page.limit.rows());
            let found = tx.held_installs(scope, &filter, page.before, rows).await?;
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
        self.write("review_install", async move |tx| {
            let device = DeviceRef {
                app,
                environment,
                key: &device,
            };
            let reviewed = review_install(tx, organization, device, decision, &origin);
            // Boxed because the future is large.
            let (reviewed, increments) = Box::pin(reviewed).await?;
            rollups::store_increments(tx, &increments).await?;
            Ok(reviewed)
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
        self.write("review_installs", async move |tx| {
            let reviewed = review_installs(tx, organization, scope, &filter, decision, &origin);
            // Boxed because the future is large.
            let (count, increments) = Box::pin(reviewed).await?;
            rollups::store_increments(tx, &increments).await?;
            Ok(count)
        })
        .await
    }
}

impl HoldTable for Tx {
    async fn held_installs(
        &self,
        (app, environment): (AppId, Environment),
        filter: &HoldFilter,
        before: Option<[u8; 16]>,
        limit: i64,
    ) -> Result<Vec<HeldInstall>, Failure> {
        let app = uuid(app.as_bytes());
        let (environment, state) = (environment.as_str(), filter.state.as_str());
        let before = before.as_ref().map(uuid);
        let first_at = |at| uuid(AttributionId::first_at(at).as_bytes());
        let (from, until) = (filter.from.map(first_at), filter.until.map(first_at));
        let link = filter.link.as_ref().map(LinkId::as_bytes).map(uuid);
        let flag = filter.flag.map(Flag::as_str);
        let (conditions, params) = Conditions::new("app_id", &app)
            .and("environment =", Some(&environment))
            .and("hold =", Some(&state))
            .and("attribution_id <", before.as_ref())
            .and("attribution_id >=", from.as_ref())
            .and("attribution_id <", until.as_ref())
            .and("link_id =", link.as_ref())
            .and("(decision::jsonb -> 'flags') ?", flag.as_ref())
            .newest("attribution_id", &limit);
        let sql = format!("select {DEVICE_COLUMNS} from devices where {conditions}");
        let rows = self.query(&sql, &params).await?;
        let held = |row| {
            let (device, attribution) = read_row::<DeviceRow>(row)?.read()?;
            Ok(HeldInstall {
                device,
                attribution,
            })
        };
        rows.iter().map(held).collect()
    }
}
