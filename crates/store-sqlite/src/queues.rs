//! How the queues of integrations stand, and who holds them.

use crate::Failure;
use crate::rows::read_row;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::settlement::IntegrationVersion;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{Columns, QueueRow};
use tributary_store::{LeaseId, QueueRef};

/// How a queue stands; one that nobody touched stands well.
pub(crate) fn find(connection: &Connection, queue: QueueRef) -> Result<QueueState, Failure> {
    let sql = format!(
        "select {} from queues where app_id = ?1 and network = ?2",
        QueueRow::COLUMNS
    );
    let row = connection
        .prepare_cached(&sql)?
        .query_row(
            params![queue.app.as_bytes(), queue.network.as_str()],
            read_row::<QueueRow>,
        )
        .optional()?;
    Ok(row.map(QueueRow::read).unwrap_or_default())
}

/// Writes how a queue stands. Who holds it is another question.
pub(crate) fn write(
    connection: &Connection,
    queue: QueueRef,
    state: &QueueState,
) -> Result<(), Failure> {
    let row = QueueRow::write(state);
    connection
        .prepare_cached(
            "insert into queues (app_id, network, paused_at, pause_code, pause_words, failures, not_before,
                                 probing, rejection_code, rejections, last_delivered_at)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             on conflict (app_id, network) do update set
                 paused_at = excluded.paused_at, pause_code = excluded.pause_code,
                 pause_words = excluded.pause_words, failures = excluded.failures,
                 not_before = excluded.not_before, probing = excluded.probing,
                 rejection_code = excluded.rejection_code, rejections = excluded.rejections,
                 last_delivered_at = excluded.last_delivered_at",
        )?
        .execute(params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            row.paused_at,
            row.pause_code,
            row.pause_words,
            row.failures,
            row.not_before,
            row.probing,
            row.rejection_code,
            row.rejections,
            row.last_delivered_at
        ])?;
    Ok(())
}

/// Lets a queue go on that is paused: somebody asks for it, or has changed the integration.
pub(crate) fn changed(connection: &Connection, queue: QueueRef) -> Result<(), Failure> {
    let mut state = find(connection, queue)?;
    state.changed();
    write(connection, queue, &state)
}

/// Returns the version of the integration that a queue belongs to.
pub(crate) fn version(
    connection: &Connection,
    queue: QueueRef,
) -> Result<Option<IntegrationVersion>, Failure> {
    let version = connection
        .prepare_cached(
            "select revision, enabled from integrations where app_id = ?1 and network = ?2",
        )?
        .query_row(
            params![queue.app.as_bytes(), queue.network.as_str()],
            |row| {
                Ok(IntegrationVersion {
                    revision: row.get(0)?,
                    enabled: row.get(1)?,
                })
            },
        )
        .optional()?;
    Ok(version)
}

/// Takes a queue that no process holds and that is not paused, and returns how it stands.
pub(crate) fn take(
    connection: &Connection,
    queue: QueueRef,
    lease: LeaseId,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<QueueState>, Failure> {
    let sql = format!(
        "insert into queues (app_id, network, lease_id, leased_until) values (?1, ?2, ?3, ?4)
         on conflict (app_id, network) do update
         set lease_id = excluded.lease_id, leased_until = excluded.leased_until
         where leased_until <= ?5 and paused_at is null
         returning {}",
        QueueRow::COLUMNS
    );
    let taken = connection
        .prepare_cached(&sql)?
        .query_row(
            params![
                queue.app.as_bytes(),
                queue.network.as_str(),
                lease.0,
                until.as_millis(),
                now.as_millis()
            ],
            read_row::<QueueRow>,
        )
        .optional()?;
    Ok(taken.map(QueueRow::read))
}

/// Lets a queue that no process holds rest until then.
pub(crate) fn rest(
    connection: &Connection,
    queue: QueueRef,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "insert into queues (app_id, network, not_before) values (?1, ?2, ?3)
             on conflict (app_id, network) do update set not_before = excluded.not_before
             where leased_until <= ?4",
        )?
        .execute(params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            until.as_millis(),
            now.as_millis()
        ])?;
    Ok(())
}

/// Holds a queue until then, if it is held by this lease; false when it is not.
pub(crate) fn hold(
    connection: &Connection,
    queue: QueueRef,
    lease: LeaseId,
    until: Timestamp,
) -> Result<bool, Failure> {
    let held = connection
        .prepare_cached(
            "update queues set leased_until = ?4
             where app_id = ?1 and network = ?2 and lease_id = ?3",
        )?
        .execute(params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            lease.0,
            until.as_millis()
        ])?;
    Ok(held == 1)
}

/// Whether a queue is held by this lease.
pub(crate) fn is_held(
    connection: &Connection,
    queue: QueueRef,
    lease: LeaseId,
) -> Result<bool, Failure> {
    let held = connection
        .prepare_cached(
            "select 1 from queues where app_id = ?1 and network = ?2 and lease_id = ?3",
        )?
        .exists(params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            lease.0
        ])?;
    Ok(held)
}

/// Gives a queue back. The moment is kept: whose turn was longest ago is next.
pub(crate) fn release(
    connection: &Connection,
    queue: QueueRef,
    lease: LeaseId,
    now: Timestamp,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "update queues set lease_id = null, leased_until = ?4
             where app_id = ?1 and network = ?2 and lease_id = ?3",
        )?
        .execute(params![
            queue.app.as_bytes(),
            queue.network.as_str(),
            lease.0,
            now.as_millis()
        ])?;
    Ok(())
}
