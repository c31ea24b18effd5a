//! What tests of this crate stand on: a real store in a folder of its own, and a clock that is told the time.

use crate::system::OsRandom;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tributary_domain::runtime::{Clock, Runtime};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::Store;
use tributary_store_sqlite::SqliteStore;

/// A new store, and the folder that must live as long as it.
pub(crate) async fn store() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tributary.db");
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await;
    (Arc::new(opened.unwrap().unwrap()), folder)
}

/// A clock that is told the time.
pub(crate) struct ManualClock(AtomicI64);

impl ManualClock {
    pub(crate) fn at(now: Timestamp) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(now.as_millis())))
    }

    pub(crate) fn advance(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap();
        self.0.fetch_add(millis, Ordering::SeqCst);
    }

    pub(crate) fn runtime(self: &Arc<Self>) -> Runtime {
        Runtime::new(self.clone(), Arc::new(OsRandom))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
