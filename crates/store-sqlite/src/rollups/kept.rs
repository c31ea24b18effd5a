//! What was counted and is not in the roll-ups yet.
//!
//! A batch changes a dozen rows of the roll-ups, each on a page of its own, and the next batch mostly the same ones. So it
//! stores what it counted as one text, in its own transaction like everything else of it; after so many of them, or as
//! soon as somebody reads the roll-ups, they are added up and written at once.

use super::add;
use crate::Failure;
use rusqlite::Connection;
use std::collections::BTreeMap;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::StoreError;
use tributary_store::records::{increments_from_json, increments_to_json};

/// Texts after which they are added, more or less: what a reader may have to wait for.
const KEPT_MAX: i64 = 64;
/// What a batch may have counted for its text to be worth it. More is added at once, after whatever is kept.
const KEPT_LEN_MAX: usize = 256;

/// Keeps what a batch counted, or adds it to the roll-ups.
pub(crate) fn keep(connection: &Connection, counted: Increments) -> Result<(), Failure> {
    if counted.is_empty() {
        return Ok(());
    }
    // What a device did is added in its order: not past something that could not be added.
    if counted.len() > KEPT_LEN_MAX && add_or_leave(connection)? {
        return add(connection, &counted);
    }
    let mut is_time = false;
    for (app, part) in counted.by_app() {
        connection
            .prepare_cached("insert into rollup_increments (app_id, body) values (?1, ?2)")?
            .execute((app.as_bytes(), increments_to_json(&part)))?;
        is_time |= connection.last_insert_rowid() % KEPT_MAX == 0;
    }
    if is_time {
        add_or_leave(connection)?;
    }
    Ok(())
}

/// Adds what is kept, or leaves it as it is: what arrives is to be recorded whatever is wrong with what was counted. Whether
/// nothing is left.
fn add_or_leave(connection: &Connection) -> Result<bool, Failure> {
    connection.prepare_cached("savepoint counts")?.execute(())?;
    let added = add_kept(connection);
    if connection.is_autocommit() {
        return added.map(|_| false);
    }
    if let Err(failure) = &added {
        tracing::error!(?failure, "what was counted cannot be added to the roll-ups");
        connection
            .prepare_cached("rollback to counts")?
            .execute(())?;
    }
    connection.prepare_cached("release counts")?.execute(())?;
    Ok(added.is_ok_and(|unreadable| unreadable.0.is_empty()))
}

/// The apps with a text that cannot be read. All of theirs stay where they are, in order.
pub(crate) struct Unreadable(BTreeMap<AppId, StoreError>);

impl Unreadable {
    /// Tells whoever is about to read the roll-ups of these apps.
    pub(crate) fn tell(mut self, apps: &[AppId]) -> Result<(), Failure> {
        let found = apps.iter().find_map(|app| self.0.remove(app));
        found.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Drops the texts of an app, for whoever makes its figures anew or takes somebody out of all tables.
    pub(crate) fn discard(&self, connection: &Connection, app: AppId) -> Result<(), Failure> {
        if let Some(error) = self.0.get(&app) {
            tracing::error!(%error, "what was counted is dropped; figures have to be made anew");
            delete(connection, app)?;
        }
        Ok(())
    }
}

/// Adds everything that is kept to the roll-ups, but for apps with a text that cannot be read.
pub(crate) fn add_kept(connection: &Connection) -> Result<Unreadable, Failure> {
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
                add(connection, &all)?;
            }
            Err(error) => {
                unreadable.insert(app, error);
            }
        }
    }
    Ok(Unreadable(unreadable))
}

fn delete(connection: &Connection, app: AppId) -> Result<(), Failure> {
    connection
        .prepare_cached("delete from rollup_increments where app_id = ?1")?
        .execute([app.as_bytes()])?;
    Ok(())
}

/// Whether anything is kept.
pub(crate) fn any_kept(connection: &Connection) -> Result<bool, Failure> {
    let mut find = connection.prepare_cached("select 1 from rollup_increments limit 1")?;
    Ok(find.exists(())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use tributary_store::Store;
    use tributary_store::contract::fixtures::at;
    use tributary_store::contract::sdk_fixtures::{Tenant, event, tenant};

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

    const KEPT: &str = "select count(*) from rollup_increments";
    const ADDED: &str = "select ifnull(sum(clicks), 0) from rollup_networks where grain = 15";

    #[tokio::test]
    async fn batches_are_added_together_after_so_many_of_them() {
        let (store, tenant, path, _folder) = opened().await;
        for click in 1..KEPT_MAX {
            store.record_click(tenant.click(click)).await.unwrap();
        }
        assert_eq!((number(&path, KEPT), number(&path, ADDED)), (63, 0));
        store.record_click(tenant.click(100)).await.unwrap();
        assert_eq!((number(&path, KEPT), number(&path, ADDED)), (0, 64));
        store.record_click(tenant.click(101)).await.unwrap();
        assert_eq!((number(&path, KEPT), number(&path, ADDED)), (1, 64));
        assert_eq!(tenant.figures_of("network_a").await.clicks, 65);
        assert_eq!((number(&path, KEPT), number(&path, ADDED)), (0, 65));
    }

    #[tokio::test]
    async fn what_is_kept_outlives_the_server() {
        let (store, mut tenant, path, _folder) = opened().await;
        store.record_click(tenant.click(1)).await.unwrap();
        store.close().await;
        assert_eq!(number(&path, KEPT), 1);
        tenant.store = open(&path).await;
        assert_eq!(tenant.figures_of("network_a").await.clicks, 1);
    }

    #[tokio::test]
    async fn a_text_that_cannot_be_read_is_told_to_whoever_reads_and_stops_nobody_else() {
        let (store, tenant, path, _folder) = opened().await;
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(
                "insert into rollup_increments (app_id, body) select app_id, '{' from apps",
            )
            .unwrap();
        for click in 0..2 * KEPT_MAX {
            store.record_click(tenant.click(click)).await.unwrap();
        }
        let (from, until) = (at(-1_000_000), at(10_000_000));
        let read = || store.figures_by_network(&tenant.reader, tenant.app.id, from, until);
        let told = read().await;
        assert!(matches!(told, Err(StoreError::Corrupt { .. })), "{told:?}");
        store.record_click(tenant.click(1_000)).await.unwrap();
        // Nor does it stop the reports of others.
        let other = tributary_store::contract::sdk_fixtures::tenant(&store).await;
        store.record_click(other.click(1)).await.unwrap();
        assert_eq!(other.figures_of("network_a").await.clicks, 1);
        connection
            .execute_batch("delete from rollup_increments where body = '{'")
            .unwrap();
        let clicks = read().await.unwrap()[0].1.clicks;
        assert_eq!(clicks, 2 * KEPT_MAX + 1);
    }

    #[tokio::test]
    async fn figures_that_are_made_anew_need_no_text_that_cannot_be_read() {
        let (store, tenant, path, _folder) = opened().await;
        let sent = vec![event("e1", "search", 90)];
        let taken = store.accept_sdk_events(tenant.arrival("device-1", 100), sent);
        taken.await.unwrap();
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("update rollup_increments set body = '{'")
            .unwrap();
        for day in store.rollup_days().await.unwrap() {
            store.rebuild_rollups(day).await.unwrap();
        }
        assert_eq!(number(&path, KEPT), 0);
        assert_eq!(tenant.figures().await[0].1.events, 1);
    }

    #[tokio::test]
    async fn a_device_that_cannot_be_read_stops_no_figures_and_is_made_anew() {
        const UNREADABLE: &str = "select count(*) from cohort_devices where network = 'x'";
        let (store, tenant, path, _folder) = opened().await;
        tenant.configured(tenant.configure("device-1", 20)).await;
        assert_eq!(tenant.figures().await[0].1.installs, 1);
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("update cohort_devices set network = 'x'")
            .unwrap();
        let sent = vec![event("e1", "search", 90)];
        let taken = store.accept_sdk_events(tenant.arrival("device-1", 100), sent);
        taken.await.unwrap();
        assert_eq!(tenant.figures().await[0].1.events, 2);
        assert_eq!(number(&path, UNREADABLE), 1);
        for day in store.rollup_days().await.unwrap() {
            store.rebuild_rollups(day).await.unwrap();
        }
        assert_eq!(number(&path, UNREADABLE), 0);
    }
}
