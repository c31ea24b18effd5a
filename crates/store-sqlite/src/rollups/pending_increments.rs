//! Pending increments: counted, but not yet merged into the roll-ups.
//!
//! A batch changes a dozen roll-up rows, each on its own page, and the next batch changes mostly
//! the same rows. So a batch stores its increments as one row, in its own transaction, and the
//! writer merges them after several batches. Reports read the roll-ups and the pending increments
//! in one snapshot and add them up; they never write.

use crate::Failure;
use crate::tables::{SqliteTables, run};
use rusqlite::Connection;
use std::collections::BTreeMap;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::merge;
use tributary_store::StoreError;
use tributary_store::records::{increments_from_json, increments_to_json};

/// Approximate number of stored increments after which the writer merges them. Until then, reports
/// add them up.
const UNMERGED_MAX: i64 = 64;
/// Maximum number of entries in increments that are stored. Larger increments are merged at once,
/// after all earlier ones.
const INCREMENT_LEN_MAX: usize = 256;

/// Stores or merges the increments of a batch.
pub(crate) fn store_increments(
    connection: &Connection,
    counted: Increments,
) -> Result<(), Failure> {
    if counted.is_empty() {
        return Ok(());
    }
    // A device's increments must be merged in order. So if earlier increments could not be merged,
    // these are stored for later.
    if counted.len() > INCREMENT_LEN_MAX && try_merge_all(connection)? {
        return run(merge(&SqliteTables(connection), &counted));
    }
    let mut is_time = false;
    for (app, part) in counted.by_app() {
        connection
            .prepare_cached("insert into rollup_increments (app_id, body) values (?1, ?2)")?
            .execute((app.as_bytes(), increments_to_json(&part)))?;
        is_time |= connection.last_insert_rowid() % UNMERGED_MAX == 0;
    }
    if is_time {
        try_merge_all(connection)?;
    }
    Ok(())
}

/// Merges all increments. On failure it leaves them unchanged, so that a bad increment never stops
/// recording. Returns true when no increment is left.
fn try_merge_all(connection: &Connection) -> Result<bool, Failure> {
    connection.prepare_cached("savepoint counts")?.execute(())?;
    let merged = merge_all(connection);
    if connection.is_autocommit() {
        return merged.map(|_| false);
    }
    if let Err(failure) = &merged {
        tracing::error!(?failure, "failed to merge roll-up increments");
        connection
            .prepare_cached("rollback to counts")?
            .execute(())?;
    }
    connection.prepare_cached("release counts")?.execute(())?;
    Ok(merged.is_ok_and(|unreadable| unreadable.0.is_empty()))
}

/// Apps with an unreadable increment. All increments of these apps are kept, in order.
pub(crate) struct UnreadableApps(BTreeMap<AppId, StoreError>);

impl UnreadableApps {
    /// Drops all of an app's increments if one of them is unreadable. Used before a rebuild or an
    /// erasure.
    pub(crate) fn discard(&self, connection: &Connection, app: AppId) -> Result<(), Failure> {
        if let Some(error) = self.0.get(&app) {
            tracing::error!(
                %app,
                %error,
                "dropping unreadable roll-up increments; run `tributary rollups rebuild`"
            );
            delete(connection, app)?;
        }
        Ok(())
    }
}

/// Merges all increments, except those of apps that have an unreadable one.
pub(crate) fn merge_all(connection: &Connection) -> Result<UnreadableApps, Failure> {
    let mut by_app: BTreeMap<AppId, Result<Increments, StoreError>> = BTreeMap::new();
    let mut find = connection
        .prepare_cached("select app_id, body from rollup_increments order by increment_id")?;
    let mut rows = find.query(())?;
    while let Some(row) = rows.next()? {
        let app = AppId::from_bytes(row.get(0)?);
        let body: String = row.get(1)?;
        let all = by_app
            .entry(app)
            .or_insert_with(|| Ok(Increments::default()));
        match (all.as_mut(), increments_from_json(app, &body)) {
            (Ok(all), Ok(counted)) => all.merge(counted),
            (Ok(_), Err(error)) => *all = Err(error),
            (Err(_), _) => {}
        }
    }
    drop(rows);
    let mut unreadable = BTreeMap::new();
    for (app, all) in by_app {
        match all {
            Ok(all) => {
                delete(connection, app)?;
                run(merge(&SqliteTables(connection), &all))?;
            }
            Err(error) => {
                unreadable.insert(app, error);
            }
        }
    }
    Ok(UnreadableApps(unreadable))
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
    use tributary_store::contract::sdk_fixtures::{Tenant, event, payment, tenant};

    async fn open(path: &Path) -> Arc<dyn Store> {
        let path = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await;
        Arc::new(opened.unwrap().unwrap())
    }

    async fn opened() -> (Arc<dyn Store>, Tenant, PathBuf, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tributary.db");
        let store = open(&path).await;
        let tenant = tenant(&store).await;
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
        for click in 1..UNMERGED_MAX {
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
        for click in 0..2 * UNMERGED_MAX {
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
        let other = tributary_store::contract::sdk_fixtures::tenant(&store).await;
        store.record_click(other.click(1)).await.unwrap();
        assert_eq!(other.figures_of("network_a").await.clicks, 1);
        connection
            .execute_batch("delete from rollup_increments where body = '{'")
            .unwrap();
        let clicks = read().await.unwrap()[0].1.clicks;
        assert_eq!(clicks, 2 * UNMERGED_MAX + 1);
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
