//! The links that were tapped last, for taps that arrive while the database cannot be asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tributary_store::TrackedLink;

/// Links that are remembered, at most: a few kilobytes each.
const LINKS_REMEMBERED_MAX: usize = 10_000;

/// Links by the name they were tapped under.
type Links = HashMap<String, Arc<TrackedLink>>;

/// The links that were tapped last.
#[derive(Debug, Default)]
pub struct LinkCache(Mutex<Generations>);

/// Two halves: when the young one is full, it becomes the old one, and what was in the old one and has not
/// been tapped since is forgotten.
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
    fn what_is_tapped_again_stays_and_the_rest_is_forgotten() {
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
    fn what_is_gone_is_forgotten() {
        let known = LinkCache::default();
        known.insert("a", Arc::new(tracked(|_| {})));
        known.remove("a");
        assert!(known.get("a").is_none());
    }
}
