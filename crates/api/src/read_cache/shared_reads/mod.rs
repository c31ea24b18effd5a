//! Cached values by key, and reads that several callers share.
//!
//! Callers that arrive during a read wait for the next read and share its result, so a burst of
//! requests costs two reads. Lookups that find nothing are not cached, because attackers can invent
//! any number of keys.

use super::watch::ConfigurationState;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::Instrument as _;
use tributary_store::{StoreError, StoreResult};

/// Maximum age of a cached value. Bounds how long a value is outdated after a change that gives the
/// configuration no version: by hand in the database, or by a node of an earlier release during an
/// upgrade.
const AGE_MAX: Duration = Duration::from_secs(10);

/// Result of a read.
pub(crate) struct ReadResult<V> {
    /// `None` if the store has no value for the key.
    pub(crate) value: Option<V>,
    /// State before the read.
    pub(crate) state: ConfigurationState,
}

/// A cached value.
struct CachedValue<V> {
    value: V,
    /// Start of the read.
    read_at: Instant,
    /// State before the read.
    state: ConfigurationState,
}

/// Two generations of values. When the young generation is full, it becomes the old generation. The
/// values of the previous old generation that were not used again are dropped.
struct Generations<K, V> {
    young: HashMap<K, CachedValue<V>>,
    old: HashMap<K, CachedValue<V>>,
}

impl<K: Hash + Eq, V> Generations<K, V> {
    /// Returns a value, and moves it to the young generation if there is room.
    fn get<Q>(&mut self, key: &Q, entries_max: usize) -> Option<&CachedValue<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        // The old generation is empty until the cache is half full.
        if !self.old.is_empty()
            && self.young.len() < entries_max / 2
            && let Some((key, value)) = self.old.remove_entry(key)
        {
            self.young.insert(key, value);
        }
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// Stores a value. Returns the evicted values, which the caller drops after unlocking.
    fn insert(
        &mut self,
        key: K,
        value: CachedValue<V>,
        entries_max: usize,
    ) -> HashMap<K, CachedValue<V>> {
        let mut evicted = HashMap::new();
        if self.young.len() >= entries_max / 2 && !self.young.contains_key(&key) {
            evicted = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
        }
        self.old.remove(&key);
        self.young.insert(key, value);
        evicted
    }

    fn remove<Q>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.young.remove(key);
        self.old.remove(key);
    }
}

type Waiters<V> = Vec<oneshot::Sender<StoreResult<Option<V>>>>;

struct Entries<K, V> {
    cached: Generations<K, V>,
    /// Callers waiting for the next read, by key. A read is running for each key.
    waiting: HashMap<K, Waiters<V>>,
}

/// Cached values and running reads.
pub(crate) struct SharedReads<K, V> {
    /// Name of the read, for errors.
    name: &'static str,
    entries_max: usize,
    entries: Mutex<Entries<K, V>>,
}

impl<K, V> SharedReads<K, V> {
    /// Creates an empty cache for at most `entries_max` values.
    pub(crate) fn new(name: &'static str, entries_max: usize) -> Arc<Self> {
        let cached = Generations {
            young: HashMap::new(),
            old: HashMap::new(),
        };
        Arc::new(Self {
            name,
            entries_max,
            entries: Mutex::new(Entries {
                cached,
                waiting: HashMap::new(),
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Entries<K, V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> SharedReads<K, V>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Clone + Send + 'static,
{
    /// Returns the cached value if it was read in the given state and is not too old.
    pub(crate) fn cached<Q>(&self, key: &Q, state: ConfigurationState) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut entries = self.lock();
        let cached = entries.cached.get(key, self.entries_max)?;
        let is_current = cached.state == state && cached.read_at.elapsed() < AGE_MAX;
        is_current.then(|| cached.value.clone())
    }

    /// Returns the cached value, even if it is outdated.
    pub(crate) fn possibly_outdated<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut entries = self.lock();
        let cached = entries.cached.get(key, self.entries_max)?;
        Some(cached.value.clone())
    }

    /// Returns the result of a read that starts after this call.
    pub(crate) async fn read<F>(
        self: &Arc<Self>,
        key: K,
        read: impl Fn() -> F + Send + 'static,
    ) -> StoreResult<Option<V>>
    where
        F: Future<Output = StoreResult<ReadResult<V>>> + Send + 'static,
    {
        let (reply, response) = oneshot::channel();
        if self.enqueue_waiter(&key, reply) {
            // Runs in a separate task, so that the read continues if the first caller disconnects.
            let reading = InFlightRead {
                reads: self.clone(),
                key,
                is_finished: false,
            };
            tokio::spawn(reading.run(read).in_current_span());
        }
        let aborted = |_| Err(StoreError::unavailable(self.name, "shared read aborted"));
        response.await.unwrap_or_else(aborted)
    }

    /// Adds a waiter for the next read. Returns true if the caller has to start the read.
    fn enqueue_waiter(&self, key: &K, reply: oneshot::Sender<StoreResult<Option<V>>>) -> bool {
        let mut entries = self.lock();
        if let Some(waiters) = entries.waiting.get_mut(key) {
            waiters.push(reply);
            return false;
        }
        entries.waiting.insert(key.clone(), vec![reply]);
        true
    }

    /// Caches the result of a read. If the read found no value, removes the cached one.
    fn store(&self, key: &K, found: &ReadResult<V>, read_at: Instant) {
        let mut entries = self.lock();
        let Some(value) = found.value.clone() else {
            entries.cached.remove(key);
            return;
        };
        let value = CachedValue {
            value,
            read_at,
            state: found.state,
        };
        let evicted = entries.cached.insert(key.clone(), value, self.entries_max);
        drop(entries);
        drop(evicted);
    }
}

/// A running read. If a panic drops it early, its waiters get an error.
struct InFlightRead<K: Hash + Eq, V> {
    reads: Arc<SharedReads<K, V>>,
    key: K,
    /// True when no waiters are left. The next caller starts a new read.
    is_finished: bool,
}

impl<K, V> InFlightRead<K, V>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Clone + Send + 'static,
{
    async fn run<F>(mut self, read: impl Fn() -> F)
    where
        F: Future<Output = StoreResult<ReadResult<V>>>,
    {
        while let Some(waiters) = self.take_waiters() {
            let read_at = Instant::now();
            let found = read().await;
            if let Ok(found) = &found {
                self.reads.store(&self.key, found, read_at);
            }
            let outcome = found.map(|found| found.value);
            for reply in waiters {
                // The caller may have disconnected.
                let _disconnected = reply.send(clone_outcome(&outcome));
            }
        }
    }

    /// Takes the current waiters, who share the next read. `None` ends the task.
    fn take_waiters(&mut self) -> Option<Waiters<V>> {
        let mut entries = self.reads.lock();
        let waiters = std::mem::take(entries.waiting.get_mut(&self.key)?);
        if waiters.is_empty() {
            entries.waiting.remove(&self.key);
            self.is_finished = true;
            return None;
        }
        Some(waiters)
    }
}

impl<K: Hash + Eq, V> Drop for InFlightRead<K, V> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.reads.lock().waiting.remove(&self.key);
        }
    }
}

/// Clones an outcome for another waiter.
fn clone_outcome<V: Clone>(outcome: &StoreResult<V>) -> StoreResult<V> {
    match outcome {
        Ok(value) => Ok(value.clone()),
        Err(StoreError::Refused(refusal)) => Err(StoreError::Refused(refusal.clone())),
        Err(StoreError::Unavailable { during, source }) => {
            Err(StoreError::unavailable(during, source.to_string()))
        }
        Err(StoreError::Corrupt { table, column, id }) => {
            Err(StoreError::corrupt(table, column, id))
        }
    }
}

#[cfg(test)]
mod tests;
