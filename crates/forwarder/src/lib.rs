//! The forwarder: takes what is due, attempts it, settles what came of it.
//!
//! Each integration has a queue, and each queue one holder at a time, on whichever node: a lease in the database says
//! who. `queue` works on one queue in five steps, each in the file of its name: `lease` takes deliveries with what
//! the network may know, `prepare` leaves out what may not be sent and notes the rest as being sent (so that a crash is
//! seen), `send` makes the requests, `judge` reads their answers, `settle` writes what came of it. No transaction is
//! open while a socket is. What is sent, and what an answer means, is decided by `domain` and `networks`.
#![deny(missing_docs)]

mod account;
mod judge;
mod lease;
pub mod metrics;
mod pacing;
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
use tributary_domain::forwarding::round::DecisionContext;
use tributary_domain::integration::Network;
use tributary_domain::keyring::Keyring;
use tributary_domain::runtime::Runtime;
use tributary_store::{QueueRef, Store};

/// How often somebody looks whether something is due. It is also how long events gather to go out together.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Queues of one network that are worked on at the same time. Each network has its own share, so that one which hangs
/// for everybody takes nothing from the others.
const QUEUES_PER_NETWORK: usize = 32;
/// After a look that failed, or a queue that the database would not let go on, the next one waits longer.
pub(crate) const POLL_RETRY_WAIT: Duration = Duration::from_secs(5);

/// What forwarding needs.
#[derive(Clone)]
pub struct ForwarderParts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The time and randomness.
    pub runtime: Runtime,
    /// Opens credentials.
    pub keyring: Keyring,
    /// Sends requests.
    pub transport: Arc<dyn Transport>,
    /// Where this service is reached: what its links' public addresses begin with.
    pub base_url: Arc<str>,
}

/// What every queue shares.
pub(crate) struct ForwarderState {
    pub(crate) parts: ForwarderParts,
    pub(crate) tokens: TokenCache,
    pub(crate) pacer: ProjectPacer,
}

impl ForwarderState {
    /// When something is decided now, with a random number.
    fn decision_context(&self) -> DecisionContext {
        DecisionContext {
            now: self.parts.runtime.now(),
            random: u64::from_be_bytes(self.parts.runtime.random_bytes()),
        }
    }
}

/// Sends what is due, again and again.
pub struct Forwarder {
    shared: Arc<ForwarderState>,
    permits: [Arc<Semaphore>; 4],
    busy: Arc<Mutex<HashSet<QueueRef>>>,
}

impl Forwarder {
    /// From its parts.
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

    /// Works until told to stop. Requests under way are finished; what is not begun waits in the database.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let stopping = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        let mut is_failing = false;
        loop {
            let wait = if is_failing {
                POLL_RETRY_WAIT
            } else {
                POLL_INTERVAL
            };
            tokio::select! {
                () = &mut stop => break,
                () = tokio::time::sleep(wait) => {}
            }
            while tasks.try_join_next().is_some() {}
            let mut saw_all = true;
            for network in Network::ALL {
                saw_all &= self
                    .start_due_queues(network, &mut tasks, &stopping, is_failing)
                    .await;
            }
            is_failing = !saw_all;
        }
        stopping.cancel();
        while tasks.join_next().await.is_some() {}
    }

    /// Puts somebody on every queue of a network that has something due, as far as the network's share goes. False when
    /// the database did not say.
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
                    tracing::warn!(network, "cannot see which deliveries are due: {error}");
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

/// A queue that this process works on, until it is dropped.
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
