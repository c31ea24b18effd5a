//! The transaction that runs a batch of jobs, and a cache for the jobs.
//!
//! Most posted events belong to a few apps and links. Cached configuration stays valid until it
//! changes, even for later batches: the writer knows its own changes, and `data_version` reveals
//! changes by other processes. The increments from all jobs are summed and written once.

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
use tributary_domain::vocabulary::web_url::{PageUrl, WebOrigin};
use tributary_store::records::LinkRow;

/// Maximum number of cached apps and links. A larger cache is cleared.
const CACHED_MAX: usize = 10_000;

/// The parts of a link's destination that web events need.
pub(crate) struct LinkDestination {
    pub(crate) is_web_funnel: bool,
    pub(crate) origin: Option<WebOrigin>,
}

/// Cached configuration for batches.
#[derive(Default)]
pub(crate) struct BatchCache {
    /// SQLite's `data_version`, which changes when another process has written.
    data_version: Cell<i64>,
    integrations: RefCell<HashMap<AppId, Arc<[Integration]>>>,
    destinations: RefCell<HashMap<(AppId, LinkId), Arc<LinkDestination>>>,
}

impl BatchCache {
    fn clear(&self) {
        self.integrations.borrow_mut().clear();
        self.destinations.borrow_mut().clear();
    }

    /// Clears the cache if another process has written or the cache is too large.
    fn refresh(&self, connection: &Connection) -> Result<(), Failure> {
        let now = connection
            .prepare_cached("pragma data_version")?
            .query_row((), |row| row.get(0))?;
        let before = self.data_version.replace(now);
        let cached = self.integrations.borrow().len() + self.destinations.borrow().len();
        if now != before || cached > CACHED_MAX {
            self.clear();
        }
        Ok(())
    }
}

/// A batch in progress.
pub(crate) struct WriteBatch<'a> {
    pub(crate) connection: &'a Connection,
    cache: &'a BatchCache,
    clicks: RefCell<HashMap<(AppId, ClickId), StoredWebClick>>,
    increments: RefCell<Increments>,
    pub(crate) statements: Statements<'a>,
}

/// Statements that most jobs need. Jobs without a savepoint share one lookup of each.
#[derive(Default)]
pub(crate) struct Statements<'a> {
    pub(crate) device: LazyStatement<'a>,
    pub(crate) identity: LazyStatement<'a>,
    pub(crate) click: LazyStatement<'a>,
    pub(crate) new_click: LazyStatement<'a>,
    pub(crate) key: LazyStatement<'a>,
    pub(crate) event: LazyStatement<'a>,
    pub(crate) reservation: LazyStatement<'a>,
    pub(crate) delivery: LazyStatement<'a>,
    pub(crate) first_payment: LazyStatement<'a>,
}

impl Statements<'_> {
    /// Returns the statements to the connection's cache. A job that looks them up there would
    /// otherwise prepare them again.
    pub(crate) fn release(&mut self) {
        *self = Self::default();
    }
}

/// A statement that is prepared on first use.
#[derive(Default)]
pub(crate) struct LazyStatement<'a>(RefCell<Option<CachedStatement<'a>>>);

impl<'a> LazyStatement<'a> {
    /// Prepares the statement if necessary and runs `work` with it.
    pub(crate) fn with<T>(
        &self,
        connection: &'a Connection,
        sql: &str,
        work: impl FnOnce(&mut CachedStatement<'a>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut cached = self.0.borrow_mut();
        let mut statement = match cached.take() {
            Some(statement) => statement,
            None => connection.prepare_cached(sql)?,
        };
        let done = work(&mut statement);
        *cached = Some(statement);
        done
    }
}

impl<'a> WriteBatch<'a> {
    /// Starts a batch in a transaction that has just begun.
    pub(crate) fn new(connection: &'a Connection, cache: &'a BatchCache) -> Result<Self, Failure> {
        cache.refresh(connection)?;
        Ok(Self {
            connection,
            cache,
            clicks: RefCell::default(),
            increments: RefCell::default(),
            statements: Statements::default(),
        })
    }

    /// Adds to the increments, which are written once per batch.
    pub(crate) fn count(&self, work: impl FnOnce(&mut Increments)) {
        work(&mut self.increments.borrow_mut());
    }

    /// Takes the increments from all jobs so far.
    pub(crate) fn take_increments(&self) -> Increments {
        self.increments.take()
    }

    /// Clears the cache after a change that may have invalidated it.
    pub(crate) fn clear_cache(&self) {
        self.cache.clear();
        self.clicks.borrow_mut().clear();
    }

    /// Returns an app's configured integrations.
    pub(crate) fn integrations(&self, app: AppId) -> Result<Arc<[Integration]>, Failure> {
        let all = &self.cache.integrations;
        if let Some(cached) = all.borrow().get(&app) {
            return Ok(cached.clone());
        }
        let read: Arc<[Integration]> = integrations::find_configured(self.connection, app)?.into();
        all.borrow_mut().insert(app, read.clone());
        Ok(read)
    }

    /// Returns a click, from the cache or by calling `read`.
    pub(crate) fn click(
        &self,
        app: AppId,
        click: ClickId,
        read: impl FnOnce() -> Result<Option<StoredWebClick>, Failure>,
    ) -> Result<Option<StoredWebClick>, Failure> {
        if let Some(cached) = self.clicks.borrow().get(&(app, click)) {
            return Ok(Some(cached.clone()));
        }
        let found = read()?;
        if let Some(found) = &found {
            let mut clicks = self.clicks.borrow_mut();
            clicks.insert((app, click), found.clone());
        }
        Ok(found)
    }

    /// Records in the cache that an event refers to a click.
    pub(crate) fn mark_click_kept(&self, app: AppId, click: ClickId) {
        if let Some(cached) = self.clicks.borrow_mut().get_mut(&(app, click)) {
            cached.is_referenced = true;
        }
    }

    /// Returns the current destination of a link, or `None` if there is no such link.
    pub(crate) fn link_destination(
        &self,
        app: AppId,
        link: LinkId,
    ) -> Result<Option<Arc<LinkDestination>>, Failure> {
        let all = &self.cache.destinations;
        if let Some(cached) = all.borrow().get(&(app, link)) {
            return Ok(Some(cached.clone()));
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
            origin: read.destination_url.as_ref().map(PageUrl::origin),
        });
        all.borrow_mut().insert((app, link), funnel.clone());
        Ok(Some(funnel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteStore;
    use crate::job::{CacheEffect, JobIsolation, new_job};
    use crate::writer_thread::commit;
    use rusqlite::StatementStatus;
    use tributary_store::Store;
    use tributary_store::contract::sdk_fixtures::tenant;

    #[tokio::test]
    async fn clears_the_cache_only_when_configuration_may_have_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tributary.db");
        let opened = path.clone();
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
        let store = Arc::new(opened.unwrap().unwrap());
        let shared: Arc<dyn Store> = store.clone();
        let tenant = tenant(&shared).await;
        let app = tenant.app.id;
        let read = || {
            store.write_decided("test", move |batch| {
                let first = batch.integrations(app)?;
                assert!(Arc::ptr_eq(&first, &batch.integrations(app)?));
                Ok(first)
            })
        };
        let first = read().await.unwrap();
        assert!(Arc::ptr_eq(&first, &read().await.unwrap()), "cached");
        tenant.call_configure(tenant.configure("device", 10)).await;
        assert!(Arc::ptr_eq(&first, &read().await.unwrap()), "kept");
        let other = Connection::open(&path).unwrap();
        other
            .execute_batch("update apps set name = 'another'")
            .unwrap();
        assert!(!Arc::ptr_eq(&first, &read().await.unwrap()), "cleared");
        let links = |connection: &Connection| {
            Ok(connection.execute("update links set name = 'another'", ())?)
        };
        let second = read().await.unwrap();
        store.write("test", links).await.unwrap();
        assert!(!Arc::ptr_eq(&second, &read().await.unwrap()), "cleared");
    }

    #[test]
    fn a_job_in_a_savepoint_reuses_the_statements_of_earlier_jobs() {
        const SQL: &str = "select 1";
        let connection = Connection::open_in_memory().unwrap();
        let shared = |batch: &WriteBatch<'_>| {
            let statement = &batch.statements.key;
            statement.with(batch.connection, SQL, |find| Ok(find.exists(())?))
        };
        let kind = (JobIsolation::NoSavepoint, CacheEffect::Keeps);
        let (first, _) = new_job("first", kind, shared);
        let looked_up = |batch: &WriteBatch<'_>| {
            let statement = batch.connection.prepare_cached(SQL)?;
            Ok(statement.get_status(StatementStatus::Run))
        };
        let kind = (JobIsolation::Savepoint, CacheEffect::Keeps);
        let (second, mut answer) = new_job("second", kind, looked_up);
        let mut jobs = [first, second];
        commit(&connection, &BatchCache::default(), &mut jobs).unwrap();
        for job in jobs {
            job.answer(true);
        }
        assert_eq!(answer.try_recv().unwrap().unwrap(), 1);
    }
}
