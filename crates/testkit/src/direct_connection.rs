//! A separate database connection for tests: to inspect stored rows, and to hold locks that block
//! the server.

use crate::TestDatabase;
use crate::database::Engine;
use rusqlite::types::ValueRef;
use tokio_postgres::SimpleQueryMessage;
use tributary_domain::vocabulary::digest::hex;

/// A database connection that bypasses the server.
pub struct DirectConnection(Connection);

enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(tokio_postgres::Client),
}

/// A row's values as text.
pub type TextRow = Vec<Option<String>>;

impl DirectConnection {
    pub(crate) async fn of(database: &TestDatabase) -> Self {
        Self(match database.engine() {
            Engine::Sqlite => {
                let path = database.folder().join("tributary.db");
                Connection::Sqlite(rusqlite::Connection::open(path).expect("open database"))
            }
            Engine::Postgres => {
                let url = database.url();
                let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
                let (client, connection) = connected.expect("connect to PostgreSQL");
                tokio::spawn(connection);
                Connection::Postgres(client)
            }
        })
    }

    /// Returns the engine.
    pub const fn engine(&self) -> Engine {
        match &self.0 {
            Connection::Sqlite(_) => Engine::Sqlite,
            Connection::Postgres(_) => Engine::Postgres,
        }
    }

    /// Runs statements.
    pub async fn run(&self, sql: &str) {
        match &self.0 {
            Connection::Sqlite(connection) => connection.execute_batch(sql).expect("run SQL"),
            Connection::Postgres(client) => client.batch_execute(sql).await.expect("run SQL"),
        }
    }

    /// Blocks everyone else who writes clicks, until [`Self::unlock_clicks`] is called.
    pub async fn lock_clicks(&self) {
        match &self.0 {
            Connection::Sqlite(_) => self.run("begin immediate").await,
            Connection::Postgres(_) => {
                let sql = "begin; lock table clicks in access exclusive mode";
                self.run(sql).await;
            }
        }
    }

    /// Releases the lock taken by [`Self::lock_clicks`].
    pub async fn unlock_clicks(&self) {
        self.run("rollback").await;
    }

    /// Returns a query's rows as text, with bytes in hex.
    pub async fn rows(&self, sql: &str) -> Vec<TextRow> {
        match &self.0 {
            Connection::Sqlite(connection) => {
                let mut statement = connection.prepare(sql).expect("prepare SQL");
                let columns = statement.column_count();
                let rows = statement.query_map([], |row| {
                    (0..columns)
                        .map(|column| Ok(text(row.get_ref(column)?)))
                        .collect()
                });
                let rows = rows.expect("run SQL");
                rows.map(|row| row.expect("read row")).collect()
            }
            Connection::Postgres(client) => {
                let messages = client.simple_query(sql).await.expect("run SQL");
                let rows = messages.into_iter().filter_map(|message| match message {
                    SimpleQueryMessage::Row(row) => Some(row),
                    _ => None,
                });
                rows.map(|row| {
                    (0..row.len())
                        .map(|n| row.get(n).map(str::to_owned))
                        .collect()
                })
                .collect()
            }
        }
    }
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Some(hex(bytes)),
    }
}
