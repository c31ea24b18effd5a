//! What every door does with a tap: find its link, record its click.

use super::find::{LinkLookup, find};
use super::page;
use super::tap_request::TapRequest;
use crate::host::RequestHost;
use crate::metrics;
use crate::request::record_organization;
use crate::state::ApiState;
use axum::response::Response;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Span;
use tributary_domain::click::destination::{Destination, RedirectRequest};
use tributary_domain::device::Platform;
use tributary_domain::link::LinkKind;
use tributary_store::TrackedLink;

/// How long a tap waits for the database, in all. Whoever tapped waits with it and is sent on at its end;
/// people give up on a page that takes longer.
const STORE_WAIT_MAX: Duration = Duration::from_secs(2);

/// A tap whose link is known.
#[derive(Debug)]
pub(super) struct ResolvedTap {
    /// The link and its app.
    pub(super) tracked: Arc<TrackedLink>,
    /// What it was tapped on.
    pub(super) platform: Platform,
    /// The click id as it travels; nothing when the click was not recorded.
    pub(super) token: Option<String>,
    /// Whether it was a person's.
    pub(super) is_person: bool,
}

impl ResolvedTap {
    /// Where it is sent.
    pub(super) fn destination(&self, arrival: &TapRequest) -> Destination {
        let tap = RedirectRequest {
            link: &self.tracked.link,
            app: &self.tracked.app,
            platform: self.platform,
            parameters: &arrival.parameters,
            click: self.token.as_deref(),
        };
        tap.destination()
    }
}

/// Finds the link of a tap and records the click. Otherwise the page that says why there is none.
pub(super) async fn resolve_tap(
    state: &ApiState,
    arrival: &TapRequest,
    kind: LinkKind,
) -> Result<ResolvedTap, Response> {
    let deadline = Instant::now() + STORE_WAIT_MAX;
    let tracked = match find(state, &arrival.name, deadline).await {
        LinkLookup::Link(tracked) => {
            record_organization(&Span::current(), tracked.app.organization);
            tracked
        }
        LinkLookup::NotFound => return Err(page::no_such_link()),
        LinkLookup::Unavailable => return Err(page::unavailable()),
    };
    let answers = tracked.link.active && tracked.link.kind == kind;
    if !answers || is_other_apps_host(state, arrival, &tracked, deadline).await {
        return Err(page::no_such_link());
    }
    let click = arrival.click(state, &tracked);
    let (id, is_person) = (click.id, click.bot.is_none());
    if !tracked.app.records_clicks() {
        return Ok(ResolvedTap {
            platform: arrival.agent().platform,
            token: None,
            is_person,
            tracked,
        });
    }
    let recorded = match tokio::time::timeout_at(deadline, state.store.record_click(click)).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::error!(%error, "a click is not recorded; its person is sent on without it");
            false
        }
        Err(_) => {
            tracing::error!("a click is not recorded in time; its person is sent on without it");
            false
        }
    };
    metrics::count_click(match (recorded, is_person) {
        (true, true) => "recorded",
        (true, false) => "bot",
        (false, _) => "not_recorded",
    });
    Ok(ResolvedTap {
        platform: arrival.agent().platform,
        token: recorded.then(|| state.click_tokens.sign(tracked.app.id, id)),
        is_person,
        tracked,
    })
}

/// Whether the link was tapped under the host of another app. Whoever trusts that host must not be led
/// anywhere by a link of somebody else's. Any other name is the operator's business.
async fn is_other_apps_host(
    state: &ApiState,
    arrival: &TapRequest,
    tracked: &TrackedLink,
    deadline: Instant,
) -> bool {
    let RequestHost::Named(host) = &arrival.host else {
        return false;
    };
    if tracked.app.link_domain.as_ref() == Some(host) {
        return false;
    }
    let hosts = state.store.apps_for_host(Some(host.clone()));
    let found = tokio::time::timeout_at(deadline, hosts).await;
    matches!(found, Ok(Ok(apps)) if !apps.is_empty())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tributary_domain::app::{App, AppCreation};
    use tributary_domain::link::{Link, LinkCreation as LinkBirth, Slug};
    use tributary_domain::vocabulary::id::{AppId, LinkId, OrganizationId};
    use tributary_domain::vocabulary::text::Name;
    use tributary_domain::vocabulary::time::Timestamp;

    /// A link to an app that both stores have.
    pub(crate) fn tracked(change: impl FnOnce(&mut TrackedLink)) -> TrackedLink {
        let at = Timestamp::from_millis(1);
        let birth = AppCreation {
            id: AppId::from_bytes([2; 16]),
            organization: OrganizationId::from_bytes([1; 16]),
            live_key: "pk_live_1".to_owned(),
            test_key: "pk_test_1".to_owned(),
            at,
        };
        let mut app = App::new(birth, Name::parse("Runner").unwrap());
        app.ios.app_store_id = Some("123456789".to_owned());
        app.android.package_name = Some("com.example.runner".to_owned());
        let birth = LinkBirth {
            id: LinkId::from_bytes([3; 16]),
            app: app.id,
            at,
        };
        let name = Name::parse("Spring").unwrap();
        let link = Link::new(&birth, name, Slug::parse("spring").unwrap());
        let mut tracked = TrackedLink { link, app };
        change(&mut tracked);
        tracked
    }
}
