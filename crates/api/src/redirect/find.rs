//! Looks up the tapped link.
//!
//! Most taps find their link in the cache. While the database is unavailable, the cache may be
//! outdated; it is used anyway, so that paid taps still reach their destination.

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
    let (cache, watch) = (&state.link_cache, &state.read_cache.watch);
    if let Some(tracked) = cache.current(watch, &state.store, name) {
        return LinkLookup::Link(tracked);
    }
    let Some(link) = link_ref(name) else {
        return LinkLookup::NotFound;
    };
    let read = cache.read(watch, &state.store, name, link);
    match tokio::time::timeout_at(deadline, read).await {
        Ok(Ok(Some(tracked))) => return LinkLookup::Link(tracked),
        Ok(Ok(None)) => return LinkLookup::NotFound,
        Ok(Err(error)) => tracing::error!(%error, "failed to read link"),
        Err(_) => tracing::error!("timed out reading link"),
    }
    let remembered = cache.possibly_outdated(name);
    remembered.map_or(LinkLookup::Unavailable, |tracked| {
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
    use crate::read_cache::CONFIRMED_MAX;
    use crate::read_cache::tests::{open, poll, running};
    use crate::tests::handles_in;
    use rstest::rstest;
    use std::time::Duration;
    use tributary_domain::link::LinkChange;
    use tributary_domain::vocabulary::change::Change;
    use tributary_domain::vocabulary::revision::Precondition;
    use tributary_store::contract::fixtures::{SharedStore, origin};
    use tributary_store::contract::sdk_fixtures::{Tenant, tenant};

    struct Fixture {
        state: ApiState,
        /// The same database in another process.
        other: SharedStore,
        tenant: Tenant,
        _folder: tempfile::TempDir,
    }

    impl Fixture {
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let state = ApiState::from(handles_in(folder.path(), Duration::from_secs(5)));
            let fixture = Self {
                tenant: running(tenant(&state.store)).await,
                other: open(folder.path()),
                state,
                _folder: folder,
            };
            poll(&fixture.state.read_cache.watch, &fixture.state.store).await;
            fixture
        }

        async fn find(&self) -> LinkLookup {
            let deadline = Instant::now() + Duration::from_secs(2);
            find(&self.state, self.tenant.link.slug.as_str(), deadline).await
        }

        async fn found(&self) -> Arc<TrackedLink> {
            match self.find().await {
                LinkLookup::Link(tracked) => tracked,
                other => panic!("{other:?}"),
            }
        }

        async fn deactivate(&self, store: &SharedStore) {
            let change = LinkChange {
                active: Change::Set(false),
                ..LinkChange::default()
            };
            let Tenant {
                writer, app, link, ..
            } = &self.tenant;
            let any = Precondition::None;
            let changed = store.update_link(writer, app.id, link.id, change, any, origin(5));
            running(changed).await.unwrap();
        }

        async fn delete(&self, store: &SharedStore) {
            let Tenant {
                writer, app, link, ..
            } = &self.tenant;
            let deleted = store.delete_link(writer, app.id, link.id, Precondition::None, origin(6));
            running(deleted).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn taps_share_the_cached_link_until_it_changes() {
        let fixture = Fixture::new().await;
        let first = fixture.found().await;
        assert!(Arc::ptr_eq(&first, &fixture.found().await));
        fixture.deactivate(&fixture.state.store).await;
        assert!(first.link.active && !fixture.found().await.link.active);
        fixture.delete(&fixture.state.store).await;
        assert!(matches!(fixture.find().await, LinkLookup::NotFound));
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_changed_by_another_process_is_found_within_a_second() {
        let fixture = Fixture::new().await;
        assert!(fixture.found().await.link.active);
        fixture.deactivate(&fixture.other).await;
        tokio::time::advance(CONFIRMED_MAX).await;
        assert!(!fixture.found().await.link.active);
        fixture.delete(&fixture.other).await;
        poll(&fixture.state.read_cache.watch, &fixture.state.store).await;
        assert!(matches!(fixture.find().await, LinkLookup::NotFound));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tap_uses_the_remembered_link_while_the_database_is_unavailable() {
        let fixture = Fixture::new().await;
        fixture.found().await;
        running(fixture.state.store.close()).await;
        tokio::time::advance(CONFIRMED_MAX).await;
        assert!(fixture.found().await.link.active);
        let deadline = Instant::now() + Duration::from_secs(2);
        let unknown = find(&fixture.state, "unknown", deadline).await;
        assert!(matches!(unknown, LinkLookup::Unavailable));
    }

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
