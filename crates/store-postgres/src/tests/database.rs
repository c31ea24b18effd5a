//! A schema of its own for each test, on the server that `./test` starts.

use crate::tx::Mode;
use crate::{Failure, PostgresOptions, PostgresStore, Tx, rollups, tx};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};
use tributary_store::StoreError;

/// What the tests use, unless they are about something else.
pub(super) fn options() -> PostgresOptions {
    PostgresOptions {
        connections: 8,
        worker_connections: 2,
        report_connections: 2,
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

    /// Lets every table refuse writes from now on, as all of a standby's do.
    pub(super) async fn refuse_writes(&self) {
        let sql = "create function refuse() returns trigger language plpgsql
                   as $$ begin raise read_only_sql_transaction; end $$;
                   do $$ declare name text; begin
                       for name in select tablename from pg_tables where schemaname = current_schema() loop
                           execute format('create trigger refuse before insert or update or delete or truncate
                                           on %I for each statement execute function refuse()', name);
                       end loop;
                   end $$";
        let made = self.client().await.batch_execute(sql).await;
        made.expect("every table refuses writes");
    }

    pub(super) async fn open_with(&self, options: PostgresOptions) -> PostgresStore {
        PostgresStore::connect(&self.url, options)
            .await
            .expect("a store")
    }

    /// Merges all increments into the roll-ups, as a node does a moment after it counted.
    pub(super) async fn merge_increments(&self) {
        let store = self.open().await;
        rollups::merge_all(&store.pool)
            .await
            .expect("increments are merged");
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
            runtime.block_on(async {
                let client = client(&server).await;
                let mut dropped = client.batch_execute(&sql).await;
                // A statement that a test gave up may still run, and lock tables in another order.
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
    /// A transaction that no method of the port has.
    pub(super) async fn run_write<T>(
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
