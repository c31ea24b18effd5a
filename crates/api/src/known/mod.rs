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
const KEPT_FOR: Duration = Duration::from_millis(25);
/// Entries from which on old ones are looked for and dropped.
const ENTRIES_MAX: usize = 1_024;

/// Keys and apps.
#[derive(Default)]
pub struct Known {
    keys: Arc<Reads<Digest, Option<Arc<ApiKey>>>>,
    apps: Arc<Reads<(OrganizationId, AppId), Arc<App>>>,
}

impl Known {
    /// The key with a digest. That there is none is not kept: digests can be made up without end.
    pub(crate) async fn key(
        &self,
        store: &Arc<dyn Store>,
        digest: Digest,
    ) -> StoreResult<Option<Arc<ApiKey>>> {
        let changes = store.changes();
        if let Some(kept) = self.keys.kept(&digest, changes) {
            return Ok(kept);
        }
        let store = store.clone();
        let ask = move || {
            let store = store.clone();
            async move {
                let changes = store.changes();
                let value = store.key_by_digest(digest).await?.map(Arc::new);
                let kept_at = value.is_some().then_some(changes);
                Ok(Found { value, kept_at })
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
        let (changes, key) = (store.changes(), (caller.organization(), app));
        if let Some(kept) = self.apps.kept(&key, changes) {
            return Ok(kept);
        }
        let (store, caller) = (store.clone(), Arc::new(caller));
        let ask = move || {
            let (store, caller) = (store.clone(), caller.clone());
            async move {
                let kept_at = Some(store.changes());
                let value = Arc::new(store.app(&caller, app).await?);
                Ok(Found { value, kept_at })
            }
        };
        self.apps.read("app", key, ask).await
    }
}

/// What a read found.
struct Found<V> {
    value: V,
    /// How many changes there were before the read, where the value may be kept.
    kept_at: Option<u64>,
}

/// A value that was read.
struct Kept<V> {
    value: V,
    asked_at: Instant,
    changes: u64,
}

type Waiting<V> = Vec<oneshot::Sender<StoreResult<V>>>;

struct Entry<V> {
    kept: Option<Kept<V>>,
    /// While a read is under way: those who wait for the next one.
    waiting: Option<Waiting<V>>,
}

impl<V> Entry<V> {
    fn is_of_use(&self, now: Instant) -> bool {
        let is_fresh = |kept: &Kept<V>| now.saturating_duration_since(kept.asked_at) < KEPT_FOR;
        self.waiting.is_some() || self.kept.as_ref().is_some_and(is_fresh)
    }
}

/// Reads of one kind.
struct Reads<K, V>(Mutex<HashMap<K, Entry<V>>>);

impl<K, V> Default for Reads<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K, V> Reads<K, V> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Entry<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Reads<K, V>
where
    K: Hash + Eq + Copy + Send + 'static,
    V: Clone + Send + 'static,
{
    /// What is kept, if it is fresh and as many changes were made when it was read.
    fn kept(&self, key: &K, changes: u64) -> Option<V> {
        let entries = self.lock();
        let kept = entries.get(key)?.kept.as_ref()?;
        let is_true = kept.changes == changes && kept.asked_at.elapsed() < KEPT_FOR;
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
        F: Future<Output = StoreResult<Found<V>>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        if self.is_first(key, reply) {
            // In a task of its own: whoever came first may go away before the answer is there.
            let reading = UnderWay {
                reads: self.clone(),
                key,
                ended: false,
            };
            tokio::spawn(reading.until_nobody_waits(ask).in_current_span());
        }
        let ended = |_| Err(StoreError::unavailable(name, "a shared read broke off"));
        answer.await.unwrap_or_else(ended)
    }

    /// Waits for the next read; true when none is under way that would be followed by one.
    fn is_first(&self, key: K, reply: oneshot::Sender<StoreResult<V>>) -> bool {
        let mut entries = self.lock();
        if entries.len() >= ENTRIES_MAX {
            let now = Instant::now();
            entries.retain(|_, entry| entry.is_of_use(now));
        }
        let entry = entries.entry(key).or_insert(Entry {
            kept: None,
            waiting: None,
        });
        let is_first = entry.waiting.is_none();
        entry.waiting.get_or_insert_default().push(reply);
        is_first
    }
}

/// A read that is under way. Dropped before its end, by a panic, it is none any more, and who waited for it is told.
struct UnderWay<K: Hash + Eq + Copy, V> {
    reads: Arc<Reads<K, V>>,
    key: K,
    /// Nobody waits; whoever comes now begins another one.
    ended: bool,
}

impl<K, V> UnderWay<K, V>
where
    K: Hash + Eq + Copy + Send + 'static,
    V: Clone + Send + 'static,
{
    async fn until_nobody_waits<F>(mut self, ask: impl Fn() -> F)
    where
        F: Future<Output = StoreResult<Found<V>>>,
    {
        while let Some(waiting) = self.take() {
            let asked_at = Instant::now();
            let found = ask().await;
            if let Ok(found) = &found {
                self.keep(found, asked_at);
            }
            let outcome = found.map(|found| found.value);
            for reply in waiting {
                // Whoever asked may have gone away.
                let _gone = reply.send(copy(&outcome));
            }
        }
    }

    /// Those who wait now: they have all asked before the read that follows. Nothing when there is nobody.
    fn take(&mut self) -> Option<Waiting<V>> {
        let mut entries = self.reads.lock();
        let entry = entries.get_mut(&self.key)?;
        let waiting = entry.waiting.take().filter(|waiting| !waiting.is_empty());
        if waiting.is_some() {
            entry.waiting = Some(Vec::new());
            return waiting;
        }
        self.ended = true;
        if entry.kept.is_none() {
            entries.remove(&self.key);
        }
        None
    }

    fn keep(&self, found: &Found<V>, asked_at: Instant) {
        if let Some(entry) = self.reads.lock().get_mut(&self.key) {
            entry.kept = found.kept_at.map(|changes| Kept {
                value: found.value.clone(),
                asked_at,
                changes,
            });
        }
    }
}

impl<K: Hash + Eq + Copy, V> Drop for UnderWay<K, V> {
    fn drop(&mut self) {
        if !self.ended {
            self.reads.lock().remove(&self.key);
        }
    }
}

/// The same outcome for somebody else.
fn copy<V: Clone>(outcome: &StoreResult<V>) -> StoreResult<V> {
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
