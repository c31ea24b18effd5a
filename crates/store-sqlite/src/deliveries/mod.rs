//! Deliveries as the API and the dashboard show them.

pub(crate) mod find;
mod skipped;
mod undelivered;

use crate::SqliteStore;
use crate::rows::{page_start, require_app};
use crate::tables::{SqliteTables, run};
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::audit::AuditContext;
use tributary_domain::forwarding::Delivery;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::forwarding::undelivered::{UndeliveredCounts, UndeliveredQuery};
use tributary_domain::integration::{Integration, Network};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::admin::{
    integration_health, resume_integration, retry_deliveries, retry_delivery,
};
use tributary_store::{Deliveries, DeliveryWithEvent, IntegrationHealth, QueueRef, StoreResult};

#[async_trait]
impl Deliveries for SqliteStore {
    async fn deliveries(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> StoreResult<Page<DeliveryWithEvent>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read("deliveries", move |connection| {
            require_app(connection, organization, app)?;
            if environment != Environment::Live {
                return Ok(Page::from_rows(Vec::new(), page.limit));
            }
            let before = page_start(page.before);
            let found = find::find(connection, app, &filter, before, page.limit.rows())?;
            let rows = found
                .into_iter()
                .map(|delivery| find::with_event(connection, delivery))
                .collect::<Result<_, _>>()?;
            Ok(Page::from_rows(rows, page.limit))
        })
        .await
    }

    async fn delivery(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        delivery: DeliveryId,
    ) -> StoreResult<DeliveryWithEvent> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read("delivery", move |connection| {
            require_app(connection, organization, app)?;
            if environment != Environment::Live {
                return Err(Refusal::DeliveryNotFound.into());
            }
            find::find_one(connection, app, delivery)
        })
        .await
    }

    async fn deliveries_of(&self, app: AppId, events: Vec<EventId>) -> StoreResult<Vec<Delivery>> {
        self.read("deliveries_of", move |connection| {
            find::find_by_events(connection, app, &events)
        })
        .await
    }

    async fn retry_delivery(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        delivery: DeliveryId,
        origin: AuditContext,
    ) -> StoreResult<DeliveryWithEvent> {
        let of = (caller.organization_of(app)?, app);
        self.write("retry_delivery", move |connection| {
            let tables = SqliteTables(connection);
            run(retry_delivery(&tables, of, delivery, &origin))
        })
        .await
    }

    async fn retry_deliveries(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        filter: DeliveryFilter,
        origin: AuditContext,
    ) -> StoreResult<u64> {
        let of = (caller.organization_of(app)?, app);
        self.write("retry_deliveries", move |connection| {
            let tables = SqliteTables(connection);
            run(retry_deliveries(&tables, of, &filter, &origin))
        })
        .await
    }

    async fn integration_health(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        now: Timestamp,
    ) -> StoreResult<Vec<(Network, IntegrationHealth)>> {
        let organization = caller.organization_of(app)?;
        self.read("integration_health", move |connection| {
            require_app(connection, organization, app)?;
            let counts = skipped::find(connection, app, now)?;
            let mut all = run(integration_health(&SqliteTables(connection), app, now))?;
            for (network, health) in &mut all {
                health.skipped = counts.of(*network);
            }
            Ok(all)
        })
        .await
    }

    async fn undelivered(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        query: UndeliveredQuery,
    ) -> StoreResult<UndeliveredCounts> {
        let organization = caller.organization_of(app)?;
        self.read("undelivered", move |connection| {
            require_app(connection, organization, app)?;
            undelivered::find(connection, app, &query)
        })
        .await
    }

    async fn resume_integration(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Integration> {
        let organization = caller.organization_of(app)?;
        self.write("resume_integration", move |connection| {
            let of = (organization, QueueRef { app, network });
            let tables = SqliteTables(connection);
            run(resume_integration(&tables, of, &precondition, &origin))
        })
        .await
    }
}
