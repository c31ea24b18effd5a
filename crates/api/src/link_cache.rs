//! Cache of recently tapped links, for taps while the database is unavailable.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tributary_store::TrackedLink;

/// Maximum number of cached links; each takes a few kilobytes.
const LINKS_REMEMBERED_MAX: usize = 10_000;

/// Cached links by the id or slug in the tapped URL.
type Links = HashMap<String, Arc<TrackedLink>>;

/// Cache of recently tapped links.
#[derive(Debug, Default)]
pub struct LinkCache(Mutex<Generations>);

/// Two generations of links. When the young generation is full, it becomes the old generation. The
/// links in the previous old generation that were not tapped again are dropped.
#[derive(Debug, Default)]
struct Generations {
    young: Links,
    old: Links,
}

impl LinkCache {
    pub(crate) fn insert(&self, name: &str, link: Arc<TrackedLink>) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if links.young.len() >= LINKS_REMEMBERED_MAX / 2 && !links.young.contains_key(name) {
            links.old = std::mem::take(&mut links.young);
        }
        links.young.insert(name.to_owned(), link);
    }

    pub(crate) fn remove(&self, name: &str) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.young.remove(name);
        links.old.remove(name);
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<TrackedLink>> {
        let links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links
            .young
            .get(name)
            .or_else(|| links.old.get(name))
            .cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::tracked;

    #[test]
    fn keeps_links_that_are_tapped_again_and_drops_the_rest() {
        let known = LinkCache::default();
        let link = Arc::new(tracked(|_| {}));
        known.insert("often", link.clone());
        for number in 0..LINKS_REMEMBERED_MAX {
            known.insert(&number.to_string(), link.clone());
            known.insert("often", link.clone());
        }
        assert!(known.get("often").is_some());
        assert!(known.get("0").is_none());
        assert!(known.get(&(LINKS_REMEMBERED_MAX - 1).to_string()).is_some());
        let links = known.0.lock().unwrap();
        assert!(links.young.len() + links.old.len() <= LINKS_REMEMBERED_MAX);
    }

    #[test]
    fn removed_links_are_not_returned() {
        let known = LinkCache::default();
        known.insert("a", Arc::new(tracked(|_| {})));
        known.remove("a");
        assert!(known.get("a").is_none());
    }
}
