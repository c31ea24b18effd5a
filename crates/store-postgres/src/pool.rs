//! The connections: how they are made, how many there are, and how long anybody waits for one.

use crate::database_error::DatabaseError;
use crate::tls;
use deadpool_postgres::{Connect, Manager, ManagerConfig, Object, PoolError, RecyclingMethod};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, RwLock, RwLockReadGuard, Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{AsyncMessage, Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;
use tributary_store::connection_share::{ConnectionShare, ConnectionShares};
use tributary_store::migration::MigrationRefusal;

/// How the sessions are called in `pg_stat_activity`.
const APPLICATION_NAME: &str = "tributary";
/// A silent connection is asked after this time whether the other side is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
/// And again so often.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// How long sent bytes may stay unconfirmed. Without it a vanished server holds a connection for a quarter
/// of an hour.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);
/// What the library takes when a URL does not say how long a connection may be silent.
const KEEPALIVE_IDLE_LIBRARY_DEFAULT: Duration = Duration::from_hours(2);

/// How the database is used.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Connections that this node keeps at most.
    pub connections: usize,
    /// How many of them the forwarder and the other workers may use.
    pub worker_connections: usize,
    /// How many of them reports may use.
    pub report_connections: usize,
    /// How long to wait for a connection, whether for a free one or for a new one.
    pub connect_timeout: Duration,
    /// How long one statement may take.
    pub statement_timeout: Duration,
    /// Whether prepared statements are kept. `PgBouncer` in transaction mode mixes them up before 1.21.
    pub statement_cache: bool,
}

/// Why a database cannot be used. Neither the URL nor the password is in any of it.
#[derive(Debug, thiserror::Error)]
pub enum PostgresOpenError {
    /// The URL is none.
    #[error(
        "the database URL cannot be read ({0}); it has the form \
         postgres://user:password@host:port/database?sslmode=require, and special characters of the \
         password are percent-encoded"
    )]
    Url(String),
    /// There is nothing to encrypt with.
    #[error("TLS to the database is not possible: {0}")]
    Tls(String),
    /// Nobody answers.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// The server answers, but lets nobody in.
    #[error("the database server refuses the connection: {0}")]
    Refused(String),
    /// The server may lose what it has confirmed.
    #[error(
        "the database server runs with {setting}=off and may lose or damage what it has confirmed when \
         the power fails; set {setting} = on in postgresql.conf and reload the server"
    )]
    Unsafe {
        /// The setting.
        setting: &'static str,
    },
    /// The database cannot hold every text.
    #[error(
        "the database's encoding is {0}; texts of all languages need one that was made with \
         `create database … encoding 'UTF8' template template0`"
    )]
    Encoding(String),
    /// The schema is not one that this program may touch.
    #[error(transparent)]
    Migration(#[from] MigrationRefusal),
    /// A statement failed while the database was looked at or brought up to date.
    #[error("the database cannot be prepared: {0}")]
    Statement(String),
}

impl PostgresOpenError {
    /// Whether trying again later may succeed without a change of this program's settings. That is so for a server that
    /// is down, still starting, or does not know the role or the database yet.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Refused(_) | Self::Statement(_) => true,
            Self::Url(_)
            | Self::Tls(_)
            | Self::Unsafe { .. }
            | Self::Encoding(_)
            | Self::Migration(_) => false,
        }
    }
}

impl From<tokio_postgres::Error> for PostgresOpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Statement(DatabaseError::from(&error).to_string())
    }
}

/// The connections of this node.
pub(crate) struct Pool {
    connections: deadpool_postgres::Pool,
    /// Permits to use a connection, by share.
    public: Semaphore,
    worker: Semaphore,
    report: Semaphore,
    pub(crate) options: PostgresOptions,
    /// Commits that were confirmed although the standby they were to wait for had not confirmed them.
    unreplicated: Arc<AtomicU64>,
    /// Held for reading by every transaction, for writing by whoever waits for them all to end.
    running: RwLock<()>,
    /// Told when a transaction of this node has counted something.
    pub(crate) increments_stored: Notify,
}

impl Pool {
    /// Makes the pool; nothing is connected yet.
    pub(crate) fn open(url: &str, options: PostgresOptions) -> Result<Self, PostgresOpenError> {
        let config = config(url, &options)?;
        let unreplicated = Arc::new(AtomicU64::new(0));
        let connector = Connector {
            tls: tls::connector(config.get_ssl_mode())?,
            unreplicated: unreplicated.clone(),
        };
        let recycling = ManagerConfig {
            // Whether a connection still works shows when it is used; asking before costs a round trip.
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_connect(config, connector, recycling);
        let connections = deadpool_postgres::Pool::builder(manager)
            .max_size(options.connections)
            .build()
            .map_err(|error| PostgresOpenError::Statement(error.to_string()))?;
        let shares = ConnectionShares::divide(
            options.connections,
            options.worker_connections,
            options.report_connections,
        );
        Ok(Self {
            connections,
            public: Semaphore::new(shares.public.min(Semaphore::MAX_PERMITS)),
            worker: Semaphore::new(shares.worker.min(Semaphore::MAX_PERMITS)),
            report: Semaphore::new(shares.report.min(Semaphore::MAX_PERMITS)),
            options,
            unreplicated,
            running: RwLock::new(()),
            increments_stored: Notify::new(),
        })
    }

    /// The first connection of all, with an error that tells an operator what to look at.
    pub(crate) async fn first_connection(&self) -> Result<Object, PostgresOpenError> {
        match self.get().await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(PoolError::Backend(error))) if error.as_db_error().is_some() => Err(
                PostgresOpenError::Refused(DatabaseError::from(&error).to_string()),
            ),
            Ok(Err(error)) => {
                let mut text = fault(&error).to_string();
                if text.contains("invalid peer certificate") {
                    text += "; name the file with its issuer's certificate in SSL_CERT_FILE, or \
                             encrypt without looking at it: sslmode=prefer";
                }
                Err(PostgresOpenError::Unreachable(text))
            }
            Err(late) => Err(PostgresOpenError::Unreachable(late.to_string())),
        }
    }

    /// Waits until the share has a connection to spare. The permit is kept as long as the connection is used.
    pub(crate) async fn permit(
        &self,
        share: ConnectionShare,
    ) -> Result<SemaphorePermit<'_>, DatabaseError> {
        let permits = match share {
            ConnectionShare::Public => &self.public,
            ConnectionShare::Worker => &self.worker,
            ConnectionShare::Report => &self.report,
        };
        let wait = self.options.connect_timeout;
        tokio::time::timeout(wait, permits.acquire())
            .await
            .map_err(|_| DatabaseError::new(format!("no connection within {wait:?}")))?
            .map_err(|error| DatabaseError::new(error.to_string()))
    }

    /// A connection, in bounded time.
    pub(crate) async fn connection(&self) -> Result<Object, DatabaseError> {
        self.get().await?.map_err(|error| fault(&error))
    }

    async fn get(&self) -> Result<Result<Object, PoolError>, DatabaseError> {
        let wait = self.options.connect_timeout;
        tokio::time::timeout(wait, self.connections.get())
            .await
            .map_err(|_| DatabaseError::new(format!("no connection within {wait:?}")))
    }

    /// Marks a transaction as running for as long as the mark is kept.
    pub(crate) async fn track_running(&self) -> RwLockReadGuard<'_, ()> {
        self.running.read().await
    }

    /// How many commits were confirmed without their standby since the start.
    pub(crate) fn unreplicated(&self) -> u64 {
        self.unreplicated.load(Ordering::SeqCst)
    }

    /// Refuses new transactions, waits for those under way and lets go of the connections.
    pub(crate) async fn close(&self) {
        self.connections.close();
        drop(self.running.write().await);
    }
}

fn fault(error: &PoolError) -> DatabaseError {
    match error {
        PoolError::Backend(error) => DatabaseError::from(error),
        PoolError::Closed => DatabaseError::new("the store is closed"),
        other => DatabaseError::new(other.to_string()),
    }
}

/// What the URL says, and our own mind where it is silent.
fn config(url: &str, options: &PostgresOptions) -> Result<Config, PostgresOpenError> {
    let mut config: Config = with_supported_sslmode(url)
        .parse()
        .map_err(|error| PostgresOpenError::Url(url_problem(&error)))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(PostgresOpenError::Url("it names no host".to_owned()));
    }
    if config.get_application_name().is_none() {
        config.application_name(APPLICATION_NAME);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(options.connect_timeout);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(TCP_USER_TIMEOUT);
    }
    if config.get_keepalives_idle() == KEEPALIVE_IDLE_LIBRARY_DEFAULT {
        config.keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE_INTERVAL);
    }
    let several = config.get_hosts().len().max(config.get_hostaddrs().len()) > 1;
    if several && config.get_target_session_attrs() == TargetSessionAttrs::Any {
        // After a failover the first host may be a standby.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    Ok(config)
}

/// The library knows neither `verify-ca` nor `verify-full`; here `require` does what they ask for.
fn with_supported_sslmode(url: &str) -> String {
    let (address, settings) = url.split_once('?').unwrap_or((url, ""));
    let settings = settings
        .replace("sslmode=verify-full", "sslmode=require")
        .replace("sslmode=verify-ca", "sslmode=require");
    format!("{address}?{settings}")
}

/// What is wrong with a URL. Only the names of settings are told; what the library could not read may be a
/// piece of the password.
fn url_problem(error: &tokio_postgres::Error) -> String {
    let text = std::error::Error::source(error)
        .map(ToString::to_string)
        .unwrap_or_default();
    if text.starts_with("invalid value for option") {
        text
    } else {
        "it is malformed".to_owned()
    }
}

/// Refuses a server that may lose what it has confirmed, or that cannot hold every text.
pub(crate) async fn check_server(client: &Client) -> Result<(), PostgresOpenError> {
    let row = client
        .query_typed_one(
            "select current_setting('fsync'), current_setting('full_page_writes'),
                    current_setting('server_encoding')",
            &[],
        )
        .await?;
    for (index, setting) in ["fsync", "full_page_writes"].into_iter().enumerate() {
        if row.try_get::<_, String>(index)? == "off" {
            return Err(PostgresOpenError::Unsafe { setting });
        }
    }
    let encoding: String = row.try_get(2)?;
    if encoding == "UTF8" {
        Ok(())
    } else {
        Err(PostgresOpenError::Encoding(encoding))
    }
}

/// Makes connections that listen to what the server says beside its answers.
struct Connector {
    tls: MakeRustlsConnect,
    unreplicated: Arc<AtomicU64>,
}

type Connecting<'a> = Pin<
    Box<dyn Future<Output = Result<(Client, JoinHandle<()>), tokio_postgres::Error>> + Send + 'a>,
>;

impl Connect for Connector {
    fn connect(&self, config: &Config) -> Connecting<'_> {
        let config = config.clone();
        Box::pin(async move {
            let (client, mut connection) = config.connect(self.tls.clone()).await?;
            let unreplicated = self.unreplicated.clone();
            let task = tokio::spawn(async move {
                loop {
                    match std::future::poll_fn(|context| connection.poll_message(context)).await {
                        Some(Ok(AsyncMessage::Notice(notice))) => {
                            // Somebody ended a commit's wait for its standby. The server then confirms
                            // the commit all the same and says so here, just before. Its words may be
                            // in any language; the name of the routine is not.
                            if notice.routine() == Some("SyncRepWaitForLSN") {
                                unreplicated.fetch_add(1, Ordering::SeqCst);
                            }
                            tracing::debug!(
                                severity = notice.severity(),
                                message = notice.message(),
                                "the database has a remark"
                            );
                        }
                        Some(Ok(_)) => {}
                        Some(Err(error)) => {
                            let fault = DatabaseError::from(&error);
                            tracing::warn!(%fault, "a connection to the database is lost");
                            break;
                        }
                        None => break,
                    }
                }
            });
            Ok((client, task))
        })
    }
}
