//! Cache of recently tapped links.
//!
//! A tap uses the cached link while it is current, and reads it otherwise. While the database is
//! unavailable, a tap uses the cached link even if it may be outdated.

use crate::read_cache::{ConfigurationWatch, ReadResult, SharedReads};
use std::sync::Arc;
use tributary_store::{LinkRef, Store, StoreResult, TrackedLink};

/// Maximum number of cached links; each takes a few kilobytes.
const LINKS_REMEMBERED_MAX: usize = 10_000;

/// Cache of recently tapped links, by the id or slug in the tapped URL.
pub struct LinkCache(Arc<SharedReads<Box<str>, Arc<TrackedLink>>>);

impl Default for LinkCache {
    fn default() -> Self {
        Self(SharedReads::new("tracking_link", LINKS_REMEMBERED_MAX))
    }
}

impl LinkCache {
    /// Returns the cached link if it is current.
    pub(crate) fn current(
        &self,
        watch: &ConfigurationWatch,
        store: &Arc<dyn Store>,
        name: &str,
    ) -> Option<Arc<TrackedLink>> {
        self.0.cached(name, watch.confirmed_state(store)?)
    }

    /// Reads and caches a link. Returns `None` if it does not exist.
    pub(crate) async fn read(
        &self,
        watch: &ConfigurationWatch,
        store: &Arc<dyn Store>,
        name: &str,
        link: LinkRef,
    ) -> StoreResult<Option<Arc<TrackedLink>>> {
        let (watch, store) = (watch.clone(), store.clone());
        let read = move || {
            let (state, store, link) = (watch.state(&store), store.clone(), link.clone());
            async move {
                let value = store.tracking_link(link).await?.map(Arc::new);
                Ok(ReadResult { value, state })
            }
        };
        self.0.read(name.into(), read).await
    }

    /// Returns the cached link, even if it is outdated.
    pub(crate) fn possibly_outdated(&self, name: &str) -> Option<Arc<TrackedLink>> {
        self.0.possibly_outdated(name)
    }
}
