//! Errors keep the menu for signed-in users.

use super::current_session::HX_REQUEST;
use super::{CurrentSession, PageContext, cookie};
use crate::failure::{Failure, FailurePage, FramedFailurePage};
use crate::shell::Section;
use crate::state::DashboardHandles;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::Response;
use tributary_domain::access::AnalyticsRead;

/// A request that fails, as far as its error page needs it.
pub(crate) struct FailedRequest {
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// Whether the method changes nothing.
    pub(crate) is_safe: bool,
}

/// Adds the menu to the error page of a response, if the request has a valid session.
pub(crate) async fn keep_menu(
    State(handles): State<DashboardHandles>,
    request: Request,
    next: Next,
) -> Response {
    let is_part = request.headers().contains_key(HX_REQUEST);
    if is_part || cookie::token(request.headers(), &handles).is_none() {
        return next.run(request).await;
    }
    let failed = FailedRequest {
        uri: request.uri().clone(),
        headers: request.headers().clone(),
        is_safe: request.method().is_safe(),
    };
    let response = next.run(request).await;
    failed.add_menu(response, &handles).await
}

impl FailedRequest {
    /// Adds the menu to an error page. Other responses stay as they are.
    pub(crate) async fn add_menu(
        &self,
        mut response: Response,
        handles: &DashboardHandles,
    ) -> Response {
        let Some(failure) = response.extensions_mut().remove::<FailurePage>() else {
            return response;
        };
        let status = response.status();
        match self.context(handles).await {
            Ok(Some(context)) => {
                let shell = context.shell(Section::Unlisted);
                context.page_with(status, &FramedFailurePage { shell, failure })
            }
            // Without a database, the page has no menu.
            Ok(None) | Err(_) => response,
        }
    }

    async fn context(
        &self,
        handles: &DashboardHandles,
    ) -> Result<Option<PageContext<AnalyticsRead>>, Failure> {
        let Some(session) = CurrentSession::of_headers(&self.headers, handles).await? else {
            return Ok(None);
        };
        PageContext::for_failure(session, self, handles)
            .await
            .map(Some)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{PageResponse, TestDashboard};
    use axum::http::{Method, StatusCode};
    use rstest::rstest;
    use tributary_domain::access::person::Role;

    fn has_menu(page: &PageResponse) -> bool {
        page.text.contains("<nav aria-label=\"Main\">")
    }

    #[rstest]
    #[case::unknown_link("links/lnk_0", "Page not found", StatusCode::NOT_FOUND)]
    #[case::unknown_device("devices/nobody", "Page not found", StatusCode::NOT_FOUND)]
    #[case::unknown_network("costs/network_z", "Page not found", StatusCode::NOT_FOUND)]
    #[case::unknown_path("no/such/page", "Page not found", StatusCode::NOT_FOUND)]
    #[case::form(
        "costs/network_a/pull",
        "This address is not a page",
        StatusCode::METHOD_NOT_ALLOWED
    )]
    #[tokio::test]
    async fn errors_keep_the_menu_and_the_app(
        #[case] path: &str,
        #[case] title: &str,
        #[case] status: StatusCode,
    ) {
        let dashboard = TestDashboard::start().await;
        let owner = dashboard.sign_in_as(Role::Owner).await;
        let app = owner.create_app().await;
        let path = format!("/apps/{app}/{path}?environment=test");
        let page = owner.get(&path).await;
        assert_eq!(page.status, status);
        assert!(page.text.contains(&format!("<h1>{title}</h1>")), "{path}");
        assert!(has_menu(&page) && page.text.contains("app-switcher"));
        let links = format!("href=\"/apps/{app}/links?environment=test\"");
        assert!(page.text.contains(&links), "{}", page.text);
        let start = format!("<a href=\"/apps/{app}?environment=test\">Overview of Runner</a>");
        assert!(page.text.contains(&start), "{}", page.text);
    }

    #[tokio::test]
    async fn errors_outside_an_app_have_the_menu_of_the_organization() {
        let mut dashboard = TestDashboard::start().await;
        let app = dashboard.sign_in_as(Role::Owner).await.create_app().await;
        dashboard.switch_to_new_organization().await;
        let stranger = dashboard.sign_in_as(Role::Owner).await;
        for path in [
            format!("/apps/{app}/links"),
            "/apps/nonsense".to_owned(),
            "/nothing".to_owned(),
        ] {
            let page = stranger.get(&path).await;
            assert_eq!(page.status, StatusCode::NOT_FOUND, "{path}");
            assert!(has_menu(&page), "{path}");
            assert!(!page.text.contains("app-switcher"), "{path}");
            assert!(page.text.contains("<a href=\"/home\">Start page</a>"));
            assert!(!page.text.contains(&app), "{path}: {}", page.text);
        }
    }

    #[tokio::test]
    async fn a_page_that_the_role_may_not_see_keeps_the_menu() {
        let dashboard = TestDashboard::start().await;
        let app = dashboard.sign_in_as(Role::Owner).await.create_app().await;
        let viewer = dashboard.sign_in_as(Role::Viewer).await;
        let page = viewer.get(&format!("/apps/{app}/settings")).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN);
        assert!(has_menu(&page) && page.text.contains("Your role does not allow this"));
        assert!(!page.text.contains("/links\""), "only what a viewer sees");
    }

    #[tokio::test]
    async fn errors_without_a_session_and_of_fragments_have_no_menu() {
        let dashboard = TestDashboard::start().await;
        let owner = dashboard.sign_in_as(Role::Owner).await;
        let path = format!("/apps/{}/links/lnk_0", owner.create_app().await);
        let part = [("cookie", owner.cookie.as_str()), ("hx-request", "true")];
        let fragment = dashboard.send(Method::GET, &path, &part, "").await;
        let old = [("cookie", "tributary=session_old")];
        let stranger = dashboard.send(Method::GET, "/nothing", &old, "").await;
        for page in [fragment, stranger, dashboard.get("/nothing").await] {
            assert_eq!(page.status, StatusCode::NOT_FOUND);
            assert!(page.text.contains("Page not found") && !has_menu(&page));
        }
    }
}
