//! Pending increments: counted, but not yet merged into the roll-ups.
//!
//! A batch changes a dozen roll-up rows, each on its own page, and the next batch changes mostly
//! the same rows. So a batch stores its increments as one row, in its own transaction, and the
//! writer merges them after several batches, app by app. Reports read the roll-ups and the pending increments
//! in one snapshot and add them up; they never write.

use crate::Failure;
use crate::tables::{SqliteTables, run};
use rusqlite::{Connection, OptionalExtension};
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::merge;
use tributary_store::StoreError;
use tributary_store::records::{increments_from_json, increments_to_json};

/// Number of stored increments of an app after which the writer merges them. Until then, the app's
/// reports add them up.
const UNMERGED_PER_APP_MAX: i64 = 64;
/// Distance between the oldest and the newest stored increment beyond which the writer merges the
/// apps with the oldest ones. With a thousand busy apps, each then has eight increments to merge at
/// a time.
const UNMERGED_SPAN_MAX: i64 = 8_192;
/// Number of increments after which the writer compares the distance with its maximum.
const SPAN_CHECK_INTERVAL: i64 = 64;
/// Maximum number of entries in an app's increment that is stored. A larger one is merged at once,
/// after all earlier ones of the app.
const INCREMENT_LEN_MAX: usize = 256;

/// Stores or merges the increments of a batch.
pub(crate) fn store_increments(
    connection: &Connection,
    counted: Increments,
) -> Result<(), Failure> {
    let mut is_time = false;
    for (app, part) in counted.by_app() {
        // A device's increments must be merged in order. So if earlier increments could not be
        // merged, these are stored for later.
        if part.len() > INCREMENT_LEN_MAX && try_merge(connection, app)? {
            run(merge(&SqliteTables(connection), &part))?;
            continue;
        }
        connection
            .prepare_cached("insert into rollup_increments (app_id, body) values (?1, ?2)")?
            .execute((app.as_bytes(), increments_to_json(&part)))?;
        is_time |= connection.last_insert_rowid() % SPAN_CHECK_INTERVAL == 0;
        // An app with an unreadable increment is tried again after as many more.
        if count(connection, app)? % UNMERGED_PER_APP_MAX == 0 {
            try_merge(connection, app)?;
        }
    }
    if is_time {
        merge_oldest(connection)?;
    }
    Ok(())
}

/// Returns the number of an app's stored increments.
fn count(connection: &Connection, app: AppId) -> Result<i64, Failure> {
    let count = connection
        .prepare_cached("select count(*) from rollup_increments where app_id = ?1")?
        .query_row([app.as_bytes()], |row| row.get(0))?;
    Ok(count)
}

/// Merges the apps with the oldest increments until the rest is within [`UNMERGED_SPAN_MAX`]. Stops
/// at an app with an unreadable increment.
fn merge_oldest(connection: &Connection) -> Result<(), Failure> {
    let mut find = connection.prepare_cached(
        "select app_id from rollup_increments
         where increment_id = (select min(increment_id) from rollup_increments)
           and increment_id < (select max(increment_id) from rollup_increments) - ?1",
    )?;
    while let Some(app) = find
        .query_row([UNMERGED_SPAN_MAX], |row| row.get(0))
        .optional()?
    {
        if !try_merge(connection, AppId::from_bytes(app))? {
            break;
        }
    }
    Ok(())
}

/// Merges an app's increments. On failure it leaves them unchanged, so that a bad increment never
/// stops recording. Returns true if none is left.
fn try_merge(connection: &Connection, app: AppId) -> Result<bool, Failure> {
    connection.prepare_cached("savepoint counts")?.execute(())?;
    let merged = merge_app(connection, app);
    if connection.is_autocommit() {
        return merged.map(|_| false);
    }
    match &merged {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%app, %error, "cannot read a roll-up increment"),
        Err(failure) => {
            tracing::error!(%app, ?failure, "failed to merge roll-up increments");
            connection
                .prepare_cached("rollback to counts")?
                .execute(())?;
        }
    }
    connection.prepare_cached("release counts")?.execute(())?;
    Ok(matches!(merged, Ok(Ok(()))))
}

/// Merges an app's increments, unless one of them is unreadable. Returns the error of reading it.
fn merge_app(connection: &Connection, app: AppId) -> Result<Result<(), StoreError>, Failure> {
    let all = match read(connection, app) {
        Ok(all) => all,
        Err(Failure::Store(error)) => return Ok(Err(error)),
        Err(failure) => return Err(failure),
    };
    delete(connection, app)?;
    run(merge(&SqliteTables(connection), &all))?;
    Ok(Ok(()))
}

/// Merges an app's increments, and drops them if one of them is unreadable. Used before a rebuild or
/// an erasure.
pub(crate) fn merge_or_discard(connection: &Connection, app: AppId) -> Result<(), Failure> {
    if let Err(error) = merge_app(connection, app)? {
        tracing::error!(
            %app,
            %error,
            "dropping unreadable roll-up increments; run `tributary rollups rebuild`"
        );
        delete(connection, app)?;
    }
    Ok(())
}

fn delete(connection: &Connection, app: AppId) -> Result<(), Failure> {
    connection
        .prepare_cached("delete from rollup_increments where app_id = ?1")?
        .execute([app.as_bytes()])?;
    Ok(())
}

/// Reads an app's pending increments.
pub(super) fn read(connection: &Connection, app: AppId) -> Result<Increments, Failure> {
    let mut all = Increments::default();
    let mut find = connection.prepare_cached(
        "select body from rollup_increments where app_id = ?1 order by increment_id",
    )?;
    let mut rows = find.query([app.as_bytes()])?;
    while let Some(row) = rows.next()? {
        let body = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
        all.merge(increments_from_json(app, body)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use tributary_store::Store;
    use tributary_store::contract::fixtures::{at, rebuild};
    use tributary_store::contract::reports::all_answers;
    use tributary_store::contract::sdk_fixtures::{self, Tenant, event, payment};

    async fn open(path: &Path) -> Arc<dyn Store> {
        let path = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await;
        Arc::new(opened.unwrap().unwrap())
    }

    async fn opened() -> (Arc<dyn Store>, Tenant, PathBuf, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tributary.db");
        let store = open(&path).await;
        let tenant = sdk_fixtures::tenant(&store).await;
        (store, tenant, path, folder)
    }

    fn number(path: &Path, sql: &str) -> i64 {
        let connection = Connection::open(path).unwrap();
        connection.query_row(sql, (), |row| row.get(0)).unwrap()
    }

    const UNMERGED: &str = "select count(*) from rollup_increments";
    const MERGED: &str = "select ifnull(sum(clicks), 0) from rollup_networks where grain = 15";

    #[tokio::test]
    async fn merges_after_several_batches() {
        let (store, tenant, path, _folder) = opened().await;
        for click in 1..UNMERGED_PER_APP_MAX {
            store.record_click(tenant.click(click)).await.unwrap();
        }
        let counts = || (number(&path, UNMERGED), number(&path, MERGED));
        assert_eq!(counts(), (63, 0));
        store.record_click(tenant.click(100)).await.unwrap();
        assert_eq!(counts(), (0, 64));
        store.record_click(tenant.click(101)).await.unwrap();
        assert_eq!(counts(), (1, 64));
        assert_eq!(tenant.figures_of("network_a").await.clicks, 65);
        assert_eq!(counts(), (1, 64), "a report changes nothing");
    }

    #[tokio::test]
    async fn merges_an_app_without_the_others() {
        let (store, tenant, path, _folder) = opened().await;
        let other = sdk_fixtures::tenant(&store).await;
        store.record_click(other.click(1)).await.unwrap();
        for click in 0..UNMERGED_PER_APP_MAX {
            store.record_click(tenant.click(click)).await.unwrap();
        }
        let counts = (number(&path, UNMERGED), number(&path, MERGED));
        assert_eq!(counts, (1, 64));
    }

    #[tokio::test]
    async fn merges_an_app_whose_increments_are_the_oldest() {
        let (store, quiet, path, _folder) = opened().await;
        let busy = sdk_fixtures::tenant(&store).await;
        store.record_click(quiet.click(1)).await.unwrap();
        store.record_click(busy.click(1)).await.unwrap();
        let advance = "update rollup_increments set increment_id = ?1 where increment_id = 2";
        Connection::open(&path)
            .unwrap()
            .execute(advance, [UNMERGED_SPAN_MAX + SPAN_CHECK_INTERVAL - 1])
            .unwrap();
        let counts = || (number(&path, UNMERGED), number(&path, MERGED));
        assert_eq!(counts(), (2, 0));
        store.record_click(busy.click(2)).await.unwrap();
        assert_eq!(counts(), (2, 1));
        assert_eq!(quiet.figures_of("network_a").await.clicks, 1);
        assert_eq!(busy.figures_of("network_a").await.clicks, 2);
    }

    #[tokio::test]
    async fn pending_increments_survive_a_restart() {
        let (store, mut tenant, path, _folder) = opened().await;
        store.record_click(tenant.click(1)).await.unwrap();
        store.close().await;
        assert_eq!(number(&path, UNMERGED), 1);
        tenant.store = open(&path).await;
        assert_eq!(tenant.figures_of("network_a").await.clicks, 1);
    }

    #[tokio::test]
    async fn reports_on_a_read_only_copy_include_pending_increments() {
        let (store, mut tenant, path, folder) = opened().await;
        tenant
            .call_configure(tenant.configure("device-1", 20))
            .await;
        let sent = vec![payment("e1", "5", "USD", 90)];
        let taken = store.accept_sdk_events(tenant.arrival("device-1", 100), sent);
        taken.await.unwrap();
        let answers = all_answers(&tenant).await;
        store.close().await;
        assert!(number(&path, UNMERGED) > 0);
        let copies = folder.path().join("copies");
        std::fs::create_dir(&copies).unwrap();
        let copy = copies.join("copy.db");
        std::fs::copy(&path, &copy).unwrap();
        let bytes = std::fs::read(&copy).unwrap();
        tenant.store = Arc::new(SqliteStore::open_read_only(&copy).unwrap());
        assert_eq!(self::all_answers(&tenant).await, answers);
        assert_eq!(answers[0].figures.revenue_micros, 5_000_000);
        let refused = tenant.store.record_click(tenant.click(1)).await;
        assert!(matches!(refused, Err(StoreError::Unavailable { .. })));
        assert_eq!(std::fs::read(&copy).unwrap(), bytes);
        assert_eq!(std::fs::read_dir(&copies).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn an_unreadable_increment_fails_only_the_reports_of_its_app() {
        let (store, tenant, path, _folder) = opened().await;
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(
                "insert into rollup_increments (app_id, body) select app_id, '{' from apps",
            )
            .unwrap();
        for click in 0..2 * UNMERGED_PER_APP_MAX {
            store.record_click(tenant.click(click)).await.unwrap();
        }
        let (from, until) = (at(-1_000_000), at(10_000_000));
        let read = || store.figures_by_network(&tenant.reader, tenant.app.id, (from, until));
        let outcome = read().await;
        assert!(
            matches!(outcome, Err(StoreError::Corrupt { .. })),
            "{outcome:?}"
        );
        store.record_click(tenant.click(1_000)).await.unwrap();
        // Other apps' reports are not affected.
        let other = sdk_fixtures::tenant(&store).await;
        store.record_click(other.click(1)).await.unwrap();
        assert_eq!(other.figures_of("network_a").await.clicks, 1);
        connection
            .execute_batch("delete from rollup_increments where body = '{'")
            .unwrap();
        let clicks = read().await.unwrap()[0].1.clicks;
        assert_eq!(clicks, 2 * UNMERGED_PER_APP_MAX + 1);
    }

    #[tokio::test]
    async fn a_rebuild_drops_an_unreadable_increment() {
        let (store, tenant, path, _folder) = opened().await;
        let sent = vec![event("e1", "search", 90)];
        let taken = store.accept_sdk_events(tenant.arrival("device-1", 100), sent);
        taken.await.unwrap();
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("update rollup_increments set body = '{'")
            .unwrap();
        rebuild(&store).await;
        assert_eq!(number(&path, UNMERGED), 0);
        assert_eq!(tenant.figures().await[0].1.events, 1);
    }

    #[tokio::test]
    async fn an_unreadable_cohort_device_does_not_stop_reports_and_is_rebuilt() {
        const UNREADABLE: &str = "select count(*) from cohort_devices where network = 'x'";
        let (store, tenant, path, _folder) = opened().await;
        tenant
            .call_configure(tenant.configure("device-1", 20))
            .await;
        assert_eq!(tenant.figures().await[0].1.installs, 1);
        rebuild(&store).await;
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("update cohort_devices set network = 'x'")
            .unwrap();
        let sent = vec![event("e1", "search", 90)];
        let taken = store.accept_sdk_events(tenant.arrival("device-1", 100), sent);
        taken.await.unwrap();
        assert_eq!(tenant.figures().await[0].1.events, 2);
        assert_eq!(number(&path, UNREADABLE), 1);
        rebuild(&store).await;
        assert_eq!(number(&path, UNREADABLE), 0);
    }
}
