//! Forwarder: sends due deliveries to the ad networks and stores the results.
//!
//! Each integration has a queue, and a lease in the database ensures that one process at a time
//! works on it. If its backlog is large, several processes share it, each with a lease of a part.
//! `queue` runs five steps, each in its own module. `lease` reads due deliveries with
//! their data. `prepare` drops deliveries that may not be sent and marks the rest as being sent, so
//! that a crash is detected. `send` makes the requests and classifies the responses, `judge`
//! applies each response to its deliveries, and `settle` stores the results. No transaction is open
//! during a request. `domain` and `networks` decide what is sent and what a response means.
#![deny(missing_docs)]

mod account;
mod judge;
mod lease;
pub mod metrics;
mod pacing;
mod polling;
mod prepare;
mod probe;
mod queue;
mod redaction;
mod send;
mod settle;
mod status_checks;
mod tokens;
mod transport;

#[cfg(test)]
mod tests;

pub use polling::{DueReceiver, Poller};
pub use probe::{NetworkProbeResponse, Prober};
pub use transport::{RequestTarget, Transport, TransportOutcome};

use pacing::ProjectPacer;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokens::TokenCache;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tributary_domain::due_work::WorkKind;
use tributary_domain::forwarding::round::DecisionContext;
use tributary_domain::integration::Network;
use tributary_domain::keyring::Keyring;
use tributary_domain::runtime::Runtime;
use tributary_store::{QueueRef, Store};

/// Queues processed concurrently per network. Separate limits keep a hanging network from blocking
/// the others.
const QUEUES_PER_NETWORK: usize = 32;
/// Delay after a failed poll, or after a database error while a queue was being processed.
pub(crate) const POLL_RETRY_WAIT: Duration = Duration::from_secs(5);

/// Dependencies of the forwarder.
#[derive(Clone)]
pub struct ForwarderParts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// Clock and random number generator.
    pub runtime: Runtime,
    /// Decrypts credentials.
    pub keyring: Keyring,
    /// Sends requests.
    pub transport: Arc<dyn Transport>,
    /// This server's public base URL, for the URLs of links.
    pub base_url: Arc<str>,
}

/// State shared by all queues.
pub(crate) struct ForwarderState {
    pub(crate) parts: ForwarderParts,
    pub(crate) tokens: TokenCache,
    pub(crate) pacer: ProjectPacer,
}

impl ForwarderState {
    /// Returns the current time and a random number for decisions.
    fn decision_context(&self) -> DecisionContext {
        DecisionContext {
            now: self.parts.runtime.now(),
            random: u64::from_be_bytes(self.parts.runtime.random_bytes()),
        }
    }
}

/// Sends due deliveries until shutdown.
pub struct Forwarder {
    shared: Arc<ForwarderState>,
    permits: [Arc<Semaphore>; 4],
    busy: Arc<Mutex<HashSet<QueueRef>>>,
}

impl Forwarder {
    /// Creates a forwarder from its parts.
    pub fn new(parts: ForwarderParts) -> Self {
        Self {
            shared: Arc::new(ForwarderState {
                parts,
                tokens: TokenCache::default(),
                pacer: ProjectPacer::default(),
            }),
            permits: std::array::from_fn(|_| Arc::new(Semaphore::new(QUEUES_PER_NETWORK))),
            busy: Arc::default(),
        }
    }

    /// Sends what polls find due, until `stop` completes. Finishes the requests in progress;
    /// everything else stays in the database.
    pub async fn run(self, mut due: DueReceiver, stop: impl Future<Output = ()>) {
        let stopping = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        let mut is_failing = false;
        loop {
            let next_poll = async {
                if is_failing {
                    tokio::time::sleep(POLL_RETRY_WAIT).await;
                }
                due.next_poll().await
            };
            // Biased, so that the order of events decides, not chance.
            let kinds = tokio::select! {
                biased;
                () = &mut stop => break,
                kinds = next_poll => kinds,
            };
            let Some(kinds) = kinds else {
                break;
            };
            while tasks.try_join_next().is_some() {}
            let is_due = |network: &Network| kinds.contains(&WorkKind::Deliveries(*network));
            let mut all_queried = true;
            for network in Network::ALL.into_iter().filter(is_due) {
                all_queried &= self
                    .start_due_queues(network, &mut tasks, &stopping, is_failing)
                    .await;
            }
            is_failing = !all_queried;
        }
        stopping.cancel();
        while tasks.join_next().await.is_some() {}
    }

    /// Starts a task for each of a network's due queues, up to the network's limit. Returns false
    /// if the database could not be queried.
    async fn start_due_queues(
        &self,
        network: Network,
        tasks: &mut JoinSet<()>,
        stopping: &CancellationToken,
        was_failing: bool,
    ) -> bool {
        let parts = &self.shared.parts;
        let permits = &self.permits[network_index(network)];
        let free = u32::try_from(permits.available_permits()).unwrap_or(u32::MAX);
        if free == 0 {
            return true;
        }
        let now = parts.runtime.now();
        let due = parts.store.due_queues(network, now, free);
        let queues = match due.await {
            Ok(queues) => queues,
            Err(error) => {
                if !was_failing {
                    let network = network.as_str();
                    tracing::warn!(network, %error, "failed to query due deliveries");
                }
                return false;
            }
        };
        for queue in queues {
            let Some(busy) = QueueGuard::acquire(&self.busy, queue) else {
                continue;
            };
            let Ok(permit) = permits.clone().try_acquire_owned() else {
                break;
            };
            let work = queue::process_queue(self.shared.clone(), queue, stopping.clone());
            let working = async move {
                work.await;
                drop((busy, permit));
            };
            let app = queue.app;
            let span = tracing::error_span!("forwarder", %app, network = network.as_str());
            tasks.spawn(working.instrument(span));
        }
        true
    }
}

const fn network_index(network: Network) -> usize {
    match network {
        Network::A => 0,
        Network::B => 1,
        Network::C => 2,
        Network::D => 3,
    }
}

/// Marks a queue as being processed here until the guard is dropped.
struct QueueGuard {
    all: Arc<Mutex<HashSet<QueueRef>>>,
    queue: QueueRef,
}

impl QueueGuard {
    fn acquire(all: &Arc<Mutex<HashSet<QueueRef>>>, queue: QueueRef) -> Option<Self> {
        let is_new = all
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(queue);
        is_new.then(|| Self {
            all: all.clone(),
            queue,
        })
    }
}

impl Drop for QueueGuard {
    fn drop(&mut self) {
        self.all
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.queue);
    }
}
