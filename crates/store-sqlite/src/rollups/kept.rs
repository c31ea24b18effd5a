//! What was counted and is not in the roll-ups yet.
//!
//! A batch changes a dozen rows of the roll-ups, each on a page of its own, and the next batch mostly the same ones. So it
//! stores what it counted as one text, in its own transaction like everything else of it; after so many of them, or as
//! soon as somebody reads the roll-ups, they are added up and written at once.

use super::add;
use crate::Failure;
use rusqlite::Connection;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::StoreError;
use tributary_store::records::{increments_from_json, increments_to_json};

/// Texts that are kept at most: what a reader may have to wait for.
const KEPT_MAX: i64 = 64;
/// What a batch may have counted for its text to be worth it. More is added at once, with whatever is kept.
const KEPT_LEN_MAX: usize = 256;

/// Keeps what a batch counted, or adds it to the roll-ups.
pub(crate) fn keep(connection: &Connection, counted: Increments) -> Result<(), Failure> {
    if counted.is_empty() {
        return Ok(());
    }
    if counted.len() > KEPT_LEN_MAX {
        return match add_with_kept(connection, counted.clone()) {
            Err(failure) => {
                leave(failure)?;
                add(connection, &counted)
            }
            added => added,
        };
    }
    let mut kept = 0;
    for (app, part) in counted.by_app() {
        connection
            .prepare_cached("insert into rollup_increments (app_id, body) values (?1, ?2)")?
            .execute((app.as_bytes(), increments_to_json(&part)))?;
        kept = connection.last_insert_rowid();
    }
    if kept < KEPT_MAX {
        return Ok(());
    }
    add_kept(connection).or_else(leave)
}

/// Adds everything that is kept to the roll-ups.
pub(crate) fn add_kept(connection: &Connection) -> Result<(), Failure> {
    add_with_kept(connection, Increments::default())
}

/// Adds what was counted to the roll-ups, after everything that is kept.
fn add_with_kept(connection: &Connection, counted: Increments) -> Result<(), Failure> {
    let mut all = Increments::default();
    let mut any = false;
    let mut find = connection
        .prepare_cached("select app_id, body from rollup_increments order by increment_id")?;
    let mut rows = find.query(())?;
    while let Some(row) = rows.next()? {
        let app = AppId::from_bytes(row.get(0)?);
        let body = row.get_ref(1)?.as_str().map_err(|_| unreadable(app))?;
        all.merge(increments_from_json(app, body)?);
        any = true;
    }
    drop(rows);
    all.merge(counted);
    if any {
        connection
            .prepare_cached("delete from rollup_increments")?
            .execute(())?;
    }
    add(connection, &all)
}

/// Whether anything is kept.
pub(crate) fn any_kept(connection: &Connection) -> Result<bool, Failure> {
    let mut find = connection.prepare_cached("select 1 from rollup_increments limit 1")?;
    Ok(find.exists(())?)
}

fn unreadable(app: AppId) -> StoreError {
    StoreError::corrupt("rollup_increments", "body", app)
}

/// A text that cannot be read stays where it is, found before anything was written. It is told to whoever reads reports; what
/// arrives is to be recorded all the same.
fn leave(failure: Failure) -> Result<(), Failure> {
    match failure {
        Failure::Store(error @ StoreError::Corrupt { .. }) => {
            tracing::error!(%error, "what was counted cannot be added to the roll-ups");
            Ok(())
        }
        failure => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use tributary_store::Store;
    use tributary_store::contract::fixtures::at;
    use tributary_store::contract::sdk_fixtures::{Tenant, tenant};

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
        connection
            .execute_batch("delete from rollup_increments where body = '{'")
            .unwrap();
        let clicks = read().await.unwrap()[0].1.clicks;
        assert_eq!(clicks, 2 * KEPT_MAX + 1);
    }
}
