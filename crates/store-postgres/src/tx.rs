//! Named transactions that retry.
//!
//! A transaction runs again from the start after a serialisation failure or deadlock (SQLSTATE
//! 40001, 40P01), or when its connection was lost before the commit was sent. In both cases nothing
//! was stored. When the connection is lost during the commit, the outcome is unknown. Such a
//! transaction is never retried here but reported as unavailable; callers can safely repeat their
//! requests.
//!
//! A transaction also runs again when the work reports that another transaction was first
//! (`Failure::Conflict`). This is the normal outcome of a race, so it is not logged as a warning.
//!
//! A frequent transaction can save a round trip by sending its first reads together with `begin`
//! ([`TransactionMode::PipelinedWrite`]).

use crate::Failure;
use crate::abandoned::UsedConnection;
use crate::added_work::AddedWork;
use crate::attempt_error::{AttemptError, classify_before_commit, classify_commit_error};
use crate::begin::begin_statements;
use crate::database_error::{DatabaseError, is_read_only_server};
use crate::due_work::Hints;
use crate::params::{Param, typed, values};
use crate::pipeline::{send_all, send_in_turn};
use crate::pool::Pool;
use crate::rollups::CountedApps;
use crate::statement_text::statement_text;
use deadpool_postgres::Object;
use std::collections::hash_map::RandomState;
use std::future::poll_fn;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio_postgres::types::Type;
use tokio_postgres::{Row, Statement};
use tributary_store::connection_share::{ConnectionShare, LONG};
use tributary_store::{ReportTimeout, StoreError};

/// Number of attempts before the caller gets an error.
pub(crate) const ATTEMPTS_MAX: u32 = 5;
/// Maximum delay after the first attempt. The maximum doubles with each further attempt.
const RETRY_DELAY_FIRST_MAX: Duration = Duration::from_millis(20);
/// Maximum duration of a long transaction: enough for a day with millions of events.
const LONG_TRANSACTION_MAX: Duration = Duration::from_mins(10);

/// How a transaction accesses the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionMode {
    /// Reads one snapshot.
    Read,
    /// Reads with one statement, without `begin` and `commit`. It is planned every time, for the
    /// present size of the tables, and cancelled if it takes too long.
    ReadOnce,
    /// Reads, decides and writes. Each statement sees all earlier commits, as needed for reads
    /// after waiting for a lock.
    Write,
    /// Like [`Self::Write`], but the first statements only read. They are sent before `begin` is
    /// confirmed; everything after their results waits for the confirmation.
    PipelinedWrite,
}

impl TransactionMode {
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Write | Self::PipelinedWrite)
    }
}

/// Runs `work` in a transaction and returns its value after the commit. The module documentation
/// describes when `work` runs again.
pub(crate) async fn run<T>(
    pool: &Pool,
    name: &'static str,
    mode: TransactionMode,
    work: impl AsyncFn(&Tx) -> Result<T, Failure>,
) -> Result<T, StoreError> {
    run_borrowed(pool, name, mode, &work).await
}

/// Same as [`run`], for work that the caller may run elsewhere afterwards.
pub(crate) async fn run_borrowed<T>(
    pool: &Pool,
    name: &'static str,
    mode: TransactionMode,
    work: &impl AsyncFn(&Tx) -> Result<T, Failure>,
) -> Result<T, StoreError> {
    let begun = Instant::now();
    let _running = pool.track_running().await;
    // The server enforces the statement timeout. This timeout covers a server that does not respond
    // at all.
    let share = ConnectionShare::of(name);
    let limit = if LONG.contains(&name) {
        LONG_TRANSACTION_MAX
    } else {
        pool.options.connect_timeout + pool.options.statement_timeout_for(share)
    };
    let outcome = tokio::time::timeout(limit, run_with_retries(pool, name, mode, work))
        .await
        .unwrap_or_else(|_| {
            if share == ConnectionShare::Report {
                return Err(StoreError::unavailable(name, ReportTimeout));
            }
            let error = DatabaseError::new(format!("no response within {limit:?}"));
            Err(StoreError::unavailable(name, error))
        });
    tributary_store::metrics::record_transaction(name, &outcome, begun.elapsed());
    outcome
}

async fn run_with_retries<T>(
    pool: &Pool,
    name: &'static str,
    mode: TransactionMode,
    work: &impl AsyncFn(&Tx) -> Result<T, Failure>,
) -> Result<T, StoreError> {
    let share = ConnectionShare::of(name);
    let mut attempt = 1;
    loop {
        let error = match try_once(pool, share, mode, work).await {
            Ok(value) => return Ok(value),
            Err(AttemptError::Final(error)) => return Err(error),
            Err(AttemptError::Unavailable(error))
                if share == ConnectionShare::Report && error.is_cancelled() =>
            {
                return Err(StoreError::unavailable(name, ReportTimeout));
            }
            Err(AttemptError::Unavailable(error)) => {
                return Err(StoreError::unavailable(name, error));
            }
            Err(AttemptError::Retryable(error)) => Some(error),
            Err(AttemptError::Conflict) => None,
        };
        if attempt == ATTEMPTS_MAX {
            let error = error.unwrap_or_else(DatabaseError::conflict);
            return Err(StoreError::unavailable(name, error));
        }
        if let Some(error) = error {
            tracing::warn!(transaction = name, attempt, %error, "retrying transaction");
            tokio::time::sleep(retry_delay(attempt)).await;
        } else {
            // The other transaction has committed, so there is nothing to wait for.
            tracing::debug!(transaction = name, attempt, "retrying after a conflict");
        }
        attempt += 1;
    }
}

/// Returns a random delay, so that two transactions do not conflict again.
fn retry_delay(attempt: u32) -> Duration {
    let longest = RETRY_DELAY_FIRST_MAX * 2_u32.pow(attempt - 1);
    // The keys of `RandomState` differ every time, which is random enough for a delay.
    let random = RandomState::new().hash_one(attempt) % 1_000;
    longest * u32::try_from(random).unwrap_or(0) / 1_000
}

async fn try_once<T>(
    pool: &Pool,
    share: ConnectionShare,
    mode: TransactionMode,
    work: &impl AsyncFn(&Tx) -> Result<T, Failure>,
) -> Result<T, AttemptError> {
    let permit = pool
        .permit(share)
        .await
        .map_err(AttemptError::Unavailable)?;
    let connection = pool.connection().await.map_err(AttemptError::Unavailable)?;
    let is_report = share == ConnectionShare::Report && mode == TransactionMode::Read;
    let cancels = (is_report || mode == TransactionMode::ReadOnce).then(|| pool.tls());
    let connection = UsedConnection::new(connection, permit, cancels);
    try_on(pool, connection, share, mode, work).await
}

/// Runs the work once on this connection.
pub(crate) async fn try_on<T>(
    pool: &Pool,
    connection: UsedConnection,
    share: ConnectionShare,
    mode: TransactionMode,
    work: &impl AsyncFn(&Tx) -> Result<T, Failure>,
) -> Result<T, AttemptError> {
    let mut tx = Tx::new(connection, pool, mode);
    let unreplicated = pool.unreplicated();
    let timeout = pool.options.statement_timeout_for(share);
    let worked = match begin_and_run(&tx, mode, timeout, work).await {
        Ok(worked) => worked,
        Err(error) if is_read_only_server(&error) => {
            tx.discard();
            // The other connections may lead to the same server, and a new one to the primary.
            pool.close_idle();
            return Err(AttemptError::Retryable(DatabaseError::from(&error)));
        }
        Err(error) => {
            tx.discard();
            return Err(classify_before_commit(Failure::Postgres(error)));
        }
    };
    let value = match worked {
        Ok(value) => value,
        Err(failure) => {
            if matches!(&failure, Failure::Postgres(error) if is_read_only_server(error)) {
                tx.discard();
            } else {
                tx.roll_back().await;
            }
            return Err(classify_before_commit(failure));
        }
    };
    if tx.has_failed() {
        // The server would respond to the commit with a rollback, which looks like success.
        tx.roll_back().await;
        let text = "bug: the transaction continued after a failed statement";
        return Err(AttemptError::Unavailable(DatabaseError::new(text)));
    }
    let added = AddedWork {
        pool,
        counted: tx.counted.take(),
        hints: std::mem::take(&mut tx.hints),
    };
    let committed = tx.commit(mode).await;
    drop(added);
    match committed {
        Err(error) if !mode.writes() => Err(classify_before_commit(Failure::Postgres(error))),
        Err(error) => Err(classify_commit_error(&error)),
        // The notice may have been about another transaction's commit; reporting an error is safe
        // either way.
        Ok(()) if mode.writes() && pool.unreplicated() != unreplicated => {
            let text = "committed, but not confirmed by the standby";
            Err(AttemptError::Unavailable(DatabaseError::new(text)))
        }
        Ok(()) => Ok(value),
    }
}

/// Begins the transaction and runs the work. The outer error comes from `begin`. Results arrive in
/// order and `begin` is polled first, so the work continues only after the transaction has begun.
async fn begin_and_run<T>(
    tx: &Tx,
    mode: TransactionMode,
    statement_timeout: Duration,
    work: &impl AsyncFn(&Tx) -> Result<T, Failure>,
) -> Result<Result<T, Failure>, tokio_postgres::Error> {
    let mut begin = Box::pin(tx.begin(mode, statement_timeout));
    if mode != TransactionMode::PipelinedWrite {
        begin.await?;
        return Ok(work(tx).await);
    }
    let mut work = Box::pin(work(tx));
    let mut has_begun = false;
    poll_fn(|context| {
        if !has_begun && let Poll::Ready(begun) = begin.as_mut().poll(context) {
            begun?;
            has_begun = true;
        }
        work.as_mut().poll(context).map(Ok)
    })
    .await
}

/// An open transaction. Dropping it rolls it back in the background.
pub(crate) struct Tx {
    /// `None` once the connection was returned to the pool.
    connection: Option<UsedConnection>,
    statement_cache: bool,
    /// Whether the tables are distributed by app.
    is_distributed: bool,
    /// Whether a statement failed. The server then rejects all further statements, and rolls back
    /// instead of committing.
    failed: AtomicBool,
    /// Number of statements sent. The lock keeps the statements of concurrent futures in the order
    /// of the calls, even if one must be prepared first, so rows are locked in that order.
    pub(crate) turn: Mutex<u64>,
    /// Apps for which the transaction stored increments, which need to be merged.
    pub(crate) counted: CountedApps,
    /// Hints about work that becomes due, on a distributed database.
    pub(crate) hints: Hints,
}

impl Tx {
    fn new(connection: UsedConnection, pool: &Pool, mode: TransactionMode) -> Self {
        Self {
            connection: Some(connection),
            statement_cache: pool.options.statement_cache && mode != TransactionMode::ReadOnce,
            is_distributed: pool.is_distributed(),
            failed: AtomicBool::new(false),
            turn: Mutex::new(0),
            counted: CountedApps::default(),
            hints: Hints::default(),
        }
    }

    /// Returns whether the tables are distributed by app. A statement then locks rows of one app
    /// only.
    pub(crate) const fn is_distributed(&self) -> bool {
        self.is_distributed
    }

    fn connection(&self) -> &Object {
        let used = self.connection.as_ref();
        used.expect("an open transaction has a connection").object()
    }

    /// Begins the transaction with all required settings, in one round trip.
    async fn begin(
        &self,
        mode: TransactionMode,
        statement_timeout: Duration,
    ) -> Result<(), tokio_postgres::Error> {
        let statements = begin_statements(mode, self.is_distributed, statement_timeout);
        let statements = statements.iter();
        let sent = statements.map(|sql| Box::pin(self.connection().batch_execute(sql)));
        send_all(sent.collect()).await?;
        Ok(())
    }

    /// Returns the rows of a statement.
    pub(crate) async fn query(
        &self,
        sql: &str,
        params: &[&dyn Param],
    ) -> Result<Vec<Row>, Failure> {
        if self.is_distributed
            && let Some(returned) = Box::pin(self.insert_values(sql, params)).await?
        {
            return Ok(returned);
        }
        let sql = statement_text(sql, self.is_distributed);
        let turn = self.turn.lock().await;
        let statement = self.cached_statement(&sql, params).await?;
        let sent = self.send_query(&sql, statement.as_ref(), params);
        self.checked(send_in_turn(turn, Box::pin(sent)).await)
    }

    /// Sends a statement with the first poll, prepared or with the types of its parameters. Returns
    /// its rows.
    pub(crate) async fn send_query(
        &self,
        sql: &str,
        statement: Option<&Statement>,
        params: &[&dyn Param],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match statement {
            Some(statement) => self.connection().query(statement, &values(params)).await,
            None => self.connection().query_typed(sql, &typed(params)).await,
        }
    }

    /// Returns the only row of a statement that always returns one.
    pub(crate) async fn query_one(&self, sql: &str, params: &[&dyn Param]) -> Result<Row, Failure> {
        let no_row = || DatabaseError::new("bug: the statement returned no row");
        let row = self.query_opt(sql, params).await?;
        row.ok_or_else(|| StoreError::unavailable("query_one", no_row()).into())
    }

    /// Returns the first row of a statement, if any.
    pub(crate) async fn query_opt(
        &self,
        sql: &str,
        params: &[&dyn Param],
    ) -> Result<Option<Row>, Failure> {
        let rows = self.query(sql, params).await?;
        Ok(rows.into_iter().next())
    }

    /// Runs a statement whose result does not matter.
    pub(crate) async fn execute(&self, sql: &str, params: &[&dyn Param]) -> Result<(), Failure> {
        self.execute_counting(sql, params).await?;
        Ok(())
    }

    /// Returns the number of rows that an `update` or `delete` changed. Not for `insert`: of rows
    /// that conflict, a distributed database counts those that it did not write, too. `returning`
    /// lists the written rows.
    pub(crate) async fn execute_counting(
        &self,
        sql: &str,
        params: &[&dyn Param],
    ) -> Result<u64, Failure> {
        if self.is_distributed
            && let Some(returned) = Box::pin(self.insert_values(sql, params)).await?
        {
            return Ok(u64::try_from(returned.len()).unwrap_or(u64::MAX));
        }
        let sql = statement_text(sql, self.is_distributed);
        let sql = sql.as_ref();
        let turn = self.turn.lock().await;
        let rows = if let Some(statement) = self.cached_statement(sql, params).await? {
            let values = values(params);
            send_in_turn(
                turn,
                Box::pin(self.connection().execute(&statement, &values)),
            )
            .await
        } else {
            let typed = typed(params);
            send_in_turn(turn, Box::pin(self.connection().execute_typed(sql, &typed))).await
        };
        self.checked(rows)
    }

    /// Returns the prepared statement, or `None` if statements are not cached. In that case the
    /// statement is sent unnamed.
    pub(crate) async fn cached_statement(
        &self,
        sql: &str,
        params: &[&dyn Param],
    ) -> Result<Option<Statement>, Failure> {
        if !self.statement_cache {
            return Ok(None);
        }
        let types: Vec<Type> = params.iter().map(|param| param.sql_type()).collect();
        let prepared = self.connection().prepare_typed_cached(sql, &types).await;
        self.checked(prepared).map(Some)
    }

    pub(crate) fn checked<T>(
        &self,
        outcome: Result<T, tokio_postgres::Error>,
    ) -> Result<T, Failure> {
        Ok(outcome.inspect_err(|_| self.failed.store(true, Ordering::Relaxed))?)
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    async fn commit(self, mode: TransactionMode) -> Result<(), tokio_postgres::Error> {
        let outcome = match mode {
            TransactionMode::ReadOnce => Ok(()),
            _ => self.connection().batch_execute("commit").await,
        };
        self.end(outcome.is_ok());
        outcome
    }

    async fn roll_back(self) {
        let outcome = self.connection().batch_execute("rollback").await;
        self.end(outcome.is_ok());
    }

    fn discard(self) {
        self.end(false);
    }

    /// Returns the connection to the pool or closes it.
    fn end(mut self, is_clean: bool) {
        if let Some(connection) = self.connection.take()
            && !is_clean
        {
            connection.close();
        }
    }
}

impl Drop for Tx {
    /// Rolls back after the caller stopped waiting.
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.abandon();
        }
    }
}
