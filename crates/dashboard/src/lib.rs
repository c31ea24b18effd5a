//! Every person-facing page. So far: the front page, and the set-up of a first account.
//!
//! A page is a file under `pages/`, named after its URL, and a template of the same name. Templates escape
//! whatever they are given, and the policy of every page forbids script and style that are not files of
//! ours, so a page that got something past the escaping would still not run it.
//!
//! # Adding a page
//!
//! 1. Write `templates/<name>.html`, extending `base.html`. No `style`, no script between tags, no `|safe`.
//! 2. Write `pages/<name>.rs`: who may see it (extractors), what it asks of the store, its template.
//! 3. Route it in [`router`], and list it in `every_page` of this file's tests.

mod answer;
mod assets;
mod failure;
mod form;
mod pages;
mod password;
mod same_origin;
mod state;

#[cfg(test)]
mod testing;

pub use state::DashboardState;

use axum::Router;
use axum::routing::get;
use pages::{front, setup};
use state::Handles;

/// Every page, to be merged into the server's router, whose layers give each answer its id and the headers
/// that all answers have.
pub fn router<S: Clone + Send + Sync + 'static>(state: DashboardState) -> Router<S> {
    Router::new()
        .route("/", get(front::show))
        .route("/setup/{token}", get(setup::show).post(setup::redeem))
        .route("/static/{file}", get(assets::serve))
        .with_state(Handles::new(state))
}

#[cfg(test)]
mod tests {
    use crate::testing::{FORM, PASSWORD, Reply, SAME_ORIGIN, Service};
    use axum::http::{Method, StatusCode};

    /// Each page there is, in each of its moods.
    async fn every_page(service: &Service) -> Vec<Reply> {
        let token = service.setup_link(|_| {}).await;
        let path = format!("/setup/{token}");
        let good = format!("email=you@example.com&password={PASSWORD}");
        let headers = [SAME_ORIGIN, FORM];
        vec![
            service.get("/").await,
            service.get(&path).await,
            service.get("/setup/nonsense").await,
            service.post(&path, &[FORM], &good).await,
            service
                .post(&path, &headers, "email=you&password=short")
                .await,
            service.post(&path, &headers, &good).await,
            service.post(&path, &headers, &good).await,
        ]
    }

    #[tokio::test]
    async fn every_page_has_the_headers_of_a_page() {
        let service = Service::start().await;
        let pages = every_page(&service).await;
        let statuses: Vec<u16> = pages.iter().map(|page| page.status.as_u16()).collect();
        assert_eq!(statuses, [200, 200, 404, 403, 422, 200, 404]);
        for page in pages {
            assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
            assert_eq!(page.header("cache-control"), "no-store");
            assert_eq!(page.header("referrer-policy"), "no-referrer");
            assert_eq!(
                page.header("content-security-policy"),
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                 connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
            );
        }
    }

    #[tokio::test]
    async fn no_page_asks_for_what_its_policy_forbids() {
        let service = Service::start().await;
        for page in every_page(&service).await {
            let text = page.text.to_lowercase();
            for forbidden in ["<style", " style=", " onclick", " onload", "javascript:"] {
                assert!(!text.contains(forbidden), "{forbidden} in {text}");
            }
            assert_eq!(
                text.matches("<script").count(),
                text.matches("<script src=\"/static/").count()
            );
        }
    }

    #[tokio::test]
    async fn no_page_has_a_secret_in_its_headers() {
        let service = Service::start().await;
        for page in every_page(&service).await {
            let headers = format!("{:?}", page.headers);
            for secret in ["setup_", "ak_live_", PASSWORD] {
                assert!(!headers.contains(secret), "{secret} in {headers}");
            }
        }
    }

    #[tokio::test]
    async fn what_pages_link_to_of_their_own_is_there() {
        let service = Service::start().await;
        for page in every_page(&service).await {
            let links = page
                .text
                .split('"')
                .filter(|part| part.starts_with("/static/"));
            for link in links {
                assert_eq!(service.get(link).await.status, StatusCode::OK, "{link}");
            }
        }
    }

    #[tokio::test]
    async fn looking_at_a_set_up_link_does_not_use_it() {
        let service = Service::start().await;
        let path = format!("/setup/{}", service.setup_link(|_| {}).await);
        for method in [Method::HEAD, Method::GET, Method::GET] {
            let reply = service.send(method, &path, &[], "").await;
            assert_eq!(reply.status, StatusCode::OK);
        }
    }
}
