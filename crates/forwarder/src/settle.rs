//! Step five: stores the results of a round.

use crate::lease::Lease;
use crate::metrics;
use crate::prepare::PreparedRound;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::forwarding::lifecycle::SettledDelivery;
use tributary_domain::forwarding::queue::{NOT_USABLE, QueueState};
use tributary_domain::forwarding::queue_change::QueueChange;
use tributary_domain::vocabulary::id::AlertId;
use tributary_networks::{Account, UnusableIntegration};
use tributary_store::{DeliverySettlement, StoreResult};

/// Stores the results of a round. Returns the queue's new state; `None` if the lease was lost.
pub(crate) async fn settle(
    lease: &Lease,
    account: &Account,
    prepared: PreparedRound,
) -> StoreResult<Option<QueueState>> {
    let PreparedRound {
        round,
        begun_at,
        mut settled,
    } = prepared;
    settled.extend(round.results.into_iter().map(|result| {
        let context = lease.shared.decision_context();
        SettledDelivery::after_round(result, context.now, context.random)
    }));
    let settlement = DeliverySettlement {
        begun_at,
        settled,
        checks: round.checks,
        is_test: account.is_test_mode(),
        ..empty_settlement(lease, round.changes)
    };
    write_settlement(lease, settlement).await
}

/// Pauses a queue whose integration is unusable.
pub(crate) async fn pause_queue(lease: &Lease, reason: UnusableIntegration) -> StoreResult<()> {
    let stopped = QueueChange::Stopped {
        at: lease.now(),
        code: NOT_USABLE.to_owned(),
        message: Some(reason.message),
    };
    write_settlement(lease, empty_settlement(lease, vec![stopped])).await?;
    Ok(())
}

/// Returns a settlement without deliveries.
fn empty_settlement(lease: &Lease, changes: Vec<QueueChange>) -> DeliverySettlement {
    let at = lease.now();
    let name = lease.leased.app.name.as_str();
    let network = lease.queue.network;
    let alert = |kind, message| Alert {
        id: AlertId::new(at, lease.shared.parts.runtime.random_bytes()),
        app: lease.queue.app,
        kind,
        network: Some(network),
        at,
        message,
    };
    let named = network.name_with_id();
    let paused = format!("The {named} integration for {name} is paused");
    let failing = format!("Many deliveries from {name} to {named} failed within an hour.");
    DeliverySettlement {
        at,
        begun_at: at,
        changes,
        revision: lease.revision(),
        settled: Vec::new(),
        is_test: false,
        checks: Vec::new(),
        pause_alert: Some(alert(AlertKind::IntegrationPaused, paused)),
        failure_alert: Some(alert(AlertKind::DeliveriesFailing, failing)),
    }
}

/// Stores a settlement and updates the metrics. Returns the queue's new state; `None` if the lease
/// was lost.
async fn write_settlement(
    lease: &Lease,
    settlement: DeliverySettlement,
) -> StoreResult<Option<QueueState>> {
    let network = lease.queue.network;
    let ends: Vec<DeliveryStatus> = settlement.final_statuses().collect();
    let store = &lease.shared.parts.store;
    let settled = store
        .settle_deliveries(lease.queue, lease.id, settlement)
        .await?;
    let Some(settled) = settled else {
        return Ok(None);
    };
    for status in ends {
        metrics::count_ended(network, status);
    }
    if settled.is_newly_paused {
        metrics::count_paused(network);
        tracing::warn!("integration paused");
    }
    Ok(Some(settled.state))
}
