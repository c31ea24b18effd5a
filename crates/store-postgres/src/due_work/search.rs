//! Searches all shards for due work whose hint was lost: a node was killed before it stored the hint,
//! an older version of the program added the work, or it existed before the distribution.
//!
//! While a worker is down, a search would fail for all apps. It waits until the worker is back; hints
//! are not affected.

use super::hints::Hints;
use crate::Failure;
use crate::pool::Pool;
use crate::rows::id;
use crate::tx::{self, TransactionMode, Tx};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres::Row;
use tributary_domain::due_work::WorkKind;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::StoreResult;
use tributary_store::records::queue_ref;

/// How often a node searches all shards. A lease of a killed node takes almost as long to end.
const SEARCH_INTERVAL: Duration = Duration::from_mins(1);

/// The kinds of work that workers look for. Increments are merged elsewhere.
pub(super) const SEARCHED: [WorkKind; 7] = [
    WorkKind::Deliveries(Network::A),
    WorkKind::Deliveries(Network::B),
    WorkKind::Deliveries(Network::C),
    WorkKind::Deliveries(Network::D),
    WorkKind::Trials,
    WorkKind::Tokens,
    WorkKind::Alerts,
];

/// When this node last searched for each kind of work.
#[derive(Debug, Default)]
pub(super) struct SearchTimes(Mutex<BTreeMap<SearchKind, Instant>>);

/// What one search finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SearchKind {
    /// Queues of all networks.
    Queues,
    Trials,
    Tokens,
    Alerts,
}

impl SearchKind {
    const fn of(kind: WorkKind) -> Option<Self> {
        match kind {
            WorkKind::Deliveries(_) => Some(Self::Queues),
            WorkKind::Trials => Some(Self::Trials),
            WorkKind::Tokens => Some(Self::Tokens),
            WorkKind::Alerts => Some(Self::Alerts),
            // Nodes that merge find them.
            WorkKind::Increments => None,
        }
    }
}

impl SearchTimes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SearchKind, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a search is due. If so, notes that it begins now.
    fn begin(&self, kind: SearchKind) -> bool {
        let mut times = self.lock();
        let is_due = is_due(&times, kind);
        if is_due {
            times.insert(kind, Instant::now());
        }
        is_due
    }
}

fn is_due(times: &BTreeMap<SearchKind, Instant>, kind: SearchKind) -> bool {
    let last = times.get(&kind);
    last.is_none_or(|at| at.elapsed() >= SEARCH_INTERVAL)
}

/// Returns the kinds of work whose search is due.
pub(super) fn due_searches(pool: &Pool) -> Vec<WorkKind> {
    if !pool.down_workers.groups().is_empty() {
        return Vec::new();
    }
    let times = pool.due_work.searches.lock();
    let is_due = |kind: &WorkKind| SearchKind::of(*kind).is_some_and(|kind| is_due(&times, kind));
    SEARCHED.into_iter().filter(is_due).collect()
}

#[cfg(test)]
impl SearchTimes {
    /// Pretends that everything was searched just now.
    fn skip(&self) {
        use SearchKind::{Alerts, Queues, Tokens, Trials};
        for kind in [Queues, Trials, Tokens, Alerts] {
            self.begin(kind);
        }
    }
}

#[cfg(test)]
impl super::DueWork {
    /// Skips the first searches, so that work is found only by its hints.
    pub(crate) fn skip_searches(&self) {
        self.searches.skip();
    }
}

/// Searches all shards if the last search was long ago, and adds hints for what it finds.
pub(super) async fn search_sometimes(pool: &Pool, kind: WorkKind, now: Timestamp) {
    let Some(kind) = SearchKind::of(kind) else {
        return;
    };
    if !pool.down_workers.groups().is_empty() || !pool.due_work.searches.begin(kind) {
        return;
    }
    match search(pool, kind, now).await {
        Ok(found) => {
            let hints = Hints::default();
            for (kind, app) in found {
                hints.add(kind, app, now, None);
            }
            pool.due_work.add(&hints);
        }
        Err(error) => {
            tracing::warn!(%error, "failed to search all shards for due work; hints are still used");
        }
    }
}

async fn search(
    pool: &Pool,
    kind: SearchKind,
    now: Timestamp,
) -> StoreResult<Vec<(WorkKind, AppId)>> {
    let search = async move |tx: &Tx| match kind {
        SearchKind::Queues => find_queues(tx, now).await,
        SearchKind::Trials => {
            let sql = "select distinct app_id from trials where state = 'held' and due_at <= $1";
            find_apps(tx, sql, WorkKind::Trials, now).await
        }
        SearchKind::Tokens => {
            let sql = "select distinct app_id from ad_services_tokens where due_at <= $1";
            find_apps(tx, sql, WorkKind::Tokens, now).await
        }
        SearchKind::Alerts => {
            let sql = "select distinct app_id from alerts where due_at <= $1";
            find_apps(tx, sql, WorkKind::Alerts, now).await
        }
    };
    tx::run(pool, "search_due_work", TransactionMode::Read, search).await
}

async fn find_apps(
    tx: &Tx,
    sql: &str,
    kind: WorkKind,
    now: Timestamp,
) -> Result<Vec<(WorkKind, AppId)>, Failure> {
    let rows = tx.query(sql, &[&now.as_millis()]).await?;
    let found = |row: &Row| Ok((kind, AppId::from_bytes(id(row, 0)?)));
    rows.iter().map(found).collect()
}

/// Finds queues with due work. Whether they can be leased, the look decides.
async fn find_queues(tx: &Tx, now: Timestamp) -> Result<Vec<(WorkKind, AppId)>, Failure> {
    let mut found = Vec::new();
    for table in ["outbox", "status_checks"] {
        let sql = format!(
            "select app_id, network from integrations
             where enabled
               and exists (select 1 from {table}
                           where {table}.app_id = integrations.app_id
                             and {table}.network = integrations.network and {table}.due_at <= $1)"
        );
        for row in &tx.query(&sql, &[&now.as_millis()]).await? {
            let queue = queue_ref(id(row, 0)?, row.try_get(1)?)?;
            found.push((WorkKind::Deliveries(queue.network), queue.app));
        }
    }
    Ok(found)
}
