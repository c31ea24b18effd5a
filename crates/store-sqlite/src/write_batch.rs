//! The transaction that a batch is committed in, and what its jobs need not read again.
//!
//! Posts are mostly of a few apps and links. What is read of an app for one of them holds for the next, and for the next
//! batch, as long as nothing else writes in between: the writer knows what it does itself, and the database when
//! another process has written. What jobs counted is added up here, and written once for all of them.

use crate::links::LINK_COLUMNS;
use crate::rows::read_row;
use crate::{Failure, integrations};
use rusqlite::{CachedStatement, Connection, OptionalExtension};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use tributary_domain::event::web::StoredWebClick;
use tributary_domain::integration::Integration;
use tributary_domain::link::LinkKind;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};
use tributary_domain::vocabulary::web_url::{HttpsUrl, WebOrigin};
use tributary_store::records::LinkRow;

/// Apps and links that are remembered at most; an installation with more reads some of them anew.
const CACHED_MAX: usize = 10_000;

/// What a link says about the website it leads to.
pub(crate) struct LinkDestination {
    pub(crate) is_web_funnel: bool,
    pub(crate) origin: Option<WebOrigin>,
}

/// What people set up and batches need, for as long as nobody changes it.
#[derive(Default)]
pub(crate) struct BatchCache {
    /// Differs after another process has written.
    data_version: Cell<i64>,
    integrations: RefCell<HashMap<AppId, Arc<[Integration]>>>,
    destinations: RefCell<HashMap<(AppId, LinkId), Arc<LinkDestination>>>,
}

impl BatchCache {
    fn clear(&self) {
        self.integrations.borrow_mut().clear();
        self.destinations.borrow_mut().clear();
    }

    /// Forgets what another process may have changed, or is too much.
    fn refresh(&self, connection: &Connection) -> Result<(), Failure> {
        let now = connection
            .prepare_cached("pragma data_version")?
            .query_row((), |row| row.get(0))?;
        let before = self.data_version.replace(now);
        let much = self.integrations.borrow().len() + self.destinations.borrow().len();
        if now != before || much > CACHED_MAX {
            self.clear();
        }
        Ok(())
    }
}

/// A batch under way.
pub(crate) struct WriteBatch<'a> {
    pub(crate) connection: &'a Connection,
    cache: &'a BatchCache,
    clicks: RefCell<HashMap<(AppId, ClickId), StoredWebClick>>,
    increments: RefCell<Increments>,
    pub(crate) statements: Statements<'a>,
}

/// Statements that most jobs of a batch need, each looked up once a batch instead of once a job.
#[derive(Default)]
pub(crate) struct Statements<'a> {
    pub(crate) device: LazyStatement<'a>,
    pub(crate) identity: LazyStatement<'a>,
    pub(crate) click: LazyStatement<'a>,
    pub(crate) key: LazyStatement<'a>,
    pub(crate) event: LazyStatement<'a>,
    pub(crate) first_payment: LazyStatement<'a>,
}

/// A statement, once it was needed.
#[derive(Default)]
pub(crate) struct LazyStatement<'a>(RefCell<Option<CachedStatement<'a>>>);

impl<'a> LazyStatement<'a> {
    /// Prepares the statement unless it is, and does something with it.
    pub(crate) fn with<T>(
        &self,
        connection: &'a Connection,
        sql: &str,
        work: impl FnOnce(&mut CachedStatement<'a>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut kept = self.0.borrow_mut();
        let mut statement = match kept.take() {
            Some(statement) => statement,
            None => connection.prepare_cached(sql)?,
        };
        let done = work(&mut statement);
        *kept = Some(statement);
        done
    }
}

impl<'a> WriteBatch<'a> {
    /// In a transaction that was just begun.
    pub(crate) fn new(
        connection: &'a Connection,
        remembered: &'a BatchCache,
    ) -> Result<Self, Failure> {
        remembered.refresh(connection)?;
        Ok(Self {
            connection,
            cache: remembered,
            clicks: RefCell::default(),
            increments: RefCell::default(),
            statements: Statements::default(),
        })
    }

    /// Counts, to be written once for the whole batch.
    pub(crate) fn count(&self, work: impl FnOnce(&mut Increments)) {
        work(&mut self.increments.borrow_mut());
    }

    /// What was counted so far, to be written.
    pub(crate) fn take_increments(&self) -> Increments {
        self.increments.take()
    }

    /// To be called after whatever may have changed what was read.
    pub(crate) fn clear_cache(&self) {
        self.cache.clear();
        self.clicks.borrow_mut().clear();
    }

    /// The integrations of an app that were ever touched.
    pub(crate) fn integrations(&self, app: AppId) -> Result<Arc<[Integration]>, Failure> {
        let all = &self.cache.integrations;
        if let Some(known) = all.borrow().get(&app) {
            return Ok(known.clone());
        }
        let read: Arc<[Integration]> = integrations::find_configured(self.connection, app)?.into();
        all.borrow_mut().insert(app, read.clone());
        Ok(read)
    }

    /// The click, as it was read for another job or is read now; nothing when there is none.
    pub(crate) fn click(
        &self,
        app: AppId,
        click: ClickId,
        read: impl FnOnce() -> Result<Option<StoredWebClick>, Failure>,
    ) -> Result<Option<StoredWebClick>, Failure> {
        if let Some(known) = self.clicks.borrow().get(&(app, click)) {
            return Ok(Some(known.clone()));
        }
        let found = read()?;
        if let Some(found) = &found {
            let mut clicks = self.clicks.borrow_mut();
            clicks.insert((app, click), found.clone());
        }
        Ok(found)
    }

    /// Notes that an event refers to a click.
    pub(crate) fn mark_click_kept(&self, app: AppId, click: ClickId) {
        if let Some(known) = self.clicks.borrow_mut().get_mut(&(app, click)) {
            known.is_referenced = true;
        }
    }

    /// What a link says today; nothing when there is none.
    pub(crate) fn link_destination(
        &self,
        app: AppId,
        link: LinkId,
    ) -> Result<Option<Arc<LinkDestination>>, Failure> {
        let all = &self.cache.destinations;
        if let Some(known) = all.borrow().get(&(app, link)) {
            return Ok(Some(known.clone()));
        }
        let sql = format!("select {LINK_COLUMNS} from links where app_id = ?1 and link_id = ?2");
        let row = self
            .connection
            .prepare_cached(&sql)?
            .query_row((app.as_bytes(), link.as_bytes()), read_row::<LinkRow>)
            .optional()?;
        let Some(row) = row else { return Ok(None) };
        let read = row.read()?;
        let funnel = Arc::new(LinkDestination {
            is_web_funnel: read.kind == LinkKind::WebFunnel,
            origin: read.destination_url.as_ref().map(HttpsUrl::origin),
        });
        all.borrow_mut().insert((app, link), funnel.clone());
        Ok(Some(funnel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;
    use tributary_store::Store;
    use tributary_store::contract::sdk_fixtures::tenant;

    #[tokio::test]
    async fn what_is_remembered_is_forgotten_when_another_process_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tributary.db");
        let opened = path.clone();
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
        let store = Arc::new(opened.unwrap().unwrap());
        let shared: Arc<dyn Store> = store.clone();
        let app = tenant(&shared).await.app.id;
        let read = || {
            store.write_decided("test", move |batch| {
                let first = batch.integrations(app)?;
                assert!(Arc::ptr_eq(&first, &batch.integrations(app)?));
                Ok(first)
            })
        };
        let first = read().await.unwrap();
        assert!(Arc::ptr_eq(&first, &read().await.unwrap()), "remembered");
        let other = Connection::open(&path).unwrap();
        other
            .execute_batch("update apps set name = 'another'")
            .unwrap();
        assert!(!Arc::ptr_eq(&first, &read().await.unwrap()), "forgotten");
        let links = |connection: &Connection| {
            Ok(connection.execute("update links set name = 'another'", ())?)
        };
        let second = read().await.unwrap();
        store.write("test", links).await.unwrap();
        assert!(!Arc::ptr_eq(&second, &read().await.unwrap()), "forgotten");
    }
}
