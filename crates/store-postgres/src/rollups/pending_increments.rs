//! Increments: what was counted and is not merged into the roll-ups yet.
//!
//! All transactions change the same few rows of the roll-ups, and each would wait for the commit of the one before. So a
//! transaction stores what it counted in a separate row, which no other waits for; a moment later a task of the node merges
//! all of them at once. A report reads both in one snapshot and adds them up; it never writes.
//!
//! Who merges takes the increments of an app in the order of their ids and locks them, so that no other node merges for this
//! app until the commit. No other changes the devices of its cohorts meanwhile: who erases one or rebuilds figures has
//! taken these rows as well.

use crate::Failure;
use crate::params::column;
use crate::pool::Pool;
use crate::rows::{id, uuid};
use crate::tx::{self, Mode, Tx};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::merge;
use tributary_store::records::{increments_from_json, increments_to_json};
use tributary_store::{StoreError, StoreResult};

/// How long a node waits before it merges what it counted: a report adds up as much.
const MERGE_DELAY: Duration = Duration::from_secs(1);
/// How long it waits after a failure. A standby refuses every attempt.
const RETRY_DELAY: Duration = Duration::from_secs(10);
/// Increments that are merged at a time. Each is of a batch, whose size is bounded.
const MERGED_ROWS_MAX: usize = 200;
/// Increments that a report adds up. There are more only when no node has merged for a long while, and then a report would
/// take memory without end.
const UNMERGED_ROWS_MAX: usize = 20_000;

/// Stores what a transaction counted.
pub(crate) async fn store_increments(tx: &Tx, counted: &Increments) -> Result<(), Failure> {
    if counted.is_empty() {
        return Ok(());
    }
    let parts: Vec<(AppId, String)> = counted
        .clone()
        .by_app()
        .iter()
        .map(|(app, part)| (*app, increments_to_json(part)))
        .collect();
    tx.execute(
        "insert into rollup_increments (app_id, body) select * from unnest($1, $2)",
        &[
            &column(&parts, |(app, _)| uuid(app.as_bytes())),
            &column(&parts, |(_, body)| body.as_str()),
        ],
    )
    .await?;
    tx.note_increments();
    Ok(())
}

/// Merges some increments of an app; true when more may be left.
async fn merge_some(tx: &Tx, app: AppId) -> Result<bool, Failure> {
    let taken = take(tx, app).await?;
    let mut all = Increments::default();
    for (_, body) in &taken {
        all.merge(increments_from_json(app, body)?);
    }
    merge(tx, &all).await?;
    Ok(taken.len() == MERGED_ROWS_MAX)
}

/// Merges all increments of an app before its figures are rebuilt or one of its devices is erased. What cannot be read is
/// dropped.
pub(super) async fn merge_or_discard(tx: &Tx, app: AppId) -> Result<(), Failure> {
    loop {
        let taken = take(tx, app).await?;
        let mut all = Increments::default();
        for (_, body) in &taken {
            match increments_from_json(app, body) {
                Ok(counted) => all.merge(counted),
                Err(error) => {
                    tracing::error!(%error, "dropped an increment that cannot be read; rebuild the roll-ups of this app");
                }
            }
        }
        merge(tx, &all).await?;
        if taken.len() < MERGED_ROWS_MAX {
            return Ok(());
        }
    }
}

/// Takes increments of an app, in their order. A second node waits for the locks and takes what is left. The array is
/// made once, whatever the planner believes of a table that was empty when it last looked.
async fn take(tx: &Tx, app: AppId) -> Result<Vec<(i64, String)>, Failure> {
    let limit = i64::try_from(MERGED_ROWS_MAX).unwrap_or(i64::MAX);
    let rows = tx
        .query(
            "delete from rollup_increments
             where app_id = $1 and increment_id = any(array(
                 select increment_id from rollup_increments where app_id = $1
                 order by increment_id limit $2 for update
             ))
             returning increment_id, body",
            &[&uuid(app.as_bytes()), &limit],
        )
        .await?;
    let mut taken = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<Vec<(i64, String)>, tokio_postgres::Error>>()?;
    taken.sort_unstable_by_key(|(increment, _)| *increment);
    Ok(taken)
}

/// The increments of an app.
pub(super) async fn read(tx: &Tx, app: AppId) -> Result<Increments, Failure> {
    let limit = i64::try_from(UNMERGED_ROWS_MAX + 1).unwrap_or(i64::MAX);
    let rows = tx
        .query(
            "select body from rollup_increments where app_id = $1 order by increment_id limit $2",
            &[&uuid(app.as_bytes()), &limit],
        )
        .await?;
    if rows.len() > UNMERGED_ROWS_MAX {
        let fault = "more increments are waiting to be merged than a report adds up";
        return Err(StoreError::unavailable("read_increments", fault).into());
    }
    let mut all = Increments::default();
    for row in &rows {
        all.merge(increments_from_json(app, row.try_get(0)?)?);
    }
    Ok(all)
}

/// Merges all increments, in transactions of one app each. An app that fails keeps no other from it; the first failure
/// is returned.
pub(crate) async fn merge_all(pool: &Pool) -> StoreResult<()> {
    let find = async |tx: &Tx| {
        let sql = "select distinct app_id from rollup_increments";
        let rows = tx.query(sql, &[]).await?;
        let apps = rows.iter().map(|row| Ok(AppId::from_bytes(id(row, 0)?)));
        apps.collect::<Result<Vec<_>, Failure>>()
    };
    let mut first = Ok(());
    for app in tx::run(pool, "find_increments", Mode::Read, find).await? {
        let merged = merge_app(pool, app).await;
        first = first.and(merged);
    }
    first
}

async fn merge_app(pool: &Pool, app: AppId) -> StoreResult<()> {
    let merge = async move |tx: &Tx| merge_some(tx, app).await;
    while tx::run(pool, "merge_increments", Mode::Write, merge).await? {}
    Ok(())
}

/// The task that merges a moment after this node counted something.
pub(crate) struct MergeTask(JoinHandle<()>);

impl MergeTask {
    /// Starts the task, which merges what other nodes left first.
    pub(crate) fn start(pool: Arc<Pool>) -> Self {
        // A node that is gone may have left some.
        pool.increments_stored.notify_one();
        Self(tokio::spawn(async move {
            loop {
                pool.increments_stored.notified().await;
                tokio::time::sleep(MERGE_DELAY).await;
                if let Err(error) = merge_all(&pool).await {
                    tracing::warn!(%error, "failed to merge increments into the roll-ups; trying again");
                    tokio::time::sleep(RETRY_DELAY).await;
                    pool.increments_stored.notify_one();
                }
            }
        }))
    }

    /// Stops it. The next node that counts something merges what is left.
    pub(crate) fn stop(&self) {
        self.0.abort();
    }
}

impl Drop for MergeTask {
    fn drop(&mut self) {
        self.stop();
    }
}
