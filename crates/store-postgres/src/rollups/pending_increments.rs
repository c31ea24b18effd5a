//! Pending increments: counted, but not yet merged into the roll-ups.
//!
//! All transactions change the same few roll-up rows and would wait for each other's commits. So
//! each transaction stores its increments in a separate row, and a background task merges them when
//! an app has many, or after a while. Reports read the roll-ups and the pending increments in one
//! snapshot and add them up; they never write.
//!
//! Merging locks an app's increments in id order, so no other node merges for that app until the
//! commit. Erasing a device and rebuilding figures take the same locks, so the cohort devices do
//! not change meanwhile.

use crate::Failure;
use crate::background_task::BackgroundTask;
use crate::begin::read_of_all_apps;
use crate::distributed::find_on_down_workers;
use crate::due_work::take_increments;
use crate::params::column;
use crate::pool::Pool;
use crate::rows::{id, uuid};
use crate::tx::{self, TransactionMode, Tx};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tributary_domain::report::{Increments, PendingIncrements};
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::merge;
use tributary_store::records::{count_to_u64, increments_from_json, increments_to_json};
use tributary_store::{StoreError, StoreResult};

/// Interval between passes over the apps that this node counted for. Until increments are merged,
/// reports add them up.
const MERGE_INTERVAL: Duration = Duration::from_secs(1);
/// Delay after a failed merge. A standby rejects every attempt.
const RETRY_DELAY: Duration = Duration::from_secs(10);
/// Maximum number of increments merged per transaction. Each comes from one batch of limited size.
const MERGED_ROWS_MAX: usize = 200;
/// Maximum number of increments that a report adds up. More accumulate only when no node has merged
/// for a long time; the limit bounds memory use.
pub(crate) const UNMERGED_ROWS_MAX: usize = 20_000;

/// How often a node searches for increments of nodes that do not merge, or that stopped before they
/// did. With a longer interval, a report could find more increments than it can add up.
const SEARCH_INTERVAL: Duration = Duration::from_secs(10);
/// The same on a distributed database, where a search queries every shard.
const DISTRIBUTED_SEARCH_INTERVAL: Duration = Duration::from_mins(1);
/// How often a node of a distributed database takes the hints of nodes that do not merge.
const HINTS_INTERVAL: Duration = Duration::from_secs(5);

/// The apps that a transaction counts for.
#[derive(Debug, Default)]
pub(crate) struct CountedApps(Mutex<BTreeSet<AppId>>);

impl CountedApps {
    fn add(&self, apps: impl IntoIterator<Item = AppId>) {
        lock(&self.0).extend(apps);
    }

    /// Removes and returns all apps.
    pub(crate) fn take(&self) -> BTreeSet<AppId> {
        std::mem::take(&mut *lock(&self.0))
    }
}

/// Pending increments that this node knows of, by app.
#[derive(Debug, Default)]
pub(crate) struct PendingApps(Mutex<BTreeMap<AppId, PendingApp>>);

#[derive(Debug, Clone, Copy)]
struct PendingApp {
    count: u64,
    noticed_at: Instant,
}

impl PendingApps {
    /// Adds one increment per app.
    pub(crate) fn add(&self, apps: impl IntoIterator<Item = AppId>) {
        let mut pending = lock(&self.0);
        for app in apps {
            entry(&mut pending, app).count += 1;
        }
    }

    /// Takes over the number of increments that a search found.
    fn notice(&self, app: AppId, found: u64) {
        let mut pending = lock(&self.0);
        let app = entry(&mut pending, app);
        app.count = app.count.max(found);
    }

    /// Removes and returns the apps whose increments are to be merged now.
    fn take_due(&self) -> BTreeMap<AppId, PendingApp> {
        let is_due = |_: &AppId, app: &mut PendingApp| {
            let (count, age) = (app.count, app.noticed_at.elapsed());
            PendingIncrements { count, age }.are_due()
        };
        lock(&self.0).extract_if(.., is_due).collect()
    }

    /// Adds an app again whose increments could not be merged.
    fn put_back(&self, app: AppId, failed: PendingApp) {
        let mut pending = lock(&self.0);
        let app = pending.entry(app).or_insert(failed);
        app.count = app.count.max(failed.count);
        app.noticed_at = app.noticed_at.min(failed.noticed_at);
    }
}

fn entry(pending: &mut BTreeMap<AppId, PendingApp>, app: AppId) -> &mut PendingApp {
    pending.entry(app).or_insert_with(|| PendingApp {
        count: 0,
        noticed_at: Instant::now(),
    })
}

fn lock<T>(locked: &Mutex<T>) -> MutexGuard<'_, T> {
    locked.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Merges all increments, one app per transaction.
#[cfg(test)]
pub(crate) async fn merge_all(pool: &Pool) -> StoreResult<()> {
    for (app, _) in find_apps(pool).await? {
        merge_app(pool, app).await?;
    }
    Ok(())
}

/// When a node last looked for increments of other nodes.
#[derive(Debug, Default)]
struct LookTimes {
    searched: Option<Instant>,
    took_hints: Option<Instant>,
}

/// Returns whether an interval has passed, and begins the next one if so.
fn is_over(interval: Duration, begun: &mut Option<Instant>) -> bool {
    let is_over = begun.is_none_or(|at| at.elapsed() >= interval);
    if is_over {
        *begun = Some(Instant::now());
    }
    is_over
}

/// Looks for increments of other nodes, now and then. On a distributed database, they leave hints;
/// a search waits while a worker is down.
async fn look_for_others(pool: &Pool, times: &mut LookTimes) -> StoreResult<()> {
    let is_distributed = pool.is_distributed();
    if is_distributed && is_over(HINTS_INTERVAL, &mut times.took_hints) {
        pool.pending_apps.add(take_increments(pool).await?);
    }
    let interval = if is_distributed {
        DISTRIBUTED_SEARCH_INTERVAL
    } else {
        SEARCH_INTERVAL
    };
    if pool.down_workers.count() == 0 && is_over(interval, &mut times.searched) {
        for (app, found) in find_apps(pool).await? {
            pool.pending_apps.notice(app, found);
        }
    }
    Ok(())
}

/// Merges the due increments that this node knows of, one app per transaction. If merging fails for
/// one app, the others are still merged. Returns the first error. Apps of a worker that is down wait
/// until the worker is back.
async fn merge_due(pool: &Pool, times: &mut LookTimes) -> StoreResult<()> {
    let mut first = look_for_others(pool, times).await;
    for (app, pending) in take_reachable(pool).await? {
        let merged = merge_app(pool, app).await;
        if merged.is_err() {
            pool.down_workers.check_soon();
            pool.pending_apps.put_back(app, pending);
        }
        first = first.and(merged);
    }
    first
}

/// Takes the apps with increments to merge now, and leaves those of workers that are down.
async fn take_reachable(pool: &Pool) -> StoreResult<BTreeMap<AppId, PendingApp>> {
    let mut due = pool.pending_apps.take_due();
    let apps = due.keys().copied().collect();
    let unreachable = match find_on_down_workers(pool, &apps).await {
        Ok(unreachable) => unreachable,
        Err(error) => {
            for (app, pending) in due {
                pool.pending_apps.put_back(app, pending);
            }
            return Err(error);
        }
    };
    for (app, pending) in due.extract_if(.., |app, _| unreachable.contains(app)) {
        pool.pending_apps.put_back(app, pending);
    }
    Ok(due)
}

/// Counts the pending increments of each app, on all shards.
async fn find_apps(pool: &Pool) -> StoreResult<Vec<(AppId, u64)>> {
    let find = async |tx: &Tx| {
        let sql = "select app_id, count(*) from rollup_increments group by app_id";
        let rows = tx.query(sql, &[]).await?;
        let app = |row| {
            Ok((
                AppId::from_bytes(id(row, 0)?),
                count_to_u64(row.try_get(1)?),
            ))
        };
        rows.iter().map(app).collect::<Result<Vec<_>, Failure>>()
    };
    let mode = read_of_all_apps(pool.is_distributed());
    tx::run(pool, "find_increments", mode, find).await
}

/// Merges an app's increments.
pub(crate) async fn merge_app(pool: &Pool, app: AppId) -> StoreResult<()> {
    let merge = async move |tx: &Tx| merge_some(tx, app).await;
    while tx::run(pool, "merge_increments", TransactionMode::Write, merge).await? {}
    Ok(())
}

/// Starts the task that merges increments.
pub(crate) fn start_merging(pool: Arc<Pool>) -> BackgroundTask {
    BackgroundTask::spawn(async move {
        let mut times = LookTimes::default();
        loop {
            tokio::time::sleep(MERGE_INTERVAL).await;
            if let Err(error) = merge_due(&pool, &mut times).await {
                tracing::warn!(%error, "failed to merge roll-up increments; retrying");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    })
}
