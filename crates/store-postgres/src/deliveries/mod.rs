//! Deliveries, as people see them.

mod find;
mod skipped;

use crate::outbox::ends::bring_back;
use crate::rows::{Purpose, insert_audit, require_app};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::audit::{Action, Origin};
use tributary_domain::forwarding::Delivery;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::integration::{Integration, Network};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, EventId, OrganizationId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::admin::{integration_health, resume_integration};
use tributary_store::records::audit_row;
use tributary_store::{Deliveries, DeliveryOf, Health, QueueRef, RETRIES_MAX, StoreResult};

/// Brings back those that fit, newest first of each way to end. Gives how many.
async fn bring_all_back(
    tx: &Tx,
    app: AppId,
    filter: &DeliveryFilter,
    due_at: Timestamp,
) -> Result<u64, Failure> {
    let mut rest = u64::from(RETRIES_MAX);
    for (status, _) in filter.retryable() {
        let limit = i64::try_from(rest).unwrap_or(i64::MAX);
        let ids = find::find_ended_ids(tx, app, filter, status, limit).await?;
        rest -= bring_back(tx, app, &ids, due_at).await?.min(rest);
    }
    Ok(u64::from(RETRIES_MAX) - rest)
}

async fn note_retried(
    tx: &Tx,
    organization: OrganizationId,
    app: AppId,
    target: &str,
    origin: &Origin,
) -> Result<(), Failure> {
    let action = Action::DeliveriesRetried;
    let row = audit_row(organization, origin, action, Some(app), target, &[]);
    insert_audit(tx, &row).await
}

#[async_trait]
impl Deliveries for PostgresStore {
    async fn deliveries(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> StoreResult<Page<DeliveryOf>> {
        let (organization, environment) = (caller.organization(), caller.environment());
        self.read("deliveries", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
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
    ) -> StoreResult<DeliveryOf> {
        let (organization, environment) = (caller.organization(), caller.environment());
        self.read("delivery", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
            if environment != Environment::Live {
                return Err(Refusal::DeliveryNotFound.into());
            }
            find::find_one(tx, app, delivery).await
        })
        .await
    }

    async fn deliveries_of(&self, app: AppId, events: Vec<EventId>) -> StoreResult<Vec<Delivery>> {
        self.read("deliveries_of", async move |tx| {
            find::of_events(tx, app, &events).await
        })
        .await
    }

    async fn retry_delivery(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        delivery: DeliveryId,
        origin: Origin,
    ) -> StoreResult<DeliveryOf> {
        let organization = caller.organization();
        self.write("retry_delivery", async move |tx| {
            require_app(tx, organization, app, Purpose::Changing).await?;
            let found = find::find_one(tx, app, delivery).await?;
            if !found.delivery.status.can_be_retried() {
                return Err(Refusal::DeliveryNotRetryable.into());
            }
            bring_back(tx, app, &[delivery], origin.at).await?;
            note_retried(tx, organization, app, &delivery.to_string(), &origin).await?;
            find::find_one(tx, app, delivery).await
        })
        .await
    }

    async fn retry_deliveries(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        filter: DeliveryFilter,
        origin: Origin,
    ) -> StoreResult<u64> {
        let organization = caller.organization();
        self.write("retry_deliveries", async move |tx| {
            require_app(tx, organization, app, Purpose::Changing).await?;
            let retried = bring_all_back(tx, app, &filter, origin.at).await?;
            let target = format!("{retried} deliveries");
            note_retried(tx, organization, app, &target, &origin).await?;
            Ok(retried)
        })
        .await
    }

    async fn integration_health(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        now: Timestamp,
    ) -> StoreResult<Vec<(Network, Health)>> {
        let organization = caller.organization();
        self.read("integration_health", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
            let counts = skipped::find(tx, app, now).await?;
            let mut all = integration_health(tx, app, now).await?;
            for (network, health) in &mut all {
                health.skipped = counts.of(*network);
            }
            Ok(all)
        })
        .await
    }

    async fn resume_integration(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        network: Network,
        precondition: Precondition,
        origin: Origin,
    ) -> StoreResult<Integration> {
        let organization = caller.organization();
        self.write("resume_integration", async move |tx| {
            let of = (organization, QueueRef { app, network });
            resume_integration(tx, of, &precondition, &origin).await
        })
        .await
    }
}
