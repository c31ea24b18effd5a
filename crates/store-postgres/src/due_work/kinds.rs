//! Which kinds of work are due, found with one statement.

use super::search;
use crate::outbox::due_queues::CAN_BE_LEASED;
use crate::pool::Pool;
use crate::tx::{self, TransactionMode, Tx};
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::collections::BTreeSet;
use tokio_postgres::Row;
use tributary_domain::due_work::WorkKind;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{DueKinds, StoreError, StoreResult};

/// Finds due kinds on one server. `min` reads the first entry of an index.
async fn find_kinds(tx: &Tx, now: Timestamp) -> Result<BTreeSet<WorkKind>, Failure> {
    let earliest = |table: &str| {
        format!(
            "(select min(due_at) from {table} where {table}.app_id = integrations.app_id
                                                and {table}.network = integrations.network)"
        )
    };
    let sql = format!(
        "select distinct integrations.network from integrations
         left join queues on queues.app_id = integrations.app_id
                         and queues.network = integrations.network
         where {CAN_BE_LEASED} and least({}, {}) <= $1
         union all
         select 'trials' where (select min(due_at) from trials where state = 'held') <= $1
         union all
         select 'tokens' where (select min(due_at) from ad_services_tokens) <= $1
         union all
         select 'alerts' where (select min(due_at) from alerts) <= $1",
        earliest("outbox"),
        earliest("status_checks")
    );
    let rows = tx.query(&sql, &[&now.as_millis()]).await?;
    rows.iter().map(read_kind).collect()
}

/// Finds the kinds of due hints, on a distributed database, with one index lookup per kind.
async fn find_hinted_kinds(tx: &Tx, now: Timestamp) -> Result<BTreeSet<WorkKind>, Failure> {
    let sql = "select wanted.kind from unnest($2) as wanted (kind)
               where exists (select 1 from due_work
                             where due_work.kind = wanted.kind
                               and greatest(due_at, blocked_until) <= $1)";
    let kinds: Vec<&str> = search::SEARCHED.map(WorkKind::as_str).to_vec();
    let rows = tx.query(sql, &[&now.as_millis(), &kinds]).await?;
    rows.iter().map(read_kind).collect()
}

fn read_kind(row: &Row) -> Result<WorkKind, Failure> {
    let kind: &str = row.try_get(0)?;
    let corrupt = || StoreError::corrupt("due_work", "kind", kind);
    Ok(WorkKind::parse(kind).ok_or_else(corrupt)?)
}

/// Runs a search for due kinds.
async fn find(
    pool: &Pool,
    find: impl AsyncFn(&Tx) -> Result<BTreeSet<WorkKind>, Failure>,
) -> StoreResult<BTreeSet<WorkKind>> {
    tx::run(pool, "due_kinds", TransactionMode::ReadOnce, find).await
}

#[async_trait]
impl DueKinds for PostgresStore {
    async fn due_kinds(&self, now: Timestamp) -> StoreResult<BTreeSet<WorkKind>> {
        let pool = &self.pool;
        if !pool.is_distributed() {
            return find(pool, async move |tx| find_kinds(tx, now).await).await;
        }
        super::store_hints(pool).await?;
        let mut kinds = find(pool, async move |tx| find_hinted_kinds(tx, now).await).await?;
        // The look for such work begins with a search for lost hints.
        kinds.extend(search::due_searches(pool));
        Ok(kinds)
    }
}
