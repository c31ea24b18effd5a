//! Keys and apps that requests ask for again and again.
//!
//! A busy client presents the same key with every request and posts to the same app. What was read is kept for
//! [`KEPT_FOR`] and no longer, and not past a change that this process makes: a key that was revoked here, or a
//! door that was closed, is so for the very next request; by another process, within that time. Whoever asks while
//! a read is under way waits for the next one and shares it with all who asked meanwhile, so that a busy client
//! costs a read every now and then, not a burst of them. See `docs/adr/0011-keys-and-apps-are-cached-briefly.md`.

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

/// How long something may be taken for true after it was asked for. Shorter than anybody can revoke a key and tell
/// somebody, and long enough that a busy client's key is read some dozens of times a second, not thousands.
const CACHE_TTL: Duration = Duration::from_millis(25);
/// Entries from which on old ones are looked for and dropped.
const ENTRIES_MAX: usize = 1_024;

/// Keys and apps.
#[derive(Default)]
pub struct ReadCache {
    keys: Arc<SharedReads<Digest, Option<Arc<ApiKey>>>>,
    apps: Arc<SharedReads<(OrganizationId, AppId), Arc<App>>>,
}

impl ReadCache {
    /// The key with a digest. That there is none is not kept: digests can be made up without end.
    pub(crate) async fn key(
        &self,
        store: &Arc<dyn Store>,
        digest: Digest,
    ) -> StoreResult<Option<Arc<ApiKey>>> {
        let changes = store.change_count();
        if let Some(kept) = self.keys.cached(&digest, changes) {
            return Ok(kept);
        }
        let store = store.clone();
        let ask = move || {
            let store = store.clone();
            async move {
                let changes = store.change_count();
                let value = store.key_by_digest(digest).await?.map(Arc::new);
                let kept_at = value.is_some().then_some(changes);
                Ok(ReadResult {
                    value,
                    cache_version: kept_at,
                })
            }
        };
        self.keys.read("key_by_digest", digest, ask).await
    }

    /// An app of the caller's organization.
    pub(crate) async fn app(
        &self,
        store: &Arc<dyn Store>,
        caller: Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Arc<App>> {
        let (changes, key) = (store.change_count(), (caller.organization(), app));
        if let Some(kept) = self.apps.cached(&key, changes) {
            return Ok(kept);
        }
        let (store, caller) = (store.clone(), Arc::new(caller));
        let ask = move || {
            let (store, caller) = (store.clone(), caller.clone());
            async move {
                let kept_at = Some(store.change_count());
                let value = Arc::new(store.app(&caller, app).await?);
                Ok(ReadResult {
                    value,
                    cache_version: kept_at,
                })
            }
        };
        self.apps.read("app", key, ask).await
    }
}

/// What a read found.
struct ReadResult<V> {
    value: V,
    /// How many changes there were before the read, where the value may be kept.
    cache_version: Option<u64>,
}

/// A value that was read.
struct CachedValue<V> {
    value: V,
    read_at: Instant,
    changes: u64,
}

type Waiters<V> = Vec<oneshot::Sender<StoreResult<V>>>;

struct CacheEntry<V> {
    cached: Option<CachedValue<V>>,
    /// While a read is under way: those who wait for the next one.
    waiters: Option<Waiters<V>>,
}

impl<V> CacheEntry<V> {
    fn is_in_use(&self, now: Instant) -> bool {
        let is_fresh =
            |kept: &CachedValue<V>| now.saturating_duration_since(kept.read_at) < CACHE_TTL;
        self.waiters.is_some() || self.cached.as_ref().is_some_and(is_fresh)
    }
}

/// Reads of one kind.
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
    /// What is kept, if it is fresh and as many changes were made when it was read.
    fn cached(&self, key: &K, changes: u64) -> Option<V> {
        let entries = self.lock();
        let kept = entries.get(key)?.cached.as_ref()?;
        let is_true = kept.changes == changes && kept.read_at.elapsed() < CACHE_TTL;
        is_true.then(|| kept.value.clone())
    }

    /// What `ask` finds, asked after this call.
    async fn read<F>(
        self: &Arc<Self>,
        name: &'static str,
        key: K,
        ask: impl Fn() -> F + Send + 'static,
    ) -> StoreResult<V>
    where
        F: Future<Output = StoreResult<ReadResult<V>>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        if self.enqueue_waiter(key, reply) {
            // In a task of its own: whoever came first may go away before the answer is there.
            let reading = InFlightRead {
                reads: self.clone(),
                key,
                is_finished: false,
            };
            tokio::spawn(reading.run(ask).in_current_span());
        }
        let ended = |_| Err(StoreError::unavailable(name, "a shared read broke off"));
        answer.await.unwrap_or_else(ended)
    }

    /// Waits for the next read; true when none is under way that would be followed by one.
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

/// A read that is under way. Dropped before its end, by a panic, it is none any more, and who waited for it is told.
struct InFlightRead<K: Hash + Eq + Copy, V> {
    reads: Arc<SharedReads<K, V>>,
    key: K,
    /// Nobody waits; whoever comes now begins another one.
    is_finished: bool,
}

impl<K, V> InFlightRead<K, V>
where
    K: Hash + Eq + Copy + Send + 'static,
    V: Clone + Send + 'static,
{
    async fn run<F>(mut self, ask: impl Fn() -> F)
    where
        F: Future<Output = StoreResult<ReadResult<V>>>,
    {
        while let Some(waiting) = self.take_waiters() {
            let asked_at = Instant::now();
            let found = ask().await;
            if let Ok(found) = &found {
                self.cache(found, asked_at);
            }
            let outcome = found.map(|found| found.value);
            for reply in waiting {
                // Whoever asked may have gone away.
                let _gone = reply.send(clone_outcome(&outcome));
            }
        }
    }

    /// Those who wait now: they have all asked before the read that follows. Nothing when there is nobody.
    fn take_waiters(&mut self) -> Option<Waiters<V>> {
        let mut entries = self.reads.lock();
        let entry = entries.get_mut(&self.key)?;
        let waiting = entry.waiters.take().filter(|waiting| !waiting.is_empty());
        if waiting.is_some() {
            entry.waiters = Some(Vec::new());
            return waiting;
        }
        self.is_finished = true;
        if entry.cached.is_none() {
            entries.remove(&self.key);
        }
        None
    }

    fn cache(&self, found: &ReadResult<V>, asked_at: Instant) {
        if let Some(entry) = self.reads.lock().get_mut(&self.key) {
            entry.cached = found.cache_version.map(|changes| CachedValue {
                value: found.value.clone(),
                read_at: asked_at,
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

/// The same outcome for somebody else.
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
