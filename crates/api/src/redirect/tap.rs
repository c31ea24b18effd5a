//! Common handling of taps: finds the link and records the click.

use super::click_request::ClickRequest;
use super::find::{LinkLookup, find};
use super::page;
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

/// Total time that a tap may wait for the database before the visitor is redirected without a click
/// record. Visitors give up on pages that take longer.
const STORE_WAIT_MAX: Duration = Duration::from_secs(2);

/// A tap with its link and click.
#[derive(Debug)]
pub(super) struct ResolvedClick {
    /// The link and its app.
    pub(super) tracked: Arc<TrackedLink>,
    /// Platform of the visitor's device.
    pub(super) platform: Platform,
    /// Signed click id; `None` if the click was not recorded.
    pub(super) token: Option<String>,
    /// False for bots, except on test links.
    pub(super) is_person: bool,
}

impl ResolvedClick {
    /// Returns the destination of the redirect.
    pub(super) fn destination(&self, request: &ClickRequest) -> Destination {
        let tap = RedirectRequest {
            link: &self.tracked.link,
            app: &self.tracked.app,
            platform: self.platform,
            parameters: &request.parameters,
            click: self.token.as_deref(),
        };
        tap.destination()
    }
}

/// Finds the tapped link and records the click. Returns an error page if there is no usable link.
pub(super) async fn resolve_tap(
    state: &ApiState,
    request: &ClickRequest,
    kind: LinkKind,
) -> Result<ResolvedClick, Response> {
    let deadline = Instant::now() + STORE_WAIT_MAX;
    let tracked = match find(state, &request.name, deadline).await {
        LinkLookup::Link(tracked) => {
            record_organization(&Span::current(), tracked.app.organization);
            tracked
        }
        LinkLookup::NotFound => return Err(page::no_such_link()),
        LinkLookup::Unavailable => return Err(page::unavailable()),
    };
    let is_usable = tracked.link.active && tracked.link.kind == kind;
    if !is_usable || is_other_apps_host(state, request, &tracked, deadline).await {
        return Err(page::no_such_link());
    }
    let click = request.click(state, &tracked);
    let is_person = click.bot.is_none() || click.is_test();
    let (id, platform) = (click.id, click.platform());
    if !tracked.app.records_clicks() {
        return Ok(ResolvedClick {
            platform,
            token: None,
            is_person,
            tracked,
        });
    }
    let recorded = match tokio::time::timeout_at(deadline, state.store.record_click(click)).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::error!(
                app = %tracked.app.id,
                link = %tracked.link.id,
                %error,
                "failed to record click; redirecting anyway"
            );
            false
        }
        Err(_) => {
            tracing::error!(
                app = %tracked.app.id,
                link = %tracked.link.id,
                "timed out recording click; redirecting anyway"
            );
            false
        }
    };
    metrics::count_click(match (recorded, is_person) {
        (true, true) => "recorded",
        (true, false) => "bot",
        (false, _) => "not_recorded",
    });
    Ok(ResolvedClick {
        platform,
        token: recorded.then(|| state.click_tokens.sign(tracked.app.id, id)),
        is_person,
        tracked,
    })
}

/// Returns whether the link was opened on another app's verified link domain. An app's domain must not
/// redirect visitors through a link that belongs to a different app. Unknown hosts are allowed.
async fn is_other_apps_host(
    state: &ApiState,
    request: &ClickRequest,
    tracked: &TrackedLink,
    deadline: Instant,
) -> bool {
    let RequestHost::Named(host) = &request.host else {
        return false;
    };
    if tracked.app.verified_link_domain() == Some(host) {
        return false;
    }
    let hosts = state.store.apps_for_host(Some(host.clone()));
    let found = tokio::time::timeout_at(deadline, hosts).await;
    matches!(found, Ok(Ok(apps)) if !apps.is_empty())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use tributary_domain::app::{App, AppCreation};
    use tributary_domain::link::{Link, LinkCreation as LinkBirth, Slug};
    use tributary_domain::vocabulary::id::{AppId, LinkId, OrganizationId};
    use tributary_domain::vocabulary::text::Name;
    use tributary_domain::vocabulary::time::Timestamp;

    /// Returns a link to an app that is in both stores.
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
