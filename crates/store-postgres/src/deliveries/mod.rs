//! Deliveries as the API and the dashboard show them.

pub(crate) mod find;
mod skipped;
mod undelivered;

use crate::PostgresStore;
use crate::rows::{AppLockMode, require_app};
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
impl Deliveries for PostgresStore {
    async fn deliveries(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> StoreResult<Page<DeliveryWithEvent>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read_for(caller, "deliveries", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            if environment != Environment::Live {
                return Ok(Page::from_rows(Vec::new(), page.limit));
            }
            let found = find::find(tx, app, &filter, page.before, page.limit.rows()).await?;
            let rows = find::with_events(tx, app, found).await?;
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
        self.read("delivery", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            if environment != Environment::Live {
                return Err(Refusal::DeliveryNotFound.into());
            }
            find::find_one(tx, app, delivery).await
        })
        .await
    }

    async fn deliveries_of(&self, app: AppId, events: Vec<EventId>) -> StoreResult<Vec<Delivery>> {
        self.read("deliveries_of", async move |tx| {
            find::find_by_events(tx, app, &events).await
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
        self.write("retry_delivery", async move |tx| {
            retry_delivery(tx, of, delivery, &origin).await
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
        self.write("retry_deliveries", async move |tx| {
            retry_deliveries(tx, of, &filter, &origin).await
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
        self.read_for(caller, "integration_health", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let counts = skipped::find(tx, app, now).await?;
            let mut all = integration_health(tx, app, now).await?;
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
        self.read_for(caller, "undelivered", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            undelivered::find(tx, app, &query).await
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
        let resumed = self.write("resume_integration", async move |tx| {
            let queue = QueueRef { app, network };
            let of = (organization, queue);
            let resumed = resume_integration(tx, of, &precondition, &origin).await?;
            tx.hint_queue(queue, origin.at);
            Ok(resumed)
        });
        let resumed = resumed.await;
        self.paused.forget();
        resumed
    }
}
