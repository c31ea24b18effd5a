//! Helpers for this crate's tests: a real store in a temporary folder, and a clock set by the test.

use crate::system::OsRandom;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tributary_domain::runtime::{Clock, Runtime};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::Store;
use tributary_store_sqlite::SqliteStore;

/// Opens a new store. Keep the folder for as long as the store is used.
pub(crate) async fn store() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tributary.db");
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await;
    (Arc::new(opened.unwrap().unwrap()), folder)
}

/// Requests that a receiver got.
pub(crate) type Received = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// Starts a receiver of alerts that responds with these statuses, then with success. Returns its URL.
pub(crate) async fn receiver(statuses: Vec<StatusCode>) -> (String, Received) {
    let received = Received::default();
    let statuses = Arc::new(Mutex::new(statuses.into_iter()));
    let seen = received.clone();
    let hook = move |headers: HeaderMap, body: Bytes| {
        seen.lock().unwrap().push((headers, body));
        let status = statuses.lock().unwrap().next().unwrap_or(StatusCode::OK);
        async move { status }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let router = Router::new().route("/hook", post(hook));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, received)
}

/// A clock that the test sets.
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
