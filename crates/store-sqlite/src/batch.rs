//! The transaction that a batch is committed in, and what its jobs need not read again.
//!
//! The posts of a batch are mostly of one app and a few links. What is read of an app for one of them holds for
//! the next as long as nothing else writes in between, and the writer knows when something does.

use crate::links::{LINK_COLUMNS, link_row};
use crate::{Failure, integrations};
use rusqlite::{Connection, OptionalExtension};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_domain::integration::Integration;
use tributary_domain::link::LinkKind;
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::web_url::{HttpsUrl, Origin};

/// What a link says about the website it leads to.
#[derive(Clone)]
pub(crate) struct Funnel {
    pub(crate) is_web_funnel: bool,
    pub(crate) origin: Option<Origin>,
}

/// A batch under way.
pub(crate) struct Batch<'a> {
    pub(crate) connection: &'a Connection,
    integrations: RefCell<HashMap<AppId, Arc<[Integration]>>>,
    funnels: RefCell<HashMap<(AppId, LinkId), Funnel>>,
}

impl<'a> Batch<'a> {
    pub(crate) fn on(connection: &'a Connection) -> Self {
        Self {
            connection,
            integrations: RefCell::default(),
            funnels: RefCell::default(),
        }
    }

    /// To be called after whatever may have changed what was read.
    pub(crate) fn forget(&self) {
        self.integrations.borrow_mut().clear();
        self.funnels.borrow_mut().clear();
    }

    /// The integrations of an app that were ever touched.
    pub(crate) fn integrations(&self, app: AppId) -> Result<Arc<[Integration]>, Failure> {
        if let Some(known) = self.integrations.borrow().get(&app) {
            return Ok(known.clone());
        }
        let read: Arc<[Integration]> = integrations::touched(self.connection, app)?.into();
        self.integrations.borrow_mut().insert(app, read.clone());
        Ok(read)
    }

    /// What a link says today; nothing when there is none.
    pub(crate) fn funnel(&self, app: AppId, link: LinkId) -> Result<Option<Funnel>, Failure> {
        if let Some(known) = self.funnels.borrow().get(&(app, link)) {
            return Ok(Some(known.clone()));
        }
        let sql = format!("select {LINK_COLUMNS} from links where app_id = ?1 and link_id = ?2");
        let row = self
            .connection
            .prepare_cached(&sql)?
            .query_row((app.as_bytes(), link.as_bytes()), link_row)
            .optional()?;
        let Some(row) = row else { return Ok(None) };
        let read = row.read()?;
        let funnel = Funnel {
            is_web_funnel: read.kind == LinkKind::WebFunnel,
            origin: read.destination_url.as_ref().map(HttpsUrl::origin),
        };
        self.funnels
            .borrow_mut()
            .insert((app, link), funnel.clone());
        Ok(Some(funnel))
    }
}
