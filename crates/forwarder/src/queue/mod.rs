//! Working on one queue: it is taken, held while there is something to do, and given back.

mod held;
mod prepare;

use crate::{LOOK_FAILED_WAIT, Shared, account, checks, metrics};
use held::Held;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::forwarding::course::Next;
use tributary_domain::forwarding::queue::{NOT_USABLE, QueueState};
use tributary_domain::vocabulary::id::AlertId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_networks::Account;
use tributary_store::{
    LeaseId, LeasedQueue, QueueRef, Settled, Settlement, StoreError, StoreResult,
};

/// A queue is held without a word for as long as a request may take, and this. It is renewed long before it ends.
const LEASE_MARGIN: Duration = Duration::from_secs(15);
/// How often it is renewed.
const RENEWAL: Duration = Duration::from_secs(5);

/// One queue to be worked on.
pub(crate) struct Work {
    shared: Arc<Shared>,
    queue: QueueRef,
    stopping: CancellationToken,
    lease: LeaseId,
}

impl Work {
    pub(crate) fn new(shared: Arc<Shared>, queue: QueueRef, stopping: CancellationToken) -> Self {
        let lease = LeaseId(shared.parts.source.bytes());
        Self {
            shared,
            queue,
            stopping,
            lease,
        }
    }

    fn now(&self) -> Timestamp {
        self.shared.parts.source.now()
    }

    fn until(&self, now: Timestamp) -> Timestamp {
        now.plus(self.queue.network.request_timeout() + LEASE_MARGIN)
    }

    /// Takes the queue, works on it, and gives it back. What fails here is tried again by whoever looks next.
    pub(crate) async fn run(self) {
        let store = &self.shared.parts.store;
        let now = self.now();
        let leased = store.lease_queue(self.queue, self.lease, now, self.until(now));
        let leased = match leased.await {
            Ok(Some(leased)) => leased,
            Ok(None) => return,
            Err(error) => return complain(&error),
        };
        let lost = self.stopping.child_token();
        let worked = tokio::select! {
            worked = self.work(&leased, &lost) => worked,
            () = self.renew(&lost) => Ok(()),
        };
        let released = store.release_queue(self.queue, self.lease, self.now());
        let released = released.await;
        if let Err(error) = worked.and(released) {
            complain(&error);
            // What cannot be written down must not be sent again and again.
            tokio::select! {
                () = self.stopping.cancelled() => {}
                () = tokio::time::sleep(LOOK_FAILED_WAIT) => {}
            }
        }
    }

    /// Keeps the queue. Ends when it is somebody else's: then nothing more is sent or written.
    async fn renew(&self, lost: &CancellationToken) {
        loop {
            tokio::time::sleep(RENEWAL).await;
            let until = self.until(self.now());
            let renewed = self
                .shared
                .parts
                .store
                .renew_lease(self.queue, self.lease, until);
            // A database that does not answer takes nothing away; the lease itself runs out then.
            if matches!(renewed.await, Ok(false)) {
                lost.cancel();
                return;
            }
        }
    }

    async fn work(&self, leased: &LeasedQueue, stopping: &CancellationToken) -> StoreResult<()> {
        let keyring = &self.shared.parts.keyring;
        let account = account::open(keyring, leased.app.organization, &leased.integration);
        let account = match account {
            Ok(account) => account,
            Err(reason) => {
                let mut state = leased.state.clone();
                state.pause(self.now(), NOT_USABLE, Some(reason.words));
                let settlement = self.settlement(leased, state, Vec::new());
                self.settle(settlement).await?;
                return Ok(());
            }
        };
        if self.shared.projects.is_held(account.quota_project()) {
            return Ok(());
        }
        let held = Held {
            work: self,
            leased,
            account: &account,
            stopping,
        };
        held.rounds().await?;
        if let Account::B(_) = &account {
            checks::ask(&held.line(), self.lease, stopping).await?;
        }
        Ok(())
    }

    /// Everything that is written after a round.
    fn settlement(
        &self,
        leased: &LeasedQueue,
        state: QueueState,
        settled: Vec<Settled>,
    ) -> Settlement {
        let at = self.now();
        let name = leased.app.name.as_str();
        let network = self.queue.network;
        let alert = |kind, message| Alert {
            id: AlertId::new(at, self.shared.parts.source.bytes()),
            app: self.queue.app,
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
            revision: leased.integration.revision.number(),
            settled,
            is_test: false,
            checks: Vec::new(),
            paused,
            failing: Some(alert(AlertKind::DeliveriesFailing, message)),
        }
    }

    /// Writes it; false when the queue is somebody else's.
    async fn settle(&self, settlement: Settlement) -> StoreResult<bool> {
        let network = self.queue.network;
        let ends: Vec<DeliveryStatus> = settlement
            .settled
            .iter()
            .filter_map(|settled| match settled.next {
                Next::Ends { status, .. } => Some(status),
                Next::Waits { .. } => None,
            })
            .collect();
        let paused = settlement.paused.is_some();
        let store = &self.shared.parts.store;
        let is_ours = store.settle(self.queue, self.lease, settlement).await?;
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
}

fn complain(error: &StoreError) {
    tracing::warn!("deliveries wait: {error}");
}
