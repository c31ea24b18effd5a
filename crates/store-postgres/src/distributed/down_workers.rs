//! Workers that do not respond. Their apps are left alone until they are back, so that connections do
//! not wait for them.

use super::workers::{CheckedWorker, check_connections};
use crate::Failure;
use crate::background_task::BackgroundTask;
use crate::pool::Pool;
use crate::rows::{id, uuid};
use crate::tx::{self, TransactionMode, Tx};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::StoreResult;
use uuid::Uuid;

/// Interval between checks. Each opens a connection to every worker.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Delay before a check, so that several failures in a row lead to one check.
const CHECK_DELAY: Duration = Duration::from_millis(500);

/// Condition on an app: its shard is on one of the workers in `$1`. The coordinator knows where a shard
/// is.
pub(crate) const ON_DOWN_WORKER: &str = "exists (select from pg_dist_placement as placement
    where placement.shardid = get_shard_id_for_distribution_column('apps', app_id)
      and placement.groupid = any($1))";

/// The workers that did not respond to the last check.
#[derive(Debug, Default)]
pub(crate) struct DownWorkers {
    down: Mutex<Vec<CheckedWorker>>,
    failed: Notify,
}

impl DownWorkers {
    fn lock(&self) -> MutexGuard<'_, Vec<CheckedWorker>> {
        self.down.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the numbers of their groups, by which Citus finds the shards of a worker.
    pub(crate) fn groups(&self) -> Vec<i32> {
        self.lock().iter().map(|worker| worker.group).collect()
    }

    /// Returns the number of workers that did not respond to the last check.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Asks for a check, because a statement failed.
    pub(crate) fn check_soon(&self) {
        self.failed.notify_one();
    }

    /// Replaces the list with the workers of a check, and logs the differences.
    fn replace(&self, checked: Vec<CheckedWorker>) {
        let mut down = self.lock();
        for worker in &checked {
            let was_down = down.iter().any(|one| one.group == worker.group);
            let name = worker.name.as_str();
            if worker.is_up && was_down {
                tracing::info!(worker = name, "a database worker responds again");
            } else if !worker.is_up && !was_down {
                tracing::warn!(worker = name, "a database worker does not respond");
            }
        }
        *down = checked.into_iter().filter(|one| !one.is_up).collect();
    }
}

#[cfg(test)]
impl DownWorkers {
    /// Pretends that the worker of this group does not respond.
    pub(crate) fn assume_down(&self, group: i32) {
        let name = "a worker".to_owned();
        let is_up = false;
        *self.lock() = vec![CheckedWorker { name, group, is_up }];
    }
}

/// Finds out which of these apps are on workers that are down.
pub(crate) async fn find_on_down_workers(
    pool: &Pool,
    apps: &BTreeSet<AppId>,
) -> StoreResult<BTreeSet<AppId>> {
    let groups = pool.down_workers.groups();
    if groups.is_empty() {
        return Ok(BTreeSet::new());
    }
    let apps: Vec<Uuid> = apps.iter().map(|app| uuid(app.as_bytes())).collect();
    let find = async move |tx: &Tx| {
        let sql = format!("select app_id from unnest($2) as app (app_id) where {ON_DOWN_WORKER}");
        let rows = tx.query(&sql, &[&groups, &apps]).await?;
        let apps = rows.iter().map(|row| Ok(AppId::from_bytes(id(row, 0)?)));
        apps.collect::<Result<_, Failure>>()
    };
    tx::run(pool, "find_down_apps", TransactionMode::Read, find).await
}

/// Starts the task that checks the workers.
pub(crate) fn start_watching(pool: Arc<Pool>) -> BackgroundTask {
    BackgroundTask::spawn(async move {
        loop {
            let checked = tx::run(
                &pool,
                "check_workers",
                TransactionMode::Read,
                check_connections,
            );
            match checked.await {
                Ok(workers) => pool.down_workers.replace(workers),
                // The coordinator is unavailable, which other transactions report.
                Err(error) => tracing::debug!(%error, "cannot check the database workers"),
            }
            let failed = pool.down_workers.failed.notified();
            let _either = tokio::time::timeout(CHECK_INTERVAL, failed).await;
            tokio::time::sleep(CHECK_DELAY).await;
        }
    })
}
