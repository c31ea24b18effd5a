//! Two stores with the same database stand for two processes. The clock is paused, so that a
//! confirmation lasts as long as a test needs it.

use super::*;
use std::path::Path;
use tributary_domain::app::AppChange;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_store::contract::fixtures::{SharedStore, new_key, origin};
use tributary_store::contract::sdk_fixtures::{Tenant, tenant};
use tributary_store_sqlite::SqliteStore;

/// Opens the database in a folder as another process would.
pub(crate) fn open(folder: &Path) -> SharedStore {
    Arc::new(SqliteStore::open(&folder.join("x.db")).unwrap())
}

/// Waits for a change with a running clock: the writer is a thread, for which a paused clock would
/// not wait.
pub(crate) async fn running<T>(change: impl Future<Output = T>) -> T {
    tokio::time::resume();
    let outcome = change.await;
    tokio::time::pause();
    outcome
}

/// Lets the confirmation end, and waits until a poll that starts afterwards has confirmed again.
pub(crate) async fn poll(watch: &ConfigurationWatch, store: &SharedStore) {
    tokio::time::advance(CONFIRMED_MAX).await;
    while watch.confirmed_state(store).is_none() {
        tokio::task::yield_now().await;
    }
}

struct Fixture {
    store: SharedStore,
    /// The same database in another process.
    other: SharedStore,
    tenant: Tenant,
    cache: ReadCache,
    _folder: tempfile::TempDir,
}

impl Fixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, other) = (open(folder.path()), open(folder.path()));
        let fixture = Self {
            tenant: running(tenant(&store)).await,
            store,
            other,
            cache: ReadCache::default(),
            _folder: folder,
        };
        poll(&fixture.cache.watch, &fixture.store).await;
        fixture
    }

    async fn key(&self) -> tributary_store::NewKey {
        let new = new_key(self.tenant.writer.organization());
        let created = running(self.store.create_key(new.clone(), origin(1))).await;
        created.unwrap();
        new
    }

    async fn cached_key(&self, new: &tributary_store::NewKey) -> Arc<CachedKey> {
        let found = self.cache.key(&self.store, new.digest).await;
        found.unwrap().unwrap()
    }

    async fn cached_app(&self) -> Arc<App> {
        let reader = self.tenant.writer.read_access();
        let found = self.cache.app(&self.store, reader, self.tenant.app.id);
        found.await.unwrap()
    }

    async fn enable_web_events(&self, store: &SharedStore) {
        let change = AppChange {
            web_events_enabled: Change::Set(true),
            ..AppChange::default()
        };
        let (writer, app) = (&self.tenant.writer, self.tenant.app.id);
        let changed = store.update_app(writer, app, change, Precondition::None, origin(5));
        running(changed).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_is_read_once_and_shared() {
    let fixture = Fixture::new().await;
    let (cache, store) = (&fixture.cache, &fixture.store);
    let [(key, _), _] = fixture.tenant.app.sdk.keys();
    let first = cache.sdk_app(store, key).await.unwrap().unwrap();
    let second = cache.sdk_app(store, key).await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    let unknown = cache.sdk_app(store, "pk_live_unknown").await.unwrap();
    assert!(unknown.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_key_revoked_by_this_process_stops_at_once() {
    let fixture = Fixture::new().await;
    let new = fixture.key().await;
    assert_eq!(fixture.cached_key(&new).await.revoked_at, None);
    let revoked = running(fixture.store.revoke_key(new.key.id, origin(2))).await;
    revoked.unwrap();
    assert!(fixture.cached_key(&new).await.revoked_at.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_key_revoked_by_another_process_stops_within_a_second() {
    let fixture = Fixture::new().await;
    let new = fixture.key().await;
    assert_eq!(fixture.cached_key(&new).await.revoked_at, None);
    let revoked = running(fixture.other.revoke_key(new.key.id, origin(2))).await;
    revoked.unwrap();
    // No poll has run since, so nothing confirms the cached key any more.
    tokio::time::advance(CONFIRMED_MAX).await;
    assert!(fixture.cached_key(&new).await.revoked_at.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_poll_finds_a_change_by_another_process() {
    let fixture = Fixture::new().await;
    let first = fixture.cached_app().await;
    poll(&fixture.cache.watch, &fixture.store).await;
    let unchanged = fixture.cached_app().await;
    assert!(Arc::ptr_eq(&first, &unchanged), "the version is the same");
    fixture.enable_web_events(&fixture.other).await;
    poll(&fixture.cache.watch, &fixture.store).await;
    let changed = fixture.cached_app().await;
    assert!(!first.web_events_enabled && changed.web_events_enabled);
}

#[tokio::test(start_paused = true)]
async fn a_change_by_this_process_is_seen_at_once() {
    let fixture = Fixture::new().await;
    assert!(!fixture.cached_app().await.web_events_enabled);
    fixture.enable_web_events(&fixture.store).await;
    assert!(fixture.cached_app().await.web_events_enabled);
}

#[tokio::test(start_paused = true)]
async fn the_use_of_a_cached_key_is_recorded_once() {
    let fixture = Fixture::new().await;
    let new = fixture.key().await;
    let at = new.key.created_at;
    assert!(fixture.cached_key(&new).await.begin_recording_use(at));
    let again = fixture.cached_key(&new).await;
    assert!(!again.begin_recording_use(at), "the same cached key");
}
