//! The link that a tap names.
//!
//! The database decides what a link is. Only when it cannot be asked does the cache answer: a tap that was paid
//! for goes where the last one went.

use crate::metrics;
use crate::state::ApiState;
use std::sync::Arc;
use tokio::time::Instant;
use tributary_domain::link::Slug;
use tributary_domain::vocabulary::id::LinkId;
use tributary_store::{LinkRef, TrackedLink};

/// What a name leads to.
#[derive(Debug)]
pub(super) enum LinkLookup {
    /// This link.
    Link(Arc<TrackedLink>),
    /// Nothing.
    NotFound,
    /// Nobody knows: the database is away, and the link was not tapped lately.
    Unavailable,
}

/// Finds the link of a name, until a moment.
pub(super) async fn find(state: &ApiState, name: &str, deadline: Instant) -> LinkLookup {
    let Some(link) = link_ref(name) else {
        return LinkLookup::NotFound;
    };
    let known = &state.link_cache;
    match tokio::time::timeout_at(deadline, state.store.tracking_link(link)).await {
        Ok(Ok(Some(tracked))) => {
            let tracked = Arc::new(tracked);
            known.insert(name, tracked.clone());
            return LinkLookup::Link(tracked);
        }
        Ok(Ok(None)) => {
            known.remove(name);
            return LinkLookup::NotFound;
        }
        Ok(Err(error)) => tracing::error!(%error, "a tapped link cannot be read"),
        Err(_) => tracing::error!("a tapped link cannot be read in time"),
    }
    known.get(name).map_or(LinkLookup::Unavailable, |tracked| {
        metrics::count_cached_link();
        LinkLookup::Link(tracked)
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
}
