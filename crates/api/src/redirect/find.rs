//! Looks up the tapped link.
//!
//! The cache is used only while the database is unavailable, so that paid taps still reach their
//! destination.

use crate::metrics;
use crate::state::ApiState;
use std::sync::Arc;
use tokio::time::Instant;
use tributary_domain::link::Slug;
use tributary_domain::vocabulary::id::LinkId;
use tributary_store::{LinkRef, TrackedLink};

/// Result of a link lookup.
#[derive(Debug)]
pub(super) enum LinkLookup {
    /// The link exists.
    Link(Arc<TrackedLink>),
    /// The link does not exist.
    NotFound,
    /// The database is unavailable and the link is not cached.
    Unavailable,
}

/// Finds a link by id or slug before the deadline.
pub(super) async fn find(state: &ApiState, name: &str, deadline: Instant) -> LinkLookup {
    let Some(link) = link_ref(name) else {
        return LinkLookup::NotFound;
    };
    let cache = &state.link_cache;
    match tokio::time::timeout_at(deadline, state.store.tracking_link(link)).await {
        Ok(Ok(Some(tracked))) => {
            let tracked = Arc::new(tracked);
            cache.insert(name, tracked.clone());
            return LinkLookup::Link(tracked);
        }
        Ok(Ok(None)) => {
            cache.remove(name);
            return LinkLookup::NotFound;
        }
        Ok(Err(error)) => tracing::error!(%error, "failed to read link"),
        Err(_) => tracing::error!("timed out reading link"),
    }
    cache.get(name).map_or(LinkLookup::Unavailable, |tracked| {
        metrics::count_cached_link();
        LinkLookup::Link(tracked)
    })
}

/// Parses an id or a slug. Only ids contain an underscore.
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
