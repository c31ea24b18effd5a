//! A separate database or schema for each test, on the server that `./test` starts.

use crate::testing::PooledDatabase;
use crate::tx::TransactionMode;
use crate::{Failure, PostgresOptions, PostgresStore, Tx, rollups, tx};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};
use tributary_store::StoreError;

/// Default options for tests.
pub(super) fn options() -> PostgresOptions {
    PostgresOptions {
        connections: 8,
        worker_connections: 2,
        report_connections: 2,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: Duration::from_secs(10),
        report_timeout: Duration::from_secs(10),
        statement_cache: true,
        merges_increments: true,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "./test passes the server URL to the tests"
)]
pub(crate) fn server_url() -> String {
    std::env::var("TEST_DATABASE_URL").expect(
        "TEST_DATABASE_URL is not set; ./test starts a PostgreSQL server and sets it, \
         or set it to something like postgres://user@127.0.0.1:5432/postgres",
    )
}

/// Adds a setting to a database URL.
pub(super) fn with_setting(url: &str, setting: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}{setting}")
}

/// Connects without a store.
pub(super) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .expect("the server at TEST_DATABASE_URL responds");
    tokio::spawn(connection);
    client
}

/// A schema for one test.
pub(super) struct Schema {
    pub(super) name: String,
    /// URL with the schema as search path.
    pub(super) url: String,
    /// Database of the pool that contains the schema. `None` if the test created the schema.
    pooled: Option<PooledDatabase>,
}

impl Schema {
    /// Takes a migrated schema without rows.
    pub(super) async fn create() -> Self {
        let pooled = PooledDatabase::take(&server_url()).await;
        Self {
            name: pooled.name.clone(),
            url: pooled.url.clone(),
            pooled: Some(pooled),
        }
    }

    /// Creates a schema without tables. The end of the test drops it.
    pub(super) async fn create_without_tables() -> Self {
        let name = format!("t_{:016x}", RandomState::new().hash_one("schema"));
        let server = server_url();
        client(&server)
            .await
            .batch_execute(&format!("create schema {name}"))
            .await
            .expect("create schema");
        let url = with_setting(&server, &format!("options=-csearch_path%3D{name}"));
        Self {
            name,
            url,
            pooled: None,
        }
    }

    pub(super) async fn open(&self) -> PostgresStore {
        self.open_with(options()).await
    }

    /// Makes every table reject writes, like a standby.
    pub(super) async fn refuse_writes(&self) {
        let sql = "create function refuse() returns trigger language plpgsql
                   as $$ begin raise read_only_sql_transaction; end $$;
                   do $$ declare name text; begin
                       for name in select tablename from pg_tables where schemaname = current_schema() loop
                           execute format('create trigger refuse before insert or update or delete or truncate
                                           on %I for each statement execute function refuse()', name);
                       end loop;
                   end $$";
        let created = self.client().await.batch_execute(sql).await;
        created.expect("create triggers");
    }

    pub(super) async fn open_with(&self, options: PostgresOptions) -> PostgresStore {
        PostgresStore::connect(&self.url, options)
            .await
            .expect("a store")
    }

    /// Merges all increments, as a node does shortly after counting.
    pub(super) async fn merge_increments(&self) {
        let store = self.open().await;
        rollups::merge_all(&store.pool)
            .await
            .expect("increments are merged");
    }

    /// Connects to the schema without a store.
    pub(super) async fn client(&self) -> Client {
        client(&self.url).await
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        if self.pooled.is_some() {
            return;
        }
        // Fails instead of hanging when a test left a lock behind.
        let sql = format!(
            "set lock_timeout = '10s'; drop schema {} cascade",
            self.name
        );
        let server = server_url();
        // `drop` cannot await, so a thread drops the schema.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let client = client(&server).await;
                let mut dropped = client.batch_execute(&sql).await;
                // A statement abandoned by a test may still run and lock tables in another order.
                for _ in 0..3 {
                    if dropped.is_ok() {
                        break;
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                    dropped = client.batch_execute(&sql).await;
                }
                dropped
            })
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
    /// Runs an arbitrary write transaction.
    pub(super) async fn run_write<T>(
        &self,
        work: impl AsyncFn(&Tx) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        tx::run(&self.pool, "test", TransactionMode::Write, work).await
    }
}

/// Reads one number.
pub(super) async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.expect("a row").get(0)
}
