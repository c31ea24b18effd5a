//! Cache of API keys, apps and SDK keys.
//!
//! A busy client sends the same key with every request, for the same app. Values are cached until a
//! key, an app or a link changes: at once after a change by this process, and within a second after
//! a change by another process ([`ConfigurationWatch`]). Unknown keys are not cached.

mod shared_reads;
mod watch;

pub(crate) use shared_reads::{ReadResult, SharedReads};
#[cfg(test)]
pub(crate) use watch::CONFIRMED_MAX;
pub(crate) use watch::ConfigurationWatch;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::app::{App, SdkKey};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{SdkApp, Store, StoreResult};

/// Maximum number of cached values of each kind. An app takes a few kilobytes, so the three caches
/// stay within a few dozen megabytes.
const CACHED_MAX: usize = 4_096;

/// A cached API key.
#[derive(Debug)]
pub(crate) struct CachedKey {
    key: ApiKey,
    /// Whether a request has recorded the use of the key since it was read.
    is_use_recorded: AtomicBool,
}

impl CachedKey {
    fn new(key: ApiKey) -> Self {
        Self {
            key,
            is_use_recorded: AtomicBool::new(false),
        }
    }

    /// Returns whether the caller has to record the use of the key. Returns true at most once until
    /// the key is read again, because the cached time of its last use does not change.
    pub(crate) fn begin_recording_use(&self, now: Timestamp) -> bool {
        self.key.should_record_use(now) && !self.is_use_recorded.swap(true, Ordering::Relaxed)
    }
}

impl Deref for CachedKey {
    type Target = ApiKey;

    fn deref(&self) -> &ApiKey {
        &self.key
    }
}

/// A cached SDK key with its app.
#[derive(Debug)]
pub(crate) struct CachedSdkApp {
    found: SdkApp,
    /// Last use of the key that was recorded, in milliseconds; 0 if unknown.
    used_at: AtomicI64,
}

impl CachedSdkApp {
    fn new(found: SdkApp) -> Self {
        let used_at = found.key.last_used_at.map_or(0, Timestamp::as_millis);
        Self {
            found,
            used_at: AtomicI64::new(used_at),
        }
    }

    /// Returns whether the caller has to record the use of the key. One caller per interval has to.
    pub(crate) fn begin_recording_use(&self, now: Timestamp) -> bool {
        let used_at = self.used_at.load(Ordering::Relaxed);
        let key = SdkKey {
            last_used_at: (used_at > 0).then(|| Timestamp::from_millis(used_at)),
            ..self.found.key.clone()
        };
        let (order, millis) = (Ordering::Relaxed, now.as_millis());
        key.should_record_use(now)
            && self
                .used_at
                .compare_exchange(used_at, millis, order, order)
                .is_ok()
    }
}

impl Deref for CachedSdkApp {
    type Target = SdkApp;

    fn deref(&self) -> &SdkApp {
        &self.found
    }
}

/// Cache of keys and apps.
pub struct ReadCache {
    /// Shared by all caches of configuration.
    pub(crate) watch: ConfigurationWatch,
    keys: Arc<SharedReads<Digest, Arc<CachedKey>>>,
    apps: Arc<SharedReads<(OrganizationId, AppId), Arc<App>>>,
    sdk_apps: Arc<SharedReads<Box<str>, Arc<CachedSdkApp>>>,
}

impl Default for ReadCache {
    fn default() -> Self {
        Self {
            watch: ConfigurationWatch::default(),
            keys: SharedReads::new("key_by_digest", CACHED_MAX),
            apps: SharedReads::new("app", CACHED_MAX),
            sdk_apps: SharedReads::new("sdk_app", CACHED_MAX),
        }
    }
}

impl ReadCache {
    /// Returns the key with this digest.
    pub(crate) async fn key(
        &self,
        store: &Arc<dyn Store>,
        digest: Digest,
    ) -> StoreResult<Option<Arc<CachedKey>>> {
        let state = self.watch.confirmed_state(store);
        if let Some(cached) = state.and_then(|state| self.keys.cached(&digest, state)) {
            return Ok(Some(cached));
        }
        let (watch, store) = (self.watch.clone(), store.clone());
        let read = move || {
            let (state, store) = (watch.state(&store), store.clone());
            async move {
                let key = store.key_by_digest(digest).await?;
                let value = key.map(|key| Arc::new(CachedKey::new(key)));
                Ok(ReadResult { value, state })
            }
        };
        self.keys.read(digest, read).await
    }

    /// Returns an app that belongs to the caller's organization.
    pub(crate) async fn app(
        &self,
        store: &Arc<dyn Store>,
        caller: Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Arc<App>> {
        // Before the cache, which callers with other limits share.
        let key = (caller.organization_of(app)?, app);
        let state = self.watch.confirmed_state(store);
        if let Some(cached) = state.and_then(|state| self.apps.cached(&key, state)) {
            return Ok(cached);
        }
        let (watch, store, caller) = (self.watch.clone(), store.clone(), Arc::new(caller));
        let read = move || {
            let (state, store, caller) = (watch.state(&store), store.clone(), caller.clone());
            async move {
                let value = Some(Arc::new(store.app(&caller, app).await?));
                Ok(ReadResult { value, state })
            }
        };
        let found = self.apps.read(key, read).await?;
        Ok(found.ok_or(Refusal::AppNotFound)?)
    }

    /// Returns the app that an SDK key belongs to.
    pub(crate) async fn sdk_app(
        &self,
        store: &Arc<dyn Store>,
        sdk_key: &str,
    ) -> StoreResult<Option<Arc<CachedSdkApp>>> {
        let state = self.watch.confirmed_state(store);
        if let Some(cached) = state.and_then(|state| self.sdk_apps.cached(sdk_key, state)) {
            return Ok(Some(cached));
        }
        let (watch, store) = (self.watch.clone(), store.clone());
        let key: Arc<str> = sdk_key.into();
        let read = move || {
            let (state, store, key) = (watch.state(&store), store.clone(), key.clone());
            async move {
                let found = store.sdk_app(&key).await?;
                let value = found.map(|found| Arc::new(CachedSdkApp::new(found)));
                Ok(ReadResult { value, state })
            }
        };
        self.sdk_apps.read(sdk_key.into(), read).await
    }
}

#[cfg(test)]
pub(crate) mod tests;
