//! `GET /` — the front page. It reveals nothing about the instance.

use crate::access::cookie;
use crate::response::{page, see_other};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

#[derive(Template)]
#[template(path = "front.html")]
struct FrontPage;

/// Shows the front page, or redirects to the home page if there is a session cookie.
pub(crate) async fn show(State(handles): State<DashboardHandles>, headers: HeaderMap) -> Response {
    if cookie::token(&headers, &handles).is_some() {
        return see_other("/home");
    }
    page(StatusCode::OK, &FrontPage)
}

#[cfg(test)]
mod tests {
    use crate::testing::TestDashboard;
    use axum::http::StatusCode;

    #[tokio::test]
    async fn links_to_the_api_reference_and_explains_set_up() {
        let response = TestDashboard::start().await.get("/").await;
        assert_eq!(response.status, StatusCode::OK);
        for part in [
            "href=\"/api/v1/docs\"",
            "href=\"/openapi.yaml\"",
            "tributary admin user create --email you@example.com --role owner",
        ] {
            assert!(response.text.contains(part), "{part}");
        }
    }

    #[tokio::test]
    async fn works_without_a_database() {
        let dashboard = TestDashboard::start().await;
        dashboard.store.close().await;
        assert_eq!(dashboard.get("/").await.status, StatusCode::OK);
    }
}
