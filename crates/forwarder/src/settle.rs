//! Step five: writes what came of a round.

use crate::lease::Lease;
use crate::metrics;
use crate::prepare::Prepared;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::forwarding::course::Settled;
use tributary_domain::forwarding::queue::{NOT_USABLE, QueueState};
use tributary_domain::vocabulary::id::AlertId;
use tributary_networks::{Account, NotUsable};
use tributary_store::{Settlement, StoreResult};

/// Stores the outcome of a round. Returns the queue's state after it; nothing when the lease was lost.
pub(crate) async fn settle(
    lease: &Lease,
    account: &Account,
    prepared: Prepared,
) -> StoreResult<Option<QueueState>> {
    let Prepared { round, mut settled } = prepared;
    settled.extend(round.tried.into_iter().map(|tried| {
        let moment = lease.shared.moment();
        Settled::after_round(tried, moment.now, moment.random)
    }));
    let settlement = Settlement {
        settled,
        checks: round.checks,
        is_test: account.test_mode(),
        ..settlement(lease, round.queue.clone())
    };
    let is_ours = write(lease, settlement).await?;
    Ok(is_ours.then_some(round.queue))
}

/// Pauses a queue whose integration cannot be used as it is.
pub(crate) async fn pause(lease: &Lease, reason: NotUsable) -> StoreResult<()> {
    let mut state = lease.leased.state.clone();
    state.pause(lease.now(), NOT_USABLE, Some(reason.words));
    write(lease, settlement(lease, state)).await?;
    Ok(())
}

/// A settlement of no deliveries yet.
fn settlement(lease: &Lease, state: QueueState) -> Settlement {
    let at = lease.now();
    let name = lease.leased.app.name.as_str();
    let network = lease.queue.network;
    let alert = |kind, message| Alert {
        id: AlertId::new(at, lease.shared.parts.source.bytes()),
        app: lease.queue.app,
        kind,
        network: Some(network),
        at,
        message,
    };
    let paused = state.pause.as_ref().map(|pause| {
        let words = pause.words.as_deref().unwrap_or("no words");
        let message = format!(
            "{} of {name} stopped (code {}: {words}). Deliveries are kept until it is mended.",
            network.as_str(),
            pause.code
        );
        alert(AlertKind::IntegrationPaused, message)
    });
    let message = format!(
        "Many deliveries of {name} to {} failed within an hour.",
        network.as_str()
    );
    Settlement {
        at,
        state,
        revision: lease.revision(),
        settled: Vec::new(),
        is_test: false,
        checks: Vec::new(),
        paused,
        failing: Some(alert(AlertKind::DeliveriesFailing, message)),
    }
}

/// Writes it, and counts it; false when another process has the queue.
async fn write(lease: &Lease, settlement: Settlement) -> StoreResult<bool> {
    let network = lease.queue.network;
    let ends: Vec<DeliveryStatus> = settlement.ends().collect();
    let paused = settlement.paused.is_some();
    let store = &lease.shared.parts.store;
    let is_ours = store.settle(lease.queue, lease.id, settlement).await?;
    if is_ours {
        for status in ends {
            metrics::ended(network, status);
        }
        if paused {
            metrics::paused(network);
            tracing::warn!("the integration is paused");
        }
    }
    Ok(is_ours)
}
