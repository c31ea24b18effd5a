//! The link that a tap names, and the memory of those that were tapped last.
//!
//! The database decides what a link is. Only when it cannot be asked does memory answer: a tap that was paid
//! for goes where the last one went.

use crate::metrics;
use crate::state::ApiState;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;
use tributary_domain::link::Slug;
use tributary_domain::vocabulary::id::LinkId;
use tributary_store::{LinkRef, TrackedLink};

/// Links that are remembered, at most: a few kilobytes each.
const LINKS_REMEMBERED_MAX: usize = 10_000;

/// Links by the name they were tapped under.
type Links = HashMap<String, Arc<TrackedLink>>;

/// The links that were tapped last.
#[derive(Debug, Default)]
pub struct LastKnownLinks(Mutex<Generations>);

/// Two halves: when the young one is full, it becomes the old one, and what was in the old one and has not
/// been tapped since is forgotten.
#[derive(Debug, Default)]
struct Generations {
    young: Links,
    old: Links,
}

impl LastKnownLinks {
    fn note(&self, name: &str, link: Arc<TrackedLink>) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if links.young.len() >= LINKS_REMEMBERED_MAX / 2 && !links.young.contains_key(name) {
            links.old = std::mem::take(&mut links.young);
        }
        links.young.insert(name.to_owned(), link);
    }

    fn forget(&self, name: &str) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.young.remove(name);
        links.old.remove(name);
    }

    fn get(&self, name: &str) -> Option<Arc<TrackedLink>> {
        let links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links
            .young
            .get(name)
            .or_else(|| links.old.get(name))
            .cloned()
    }
}

/// What a name leads to.
#[derive(Debug)]
pub(super) enum Found {
    /// This link.
    Link(Arc<TrackedLink>),
    /// Nothing.
    Nothing,
    /// Nobody knows: the database is away, and the link was not tapped lately.
    Unknown,
}

/// Finds the link of a name, until a moment.
pub(super) async fn find(state: &ApiState, name: &str, deadline: Instant) -> Found {
    let Some(link) = link_ref(name) else {
        return Found::Nothing;
    };
    let known = &state.last_known_links;
    match tokio::time::timeout_at(deadline, state.store.tracking_link(link)).await {
        Ok(Ok(Some(tracked))) => {
            let tracked = Arc::new(tracked);
            known.note(name, tracked.clone());
            return Found::Link(tracked);
        }
        Ok(Ok(None)) => {
            known.forget(name);
            return Found::Nothing;
        }
        Ok(Err(error)) => tracing::error!(%error, "a tapped link cannot be read"),
        Err(_) => tracing::error!("a tapped link cannot be read in time"),
    }
    known.get(name).map_or(Found::Unknown, |tracked| {
        metrics::link_from_memory();
        Found::Link(tracked)
    })
}

/// An id or a slug. The one has an underscore and the other has none.
fn link_ref(name: &str) -> Option<LinkRef> {
    let id = LinkId::parse(name).ok().map(LinkRef::Id);
    id.or_else(|| Slug::parse(name).ok().map(LinkRef::Slug))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redirect::tap::tests::tracked;
    use rstest::rstest;

    #[rstest]
    #[case::slug("spring-social", true)]
    #[case::id("lnk_01040g2081040g2081040g2081", true)]
    #[case::id_of_another_kind("app_01040g2081040g2081040g2081", false)]
    #[case::no_id("lnk_1", false)]
    #[case::url("https://evil.test", false)]
    #[case::two_slashes("//evil.test", false)]
    #[case::backslash("\\\\evil.test", false)]
    #[case::line_break("spring\r\nLocation: https://evil.test", false)]
    #[case::international("spríng", false)]
    #[case::userinfo("spring@evil.test", false)]
    #[case::dots("..", false)]
    #[case::empty("", false)]
    #[case::longest(
        "a-----------------------------------------------------------------b",
        false
    )]
    fn names(#[case] name: &str, #[case] is_one: bool) {
        assert_eq!(link_ref(name).is_some(), is_one);
    }

    #[test]
    fn what_is_tapped_again_stays_and_the_rest_is_forgotten() {
        let known = LastKnownLinks::default();
        let link = Arc::new(tracked(|_| {}));
        known.note("often", link.clone());
        for number in 0..LINKS_REMEMBERED_MAX {
            known.note(&number.to_string(), link.clone());
            known.note("often", link.clone());
        }
        assert!(known.get("often").is_some());
        assert!(known.get("0").is_none());
        assert!(known.get(&(LINKS_REMEMBERED_MAX - 1).to_string()).is_some());
        let links = known.0.lock().unwrap();
        assert!(links.young.len() + links.old.len() <= LINKS_REMEMBERED_MAX);
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let known = LastKnownLinks::default();
        known.note("a", Arc::new(tracked(|_| {})));
        known.forget("a");
        assert!(known.get("a").is_none());
    }
}
