//! A fresh database per test, removed when the test ends.

use crate::DirectConnection;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tributary_store::Store;
use tributary_store_postgres::{PostgresOptions, PostgresStore};
use tributary_store_sqlite::SqliteStore;

/// A database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Embedded SQLite.
    Sqlite,
    /// The PostgreSQL server that `./test` starts.
    Postgres,
}

/// One test's database.
#[derive(Debug)]
pub struct TestDatabase {
    engine: Engine,
    /// The server's data folder, and the location of an SQLite database.
    folder: TempDir,
    /// The test's schema on the PostgreSQL server.
    schema: Option<Schema>,
}

#[derive(Debug)]
struct Schema {
    name: String,
    server: String,
}

impl TestDatabase {
    /// Creates an empty database.
    pub async fn new(engine: Engine) -> Self {
        let folder = tempfile::tempdir().expect("create temporary folder");
        let schema = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(Schema::create(&folder).await),
        };
        Self {
            engine,
            folder,
            schema,
        }
    }

    /// Creates a temporary folder for a test that needs no database.
    pub fn temp_folder() -> TempDir {
        tempfile::tempdir().expect("create temporary folder")
    }

    /// Returns the engine.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Returns the data folder for a server on this database.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Returns `database_url` for a server on this database.
    pub fn url(&self) -> String {
        match &self.schema {
            None => format!(
                "sqlite:{}",
                self.folder.path().join("tributary.db").display()
            ),
            Some(schema) => schema.url(),
        }
    }

    /// Opens a connection that bypasses the server.
    pub async fn direct_connection(&self) -> DirectConnection {
        DirectConnection::of(self).await
    }

    /// Reads the ids in a column directly from the database.
    pub async fn ids(&self, table: &str, column: &str) -> BTreeSet<[u8; 16]> {
        let rows: Vec<Vec<u8>> = match &self.schema {
            None => {
                let path = self.folder.path().join("tributary.db");
                let connection = rusqlite::Connection::open(path).expect("open database");
                let sql = format!("select {column} from {table}");
                let mut statement = connection.prepare(&sql).expect("table exists");
                let rows = statement
                    .query_map((), |row| row.get(0))
                    .expect("run query");
                rows.collect::<Result<_, _>>().expect("read ids")
            }
            Some(schema) => {
                let sql = format!("select uuid_send({column}) from {}.{table}", schema.name);
                schema.query(&sql).await
            }
        };
        let id = |bytes: Vec<u8>| bytes.try_into().expect("an id has 16 bytes");
        rows.into_iter().map(id).collect()
    }

    /// Opens the store.
    pub async fn open(&self) -> Arc<dyn Store> {
        self.open_with(Duration::from_secs(10)).await
    }

    /// Opens the store with this time limit for one query of a report.
    pub async fn open_with(&self, report_timeout: Duration) -> Arc<dyn Store> {
        match &self.schema {
            None => {
                let path = self.folder.path().join("tributary.db");
                Arc::new(SqliteStore::open_with(&path, report_timeout).expect("open database"))
            }
            Some(schema) => {
                let options = PostgresOptions {
                    connections: 8,
                    worker_connections: 2,
                    report_connections: 2,
                    connect_timeout: Duration::from_secs(10),
                    statement_timeout: Duration::from_secs(10),
                    report_timeout,
                    statement_cache: true,
                };
                let store = PostgresStore::connect(&schema.url(), options).await;
                Arc::new(store.expect("open database"))
            }
        }
    }
}

impl Schema {
    async fn create(folder: &TempDir) -> Self {
        let name = folder
            .path()
            .file_name()
            .and_then(|name| name.to_str())
            .expect("folder has a name");
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let schema = Self {
            name: format!("t_{}", name.to_lowercase()),
            server: server_url(),
        };
        schema.run(&format!("create schema {}", schema.name)).await;
        schema
    }

    fn url(&self) -> String {
        let separator = if self.server.contains('?') { '&' } else { '?' };
        format!(
            "{}{separator}options=-csearch_path%3D{}",
            self.server, self.name
        )
    }

    async fn run(&self, sql: &str) {
        let (client, connection) = tokio_postgres::connect(&self.server, tokio_postgres::NoTls)
            .await
            .expect("connect to the PostgreSQL server in TEST_DATABASE_URL");
        let connection = tokio::spawn(connection);
        client.batch_execute(sql).await.expect("run SQL");
        drop(client);
        let _ended = connection.await;
    }

    async fn query(&self, sql: &str) -> Vec<Vec<u8>> {
        let (client, connection) = tokio_postgres::connect(&self.server, tokio_postgres::NoTls)
            .await
            .expect("connect to the PostgreSQL server in TEST_DATABASE_URL");
        let connection = tokio::spawn(connection);
        let rows = client.query(sql, &[]).await.expect("run SQL");
        drop(client);
        let _ended = connection.await;
        rows.iter().map(|row| row.get(0)).collect()
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // The test's runtime may be shutting down, so a separate thread drops the schema.
        let (name, server) = (self.name.clone(), self.server.clone());
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("build runtime").block_on(async {
                let Ok((client, connection)) =
                    tokio_postgres::connect(&server, tokio_postgres::NoTls).await
                else {
                    return;
                };
                tokio::spawn(connection);
                let _best_effort = client
                    .batch_execute(&format!("drop schema {name} cascade"))
                    .await;
            });
        });
        let _best_effort = dropped.join();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "./test passes the server's URL in the environment"
)]
fn server_url() -> String {
    std::env::var("TEST_DATABASE_URL").unwrap_or_else(|_| {
        panic!(
            "TEST_DATABASE_URL is not set: run ./test, which starts PostgreSQL, or set it to the \
             URL of a server on which tests may create schemas"
        )
    })
}
