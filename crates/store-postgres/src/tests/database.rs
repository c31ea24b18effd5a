//! A schema of its own for each test, on the server that `./test` starts.

use crate::tx::Mode;
use crate::{Failure, PostgresOptions, PostgresStore, Tx, tx};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_postgres::{Client, NoTls};
use tributary_domain::audit::Origin;
use tributary_domain::link::Link;
use tributary_domain::vocabulary::id::{AppId, AuditId, LinkId};
use tributary_store::StoreError;
use tributary_store::contract::fixtures::{self, at};

/// What the tests use, unless they are about something else.
pub(super) fn options() -> PostgresOptions {
    PostgresOptions {
        connections: 4,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: Duration::from_secs(10),
        statement_cache: true,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told by ./test where their server is"
)]
pub(super) fn server_url() -> String {
    std::env::var("TEST_DATABASE_URL").expect(
        "TEST_DATABASE_URL names no PostgreSQL server; ./test starts one and sets it, \
         or set it to something like postgres://user@127.0.0.1:5432/postgres",
    )
}

/// A URL with another setting.
pub(super) fn with_setting(url: &str, setting: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}{setting}")
}

/// A connection outside any store.
pub(super) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .expect("the server at TEST_DATABASE_URL answers");
    tokio::spawn(connection);
    client
}

/// An empty schema, dropped with this.
pub(super) struct Schema {
    pub(super) name: String,
    /// Leads to the schema.
    pub(super) url: String,
}

impl Schema {
    pub(super) async fn create() -> Self {
        let name = format!("t_{:016x}", RandomState::new().hash_one("schema"));
        let server = server_url();
        client(&server)
            .await
            .batch_execute(&format!("create schema {name}"))
            .await
            .expect("a schema is made");
        let url = with_setting(&server, &format!("options=-csearch_path%3D{name}"));
        Self { name, url }
    }

    pub(super) async fn open(&self) -> PostgresStore {
        self.open_with(options()).await
    }

    pub(super) async fn open_with(&self, options: PostgresOptions) -> PostgresStore {
        PostgresStore::connect(&self.url, options)
            .await
            .expect("a store")
    }

    /// A connection to the schema, outside any store.
    pub(super) async fn client(&self) -> Client {
        client(&self.url).await
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // Fails rather than hangs where a test left something locked.
        let sql = format!(
            "set lock_timeout = '10s'; drop schema {} cascade",
            self.name
        );
        let server = server_url();
        // Dropping cannot wait; another thread can be waited for.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async { client(&server).await.batch_execute(&sql).await })
        });
        if !std::thread::panicking() {
            dropping
                .join()
                .expect("no panic")
                .expect("the schema is dropped");
        }
    }
}

impl PostgresStore {
    /// A transaction that no method of the port has.
    pub(super) async fn write_anything<T>(
        &self,
        work: impl AsyncFn(&Tx) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        tx::run(&self.pool, "test", Mode::Write, work).await
    }
}

/// One number from the database.
pub(super) async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.expect("a row").get(0)
}

static COUNTER: AtomicU64 = AtomicU64::new(1);

/// Ten bytes that make different ids even of the same moment: those that carry the version are left alone.
pub(super) fn unique() -> [u8; 10] {
    let mut bytes = [0; 10];
    let number = COUNTER.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    bytes[3..].copy_from_slice(&number[1..]);
    bytes
}

/// An origin for the audit log.
pub(super) fn origin(seconds: i64) -> Origin {
    Origin {
        audit_id: AuditId::new(at(seconds), unique()),
        ..fixtures::origin(seconds)
    }
}

/// A link that is not stored yet.
pub(super) fn new_link(app: AppId, seconds: i64) -> Link {
    Link {
        id: LinkId::new(at(seconds), unique()),
        ..fixtures::new_link(app, seconds)
    }
}
