//! Hints in the table `due_work`.

use super::hints::Hint;
use crate::Failure;
use crate::distributed::ON_DOWN_WORKER;
use crate::params::column;
use crate::pool::Pool;
use crate::rows::{id, uuid};
use crate::tx::{self, TransactionMode, Tx};
use tokio_postgres::Row;
use tributary_domain::due_work::{NextLook, WorkKind};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::StoreResult;

/// Stores hints. They must be in key order, so that nodes do not deadlock.
pub(super) async fn store(pool: &Pool, hints: Vec<(WorkKind, AppId, Hint)>) -> StoreResult<()> {
    let store = async move |tx: &Tx| {
        tx.execute(
            "insert into due_work as stored (kind, app_id, due_at, blocked_until)
             select kind, app_id, due_at, blocked_until
             from unnest($1, $2, $3, $4) as new (kind, app_id, due_at, blocked_until)
             on conflict (kind, app_id) do update
             set due_at = least(stored.due_at, excluded.due_at),
                 blocked_until = coalesce(excluded.blocked_until, stored.blocked_until),
                 version = excluded.version",
            &[
                &column(&hints, |(kind, _, _)| kind.as_str()),
                &column(&hints, |(_, app, _)| uuid(app.as_bytes())),
                &column(&hints, |(_, _, hint)| hint.due_at.as_millis()),
                &column(&hints, |(_, _, hint)| {
                    hint.blocked_until.map(Timestamp::as_millis)
                }),
            ],
        )
        .await
    };
    tx::run(pool, "store_due_work", TransactionMode::Write, store).await
}

/// A due hint.
#[derive(Debug, Clone, Copy)]
pub(super) struct DueHint {
    pub(super) app: AppId,
    version: i64,
}

fn read_hint(row: &Row) -> Result<DueHint, Failure> {
    Ok(DueHint {
        app: AppId::from_bytes(id(row, 0)?),
        version: row.try_get(1)?,
    })
}

/// Finds due hints, without those of workers that are down. A queue is blocked until its release, so
/// the least recently served one comes first.
pub(super) async fn find(
    pool: &Pool,
    kind: WorkKind,
    now: Timestamp,
    limit: u32,
) -> StoreResult<Vec<DueHint>> {
    let down = pool.down_workers.groups();
    let find = async move |tx: &Tx| {
        let sql = "select app_id, version from due_work
                   where kind = $1 and greatest(due_at, blocked_until) <= $2
                   order by greatest(due_at, blocked_until), app_id limit $3";
        let (kind, now, limit) = (kind.as_str(), now.as_millis(), i64::from(limit));
        let rows = if down.is_empty() {
            tx.query(sql, &[&kind, &now, &limit]).await?
        } else {
            let sql = format!(
                "select app_id, version from due_work
                 where not {ON_DOWN_WORKER}
                   and kind = $2 and greatest(due_at, blocked_until) <= $3
                 order by greatest(due_at, blocked_until), app_id limit $4"
            );
            tx.query(&sql, &[&down, &kind, &now, &limit]).await?
        };
        rows.iter().map(read_hint).collect::<Result<_, _>>()
    };
    tx::run(pool, "find_due_work", TransactionMode::ReadOnce, find).await
}

/// A hint whose app was looked at, and when to look again.
pub(super) struct LookedHint {
    hint: DueHint,
    next: NextLook,
}

impl LookedHint {
    pub(super) const fn new(hint: DueHint, next: NextLook) -> Self {
        Self { hint, next }
    }
}

/// Updates hints after their apps were looked at. A hint that has changed meanwhile is kept.
pub(super) async fn update(
    pool: &Pool,
    kind: WorkKind,
    mut looked: Vec<LookedHint>,
) -> StoreResult<()> {
    if looked.is_empty() {
        return Ok(());
    }
    looked.sort_unstable_by_key(|one| one.hint.app);
    let update = async move |tx: &Tx| {
        let kind = kind.as_str();
        let apps = column(&looked, |one| uuid(one.hint.app.as_bytes()));
        // In key order, so that nodes do not deadlock.
        let lock = "select 1 from due_work where kind = $1 and app_id = any($2)
                    order by app_id for update";
        tx.execute(lock, &[&kind, &apps]).await?;
        for one in &looked {
            update_one(tx, kind, one).await?;
        }
        Ok(())
    };
    tx::run(pool, "update_due_work", TransactionMode::Write, update).await
}

async fn update_one(tx: &Tx, kind: &str, looked: &LookedHint) -> Result<(), Failure> {
    let app = uuid(looked.hint.app.as_bytes());
    let version = looked.hint.version;
    match looked.next {
        NextLook::Now => Ok(()),
        NextLook::AfterChange => {
            let sql = "delete from due_work where kind = $1 and app_id = $2 and version = $3";
            tx.execute(sql, &[&kind, &app, &version]).await
        }
        NextLook::Later {
            due_at,
            blocked_until,
        } => {
            let sql = "update due_work set due_at = $4, blocked_until = $5
                       where kind = $1 and app_id = $2 and version = $3";
            let blocked_until = blocked_until.map(Timestamp::as_millis);
            let due_at = due_at.as_millis();
            tx.execute(sql, &[&kind, &app, &version, &due_at, &blocked_until])
                .await
        }
    }
}

/// Takes the hints of apps with increments. The caller merges them.
pub(crate) async fn take_increments(pool: &Pool) -> StoreResult<Vec<AppId>> {
    let take = async |tx: &Tx| {
        let sql = "delete from due_work where kind = $1 returning app_id";
        let rows = tx.query(sql, &[&WorkKind::Increments.as_str()]).await?;
        let apps = rows.iter().map(|row| Ok(AppId::from_bytes(id(row, 0)?)));
        apps.collect::<Result<Vec<_>, Failure>>()
    };
    tx::run(pool, "take_increments", TransactionMode::Write, take).await
}
