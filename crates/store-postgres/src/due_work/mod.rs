//! Hints about due work, in a local table of the coordinator.
//!
//! Every node with the role `forward` polls for due work about once a second (`kinds`). On one server
//! that is an index lookup. On a distributed database it would be a query to every shard, and one
//! worker that is down would stop the work of all apps. So a transaction that adds work leaves a hint, and workers look
//! only at the apps with due hints, each app in a separate transaction.
//!
//! A hint is an upper bound: it says when to look at an app at the latest, never that there is work.
//! A transaction collects its hints in [`Tx`]. After the commit the node keeps them in memory, and
//! stores them within [`STORE_DELAY`]. If a node is killed before that, a search of all shards
//! finds the work (`search`). Every hint that changes gets a new version, and a worker changes only
//! the version that it read before it looked. So a hint that arrives during a look is kept.
//!
//! A lease blocks the hint of its queue until the lease ends, so a busy queue costs no looks. The
//! release ends the block.

mod hints;
mod kinds;
mod search;
mod table;

pub(crate) use hints::Hints;
pub(crate) use table::take_increments;

use crate::Failure;
use crate::background_task::BackgroundTask;
use crate::pool::Pool;
use crate::tx::Tx;
use search::SearchTimes;
use std::sync::Arc;
use std::time::{Duration, Instant};
use table::LookedHint;
use tokio::sync::{Mutex, Notify};
use tributary_domain::due_work::{AppWork, NextLook, WorkKind};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{QueueRef, StoreResult};

/// How long hints are collected before they are stored together. Shorter than the time between two
/// polls.
const STORE_DELAY: Duration = Duration::from_millis(250);
/// Delay after hints could not be stored.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Time after which a failed look ends the round. The app's server does not respond, and the next
/// app may be on the same server.
const SLOW_LOOK: Duration = Duration::from_secs(1);

/// What a node knows about due work.
#[derive(Debug, Default)]
pub(crate) struct DueWork {
    /// Hints of committed transactions that are not stored yet.
    unstored: Hints,
    added: Notify,
    /// Locked while hints are stored, so that they are stored in order.
    storing: Mutex<()>,
    searches: SearchTimes,
}

impl DueWork {
    /// Adds the hints of a committed transaction.
    pub(crate) fn add(&self, hints: &Hints) {
        if self.unstored.append(hints) {
            self.added.notify_one();
        }
    }
}

impl Tx {
    /// Leaves a hint that the app has work that is due at this time.
    pub(crate) fn hint(&self, kind: WorkKind, app: AppId, due_at: Timestamp) {
        if self.is_distributed() {
            self.hints.add(kind, app, due_at, None);
        }
    }

    /// Leaves a hint to look at a queue at this time, and not before. Ends an earlier block.
    pub(crate) fn hint_queue(&self, queue: QueueRef, at: Timestamp) {
        if self.is_distributed() {
            let kind = WorkKind::Deliveries(queue.network);
            self.hints.add(kind, queue.app, at, Some(at));
        }
    }
}

/// Starts the task that stores hints.
pub(crate) fn start_storing(pool: Arc<Pool>) -> BackgroundTask {
    BackgroundTask::spawn(async move {
        loop {
            pool.due_work.added.notified().await;
            tokio::time::sleep(STORE_DELAY).await;
            if let Err(error) = store_hints(&pool).await {
                tracing::warn!(%error, "failed to store hints about due work; retrying");
                tokio::time::sleep(RETRY_DELAY).await;
                pool.due_work.added.notify_one();
            }
        }
    })
}

/// Stores the hints that this node has collected.
pub(crate) async fn store_hints(pool: &Pool) -> StoreResult<()> {
    let _in_order = pool.due_work.storing.lock().await;
    let taken = pool.due_work.unstored.take();
    let hints = taken.sorted();
    if !hints.is_empty() {
        table::store(pool, hints).await?;
    }
    taken.forget();
    Ok(())
}

/// Work that a look has taken, and the work that it left.
pub(crate) struct Look<T> {
    pub(crate) taken: Vec<T>,
    pub(crate) left: AppWork,
}

impl<T> Look<T> {
    /// Describes a look at work that can be taken whenever it is due.
    pub(crate) fn new(taken: Vec<T>, earliest_due: Option<i64>) -> Self {
        let left = AppWork {
            earliest_due: earliest_due.map(Timestamp::from_millis),
            ..AppWork::default()
        };
        Self { taken, left }
    }
}

/// Looks at the apps with due hints until about `limit` items are taken. `look` gets an app and the
/// number of items that it may take. If one app fails, the others are still looked at.
pub(crate) async fn look_at_apps<T>(
    pool: &Pool,
    kind: WorkKind,
    now: Timestamp,
    limit: u32,
    look: impl AsyncFn(AppId, u32) -> StoreResult<Look<T>>,
) -> StoreResult<Vec<T>> {
    let round_begun = Instant::now();
    search::search_sometimes(pool, kind, now).await;
    store_hints(pool).await?;
    let mut taken = Vec::new();
    let mut looked = Vec::new();
    let mut has_failed = false;
    for hint in table::find(pool, kind, now, limit).await? {
        let left = limit.saturating_sub(u32::try_from(taken.len()).unwrap_or(u32::MAX));
        if left == 0 {
            break;
        }
        let begun = Instant::now();
        match look(hint.app, left).await {
            Ok(found) => {
                taken.extend(found.taken);
                let next = found.left.next_look(now);
                if next != NextLook::Now {
                    looked.push(LookedHint::new(hint, next));
                }
            }
            Err(error) => {
                let next = NextLook::after_failure(now, round_begun.elapsed());
                looked.push(LookedHint::new(hint, next));
                if !has_failed {
                    let app = hint.app;
                    tracing::warn!(%app, %error, "failed to look for an app's due work; will retry");
                }
                has_failed = true;
                pool.down_workers.check_soon();
                if begun.elapsed() > SLOW_LOOK {
                    break;
                }
            }
        }
    }
    // What was taken must be returned. Without the update, the next round looks again.
    if let Err(error) = table::update(pool, kind, looked).await {
        tracing::warn!(%error, "failed to update hints about due work");
    }
    Ok(taken)
}

/// Returns the earliest due time in the only column of a row.
pub(crate) async fn earliest(tx: &Tx, sql: &str, app: AppId) -> Result<Option<i64>, Failure> {
    let row = tx
        .query_one(sql, &[&crate::rows::uuid(app.as_bytes())])
        .await?;
    Ok(row.try_get(0)?)
}
