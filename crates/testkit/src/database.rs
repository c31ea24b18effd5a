//! A separate database per test.

use crate::DirectConnection;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};
use tributary_store::Store;
use tributary_store::migration::Migration;
use tributary_store_postgres::testing::PooledDatabase;
use tributary_store_postgres::{PostgresOptions, PostgresStore};
use tributary_store_sqlite::SqliteStore;

/// Name of the SQLite file in a server's data folder.
pub(crate) const SQLITE_FILE: &str = "tributary.db";

/// A database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Embedded SQLite.
    Sqlite,
    /// The PostgreSQL server that `./test` starts.
    Postgres,
}

impl Engine {
    /// Returns the engine's migrations in order.
    pub const fn migrations(self) -> &'static [Migration] {
        match self {
            Self::Sqlite => tributary_store_sqlite::testing::migrations(),
            Self::Postgres => tributary_store_postgres::testing::migrations(),
        }
    }
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
enum Schema {
    /// Migrated and without rows. Later tests use it again.
    Pooled(PooledDatabase),
    /// Created without tables. The end of the test drops it.
    Temporary(TemporarySchema),
}

#[derive(Debug)]
struct TemporarySchema {
    url: String,
    server: String,
    /// Statement that drops it.
    removal: String,
}

impl TestDatabase {
    /// Creates a database without tables, which the first start migrates.
    pub async fn new(engine: Engine) -> Self {
        let folder = Self::temp_folder();
        let schema = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(Schema::Temporary(TemporarySchema::create(&folder).await)),
        };
        Self {
            engine,
            folder,
            schema,
        }
    }

    /// Creates a database without tables that no other test shares. On PostgreSQL, migrations take a
    /// lock on the whole database, so tests that migrate often would wait for each other's schemas.
    pub async fn separate(engine: Engine) -> Self {
        let folder = Self::temp_folder();
        let schema = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => {
                let schema = TemporarySchema::create_database(&folder).await;
                Some(Schema::Temporary(schema))
            }
        };
        Self {
            engine,
            folder,
            schema,
        }
    }

    /// Provides a migrated database without rows, which takes less time.
    pub async fn migrated(engine: Engine) -> Self {
        let folder = Self::temp_folder();
        let schema = match engine {
            Engine::Sqlite => {
                let file = folder.path().join(SQLITE_FILE);
                std::fs::write(file, migrated_sqlite()).expect("write database");
                None
            }
            Engine::Postgres => Some(Schema::Pooled(PooledDatabase::take(&server_url()).await)),
        };
        Self {
            engine,
            folder,
            schema,
        }
    }

    /// Migrates the database as a program with only these migrations does when it starts.
    pub async fn migrate_with(&self, migrations: &[Migration]) -> Result<(), String> {
        match &self.schema {
            None => {
                let file = self.sqlite_file();
                tributary_store_sqlite::testing::migrate_with(&file, migrations)
                    .map_err(|error| error.to_string())
            }
            Some(schema) => {
                tributary_store_postgres::testing::migrate_with(&schema.url(), migrations)
                    .await
                    .map_err(|error| error.to_string())
            }
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
            None => format!("sqlite:{}", self.sqlite_file().display()),
            Some(schema) => schema.url(),
        }
    }

    fn sqlite_file(&self) -> PathBuf {
        self.folder.path().join(SQLITE_FILE)
    }

    /// Opens a connection that bypasses the server.
    pub async fn direct_connection(&self) -> DirectConnection {
        DirectConnection::of(self).await
    }

    /// Reads the ids in a column directly from the database.
    pub async fn ids(&self, table: &str, column: &str) -> BTreeSet<[u8; 16]> {
        let rows: Vec<Vec<u8>> = match &self.schema {
            None => {
                let connection = rusqlite::Connection::open(self.sqlite_file());
                let connection = connection.expect("open database");
                let sql = format!("select {column} from {table}");
                let mut statement = connection.prepare(&sql).expect("table exists");
                let rows = statement
                    .query_map((), |row| row.get(0))
                    .expect("run query");
                rows.collect::<Result<_, _>>().expect("read ids")
            }
            Some(schema) => {
                let sql = format!("select uuid_send({column}) from {table}");
                let client = connect(&schema.url()).await;
                let rows = client.query(&sql, &[]).await.expect("run SQL");
                rows.iter().map(|row| row.get(0)).collect()
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
                let store = SqliteStore::open_with(&self.sqlite_file(), report_timeout);
                Arc::new(store.expect("open database"))
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
                    merges_increments: true,
                };
                let store = PostgresStore::connect(&schema.url(), options).await;
                Arc::new(store.expect("open database"))
            }
        }
    }
}

impl Schema {
    fn url(&self) -> String {
        match self {
            Self::Pooled(database) => database.url.clone(),
            Self::Temporary(schema) => schema.url.clone(),
        }
    }
}

impl TemporarySchema {
    async fn create(folder: &TempDir) -> Self {
        let (name, server) = (Self::name(folder), server_url());
        let sql = format!("create schema {name}");
        let client = connect(&server).await;
        client.batch_execute(&sql).await.expect("create schema");
        Self {
            url: with_setting(&server, &format!("options=-csearch_path%3D{name}")),
            server,
            removal: format!("drop schema {name} cascade"),
        }
    }

    /// Creates a database that contains only this schema.
    async fn create_database(folder: &TempDir) -> Self {
        let (name, server) = (Self::name(folder), server_url());
        let sql = format!("create database {name} template template0");
        let client = connect(&server).await;
        let created = client.batch_execute(&sql).await;
        created.expect("create database; the user needs the right to");
        Self {
            url: with_setting(&server, &format!("dbname={name}")),
            server,
            removal: format!("drop database {name} with (force)"),
        }
    }

    /// Returns a name that no other test uses.
    fn name(folder: &TempDir) -> String {
        let name = folder
            .path()
            .file_name()
            .and_then(|name| name.to_str())
            .expect("folder has a name");
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        format!("t_{}", name.to_lowercase())
    }
}

/// Adds a setting to a database URL.
fn with_setting(url: &str, setting: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}{setting}")
}

impl Drop for TemporarySchema {
    fn drop(&mut self) {
        // The test's runtime may be shutting down, so a separate thread drops the schema.
        let (removal, server) = (self.removal.clone(), self.server.clone());
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("build runtime").block_on(async {
                let _best_effort = connect(&server).await.batch_execute(&removal).await;
            });
        });
        let _best_effort = dropped.join();
    }
}

/// Connects to the PostgreSQL server.
async fn connect(url: &str) -> Client {
    let connected = tokio_postgres::connect(url, NoTls).await;
    let (client, connection) =
        connected.expect("connect to the PostgreSQL server in TEST_DATABASE_URL");
    tokio::spawn(connection);
    client
}

/// Returns the file of a migrated SQLite database without rows. The first call migrates it.
fn migrated_sqlite() -> &'static [u8] {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    FILE.get_or_init(|| {
        let folder = TestDatabase::temp_folder();
        let file = folder.path().join(SQLITE_FILE);
        drop(SqliteStore::open(&file).expect("create database"));
        // The changes may still be in the log.
        let connection = rusqlite::Connection::open(&file).expect("open database");
        let checkpoint = connection.query_row("pragma wal_checkpoint(truncate)", (), |row| {
            row.get::<_, i64>(0)
        });
        assert_eq!(checkpoint, Ok(0), "the log is empty");
        std::fs::read(&file).expect("read database")
    })
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
