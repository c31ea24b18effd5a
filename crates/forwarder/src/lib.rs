//! The forwarder: takes what is due, attempts it, settles what came of it.
//!
//! Each integration has a queue, and each queue one holder at a time, on whichever node: a lease in the database says
//! who. The holder takes deliveries (and notes that, so that a crash is seen), gathers what the network may know,
//! sends, and writes what came of it. No transaction is open while a socket is. What is to be sent, and what an answer
//! means, is decided by `domain` and `networks`; what is here only waits, sends and remembers.
#![deny(missing_docs)]

mod account;
mod attempt;
mod checks;
pub mod metrics;
mod pacing;
mod probe;
mod queue;
mod round;
mod tokens;
mod transport;

#[cfg(test)]
mod tests;

pub use probe::{Probed, Prober};
pub use transport::{Sent, Service, Transport};

use pacing::Projects;
use queue::Work;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokens::Tokens;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tributary_domain::integration::Network;
use tributary_domain::keyring::Keyring;
use tributary_domain::outside::Source;
use tributary_store::{QueueRef, Store};

/// How often somebody looks whether something is due. It is also how long events gather to go out together.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Queues that one look finds.
const QUEUES_PER_LOOK: u32 = 256;
/// Queues of one network that are worked on at the same time. Each network has its own share, so that one which hangs
/// for everybody takes nothing from the others.
const QUEUES_PER_NETWORK: usize = 32;
/// After a look that failed, the next one waits longer.
const LOOK_FAILED_WAIT: Duration = Duration::from_secs(5);

/// What forwarding needs.
#[derive(Clone)]
pub struct Parts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The time and randomness.
    pub source: Source,
    /// Opens credentials.
    pub keyring: Keyring,
    /// Sends requests.
    pub transport: Arc<dyn Transport>,
    /// Where this service is reached: what its links' public addresses begin with.
    pub base_url: Arc<str>,
}

/// What every queue shares.
pub(crate) struct Shared {
    pub(crate) parts: Parts,
    pub(crate) tokens: Tokens,
    pub(crate) projects: Projects,
}

/// Sends what is due, again and again.
pub struct Forwarder {
    shared: Arc<Shared>,
    permits: [Arc<Semaphore>; 4],
    busy: Arc<Mutex<HashSet<QueueRef>>>,
}

impl Forwarder {
    /// From its parts.
    pub fn new(parts: Parts) -> Self {
        Self {
            shared: Arc::new(Shared {
                parts,
                tokens: Tokens::default(),
                projects: Projects::default(),
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
                LOOK_FAILED_WAIT
            } else {
                LOOK_INTERVAL
            };
            tokio::select! {
                () = &mut stop => break,
                () = tokio::time::sleep(wait) => {}
            }
            while tasks.try_join_next().is_some() {}
            is_failing = !self.look(&mut tasks, &stopping, is_failing).await;
        }
        stopping.cancel();
        while tasks.join_next().await.is_some() {}
    }

    /// Puts somebody on every queue that has something due. False when the database did not say.
    async fn look(
        &self,
        tasks: &mut JoinSet<()>,
        stopping: &CancellationToken,
        was_failing: bool,
    ) -> bool {
        let parts = &self.shared.parts;
        let due = parts.store.due_queues(parts.source.now(), QUEUES_PER_LOOK);
        let queues = match due.await {
            Ok(queues) => queues,
            Err(error) => {
                if !was_failing {
                    tracing::warn!("cannot see which deliveries are due: {error}");
                }
                return false;
            }
        };
        for queue in queues {
            let Some(busy) = Busy::mark(&self.busy, queue) else {
                continue;
            };
            let permits = self.permits[place(queue.network)].clone();
            let Ok(permit) = permits.try_acquire_owned() else {
                continue;
            };
            let work = Work::new(self.shared.clone(), queue, stopping.clone());
            tasks.spawn(async move {
                work.run().await;
                drop((busy, permit));
            });
        }
        true
    }
}

const fn place(network: Network) -> usize {
    match network {
        Network::A => 0,
        Network::B => 1,
        Network::C => 2,
        Network::D => 3,
    }
}

/// A queue that this process works on, until it is dropped.
struct Busy {
    all: Arc<Mutex<HashSet<QueueRef>>>,
    queue: QueueRef,
}

impl Busy {
    fn mark(all: &Arc<Mutex<HashSet<QueueRef>>>, queue: QueueRef) -> Option<Self> {
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

impl Drop for Busy {
    fn drop(&mut self) {
        self.all
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.queue);
    }
}
