//! The standby that serves reports.
//!
//! Each report asks the primary for its position in the log, and the standby for the position that it
//! has replayed. The rule is [`PrimaryHistory::decide`]. A standby that is some milliseconds behind
//! gets the time to catch up, so that a report normally contains everything that was answered before
//! it, as on the primary. See `docs/adr/0039-a-standby-serves-reports.md`.
//!
//! The position of the standby is read on the report's own connection and before its snapshot, so the
//! snapshot contains that position.

mod changes;

use crate::abandoned::UsedConnection;
use crate::attempt_error::AttemptError;
use crate::background_task::BackgroundTask;
use crate::database_error::DatabaseError;
use crate::pool::{Pool, config};
use crate::probe::{ANSWER_WAIT_MAX, Probe, only_row};
use crate::tx::{TransactionMode, Tx, try_on};
use crate::{Failure, PostgresOpenError, PostgresOptions};
use changes::ChangeTimes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio_postgres::SimpleQueryRow;
use tokio_postgres::config::TargetSessionAttrs;
use tributary_domain::access::Actor;
use tributary_domain::standby::{LogPosition, PrimaryHistory, PrimaryReason, StandbyDecision};
use tributary_store::connection_share::ConnectionShare;
use tributary_store::{ReportTimeout, StandbyReport, StoreError, StoreResult, metrics};

/// Interval between checks of both servers. Reports ask them anyway, so checks matter only for
/// metrics and for finding out that a server is back.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The same while a server does not answer, so that it is used again soon.
const CHECK_INTERVAL_OUTAGE: Duration = Duration::from_secs(1);
/// Pause before the check that follows a change, so that frequent changes share a check.
const CHECK_PAUSE: Duration = Duration::from_millis(100);
/// How long a report waits for the standby to catch up. Replication usually takes milliseconds; a
/// report that waits longer would rather be served by the primary, or as it is.
const CATCH_UP_MAX: Duration = Duration::from_millis(100);
/// Pause between two looks at the standby's position.
const CATCH_UP_PAUSE: Duration = Duration::from_millis(5);
/// Lag beyond which waiting is pointless.
const CATCH_UP_LAG_MAX: Duration = Duration::from_secs(1);

/// Position after all commits that were acknowledged, and what tells databases apart. The flushed
/// position, because the standby never replays more than that.
const ASK_PRIMARY: &str = "select pg_current_wal_flush_lsn(),
    concat_ws(' ', (select system_identifier from pg_control_system()), current_database(), current_schema())";

/// Whether the server is a standby, its position, what tells databases apart, and the seconds since
/// the latest replayed commit by the clocks of the servers.
const ASK_STANDBY: &str = "select pg_is_in_recovery(), pg_last_wal_replay_lsn(),
    concat_ws(' ', (select system_identifier from pg_control_system()), current_database(), current_schema()),
    extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::bigint";

/// Transactions that withdraw access. A standby without them must not authenticate anybody.
const WITHDRAWALS: [&str; 6] = [
    "change_member_role",
    "change_password",
    "end_session",
    "remove_member",
    "revoke_key",
    "rotate_key",
];

/// Where the standby is and how far it may be behind.
pub struct StandbyOptions<'a> {
    /// URL of the standby.
    pub url: &'a str,
    /// Lag beyond which the primary serves reports.
    pub lag_max: Duration,
}

/// The standby and the task that checks it.
pub(crate) struct Standby {
    servers: Arc<Servers>,
    checks: BackgroundTask,
}

impl Standby {
    /// Checks both servers and goes on checking them.
    pub(crate) async fn start(
        primary_url: &str,
        standby: &StandbyOptions<'_>,
        options: PostgresOptions,
    ) -> Result<Self, PostgresOpenError> {
        let servers = Arc::new(Servers::new(primary_url, standby, options)?);
        metrics::describe_standby();
        servers.check().await;
        let checked = servers.clone();
        let checks = BackgroundTask::spawn(async move {
            loop {
                checked.wait_for_check().await;
                checked.check().await;
            }
        });
        Ok(Self { servers, checks })
    }

    /// Runs read-only `work` on the standby, or returns why the primary must run it.
    pub(crate) async fn read<T>(
        &self,
        caller: &Actor,
        name: &'static str,
        work: &impl AsyncFn(&Tx) -> Result<T, Failure>,
    ) -> Result<StoreResult<T>, PrimaryReason> {
        let served = match self.servers.admit(Some(caller)).await {
            Ok((connection, _)) => run_once(&self.servers.pool, name, connection, work).await,
            Err(reason) => Err(reason),
        };
        let served = match served {
            Ok(Err(StoreError::Refused(_))) => Err(PrimaryReason::Refusal),
            other => other,
        };
        let reason = served.as_ref().err().copied();
        metrics::count_standby_read(reason);
        if let Some(reason) = reason {
            let reason = reason.as_str();
            tracing::debug!(transaction = name, reason, "reading from the primary");
        }
        served
    }

    /// Returns once the primary does not answer.
    pub(crate) async fn primary_lost(&self) {
        let mut lost = self.servers.primary_lost.subscribe();
        // An error means that the sender is gone, which this struct owns.
        if lost.wait_for(|lost| *lost).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Runs read-only `work` on the standby because the primary does not answer. The standby must
    /// contain every position that this node has noted and every access that it has withdrawn,
    /// because the work may authenticate a caller. Otherwise returns `None`, also for a refusal: the
    /// standby may lack the data that allows the request.
    pub(crate) async fn read_during_outage<T>(
        &self,
        name: &'static str,
        work: &impl AsyncFn(&Tx) -> Result<T, Failure>,
    ) -> Option<StoreResult<T>> {
        let Ok((connection, StandbyDecision::Current)) = self.servers.admit(None).await else {
            return None;
        };
        let read = run_once(&self.servers.pool, name, connection, work).await;
        let read = read.ok();
        read.filter(|outcome| !matches!(outcome, Err(StoreError::Refused(_))))
    }

    /// Notes that a transaction has ended, which may have withdrawn access.
    pub(crate) fn note_transaction(&self, name: &str) {
        if WITHDRAWALS.contains(&name) {
            let servers = &self.servers;
            let now = servers.started.elapsed();
            servers.lock().withdrawn_at = Some(now);
            servers.change_noted.notify_one();
        }
    }

    /// Notes that the caller has changed something.
    pub(crate) fn note_change(&self, caller: &Actor) {
        let servers = &self.servers;
        let now = servers.started.elapsed();
        servers.lock().changes.note(caller, now);
        servers.change_noted.notify_one();
    }

    /// Checks both servers and returns the state of the standby.
    pub(crate) async fn report(&self) -> StandbyReport {
        self.servers.check().await;
        let state = self.servers.lock();
        match &state.problem {
            Some(problem) => StandbyReport::Unusable(problem.clone()),
            None => StandbyReport::Usable {
                lag: state.lag(),
                lag_max: self.servers.lag_max,
            },
        }
    }

    /// Ends the checks, waits for running reports, and closes the connections.
    pub(crate) async fn close(&self) {
        self.checks.stop();
        self.servers.pool.close().await;
    }
}

/// Both servers and what is known about them.
struct Servers {
    pool: Pool,
    primary: Probe,
    standby: Probe,
    lag_max: Duration,
    started: Instant,
    /// A std mutex, because it is never held across an await.
    state: Mutex<ServerState>,
    /// Whether the primary did not answer the latest question.
    primary_lost: watch::Sender<bool>,
    change_noted: Notify,
}

#[derive(Default)]
struct ServerState {
    history: PrimaryHistory,
    changes: ChangeTimes,
    /// Time of the latest transaction that may have withdrawn access.
    withdrawn_at: Option<Duration>,
    /// Position of the standby at the latest check that it answered.
    replayed: Option<LogPosition>,
    /// Time since the latest commit that the standby had replayed then.
    replayed_age: Duration,
    /// Why the standby cannot be used.
    problem: Option<String>,
    /// What tells the primary's database from others.
    identity: Option<String>,
}

impl ServerState {
    /// Returns the lag of the standby. Shortly after the start, the history may not reach back far
    /// enough; then the clocks of the servers tell.
    fn lag(&self) -> Duration {
        let Some(replayed) = self.replayed else {
            return Duration::ZERO;
        };
        let lag = self.history.lag(replayed);
        match self.history.complete_until(replayed) {
            Some(_) => lag,
            None => lag.max(self.replayed_age),
        }
    }
}

impl Servers {
    fn new(
        primary_url: &str,
        standby: &StandbyOptions<'_>,
        options: PostgresOptions,
    ) -> Result<Self, PostgresOpenError> {
        let primary = config(primary_url, &options, TargetSessionAttrs::ReadWrite)?;
        let is_url = |error: PostgresOpenError| match error {
            PostgresOpenError::Url(problem) => PostgresOpenError::ReadUrl(problem),
            other => other,
        };
        let probed = config(standby.url, &options, TargetSessionAttrs::ReadOnly).map_err(is_url)?;
        Ok(Self {
            pool: Pool::open_standby(standby.url, options).map_err(is_url)?,
            primary: Probe::new(primary)?,
            standby: Probe::new(probed)?,
            lag_max: standby.lag_max,
            started: Instant::now(),
            state: Mutex::default(),
            primary_lost: watch::Sender::new(false),
            change_noted: Notify::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a connection to the standby if it may serve this caller, or authenticate callers if
    /// there is none.
    async fn admit(
        &self,
        caller: Option<&Actor>,
    ) -> Result<(UsedConnection, StandbyDecision), PrimaryReason> {
        if self.lock().problem.is_some() {
            return Err(PrimaryReason::Unusable);
        }
        // While the primary does not answer, only the checks ask it.
        if !*self.primary_lost.borrow() {
            self.ask_primary().await;
        }
        // A busy standby is not a dead one.
        let permit = self.pool.permit(ConnectionShare::Report).await;
        let permit = permit.map_err(|_| PrimaryReason::Unusable)?;
        let connection = self.connect(permit).await;
        let connection = connection.map_err(|error| self.give_up(&error))?;
        let begun = Instant::now();
        loop {
            let asked = replayed_position(&connection).await;
            let replayed = asked.map_err(|error| self.give_up(&error))?;
            let (decision, lag) = {
                let state = self.lock();
                let changed_at = match caller {
                    Some(caller) => state.changes.latest_of(caller),
                    None => state.withdrawn_at,
                };
                let decision = state.history.decide(replayed, changed_at, self.lag_max);
                (decision, state.history.lag(replayed))
            };
            let is_worth_waiting = lag <= CATCH_UP_LAG_MAX && begun.elapsed() < CATCH_UP_MAX;
            match decision {
                StandbyDecision::Current => return Ok((connection, decision)),
                _ if is_worth_waiting => tokio::time::sleep(CATCH_UP_PAUSE).await,
                StandbyDecision::Behind => return Ok((connection, decision)),
                StandbyDecision::Rejected(reason) => return Err(reason),
            }
        }
    }

    async fn connect(&self, permit: OwnedSemaphorePermit) -> Result<UsedConnection, DatabaseError> {
        let connecting = tokio::time::timeout(ANSWER_WAIT_MAX, self.pool.connection());
        let connection = connecting.await.unwrap_or_else(|_| Err(no_response()))?;
        Ok(UsedConnection::new(
            connection,
            permit,
            Some(self.pool.tls()),
        ))
    }

    /// Stops using the standby until a check succeeds.
    fn give_up(&self, error: &DatabaseError) -> PrimaryReason {
        self.set_problem(Some(format!("it does not answer: {error}")));
        self.change_noted.notify_one();
        PrimaryReason::Unusable
    }

    fn set_problem(&self, problem: Option<String>) {
        let before = std::mem::replace(&mut self.lock().problem, problem.clone());
        match (before, problem) {
            (None, Some(problem)) => {
                tracing::warn!(
                    problem,
                    "the standby cannot be used; the primary serves reports"
                );
            }
            (Some(_), None) => tracing::info!("the standby serves reports again"),
            _ => {}
        }
    }

    /// Asks the primary for its position and notes it.
    async fn ask_primary(&self) {
        let asked_at = self.started.elapsed();
        let answer = self.primary.ask(ASK_PRIMARY).await;
        let was_lost = self.primary_lost.send_replace(answer.is_err());
        match answer {
            Ok(row) => {
                let mut state = self.lock();
                if let Some(position) = position(&row, 0) {
                    state.history.note(asked_at, position);
                }
                state.identity = row.get(1).map(str::to_owned);
            }
            Err(error) if !was_lost => {
                tracing::warn!(%error, "the primary does not answer; the standby serves reports");
            }
            Err(_) => {}
        }
    }

    /// Waits until the next check is due.
    async fn wait_for_check(&self) {
        let is_outage = *self.primary_lost.borrow() || self.lock().problem.is_some();
        if is_outage {
            return tokio::time::sleep(CHECK_INTERVAL_OUTAGE).await;
        }
        tokio::select! {
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
            () = self.change_noted.notified() => tokio::time::sleep(CHECK_PAUSE).await,
        }
    }

    /// Asks both servers for their positions.
    async fn check(&self) {
        self.ask_primary().await;
        let problem = match self.standby.ask(ASK_STANDBY).await {
            Err(error) => Some(format!("it does not answer: {error}")),
            Ok(row) => {
                let mut state = self.lock();
                let replayed = position(&row, 1);
                let other = state
                    .identity
                    .as_deref()
                    .is_some_and(|own| row.get(2) != Some(own));
                if row.get(0) != Some("t") || replayed.is_none() {
                    Some("database_read_url does not lead to a standby".to_owned())
                } else if other {
                    let text = "database_read_url leads to a standby of another database or schema";
                    Some(text.to_owned())
                } else {
                    state.replayed = replayed;
                    let age = row.get(3).and_then(|seconds| seconds.parse().ok());
                    state.replayed_age = Duration::from_secs(age.unwrap_or_default());
                    let complete = replayed.and_then(|one| state.history.complete_until(one));
                    state.changes.forget_before(complete.unwrap_or_default());
                    None
                }
            }
        };
        let is_usable = problem.is_none();
        self.set_problem(problem);
        metrics::set_standby(self.lock().lag(), is_usable);
    }
}

/// Asks the standby for its position on this connection.
async fn replayed_position(connection: &UsedConnection) -> Result<LogPosition, DatabaseError> {
    let sql = "select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() end";
    let asked = tokio::time::timeout(ANSWER_WAIT_MAX, only_row(connection.object(), sql));
    let row = asked.await.unwrap_or_else(|_| Err(no_response()))?;
    position(&row, 0).ok_or_else(|| DatabaseError::new("it is not a standby"))
}

fn no_response() -> DatabaseError {
    DatabaseError::new(format!("no response within {ANSWER_WAIT_MAX:?}"))
}

fn position(row: &SimpleQueryRow, column: usize) -> Option<LogPosition> {
    LogPosition::parse(row.get(column)?)
}

/// Runs read-only `work` once on a connection to the standby, or returns why the primary must run it.
/// Work that takes too long is not repeated: the primary would need as long.
async fn run_once<T>(
    pool: &Pool,
    name: &'static str,
    connection: UsedConnection,
    work: &impl AsyncFn(&Tx) -> Result<T, Failure>,
) -> Result<StoreResult<T>, PrimaryReason> {
    let begun = Instant::now();
    let _running = pool.track_running().await;
    let limit = pool.options.connect_timeout + pool.options.report_timeout;
    let (share, mode) = (ConnectionShare::Report, TransactionMode::Read);
    let attempt = try_on(pool, connection, share, mode, work);
    let outcome = match tokio::time::timeout(limit, attempt).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(AttemptError::Unavailable(error))) if error.is_cancelled() => {
            Err(StoreError::unavailable(name, ReportTimeout))
        }
        Ok(Err(AttemptError::Unavailable(_))) => return Err(PrimaryReason::Unusable),
        // A conflict with replay has the error code of a conflict with another transaction.
        Ok(Err(AttemptError::Retryable(_) | AttemptError::Conflict)) => {
            return Err(PrimaryReason::Conflict);
        }
        Ok(Err(AttemptError::Final(error))) => Err(error),
        Err(_) => Err(StoreError::unavailable(name, ReportTimeout)),
    };
    metrics::record_transaction(name, &outcome, begun.elapsed());
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::WITHDRAWALS;

    #[test]
    fn withdrawals_are_names_of_transactions() {
        let sources = [
            include_str!("../keys.rs"),
            include_str!("../members.rs"),
            include_str!("../sessions.rs"),
            include_str!("../tenants.rs"),
        ];
        for name in WITHDRAWALS {
            let call = format!("(\"{name}\", ");
            assert!(sources.iter().any(|text| text.contains(&call)), "{name}");
        }
    }
}
