//! Delivery queues: settling attempts and status checks.

use crate::queue_leases::lock_lease;
use crate::tables::Tables;
use std::collections::BTreeMap;
use tributary_domain::access::{Actor, Environment};
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::forwarding::quota::{self, QuotaTurns};
use tributary_domain::forwarding::settlement::SettlementFacts;
use tributary_domain::forwarding::status_check::{CheckOutcome, Recount};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, AuditId, DeliveryId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{TerminalCounts, audit_row};
use tributary_store::{DeliverySettlement, LeaseId, QueueRef, SettledQueue};

/// Reserves the next turns in a quota that all nodes share.
pub async fn reserve_turns<T: Tables>(
    tables: &T,
    quota: Digest,
    now: Timestamp,
) -> Result<QuotaTurns, T::Failure> {
    let free_from = tables.lock_quota(quota).await?;
    let reserved = quota::reserve_turns(free_from, now);
    tables.write_quota(quota, reserved.free_from).await?;
    Ok(reserved.turns)
}

/// Settles the results of delivery attempts. Returns the queue's new state; `None` and nothing is
/// written when another process holds the lease now.
pub async fn settle_deliveries<T: Tables>(
    tables: &T,
    queue: QueueRef,
    lease: LeaseId,
    settlement: &DeliverySettlement,
) -> Result<Option<SettledQueue>, T::Failure> {
    let Some(stored) = lock_lease(tables, queue, lease).await? else {
        return Ok(None);
    };
    let at = settlement.at;
    tables.write_settled(queue, &settlement.settled, at).await?;
    tables.insert_checks(queue, &settlement.checks).await?;
    let counts = BTreeMap::from([(
        queue,
        TerminalCounts::of(settlement.counted_final_statuses()),
    )]);
    let failures = tables.add_terminal_counts(&counts, at).await?;
    let merged = settlement.merge(stored);
    let facts = SettlementFacts {
        failures: failures.get(&queue).copied().unwrap_or_default(),
        version: if merged.is_pausing {
            tables.integration_version(queue).await?
        } else {
            None
        },
    };
    let decision = settlement.decide(merged, facts);
    for alert in &decision.alerts {
        tables.insert_alert(alert).await?;
    }
    let settled = decision.queue;
    tables.write_queue(queue, &settled.state, true).await?;
    let mut alerts = decision.alerts.iter();
    if let Some(alert) = alerts.find(|alert| alert.kind == AlertKind::IntegrationPaused) {
        audit_pause(tables, queue, alert).await?;
    }
    Ok(Some(settled))
}

/// Adds a pause to the audit log, as the service's own change. The entry has the id of the alert.
async fn audit_pause<T: Tables>(
    tables: &T,
    queue: QueueRef,
    alert: &Alert,
) -> Result<(), T::Failure> {
    let Some(app) = tables.app(queue.app).await? else {
        return Ok(());
    };
    let origin = AuditContext {
        actor: Actor::Service,
        address: None,
        request_id: None,
        environment: Environment::Live,
        at: alert.at,
        audit_id: AuditId::from_bytes(*alert.id.as_bytes()),
    };
    let (action, target) = (Action::IntegrationPaused, queue.network.as_str());
    let row = audit_row(app.organization, &origin, action, Some(app.id), target, &[]);
    tables.insert_audit(&row).await
}

/// Settles the outcome that a network reported some time after the request. Returns false and
/// writes nothing when another process holds the lease now.
pub async fn settle_status_check<T: Tables>(
    tables: &T,
    queue: QueueRef,
    lease: LeaseId,
    request: &str,
    outcome: &CheckOutcome,
    at: Timestamp,
) -> Result<bool, T::Failure> {
    if lock_lease(tables, queue, lease).await?.is_none() {
        return Ok(false);
    }
    let Some(check) = tables.status_check(queue, request).await? else {
        return Ok(true);
    };
    if let CheckOutcome::Later { step, due_at } = outcome {
        let postponed = tables.postpone_check(queue, request, *step, *due_at);
        postponed.await?;
        return Ok(true);
    }
    tables.remove_check(queue, request).await?;
    let changed = apply_check_outcome(tables, queue.app, &check.deliveries, outcome).await?;
    let Recount {
        failed,
        undelivered,
    } = outcome.recount(changed);
    let failed = usize::try_from(failed).unwrap_or(usize::MAX);
    let failed = std::iter::repeat_n(DeliveryStatus::Failed, failed);
    let counts = BTreeMap::from([(queue, TerminalCounts::of(failed))]);
    tables.add_terminal_counts(&counts, at).await?;
    if undelivered > 0 {
        let subtracted = tables.subtract_delivered(queue, check.sent_at, undelivered);
        subtracted.await?;
    }
    Ok(true)
}

/// Applies an outcome to the deliveries in its request. Returns the number of deliveries that still
/// exist.
async fn apply_check_outcome<T: Tables>(
    tables: &T,
    app: AppId,
    deliveries: &[DeliveryId],
    outcome: &CheckOutcome,
) -> Result<u64, T::Failure> {
    match outcome {
        CheckOutcome::Later { .. } | CheckOutcome::Done { note: None } => Ok(0),
        CheckOutcome::Done { note: Some(note) } => {
            tables.write_ended(app, deliveries, None, note).await
        }
        CheckOutcome::Failed { reason } => {
            let failed = Some(DeliveryStatus::Failed);
            tables.write_ended(app, deliveries, failed, reason).await
        }
        CheckOutcome::Resend { due_at, .. } => tables.requeue(app, deliveries, *due_at).await,
    }
}
