//! `GET /` — what this is, that it runs, and where to go from here. It says nothing about the instance.

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

/// The front page; who brings a session is led to their own.
pub(crate) async fn show(State(handles): State<DashboardHandles>, headers: HeaderMap) -> Response {
    if cookie::token(&headers, &handles).is_some() {
        return see_other("/portfolio");
    }
    page(StatusCode::OK, &FrontPage)
}

#[cfg(test)]
mod tests {
    use crate::testing::TestDashboard;
    use axum::http::StatusCode;

    #[tokio::test]
    async fn the_front_page_leads_to_the_reference_and_to_the_set_up_link() {
        let reply = TestDashboard::start().await.get("/").await;
        assert_eq!(reply.status, StatusCode::OK);
        for part in [
            "href=\"/api/v1/docs\"",
            "href=\"/openapi.yaml\"",
            "tributary admin user create --email you@example.com --role owner",
        ] {
            assert!(reply.text.contains(part), "{part}");
        }
    }

    #[tokio::test]
    async fn the_front_page_needs_no_database() {
        let service = TestDashboard::start().await;
        service.store.close().await;
        assert_eq!(service.get("/").await.status, StatusCode::OK);
    }
}
