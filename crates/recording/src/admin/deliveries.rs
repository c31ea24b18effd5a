//! Retries of deliveries by an operator.

use crate::tables::Tables;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, OrganizationId};
use tributary_store::records::audit_row;
use tributary_store::{DeliveryWithEvent, RETRIES_MAX};

/// Puts a finished delivery back into its queue.
pub async fn retry_delivery<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    delivery: DeliveryId,
    origin: &AuditContext,
) -> Result<DeliveryWithEvent, T::Failure> {
    tables.require_app(organization, app).await?;
    let found = tables.delivery(app, delivery).await?;
    if !found.delivery.status.can_be_retried() {
        return Err(Refusal::DeliveryNotRetryable.into());
    }
    tables.requeue(app, &[delivery], origin.at).await?;
    note_retried(tables, (organization, app), &delivery.to_string(), origin).await?;
    tables.delivery(app, delivery).await
}

/// Puts the finished deliveries that match a filter back into their queues, newest first per
/// status. Returns the number of retried deliveries.
pub async fn retry_deliveries<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    filter: &DeliveryFilter,
    origin: &AuditContext,
) -> Result<u64, T::Failure> {
    tables.require_app(organization, app).await?;
    let mut rest = u64::from(RETRIES_MAX);
    for wanted in filter.retryable() {
        let ids = tables.ended_matching(app, &wanted, rest).await?;
        rest -= tables.requeue(app, &ids, origin.at).await?.min(rest);
    }
    let retried = u64::from(RETRIES_MAX) - rest;
    let target = format!("{retried} deliveries");
    note_retried(tables, (organization, app), &target, origin).await?;
    Ok(retried)
}

async fn note_retried<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    target: &str,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let action = Action::DeliveriesRetried;
    let row = audit_row(organization, origin, action, Some(app), target, &[]);
    tables.insert_audit(&row).await
}
