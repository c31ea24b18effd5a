//! The servers that hold the shards.

use crate::Failure;
use crate::pool::PostgresOpenError;
use crate::tx::Tx;
use tokio_postgres::{Client, Row};

/// Asks every worker for the settings that protect acknowledged commits. A worker that does not
/// respond has `success = false`.
const WORKER_SETTINGS: &str = "
    select nodename || ':' || nodeport, success, result from run_command_on_workers(
        $$ select current_setting('fsync') || ' ' || current_setting('full_page_writes') $$)
    order by 1";

/// How long a worker may take to accept a connection. Citus waits half a minute by default.
const CONNECT_MILLIS: &str = "set local citus.node_connection_timeout = 2000";

/// Connects to every worker.
const WORKER_CONNECTIONS: &str = "
    select node.nodename || ':' || node.nodeport, node.groupid, checked.success
    from run_command_on_workers('select 1') as checked
    join pg_dist_node as node
      on node.nodename = checked.nodename and node.nodeport = checked.nodeport";

/// A worker, and whether it responds.
#[derive(Debug)]
pub(super) struct CheckedWorker {
    pub(super) name: String,
    /// Number by which Citus finds the shards of a worker.
    pub(super) group: i32,
    pub(super) is_up: bool,
}

/// Checks which workers respond.
pub(super) async fn check_connections(tx: &Tx) -> Result<Vec<CheckedWorker>, Failure> {
    tx.execute(CONNECT_MILLIS, &[]).await?;
    let worker = |row: &Row| {
        Ok(CheckedWorker {
            name: row.try_get(0)?,
            group: row.try_get(1)?,
            is_up: row.try_get(2)?,
        })
    };
    let rows = tx.query(WORKER_CONNECTIONS, &[]).await?;
    rows.iter().map(worker).collect()
}

/// The state of a worker.
enum WorkerState {
    Safe,
    /// This setting is off.
    Unsafe(&'static str),
    /// Does not respond.
    Down,
}

fn worker_state(row: &Row) -> Result<(String, WorkerState), tokio_postgres::Error> {
    let name = row.try_get(0)?;
    let is_up: bool = row.try_get(1)?;
    let settings: Option<&str> = row.try_get(2)?;
    let state = match settings {
        Some(settings) if is_up => match settings.split_once(' ') {
            Some(("off", _)) => WorkerState::Unsafe("fsync"),
            Some((_, "off")) => WorkerState::Unsafe("full_page_writes"),
            _ => WorkerState::Safe,
        },
        _ => WorkerState::Down,
    };
    Ok((name, state))
}

/// Rejects workers that may lose acknowledged commits. A worker that is down stops only its own
/// apps, so it does not stop the start.
pub(super) async fn check_workers(client: &Client) -> Result<(), PostgresOpenError> {
    for row in client.query_typed(WORKER_SETTINGS, &[]).await? {
        match worker_state(&row)? {
            (_, WorkerState::Safe) => {}
            (_, WorkerState::Unsafe(setting)) => return Err(PostgresOpenError::Unsafe { setting }),
            (worker, WorkerState::Down) => {
                tracing::warn!(worker, "a database worker does not respond");
            }
        }
    }
    Ok(())
}

/// Warnings about the workers.
pub(crate) struct WorkerWarnings {
    pub(crate) warnings: Vec<String>,
    pub(crate) all_respond: bool,
}

/// Finds workers that do not respond, or that became unsafe after the start.
pub(crate) async fn find_worker_warnings(tx: &Tx) -> Result<WorkerWarnings, Failure> {
    let mut warnings = Vec::new();
    let mut all_respond = true;
    tx.execute(CONNECT_MILLIS, &[]).await?;
    for row in tx.query(WORKER_SETTINGS, &[]).await? {
        match worker_state(&row)? {
            (_, WorkerState::Safe) => {}
            (worker, WorkerState::Unsafe(setting)) => warnings.push(format!(
                "the worker {worker} runs with {setting} = off and may lose acknowledged commits; \
                 set {setting} = on in its postgresql.conf and reload it"
            )),
            (worker, WorkerState::Down) => {
                all_respond = false;
                warnings.push(format!(
                    "the worker {worker} does not respond; its apps are unavailable"
                ));
            }
        }
    }
    Ok(WorkerWarnings {
        warnings,
        all_respond,
    })
}
