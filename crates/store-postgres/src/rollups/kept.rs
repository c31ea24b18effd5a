//! What was counted and is not in the roll-ups yet.
//!
//! All transactions change the same few rows of the roll-ups, and each would wait for the commit of the one before. So a
//! transaction stores what it counted as a row of its own, which nobody waits for; a moment later, or as soon as
//! somebody reads the roll-ups, all of it is added up and written at once.
//!
//! Whoever adds takes the rows of an app in the order of their ids and locks them, so that nobody else adds for this app
//! until the commit. Nobody else changes the devices of its cohorts meanwhile: who erases one or makes figures anew has
//! taken these rows as well.

use super::{add, column, uuid};
use crate::Failure;
use crate::pool::Pool;
use crate::rows::id;
use crate::tx::{self, Mode, Tx};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::StoreResult;
use tributary_store::records::{increments_from_json, increments_to_json};

/// How long something is kept on a node that goes on running: what a reader may have to wait for grows with it.
const KEPT_FOR: Duration = Duration::from_secs(1);
/// Rows that are added up at a time. Each is of a batch, whose size is bounded.
const ADDED_ROWS_MAX: usize = 200;

/// Keeps what a transaction counted.
pub(crate) async fn keep(tx: &Tx, counted: &Increments) -> Result<(), Failure> {
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
    tx.note_counted();
    Ok(())
}

/// Adds some of what is kept of an app to the roll-ups; whether more may be left.
async fn add_some(tx: &Tx, app: AppId) -> Result<bool, Failure> {
    let taken = take(tx, app).await?;
    let mut all = Increments::default();
    for (_, body) in &taken {
        all.merge(increments_from_json(app, body)?);
    }
    add(tx, &all).await?;
    Ok(taken.len() == ADDED_ROWS_MAX)
}

/// Adds everything that is kept of an app to the roll-ups, for whoever makes its figures anew or takes somebody out of all
/// tables. What cannot be read is dropped.
pub(crate) async fn add_or_discard(tx: &Tx, app: AppId) -> Result<(), Failure> {
    loop {
        let taken = take(tx, app).await?;
        let mut all = Increments::default();
        for (_, body) in &taken {
            match increments_from_json(app, body) {
                Ok(counted) => all.merge(counted),
                Err(error) => {
                    tracing::error!(%error, "what was counted is dropped; figures have to be made anew");
                }
            }
        }
        add(tx, &all).await?;
        if taken.len() < ADDED_ROWS_MAX {
            return Ok(());
        }
    }
}

/// Takes rows of an app, in their order. Whoever finds them locked waits until they are gone, and takes what is left. An
/// array is made once, whatever the planner believes of a table that was empty when it last looked.
async fn take(tx: &Tx, app: AppId) -> Result<Vec<(i64, String)>, Failure> {
    let limit = i64::try_from(ADDED_ROWS_MAX).unwrap_or(i64::MAX);
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

/// The apps of which something is kept: of some, or of all.
async fn find_apps(pool: &Pool, of: Option<Vec<AppId>>) -> StoreResult<Vec<AppId>> {
    tx::run(pool, "find_increments", Mode::Read, async move |tx| {
        let rows = match &of {
            None => {
                tx.query("select distinct app_id from rollup_increments", &[])
                    .await?
            }
            Some(apps) => {
                let apps = column(apps, |app| uuid(app.as_bytes()));
                let sql = "select distinct app_id from rollup_increments where app_id = any($1)";
                tx.query(sql, &[&apps]).await?
            }
        };
        let apps = rows.iter().map(|row| Ok(AppId::from_bytes(id(row, 0)?)));
        apps.collect()
    })
    .await
}

/// Adds what is kept to the roll-ups, in transactions of one app each. One that fails keeps no other from it; the first such
/// failure is told.
pub(crate) async fn add_all_kept(pool: &Pool, of: Option<Vec<AppId>>) -> StoreResult<()> {
    let mut first = Ok(());
    for app in find_apps(pool, of).await? {
        let added = add_of(pool, app).await;
        first = first.and(added);
    }
    first
}

async fn add_of(pool: &Pool, app: AppId) -> StoreResult<()> {
    let add = async move |tx: &Tx| add_some(tx, app).await;
    while tx::run(pool, "add_increments", Mode::Write, add).await? {}
    Ok(())
}

/// Adds a moment after something was counted on this node, for as long as it is there.
pub(crate) struct Adding(JoinHandle<()>);

impl Adding {
    /// Starts the task.
    pub(crate) fn start(pool: Arc<Pool>) -> Self {
        Self(tokio::spawn(async move {
            loop {
                pool.counted.notified().await;
                tokio::time::sleep(KEPT_FOR).await;
                if let Err(error) = add_all_kept(&pool, None).await {
                    tracing::warn!(%error, "what was counted is not in the roll-ups yet");
                    // Once more in a moment.
                    pool.counted.notify_one();
                }
            }
        }))
    }

    /// Stops it. What is kept stays for the next who reads or counts.
    pub(crate) fn stop(&self) {
        self.0.abort();
    }
}

impl Drop for Adding {
    fn drop(&mut self) {
        self.stop();
    }
}
