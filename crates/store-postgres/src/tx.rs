//! Named transactions that retry themselves.
//!
//! A transaction runs again, from its beginning, when the database gave it up for the sake of another one
//! (SQLSTATE 40001, 40P01) or when its connection was lost before the commit was sent: in both cases it is
//! certain that nothing was stored. A connection that is lost during the commit leaves it open whether
//! anything was stored; that is never tried again here, but told as unavailable. Whoever asked knows how to
//! ask again without doing it twice.
//!
//! It also runs again when the work finds that another transaction was first (`Failure::Overtaken`). That is
//! how races end here, so it is no fault of anybody's, and nobody is warned of it.
//!
//! A transaction that many wait for spares a round trip: what it reads first travels with its beginning
//! ([`Mode::WriteAfterReading`]).
//!
//! All settings are made with `set local`, since behind `PgBouncer` a session is shared with others.

use crate::Failure;
use crate::database_error::DatabaseError;
use crate::params::{Param, typed, values};
use crate::pool::{Pool, PostgresOptions};
use deadpool_postgres::Object;
use std::collections::hash_map::RandomState;
use std::future::poll_fn;
use std::hash::BuildHasher;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Row, Statement};
use tributary_store::StoreError;
use tributary_store::connection_share::ConnectionShare;

/// How often a transaction is tried before its caller is told to come back later.
pub(crate) const ATTEMPTS_MAX: u32 = 5;
/// The longest pause after the first attempt; it doubles with every further one.
const RETRY_DELAY_FIRST_MAX: Duration = Duration::from_millis(20);
/// How long a statement waits for another transaction's lock.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long an abandoned transaction may take to be undone before its connection is given up. Long, because
/// a session that is given up may stay on the server: one whose commit waits for a standby that is away
/// would do so, and new ones in its place would in the end use up all that the server has. A connection
/// whose other side is gone fails much earlier.
const ROLLBACK_WAIT_MAX: Duration = Duration::from_mins(5);

/// Rows are looked up by their keys, or read in the order of one. Before the server has counted a table it takes it for
/// small, and would walk through all of it. What has no other way is walked through all the same, at a price so high
/// that the server would compile the statement first, which takes longer than the walk.
const INDEX_PLANS: &str = ";
                 set local enable_seqscan = off;
                 set local enable_hashjoin = off;
                 set local enable_mergejoin = off;
                 set local jit = off";

/// What writes does so for a batch at a time: a plan that is made anew for every batch costs as much as the look-ups.
const GENERIC_PLAN: &str = ";
                 set local plan_cache_mode = force_generic_plan";

/// Whether a transaction changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It reads, and sees one state of the database.
    Read,
    /// It reads, decides and writes. Every statement sees what was committed before it, which is what a
    /// transaction needs that reads after it has waited for a lock.
    Write,
    /// As [`Self::Write`], by work whose first statements change nothing: they are sent before it is known whether the
    /// transaction begins, and whatever comes after their answers is not.
    PipelinedWrite,
}

impl Mode {
    fn writes(self) -> bool {
        self != Self::Read
    }
}

/// Runs something in a transaction and gives its value after the commit. See the module's documentation for
/// when the work runs again.
pub(crate) async fn run<T>(
    pool: &Pool,
    name: &'static str,
    mode: Mode,
    work: impl AsyncFn(&Tx) -> Result<T, Failure>,
) -> Result<T, StoreError> {
    let begun = Instant::now();
    let _running = pool.track_running().await;
    // The server ends a statement in time. This is for a server that does not even answer that.
    let limit = pool.options.connect_timeout + pool.options.statement_timeout;
    let outcome = tokio::time::timeout(limit, run_with_retries(pool, name, mode, work))
        .await
        .unwrap_or_else(|_| {
            let fault = DatabaseError::new(format!("no answer within {limit:?}"));
            Err(StoreError::unavailable(name, fault))
        });
    tributary_store::metrics::record_transaction(name, &outcome, begun.elapsed());
    outcome
}

async fn run_with_retries<T>(
    pool: &Pool,
    name: &'static str,
    mode: Mode,
    work: impl AsyncFn(&Tx) -> Result<T, Failure>,
) -> Result<T, StoreError> {
    let mut attempt = 1;
    loop {
        let fault = match try_once(pool, ConnectionShare::of(name), mode, &work).await {
            Ok(value) => return Ok(value),
            Err(AttemptError::Final(error)) => return Err(error),
            Err(AttemptError::Unavailable(fault)) => {
                return Err(StoreError::unavailable(name, fault));
            }
            Err(AttemptError::Retryable(fault)) => Some(fault),
            Err(AttemptError::Conflict) => None,
        };
        if attempt == ATTEMPTS_MAX {
            let fault = fault.unwrap_or_else(DatabaseError::conflict);
            return Err(StoreError::unavailable(name, fault));
        }
        if let Some(fault) = fault {
            tracing::warn!(transaction = name, attempt, %fault, "a transaction is tried again");
            tokio::time::sleep(retry_delay(attempt)).await;
        } else {
            // Whoever was first has committed: nothing is left to wait for.
            tracing::debug!(
                transaction = name,
                attempt,
                "a transaction is decided again"
            );
        }
        attempt += 1;
    }
}

/// Between nothing and twice as much as before, at random: those who met once should not meet again.
fn retry_delay(attempt: u32) -> Duration {
    let longest = RETRY_DELAY_FIRST_MAX * 2_u32.pow(attempt - 1);
    // Its keys differ every time, which is random enough for a pause and needs no source of randomness.
    let random = RandomState::new().hash_one(attempt) % 1_000;
    longest * u32::try_from(random).unwrap_or(0) / 1_000
}

/// How an attempt ends without a value.
enum AttemptError {
    /// The work has an answer of its own.
    Final(StoreError),
    /// The database is at fault, and another attempt would not help or could do harm.
    Unavailable(DatabaseError),
    /// The database is at fault, and it is certain that nothing was stored.
    Retryable(DatabaseError),
    /// Another transaction was first, and nothing was stored.
    Conflict,
}

async fn try_once<T>(
    pool: &Pool,
    share: ConnectionShare,
    mode: Mode,
    work: &impl AsyncFn(&Tx) -> Result<T, Failure>,
) -> Result<T, AttemptError> {
    let _permit = pool
        .permit(share)
        .await
        .map_err(AttemptError::Unavailable)?;
    let connection = pool.connection().await.map_err(AttemptError::Unavailable)?;
    let tx = Tx::new(connection, pool.options.statement_cache);
    let unreplicated = pool.unreplicated();
    let worked = match begin_and_run(&tx, mode, &pool.options, work).await {
        Ok(worked) => worked,
        Err(error) => {
            // A standby, for example: it takes no transactions that write.
            tx.discard();
            return Err(classify_before_commit(Failure::Postgres(error)));
        }
    };
    let value = match worked {
        Ok(value) => value,
        Err(failure) => {
            if is_read_only_server(&failure) {
                tx.discard();
            } else {
                tx.roll_back().await;
            }
            return Err(classify_before_commit(failure));
        }
    };
    if tx.has_failed() {
        // The server would answer the commit with a rollback, which looks like a success.
        tx.roll_back().await;
        let text = "a statement failed and the transaction went on: a bug";
        return Err(AttemptError::Unavailable(DatabaseError::new(text)));
    }
    let has_counted = tx.has_increments.load(Ordering::Relaxed);
    let committed = tx.commit().await;
    if has_counted {
        pool.increments_stored.notify_one();
    }
    match committed {
        Err(error) if mode == Mode::Read => Err(classify_before_commit(Failure::Postgres(error))),
        Err(error) => Err(classify_commit_error(&error)),
        // Perhaps it was another transaction's commit; to ask again does no harm.
        Ok(()) if mode.writes() && pool.unreplicated() != unreplicated => {
            let text = "the commit is stored, but the standby has not confirmed it";
            Err(AttemptError::Unavailable(DatabaseError::new(text)))
        }
        Ok(()) => Ok(value),
    }
}

/// Begins and works; an error is of the beginning. Answers come in the order of what was asked, and this one is looked
/// at first, so that nothing that follows from an answer is done before it is known that the transaction has begun.
async fn begin_and_run<T>(
    tx: &Tx,
    mode: Mode,
    options: &PostgresOptions,
    work: &impl AsyncFn(&Tx) -> Result<T, Failure>,
) -> Result<Result<T, Failure>, tokio_postgres::Error> {
    let mut begin = Box::pin(tx.begin(mode, options));
    if mode != Mode::PipelinedWrite {
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

fn classify_before_commit(failure: Failure) -> AttemptError {
    match failure {
        Failure::Store(error) => AttemptError::Final(error),
        Failure::Conflict => AttemptError::Conflict,
        Failure::Postgres(error)
            if is_serialization_failure(&error) || is_connection_lost(&error) =>
        {
            AttemptError::Retryable(DatabaseError::from(&error))
        }
        Failure::Postgres(error) => AttemptError::Unavailable(DatabaseError::from(&error)),
    }
}

fn classify_commit_error(error: &tokio_postgres::Error) -> AttemptError {
    let fault = DatabaseError::from(error);
    if is_serialization_failure(error) {
        return AttemptError::Retryable(fault);
    }
    let refused = error
        .as_db_error()
        .is_some_and(|said| said.code().code().starts_with("23"));
    AttemptError::Unavailable(if refused {
        fault
    } else {
        fault.with_context("whether the commit is stored is not known")
    })
}

/// Whether the database gave the transaction up for the sake of another one.
fn is_serialization_failure(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ]
        .contains(code)
    })
}

/// Whether the server takes no writes any more. The next connection may find the one that does.
fn is_read_only_server(failure: &Failure) -> bool {
    let Failure::Postgres(error) = failure else {
        return false;
    };
    error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
}

/// Whether the connection is lost, and with it the transaction.
fn is_connection_lost(error: &tokio_postgres::Error) -> bool {
    if error.as_db_error().is_some() {
        return is_session_ended(error);
    }
    error.is_closed()
        || std::error::Error::source(error)
            .is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

/// Whether the server says that the session ends.
fn is_session_ended(error: &tokio_postgres::Error) -> bool {
    // 57P: the server stops or ends the session; 08: the connection; 25P03: it was silent for too long.
    error.as_db_error().is_some_and(|said| {
        let code = said.code().code();
        code.starts_with("57P") || code.starts_with("08") || code == "25P03"
    })
}

/// An open transaction. Dropped without an end, it is undone behind everybody's back.
pub(crate) struct Tx {
    /// Nothing once it was handed back.
    connection: Option<Object>,
    statement_cache: bool,
    /// A statement failed: the server undoes the whole transaction, whatever is said to it.
    failed: AtomicBool,
    /// Whose statement is sent next. Statements that wait together are sent in the order in which they were asked for,
    /// although one of them may have to be prepared first: rows are locked in that order.
    turn: Mutex<()>,
    /// Something was counted that is to be added to the roll-ups.
    has_increments: AtomicBool,
}

impl Tx {
    fn new(connection: Object, statement_cache: bool) -> Self {
        Self {
            connection: Some(connection),
            statement_cache,
            failed: AtomicBool::new(false),
            turn: Mutex::new(()),
            has_increments: AtomicBool::new(false),
        }
    }

    /// Notes that it counted something that is to be added to the roll-ups.
    pub(crate) fn note_increments(&self) {
        self.has_increments.store(true, Ordering::Relaxed);
    }

    fn connection(&self) -> &Object {
        self.connection
            .as_ref()
            .expect("a transaction keeps its connection to its end")
    }

    /// Begins, with every setting the promises rest on, in one round trip.
    async fn begin(
        &self,
        mode: Mode,
        options: &PostgresOptions,
    ) -> Result<(), tokio_postgres::Error> {
        let (kind, plans) = match mode {
            Mode::Read => ("isolation level repeatable read, read only", ""),
            Mode::Write | Mode::PipelinedWrite => {
                ("isolation level read committed, read write", GENERIC_PLAN)
            }
        };
        let statement = options.statement_timeout.as_millis().max(1);
        let lock = LOCK_WAIT_MAX.as_millis();
        // A role's setting may have turned synchronous_commit off: confirmed, and lost with the power.
        self.connection()
            .batch_execute(&format!(
                "begin {kind};
                 set local synchronous_commit = on;
                 set local statement_timeout = {statement};
                 set local lock_timeout = {lock};
                 set local idle_in_transaction_session_timeout = {statement}{INDEX_PLANS}{plans}"
            ))
            .await
    }

    /// The rows that a statement gives.
    pub(crate) async fn query(
        &self,
        sql: &str,
        params: &[&dyn Param],
    ) -> Result<Vec<Row>, Failure> {
        let turn = self.turn.lock().await;
        let rows = if let Some(kept) = self.cached_statement(sql, params).await? {
            let values = values(params);
            send_in_turn(turn, Box::pin(self.connection().query(&kept, &values))).await
        } else {
            let typed = typed(params);
            send_in_turn(turn, Box::pin(self.connection().query_typed(sql, &typed))).await
        };
        self.checked(rows)
    }

    /// The one row that a statement always gives.
    pub(crate) async fn query_one(&self, sql: &str, params: &[&dyn Param]) -> Result<Row, Failure> {
        let no_row = || DatabaseError::new("a statement gave no row: a bug");
        let row = self.query_opt(sql, params).await?;
        row.ok_or_else(|| StoreError::unavailable("query_one", no_row()).into())
    }

    /// The one row that a statement gives, if it gives one.
    pub(crate) async fn query_opt(
        &self,
        sql: &str,
        params: &[&dyn Param],
    ) -> Result<Option<Row>, Failure> {
        let rows = self.query(sql, params).await?;
        Ok(rows.into_iter().next())
    }

    /// The number of rows that a statement changed.
    pub(crate) async fn execute(&self, sql: &str, params: &[&dyn Param]) -> Result<u64, Failure> {
        let turn = self.turn.lock().await;
        let rows = if let Some(kept) = self.cached_statement(sql, params).await? {
            let values = values(params);
            send_in_turn(turn, Box::pin(self.connection().execute(&kept, &values))).await
        } else {
            let typed = typed(params);
            send_in_turn(turn, Box::pin(self.connection().execute_typed(sql, &typed))).await
        };
        self.checked(rows)
    }

    /// The statement, prepared; nothing where none are kept. Then it travels with its values, unnamed.
    async fn cached_statement(
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

    fn checked<T>(&self, outcome: Result<T, tokio_postgres::Error>) -> Result<T, Failure> {
        Ok(outcome.inspect_err(|_| self.failed.store(true, Ordering::Relaxed))?)
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    async fn commit(self) -> Result<(), tokio_postgres::Error> {
        let outcome = self.connection().batch_execute("commit").await;
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

    /// Hands the connection back, or closes it.
    fn end(mut self, is_clean: bool) {
        let connection = self.connection.take();
        if !is_clean {
            close(connection);
        }
    }
}

impl Drop for Tx {
    /// Whoever waited has gone away in the middle. The connection goes back to the pool when it is clean
    /// again, and not before.
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return close(Some(connection));
        };
        runtime.spawn(async move {
            let undone =
                tokio::time::timeout(ROLLBACK_WAIT_MAX, connection.batch_execute("rollback"));
            if !matches!(undone.await, Ok(Ok(()))) {
                close(Some(connection));
            }
        });
    }
}

/// Waits for a statement, and lets the next one have its turn as soon as this one is sent, which the first poll does.
async fn send_in_turn<T, F>(turn: MutexGuard<'_, ()>, mut statement: Pin<Box<F>>) -> T
where
    F: Future<Output = T>,
{
    let first = poll_fn(|context| Poll::Ready(statement.as_mut().poll(context))).await;
    drop(turn);
    match first {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => statement.await,
    }
}

/// Closes a connection instead of handing it back.
fn close(connection: Option<Object>) {
    drop(connection.map(Object::take));
}
