//! A separate connection that asks a server one question at a time.
//!
//! It is not part of the pool, so that the question is answered even if all connections of the pool
//! are in use, and so that an unanswered question blocks none of them.

use crate::PostgresOpenError;
use crate::connector::connect;
use crate::database_error::DatabaseError;
use crate::tls;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_postgres::{Client, Config, SimpleQueryMessage, SimpleQueryRow};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a server may take to answer. A healthy server needs milliseconds, and a report waits for
/// the answer.
pub(crate) const ANSWER_WAIT_MAX: Duration = Duration::from_secs(1);

/// A server and the connection to it.
pub(crate) struct Probe {
    config: Config,
    tls: MakeRustlsConnect,
    client: Mutex<Option<Arc<Client>>>,
}

impl Probe {
    /// Prepares the connection without connecting.
    pub(crate) fn new(config: Config) -> Result<Self, PostgresOpenError> {
        Ok(Self {
            tls: tls::connector(config.get_ssl_mode())?,
            config,
            client: Mutex::new(None),
        })
    }

    /// Returns the only row of a query.
    pub(crate) async fn ask(&self, sql: &str) -> Result<SimpleQueryRow, DatabaseError> {
        let asked = async { only_row(&*self.client().await?, sql).await };
        let answer = tokio::time::timeout(ANSWER_WAIT_MAX, asked)
            .await
            .unwrap_or_else(|_| {
                let text = format!("no response within {ANSWER_WAIT_MAX:?}");
                Err(DatabaseError::new(text))
            });
        if answer.is_err() {
            // The next question gets a new connection, possibly to another server.
            self.client.lock().await.take();
        }
        answer
    }

    async fn client(&self) -> Result<Arc<Client>, DatabaseError> {
        let mut open = self.client.lock().await;
        if let Some(client) = open.as_ref().filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        let connecting = connect(&self.config, &self.tls, ANSWER_WAIT_MAX);
        let (client, connection) = connecting
            .await
            .map_err(|error| DatabaseError::from(&error))?;
        tokio::spawn(connection);
        let client = Arc::new(client);
        *open = Some(client.clone());
        Ok(client)
    }
}

/// Runs a query without preparing it, because `PgBouncer` shares sessions between clients.
pub(crate) async fn only_row(client: &Client, sql: &str) -> Result<SimpleQueryRow, DatabaseError> {
    let messages = client.simple_query(sql).await;
    let messages = messages.map_err(|error| DatabaseError::from(&error))?;
    let row = messages.into_iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    row.ok_or_else(|| DatabaseError::new("bug: the statement returned no row"))
}
