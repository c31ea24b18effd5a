//! Pending increments: counted, but not yet merged into the roll-ups.
//!
//! All transactions change the same few roll-up rows and would wait for each other's commits. So
//! each transaction stores its increments in a separate row, and a background task merges them a
//! moment later. Reports read the roll-ups and the pending increments in one snapshot and add them
//! up; they never write.
//!
//! Merging locks an app's increments in id order, so no other node merges for that app until the
//! commit. Erasing a device and rebuilding figures take the same locks, so the cohort devices do
//! not change meanwhile.

use crate::Failure;
use crate::background_task::BackgroundTask;
use crate::params::column;
use crate::pool::Pool;
use crate::rows::{id, uuid};
use crate::tx::{self, TransactionMode, Tx};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::merge;
use tributary_store::records::{increments_from_json, increments_to_json};
use tributary_store::{StoreError, StoreResult};

/// Delay before merging. Until then, reports add up the pending increments.
const MERGE_DELAY: Duration = Duration::from_secs(1);
/// Interval between checks for increments of other nodes, which may not merge their own. Short
/// enough that reports add up few of them.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Delay after a failed merge. A standby rejects every attempt.
const RETRY_DELAY: Duration = Duration::from_secs(10);
/// Maximum number of increments merged per transaction. Each comes from one batch of limited size.
const MERGED_ROWS_MAX: usize = 200;
/// Maximum number of increments that a report adds up. More accumulate only when no node has merged
/// for a long time; the limit bounds memory use.
pub(crate) const UNMERGED_ROWS_MAX: usize = 20_000;

/// How often a node of a distributed database searches all shards for increments of nodes that do not
/// merge. Longer, and a report could find more than it adds up.
const SEARCH_INTERVAL: Duration = Duration::from_mins(1);

/// Apps with increments to merge.
#[derive(Debug, Default)]
pub(crate) struct CountedApps(Mutex<BTreeSet<AppId>>);

impl CountedApps {
    /// Adds apps.
    pub(crate) fn add(&self, apps: impl IntoIterator<Item = AppId>) {
        self.lock().extend(apps);
    }

    /// Removes and returns all apps.
    pub(crate) fn take(&self) -> BTreeSet<AppId> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<AppId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores the increments of a transaction.
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
    tx.counted.add(parts.into_iter().map(|(app, _)| app));
    Ok(())
}

/// Merges some of an app's increments. Returns true when more may be left.
async fn merge_some(tx: &Tx, app: AppId) -> Result<bool, Failure> {
    let taken = take(tx, app).await?;
    let mut all = Increments::default();
    for (_, body) in &taken {
        all.merge(increments_from_json(app, body)?);
    }
    merge(tx, &all).await?;
    Ok(taken.len() == MERGED_ROWS_MAX)
}

/// Merges all of an app's increments before a rebuild or an erasure. Drops unreadable increments.
pub(super) async fn merge_or_discard(tx: &Tx, app: AppId) -> Result<(), Failure> {
    loop {
        let taken = take(tx, app).await?;
        let mut all = Increments::default();
        for (_, body) in &taken {
            match increments_from_json(app, body) {
                Ok(counted) => all.merge(counted),
                Err(error) => {
                    tracing::error!(
                        %app,
                        %error,
                        "dropping unreadable roll-up increment; run `tributary rollups rebuild`"
                    );
                }
            }
        }
        merge(tx, &all).await?;
        if taken.len() < MERGED_ROWS_MAX {
            return Ok(());
        }
    }
}

/// Removes and returns some of an app's increments, in order. Another node that does the same waits
/// for the locks and gets the remaining increments. The array subquery runs only once, even if the
/// table statistics say that the table is empty.
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

/// Reads an app's pending increments.
pub(super) async fn read(tx: &Tx, app: AppId) -> Result<Increments, Failure> {
    let limit = i64::try_from(UNMERGED_ROWS_MAX + 1).unwrap_or(i64::MAX);
    let rows = tx
        .query(
            "select body from rollup_increments where app_id = $1 order by increment_id limit $2",
            &[&uuid(app.as_bytes()), &limit],
        )
        .await?;
    if rows.len() > UNMERGED_ROWS_MAX {
        let error = "too many pending increments";
        return Err(StoreError::unavailable("read_increments", error).into());
    }
    let mut all = Increments::default();
    for row in &rows {
        all.merge(increments_from_json(app, row.try_get(0)?)?);
    }
    Ok(all)
}

/// Merges all increments, one app per transaction. If merging fails for one app, the others are
/// still merged. Returns the first error.
pub(crate) async fn merge_all(pool: &Pool) -> StoreResult<()> {
    let mut first = Ok(());
    for app in find_apps(pool).await? {
        let merged = merge_app(pool, app).await;
        first = first.and(merged);
    }
    first
}

/// Merges the increments of the apps that this node counted for, and sometimes all increments. Unlike
/// [`merge_all`], it does not query every shard each time. While a worker is down, the search fails, so
/// only apps that this node counted for are merged, without those of that worker.
async fn merge_counted(pool: &Pool, searched_at: &mut Option<Instant>) -> StoreResult<()> {
    let mut first = Ok(());
    if searched_at.is_none_or(|at| at.elapsed() >= SEARCH_INTERVAL) {
        match find_apps(pool).await {
            Ok(apps) => {
                pool.counted_apps.add(apps);
                *searched_at = Some(Instant::now());
            }
            Err(error) => first = Err(error),
        }
    }
    for app in pool.counted_apps.take() {
        let merged = merge_app(pool, app).await;
        if merged.is_err() {
            pool.counted_apps.add([app]);
        }
        first = first.and(merged);
    }
    first
}

/// Finds the apps with increments, on all shards.
async fn find_apps(pool: &Pool) -> StoreResult<Vec<AppId>> {
    let find = async |tx: &Tx| {
        let sql = "select distinct app_id from rollup_increments";
        let rows = tx.query(sql, &[]).await?;
        let apps = rows.iter().map(|row| Ok(AppId::from_bytes(id(row, 0)?)));
        apps.collect::<Result<Vec<_>, Failure>>()
    };
    tx::run(pool, "find_increments", TransactionMode::Read, find).await
}

async fn merge_app(pool: &Pool, app: AppId) -> StoreResult<()> {
    let merge = async move |tx: &Tx| merge_some(tx, app).await;
    while tx::run(pool, "merge_increments", TransactionMode::Write, merge).await? {}
    Ok(())
}

/// Starts the task that merges increments shortly after this node stored some, and those of other
/// nodes a little later.
pub(crate) fn start_merging(pool: Arc<Pool>) -> BackgroundTask {
    BackgroundTask::spawn(async move {
        let mut searched_at = None;
        loop {
            tokio::time::sleep(MERGE_DELAY).await;
            let merged = if pool.shards.get().is_some() {
                merge_counted(&pool, &mut searched_at).await
            } else {
                merge_all(&pool).await
            };
            if let Err(error) = merged {
                tracing::warn!(%error, "failed to merge roll-up increments; retrying");
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            }
            let stored = pool.increments_stored.notified();
            let _either = tokio::time::timeout(CHECK_INTERVAL, stored).await;
        }
    })
}
