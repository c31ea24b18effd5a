//! The connection pool.

use crate::connector::Connector;
use crate::database_error::DatabaseError;
use crate::distributed::{DownWorkers, KnownShards};
use crate::due_work::DueWork;
use crate::rollups::PendingApps;
use crate::tls;
use deadpool_postgres::{Manager, ManagerConfig, Object, PoolError, RecyclingMethod};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, RwLock, RwLockReadGuard, Semaphore};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;
use tributary_store::connection_share::{ConnectionShare, ConnectionShares};
use tributary_store::migration::MigrationRefusal;

/// Application name of the sessions in `pg_stat_activity`.
const APPLICATION_NAME: &str = "tributary";
/// Idle time before the first TCP keepalive probe.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
/// Interval between keepalive probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// How long sent bytes may stay unacknowledged. Without this limit, a vanished server blocks a
/// connection for fifteen minutes.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);
/// The library's default keepalive idle time, which applies if the URL sets none.
const KEEPALIVE_IDLE_LIBRARY_DEFAULT: Duration = Duration::from_hours(2);

/// Connection settings.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Maximum number of connections from this node.
    pub connections: usize,
    /// Number of connections that the forwarder and other workers may use.
    pub worker_connections: usize,
    /// Number of connections that reports may use.
    pub report_connections: usize,
    /// How long to wait for a connection, pooled or new. Reports may wait as long as a report takes.
    pub connect_timeout: Duration,
    /// How long one statement may take.
    pub statement_timeout: Duration,
    /// How long one statement of a report may take.
    pub report_timeout: Duration,
    /// Whether to cache prepared statements. `PgBouncer` before version 1.21 does not support them
    /// in transaction mode.
    pub statement_cache: bool,
    /// Whether this node merges increments into the roll-ups, its own and those of other nodes.
    pub merges_increments: bool,
}

impl PostgresOptions {
    /// Returns how long one statement may take.
    pub(crate) const fn statement_timeout_for(&self, share: ConnectionShare) -> Duration {
        match share {
            ConnectionShare::Public | ConnectionShare::Worker => self.statement_timeout,
            ConnectionShare::Report => self.report_timeout,
        }
    }

    /// Returns how long to wait for the permit to use a connection. Reports share few connections,
    /// so one that waits for another is healthy.
    fn permit_timeout_for(&self, share: ConnectionShare) -> Duration {
        match share {
            ConnectionShare::Public | ConnectionShare::Worker => self.connect_timeout,
            ConnectionShare::Report => self.connect_timeout.max(self.report_timeout),
        }
    }
}

/// Why the database cannot be used. Never contains the URL or the password.
#[derive(Debug, thiserror::Error)]
pub enum PostgresOpenError {
    /// The URL is invalid.
    #[error(
        "the database URL is invalid ({0}); use \
         postgres://user:password@host:port/database?sslmode=require and percent-encode special \
         characters in the password"
    )]
    Url(String),
    /// The URL of the standby is invalid.
    #[error(
        "database_read_url is invalid ({0}); use the form of database_url, with the address of a \
         standby"
    )]
    ReadUrl(String),
    /// A standby's lag cannot be measured, because the log positions of the workers are unknown.
    #[error("database_read_url cannot be used with a distributed database; remove the setting")]
    DistributedStandby,
    /// TLS cannot be set up.
    #[error("cannot set up TLS to the database: {0}")]
    Tls(String),
    /// The server is unreachable.
    #[error("cannot reach the database: {0}")]
    Unreachable(String),
    /// The server rejects the connection.
    #[error("the database server rejected the connection: {0}")]
    Refused(String),
    /// The server may lose acknowledged commits.
    #[error(
        "the database server runs with {setting} = off and may lose or corrupt acknowledged commits \
         in a power cut; set {setting} = on in postgresql.conf and reload the server"
    )]
    Unsafe {
        /// Name of the setting.
        setting: &'static str,
    },
    /// The database encoding cannot store all text.
    #[error(
        "the database encoding is {0}, which cannot store all text; create the database with \
         `create database … encoding 'UTF8' template template0`"
    )]
    Encoding(String),
    /// The database cannot be distributed.
    #[error(
        "the database has no `citus` extension; install Citus on the coordinator and on all workers, \
         run `create extension citus` on each of them, and add the workers with `citus_add_node`"
    )]
    NotCitus,
    /// The schema is unknown to this version.
    #[error(transparent)]
    Migration(#[from] MigrationRefusal),
    /// Running nodes hold locks on a table that a migration changes.
    #[error("cannot migrate the database: {0}")]
    Locked(String),
    /// The data was moved to another database.
    #[error(
        "the data was moved to another database; set database_url to that one. To use this database \
         again without the changes made since, run `tributary move --cancel` on it"
    )]
    Moved,
    /// Another database is being moved into this one.
    #[error(
        "`tributary move` has not finished copying into this database; finish it with --cut-over, or \
         use an empty schema"
    )]
    MoveUnfinished,
    /// A statement failed during start-up.
    #[error("cannot prepare the database: {0}")]
    Statement(String),
}

impl PostgresOpenError {
    /// Returns whether a retry may succeed without a change to this program's settings: the server
    /// is down or starting, or the role or database does not exist yet.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::Refused(_)
            | Self::Locked(_)
            | Self::Statement(_)
            | Self::MoveUnfinished => true,
            Self::Url(_)
            | Self::ReadUrl(_)
            | Self::DistributedStandby
            | Self::Tls(_)
            | Self::Unsafe { .. }
            | Self::Encoding(_)
            | Self::NotCitus
            | Self::Moved
            | Self::Migration(_) => false,
        }
    }
}

impl From<tokio_postgres::Error> for PostgresOpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        let text = DatabaseError::from(&error).to_string();
        let locked = [
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ];
        if error.code().is_some_and(|code| locked.contains(code)) {
            Self::Locked(text)
        } else {
            Self::Statement(text)
        }
    }
}

/// The connections of this node.
pub(crate) struct Pool {
    connections: deadpool_postgres::Pool,
    /// Permits to use a connection, by share.
    public: Arc<Semaphore>,
    worker: Arc<Semaphore>,
    report: Arc<Semaphore>,
    /// Connects to the server to cancel an abandoned query.
    tls: MakeRustlsConnect,
    pub(crate) options: PostgresOptions,
    /// Number of commits that the server confirmed although its synchronous standby had not.
    unreplicated: Arc<AtomicU64>,
    /// Locked for reading by every transaction, and for writing by `close`, which waits for all
    /// transactions.
    running: RwLock<()>,
    /// Pending increments that this node knows of.
    pub(crate) pending_apps: PendingApps,
    /// Whether the tables are distributed by app.
    is_distributed: AtomicBool,
    /// The shards of apps, if the database has several shards.
    pub(crate) shards: OnceLock<KnownShards>,
    /// Workers of a distributed database that do not respond.
    pub(crate) down_workers: DownWorkers,
    /// Hints about due work on a distributed database.
    pub(crate) due_work: DueWork,
}

impl Pool {
    /// Creates the pool without connecting.
    pub(crate) fn open(url: &str, options: PostgresOptions) -> Result<Self, PostgresOpenError> {
        let shares = ConnectionShares::divide(
            options.connections,
            options.worker_connections,
            options.report_connections,
        );
        let config = config(url, &options, TargetSessionAttrs::ReadWrite)?;
        Self::build(config, options, shares)
    }

    /// Creates a pool of connections to a standby, which serves only reports.
    pub(crate) fn open_standby(
        url: &str,
        options: PostgresOptions,
    ) -> Result<Self, PostgresOpenError> {
        let connections = options.report_connections;
        let shares = ConnectionShares {
            public: 0,
            worker: 0,
            report: connections,
        };
        let config = config(url, &options, TargetSessionAttrs::ReadOnly)?;
        let options = PostgresOptions {
            connections,
            ..options
        };
        Self::build(config, options, shares)
    }

    fn build(
        config: Config,
        options: PostgresOptions,
        shares: ConnectionShares,
    ) -> Result<Self, PostgresOpenError> {
        let unreplicated = Arc::new(AtomicU64::new(0));
        let tls = tls::connector(config.get_ssl_mode())?;
        let connector = Connector {
            tls: tls.clone(),
            wait_max: options.connect_timeout,
            unreplicated: unreplicated.clone(),
        };
        let recycling = ManagerConfig {
            // A broken connection fails on first use; checking it beforehand costs a round trip.
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_connect(config, connector, recycling);
        let connections = deadpool_postgres::Pool::builder(manager)
            .max_size(options.connections)
            .build()
            .map_err(|error| PostgresOpenError::Statement(error.to_string()))?;
        let permits = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Ok(Self {
            connections,
            public: permits(shares.public),
            worker: permits(shares.worker),
            report: permits(shares.report),
            tls,
            options,
            unreplicated,
            running: RwLock::new(()),
            pending_apps: PendingApps::default(),
            is_distributed: AtomicBool::new(false),
            shards: OnceLock::new(),
            down_workers: DownWorkers::default(),
            due_work: DueWork::default(),
        })
    }

    /// Returns whether the tables are distributed by app.
    pub(crate) fn is_distributed(&self) -> bool {
        self.is_distributed.load(Ordering::Relaxed)
    }

    /// Sets whether the tables are distributed by app.
    pub(crate) fn set_distributed(&self, is_distributed: bool) {
        self.is_distributed.store(is_distributed, Ordering::Relaxed);
    }

    /// Opens the first connection. Its error tells an operator what to check.
    pub(crate) async fn first_connection(&self) -> Result<Object, PostgresOpenError> {
        match self.get().await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(PoolError::Backend(error))) if error.as_db_error().is_some() => Err(
                PostgresOpenError::Refused(DatabaseError::from(&error).to_string()),
            ),
            Ok(Err(error)) => {
                let mut text = pool_error(&error).to_string();
                if text.contains("invalid peer certificate") {
                    text += "; set SSL_CERT_FILE to a file with the issuer's certificate, or use \
                             sslmode=prefer to encrypt without verification";
                }
                if text.contains("does not allow writes") {
                    text += "; the server is a standby, or default_transaction_read_only is on: use \
                             the address of the primary, or list all hosts in the URL";
                }
                Err(PostgresOpenError::Unreachable(text))
            }
            Err(late) => Err(PostgresOpenError::Unreachable(late.to_string())),
        }
    }

    /// Waits for one of the share's permits. Keep the permit as long as the connection is in use.
    pub(crate) async fn permit(
        &self,
        share: ConnectionShare,
    ) -> Result<OwnedSemaphorePermit, DatabaseError> {
        let permits = match share {
            ConnectionShare::Public => &self.public,
            ConnectionShare::Worker => &self.worker,
            ConnectionShare::Report => &self.report,
        };
        let wait = self.options.permit_timeout_for(share);
        tokio::time::timeout(wait, permits.clone().acquire_owned())
            .await
            .map_err(|_| DatabaseError::new(format!("no connection within {wait:?}")))?
            .map_err(|error| DatabaseError::new(error.to_string()))
    }

    /// Returns what a connection for cancelling queries needs.
    pub(crate) fn tls(&self) -> MakeRustlsConnect {
        self.tls.clone()
    }

    /// Gets a connection or fails after the timeout.
    pub(crate) async fn connection(&self) -> Result<Object, DatabaseError> {
        self.get().await?.map_err(|error| pool_error(&error))
    }

    async fn get(&self) -> Result<Result<Object, PoolError>, DatabaseError> {
        let wait = self.options.connect_timeout;
        tokio::time::timeout(wait, self.connections.get())
            .await
            .map_err(|_| DatabaseError::new(format!("no connection within {wait:?}")))
    }

    /// Closes the connections that are not in use.
    pub(crate) fn close_idle(&self) {
        drop(self.connections.retain(|_, _| false));
    }

    /// Marks a transaction as running until the guard is dropped.
    pub(crate) async fn track_running(&self) -> RwLockReadGuard<'_, ()> {
        self.running.read().await
    }

    /// Returns the number of commits since the start that were confirmed without the standby.
    pub(crate) fn unreplicated(&self) -> u64 {
        self.unreplicated.load(Ordering::SeqCst)
    }

    /// Rejects new transactions, waits for running transactions, and closes the connections.
    pub(crate) async fn close(&self) {
        self.connections.close();
        drop(self.running.write().await);
    }
}

fn pool_error(error: &PoolError) -> DatabaseError {
    match error {
        PoolError::Backend(error) => DatabaseError::from(error),
        PoolError::Closed => DatabaseError::new("the store is closed"),
        other => DatabaseError::new(other.to_string()),
    }
}

/// Reads the URL and adds defaults for missing settings. Connects only to a server that accepts
/// writes, if this kind is asked for. If the URL names several hosts, connects to one of this kind.
pub(crate) fn config(
    url: &str,
    options: &PostgresOptions,
    kind: TargetSessionAttrs,
) -> Result<Config, PostgresOpenError> {
    let mut config: Config = with_supported_sslmode(url)
        .parse()
        .map_err(|error| PostgresOpenError::Url(url_problem(&error)))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(PostgresOpenError::Url("no host".to_owned()));
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
    let is_checked = several || kind == TargetSessionAttrs::ReadWrite;
    if is_checked && config.get_target_session_attrs() == TargetSessionAttrs::Any {
        // After a failover, the first host may be of the other kind, and so may the server behind a
        // name or a proxy. Reads from a standby would miss what was just written.
        config.target_session_attrs(kind);
    }
    Ok(config)
}

/// Replaces `verify-ca` and `verify-full`, which the library does not support, with `require`,
/// which verifies certificates in this program.
fn with_supported_sslmode(url: &str) -> String {
    let (address, settings) = url.split_once('?').unwrap_or((url, ""));
    let settings = settings
        .replace("sslmode=verify-full", "sslmode=require")
        .replace("sslmode=verify-ca", "sslmode=require");
    format!("{address}?{settings}")
}

/// Describes a URL error only by the name of the setting. Other parts of the error may contain the
/// password.
fn url_problem(error: &tokio_postgres::Error) -> String {
    let text = std::error::Error::source(error)
        .map(ToString::to_string)
        .unwrap_or_default();
    if text.starts_with("invalid value for option") {
        text
    } else {
        "malformed".to_owned()
    }
}

/// Rejects a server that may lose acknowledged commits or cannot store all text.
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
