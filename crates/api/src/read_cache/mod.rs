//! Cache of API keys and apps.
//!
//! A busy client sends the same key with every request, for the same app. Values are cached for
//! [`CACHE_TTL`], and dropped when this process changes any key or app: a key revoked in this
//! process is invalid for the next request. A change by another process takes effect within the
//! TTL. Callers that arrive during a read wait for the next read and share its result, so a burst
//! of requests costs two reads. See `docs/adr/0011-keys-and-apps-are-cached-briefly.md`.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tracing::Instrument as _;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::app::App;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_store::{Store, StoreError, StoreResult};

/// Lifetime of a cached value. Short enough that a revocation appears immediate, but long enough
/// that a busy client's key is read dozens of times per second instead of thousands.
const CACHE_TTL: Duration = Duration::from_millis(25);
/// Number of entries at which stale entries are evicted.
const ENTRIES_MAX: usize = 1_024;

/// Cache of keys and apps.
#[derive(Default)]
pub struct ReadCache {
    keys: Arc<SharedReads<Digest, Option<Arc<ApiKey>>>>,
    apps: Arc<SharedReads<(OrganizationId, AppId), Arc<App>>>,
}

impl ReadCache {
    /// Returns the key with this digest. Lookups that find no key are not cached, because attackers
    /// can invent any number of digests.
    pub(crate) async fn key(
        &self,
        store: &Arc<dyn Store>,
        digest: Digest,
    ) -> StoreResult<Option<Arc<ApiKey>>> {
        let changes = store.change_count();
        if let Some(cached) = self.keys.cached(&digest, changes) {
            return Ok(cached);
        }
        let store = store.clone();
        let read = move || {
            let store = store.clone();
            async move {
                let changes = store.change_count();
                let value = store.key_by_digest(digest).await?.map(Arc::new);
                let cache_version = value.is_some().then_some(changes);
                Ok(ReadResult {
                    value,
                    cache_version,
                })
            }
        };
        self.keys.read("key_by_digest", digest, read).await
    }

    /// Returns an app that belongs to the caller's organization.
    pub(crate) async fn app(
        &self,
        store: &Arc<dyn Store>,
        caller: Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Arc<App>> {
        let (changes, key) = (store.change_count(), (caller.organization(), app));
        if let Some(cached) = self.apps.cached(&key, changes) {
            return Ok(cached);
        }
        let (store, caller) = (store.clone(), Arc::new(caller));
        let read = move || {
            let (store, caller) = (store.clone(), caller.clone());
            async move {
                let cache_version = Some(store.change_count());
                let value = Arc::new(store.app(&caller, app).await?);
                Ok(ReadResult {
                    value,
                    cache_version,
                })
            }
        };
        self.apps.read("app", key, read).await
    }
}

/// Result of a read.
struct ReadResult<V> {
    value: V,
    /// Change count before the read; `None` if the value must not be cached.
    cache_version: Option<u64>,
}

/// A cached value, with the time of its read and the change count at that time.
struct CachedValue<V> {
    value: V,
    read_at: Instant,
    changes: u64,
}

type Waiters<V> = Vec<oneshot::Sender<StoreResult<V>>>;

struct CacheEntry<V> {
    cached: Option<CachedValue<V>>,
    /// Callers waiting for the next read; `None` if no read is running.
    waiters: Option<Waiters<V>>,
}

impl<V> CacheEntry<V> {
    fn is_in_use(&self, now: Instant) -> bool {
        let is_fresh =
            |value: &CachedValue<V>| now.saturating_duration_since(value.read_at) < CACHE_TTL;
        self.waiters.is_some() || self.cached.as_ref().is_some_and(is_fresh)
    }
}

/// Cached and running reads by key.
struct SharedReads<K, V>(Mutex<HashMap<K, CacheEntry<V>>>);

impl<K, V> Default for SharedReads<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K, V> SharedReads<K, V> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, CacheEntry<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> SharedReads<K, V>
where
    K: Hash + Eq + Copy + Send + 'static,
    V: Clone + Send + 'static,
{
    /// Returns the cached value if it is fresh and nothing has changed since it was read.
    fn cached(&self, key: &K, changes: u64) -> Option<V> {
        let entries = self.lock();
        let cached = entries.get(key)?.cached.as_ref()?;
        let is_valid = cached.changes == changes && cached.read_at.elapsed() < CACHE_TTL;
        is_valid.then(|| cached.value.clone())
    }

    /// Returns the result of a read that starts after this call.
    async fn read<F>(
        self: &Arc<Self>,
        name: &'static str,
        key: K,
        read: impl Fn() -> F + Send + 'static,
    ) -> StoreResult<V>
    where
        F: Future<Output = StoreResult<ReadResult<V>>> + Send + 'static,
    {
        let (reply, response) = oneshot::channel();
        if self.enqueue_waiter(key, reply) {
            // Runs in a separate task, so that the read continues if the first caller disconnects.
            let reading = InFlightRead {
                reads: self.clone(),
                key,
                is_finished: false,
            };
            tokio::spawn(reading.run(read).in_current_span());
        }
        let aborted = |_| Err(StoreError::unavailable(name, "shared read aborted"));
        response.await.unwrap_or_else(aborted)
    }

    /// Adds a waiter for the next read. Returns true if the caller has to start the read.
    fn enqueue_waiter(&self, key: K, reply: oneshot::Sender<StoreResult<V>>) -> bool {
        let mut entries = self.lock();
        if entries.len() >= ENTRIES_MAX {
            let now = Instant::now();
            entries.retain(|_, entry| entry.is_in_use(now));
        }
        let entry = entries.entry(key).or_insert(CacheEntry {
            cached: None,
            waiters: None,
        });
        let is_first = entry.waiters.is_none();
        entry.waiters.get_or_insert_default().push(reply);
        is_first
    }
}

/// A running read. If a panic drops it early, its entry is removed and its waiters get an error.
struct InFlightRead<K: Hash + Eq + Copy, V> {
    reads: Arc<SharedReads<K, V>>,
    key: K,
    /// True when no waiters are left. The next caller starts a new read.
    is_finished: bool,
}

impl<K, V> InFlightRead<K, V>
where
    K: Hash + Eq + Copy + Send + 'static,
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
                self.cache(found, read_at);
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
        let entry = entries.get_mut(&self.key)?;
        let waiters = entry.waiters.take().filter(|waiters| !waiters.is_empty());
        if waiters.is_some() {
            entry.waiters = Some(Vec::new());
            return waiters;
        }
        self.is_finished = true;
        if entry.cached.is_none() {
            entries.remove(&self.key);
        }
        None
    }

    fn cache(&self, found: &ReadResult<V>, read_at: Instant) {
        if let Some(entry) = self.reads.lock().get_mut(&self.key) {
            entry.cached = found.cache_version.map(|changes| CachedValue {
                value: found.value.clone(),
                read_at,
                changes,
            });
        }
    }
}

impl<K: Hash + Eq + Copy, V> Drop for InFlightRead<K, V> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.reads.lock().remove(&self.key);
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
