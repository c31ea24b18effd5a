//! How the queues of integrations stand, and who holds them.

use crate::Failure;
use crate::rows::{read_row_at, uuid};
use crate::tx::Tx;
use std::collections::BTreeMap;
use tokio_postgres::Row;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::settlement::IntegrationVersion;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{Columns, QueueRow};
use tributary_store::{LeaseId, QueueRef, StoreError};
use uuid::Uuid;

/// The key of a queue, as columns.
pub(crate) fn columns(queue: QueueRef) -> (Uuid, &'static str) {
    (uuid(queue.app.as_bytes()), queue.network.as_str())
}

/// How the queues of an app stand; one that is not here stands well.
pub(crate) async fn find_all(
    tx: &Tx,
    app: AppId,
) -> Result<BTreeMap<Network, QueueState>, Failure> {
    let sql = format!(
        "select network, {} from queues where app_id = $1",
        QueueRow::COLUMNS
    );
    let state = |row: &Row| {
        let network = Network::parse(row.try_get(0)?)
            .ok_or_else(|| StoreError::corrupt("queues", "network", app))?;
        Ok((network, read_row_at::<QueueRow>(row, 1)?.read()))
    };
    let rows = tx.query(&sql, &[&uuid(app.as_bytes())]).await?;
    rows.iter().map(state).collect()
}

/// Writes how a queue stands that is locked, or was not there. Who holds it is another question. False when somebody
/// made it just now.
async fn write(
    tx: &Tx,
    queue: QueueRef,
    state: &QueueState,
    exists: bool,
) -> Result<bool, Failure> {
    let row = QueueRow::write(state);
    let (app, network) = columns(queue);
    let columns = QueueRow::COLUMNS;
    let sql = if exists {
        format!(
            "update queues set ({columns}) = row($3, $4, $5, $6, $7, $8, $9, $10, $11)
             where app_id = $1 and network = $2"
        )
    } else {
        format!(
            "insert into queues (app_id, network, {columns})
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
             on conflict (app_id, network) do nothing"
        )
    };
    let written = tx
        .execute(
            &sql,
            &[
                &app,
                &network,
                &row.paused_at,
                &row.pause_code,
                &row.pause_words,
                &row.failures,
                &row.not_before,
                &row.probing,
                &row.rejection_code,
                &row.rejections,
                &row.last_delivered_at,
            ],
        )
        .await?;
    Ok(written == 1)
}

/// Writes how a queue stands that this transaction has locked.
pub(crate) async fn update(tx: &Tx, queue: QueueRef, state: &QueueState) -> Result<(), Failure> {
    if write(tx, queue, state, true).await? {
        Ok(())
    } else {
        Err(Failure::Overtaken)
    }
}

/// Lets a queue go on that is paused: somebody asks for it, or has changed the integration.
pub(crate) async fn changed(tx: &Tx, queue: QueueRef) -> Result<(), Failure> {
    change(tx, queue, QueueState::changed).await
}

/// Changes how a queue stands. It is locked first: whoever holds it may just be writing that it stops.
async fn change(tx: &Tx, queue: QueueRef, change: fn(&mut QueueState)) -> Result<(), Failure> {
    let (app, network) = columns(queue);
    let sql = format!(
        "select {} from queues where app_id = $1 and network = $2 for update",
        QueueRow::COLUMNS
    );
    let found = tx.query_opt(&sql, &[&app, &network]).await?;
    let mut state = match &found {
        Some(row) => read_row_at::<QueueRow>(row, 0)?.read(),
        None => QueueState::default(),
    };
    change(&mut state);
    if write(tx, queue, &state, found.is_some()).await? {
        Ok(())
    } else {
        Err(Failure::Overtaken)
    }
}

/// Returns the version of the integration that a queue belongs to. When it settles, the queue is locked first: a change of an
/// integration lets its queue go on in the same transaction, so either the change is seen here, or it comes after this.
pub(crate) async fn version(
    tx: &Tx,
    queue: QueueRef,
) -> Result<Option<IntegrationVersion>, Failure> {
    let (app, network) = columns(queue);
    let sql = "select revision, enabled from integrations where app_id = $1 and network = $2";
    let row = tx.query_opt(sql, &[&app, &network]).await?;
    Ok(row.as_ref().map(version_row).transpose()?)
}

/// Returns the same if a queue is held by this lease.
pub(crate) async fn held_version(
    tx: &Tx,
    queue: QueueRef,
    lease: LeaseId,
) -> Result<Option<IntegrationVersion>, Failure> {
    let (app, network) = columns(queue);
    let row = tx
        .query_opt(
            "select integrations.revision, integrations.enabled from queues
             join integrations on integrations.app_id = queues.app_id
                              and integrations.network = queues.network
             where queues.app_id = $1 and queues.network = $2 and queues.lease_id = $3",
            &[&app, &network, &uuid(&lease.0)],
        )
        .await?;
    Ok(row.as_ref().map(version_row).transpose()?)
}

fn version_row(row: &Row) -> Result<IntegrationVersion, tokio_postgres::Error> {
    Ok(IntegrationVersion {
        revision: row.try_get("revision")?,
        enabled: row.try_get("enabled")?,
    })
}

/// Takes a queue that nobody holds and that is not stopped, and says how it stands. Of two who try, the second one
/// waits for the first and then finds it held.
pub(crate) async fn take(
    tx: &Tx,
    queue: QueueRef,
    lease: LeaseId,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<QueueState>, Failure> {
    let (app, network) = columns(queue);
    let sql = format!(
        "insert into queues (app_id, network, lease_id, leased_until) values ($1, $2, $3, $4)
         on conflict (app_id, network) do update
         set lease_id = excluded.lease_id, leased_until = excluded.leased_until
         where queues.leased_until <= $5 and queues.paused_at is null
         returning {}",
        QueueRow::COLUMNS
    );
    let taken = tx
        .query_opt(
            &sql,
            &[
                &app,
                &network,
                &uuid(&lease.0),
                &until.as_millis(),
                &now.as_millis(),
            ],
        )
        .await?;
    let state = taken.map(|row| read_row_at::<QueueRow>(&row, 0).map(QueueRow::read));
    state.transpose()
}

/// Lets a queue that nobody holds rest until then.
pub(crate) async fn rest(
    tx: &Tx,
    queue: QueueRef,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), Failure> {
    let (app, network) = columns(queue);
    tx.execute(
        "insert into queues (app_id, network, not_before) values ($1, $2, $3)
         on conflict (app_id, network) do update set not_before = excluded.not_before
         where queues.leased_until <= $4",
        &[&app, &network, &until.as_millis(), &now.as_millis()],
    )
    .await?;
    Ok(())
}

/// Holds a queue until then, if it is held by this lease; false when it is not.
pub(crate) async fn hold(
    tx: &Tx,
    queue: QueueRef,
    lease: LeaseId,
    until: Timestamp,
) -> Result<bool, Failure> {
    let (app, network) = columns(queue);
    let held = tx
        .execute(
            "update queues set leased_until = $4
             where app_id = $1 and network = $2 and lease_id = $3",
            &[&app, &network, &uuid(&lease.0), &until.as_millis()],
        )
        .await?;
    Ok(held == 1)
}

/// Whether a queue is held by this lease. If it is, nobody takes it over until this transaction ends.
pub(crate) async fn lock_held(tx: &Tx, queue: QueueRef, lease: LeaseId) -> Result<bool, Failure> {
    let (app, network) = columns(queue);
    let held = tx
        .query_opt(
            "select 1 from queues
             where app_id = $1 and network = $2 and lease_id = $3 for update",
            &[&app, &network, &uuid(&lease.0)],
        )
        .await?;
    Ok(held.is_some())
}

/// Gives a queue back. The moment is kept: whose turn was longest ago is next.
pub(crate) async fn release(
    tx: &Tx,
    queue: QueueRef,
    lease: LeaseId,
    now: Timestamp,
) -> Result<(), Failure> {
    let (app, network) = columns(queue);
    tx.execute(
        "update queues set lease_id = null, leased_until = $4
         where app_id = $1 and network = $2 and lease_id = $3",
        &[&app, &network, &uuid(&lease.0), &now.as_millis()],
    )
    .await?;
    Ok(())
}
