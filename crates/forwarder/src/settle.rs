//! Step five: stores the results of a round.

use crate::lease::Lease;
use crate::metrics;
use crate::prepare::PreparedRound;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::forwarding::lifecycle::SettledDelivery;
use tributary_domain::forwarding::queue::{NOT_USABLE, QueueState};
use tributary_domain::vocabulary::id::AlertId;
use tributary_networks::{Account, UnusableIntegration};
use tributary_store::{DeliverySettlement, StoreResult};

/// Stores the results of a round. Returns the queue's new state; `None` if the lease was lost.
pub(crate) async fn settle(
    lease: &Lease,
    account: &Account,
    prepared: PreparedRound,
) -> StoreResult<Option<QueueState>> {
    let PreparedRound { round, mut settled } = prepared;
    settled.extend(round.results.into_iter().map(|result| {
        let context = lease.shared.decision_context();
        SettledDelivery::after_round(result, context.now, context.random)
    }));
    let settlement = DeliverySettlement {
        settled,
        checks: round.checks,
        is_test: account.is_test_mode(),
        ..empty_settlement(lease, round.queue.clone())
    };
    let is_ours = write_settlement(lease, settlement).await?;
    Ok(is_ours.then_some(round.queue))
}

/// Pauses a queue whose integration is unusable.
pub(crate) async fn pause_queue(lease: &Lease, reason: UnusableIntegration) -> StoreResult<()> {
    let mut state = lease.leased.state.clone();
    state.pause(lease.now(), NOT_USABLE, Some(reason.message));
    write_settlement(lease, empty_settlement(lease, state)).await?;
    Ok(())
}

/// Returns a settlement without deliveries.
fn empty_settlement(lease: &Lease, state: QueueState) -> DeliverySettlement {
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
    let paused = state.pause.as_ref().map(|pause| {
        let reason = pause.message.as_deref().unwrap_or("no message");
        let message = format!(
            "The {} integration for {name} is paused (code {}: {reason}). Deliveries are kept \
             until the integration is fixed and resumed.",
            network.name_with_id(),
            pause.code
        );
        alert(AlertKind::IntegrationPaused, message)
    });
    let message = format!(
        "Many deliveries from {name} to {} failed within an hour.",
        network.name_with_id()
    );
    DeliverySettlement {
        at,
        state,
        revision: lease.revision(),
        settled: Vec::new(),
        is_test: false,
        checks: Vec::new(),
        pause_alert: paused,
        failure_alert: Some(alert(AlertKind::DeliveriesFailing, message)),
    }
}

/// Stores a settlement and updates the metrics. Returns false if the lease was lost.
async fn write_settlement(lease: &Lease, settlement: DeliverySettlement) -> StoreResult<bool> {
    let network = lease.queue.network;
    let ends: Vec<DeliveryStatus> = settlement.final_statuses().collect();
    let paused = settlement.pause_alert.is_some();
    let store = &lease.shared.parts.store;
    let is_ours = store
        .settle_deliveries(lease.queue, lease.id, settlement)
        .await?;
    if is_ours {
        for status in ends {
            metrics::count_ended(network, status);
        }
        if paused {
            metrics::count_paused(network);
            tracing::warn!("integration paused");
        }
    }
    Ok(is_ours)
}
