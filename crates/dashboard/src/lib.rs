//! Every person-facing page: the front page, the set-up of an account, and the dashboard.
//!
//! A page is a file under `pages/`, named after its URL, and a template of the same name. Templates escape
//! whatever they are given, and the policy of every page forbids script and style that are not files of
//! ours, so a page that got something past the escaping would still not run it.
//!
//! # Adding a page
//!
//! 1. Write `templates/<name>.html`, extending `app.html` (or `base.html`, where nobody is signed in). No `style`, no
//!    script between tags, no `|safe` but on a template of ours.
//! 2. Write `pages/<name>.rs`: who may see it (`access::Reader`), who may send its forms (`access::Posted`), what it
//!    asks of the store, its template.
//! 3. Route it in [`router`], and list it in `every_page` of this file's tests.

mod access;
mod answer;
mod assets;
mod failure;
mod filled;
mod form;
mod pages;
mod paging;
mod password;
mod query;
mod reading;
mod same_origin;
mod shell;
mod state;
mod text;

#[cfg(test)]
mod testing;

pub use state::{DashboardState, Probe, Probing};

use axum::Router;
use axum::routing::{get, post};
use pages::{
    account, app, audit_log, deliveries, device, events, front, integrations, keys, links,
    portfolio, settings, setup, sign_in, sign_out, team,
};
use state::Handles;

/// Every page, to be merged into the server's router, whose layers give each answer its id and the headers
/// that all answers have.
pub fn router<S: Clone + Send + Sync + 'static>(state: DashboardState) -> Router<S> {
    Router::new()
        .route("/", get(front::show))
        .route("/setup/{token}", get(setup::show).post(setup::redeem))
        .route("/static/{file}", get(assets::serve))
        .merge(organization())
        .merge(of_app())
        .with_state(Handles::new(state))
}

/// Pages of a person and an organization.
fn organization() -> Router<Handles> {
    Router::new()
        .route("/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route("/sign-out", post(sign_out::sign_out))
        .route("/account", get(account::show))
        .route("/account/password", post(account::change_password))
        .route("/team", get(team::show))
        .route("/team/invite", post(team::invite))
        .route("/team/invitations/{invitation}/withdraw", post(team::withdraw))
        .route("/team/{member}/role", post(team::change_role))
        .route("/team/{member}/remove", post(team::remove))
        .route("/keys", get(keys::show).post(keys::create))
        .route("/keys/{key}/revoke", post(keys::revoke))
        .route("/audit-log", get(audit_log::show))
        .route("/portfolio", get(portfolio::show))
        .route("/apps/new", get(app::new::show).post(app::new::create))
}

/// Pages of one app.
fn of_app() -> Router<Handles> {
    let pages = Router::new()
        .route("/start", get(app::start::show))
        .route("/events", get(events::list::show))
        .route("/events/rows", get(events::list::rows))
        .route("/events/{event}", get(events::story::show))
        .route("/devices/{device}", get(device::show))
        .route("/links", get(links::list::show))
        .route("/links/new", get(links::create::show).post(links::create::create))
        .route("/links/preview", post(links::preview::preview))
        .route("/links/{link}", get(links::update::show).post(links::update::update))
        .route("/links/{link}/delete", post(links::update::delete))
        .route("/integrations", get(integrations::list::show))
        .route(
            "/integrations/{network}",
            get(integrations::network::show).post(integrations::network::update),
        )
        .route("/integrations/{network}/test", post(integrations::try_out::test))
        .route("/integrations/{network}/resume", post(integrations::network::resume))
        .route("/deliveries", get(deliveries::show))
        .route("/deliveries/retry", post(deliveries::retry_many))
        .route("/deliveries/{delivery}/retry", post(deliveries::retry))
        .route("/settings", get(settings::show).post(settings::update))
        .route("/settings/mapping", get(integrations::mapping::show))
        .route("/settings/mapping/{network}", post(integrations::mapping::update));
    Router::new().nest("/apps/{app}", pages)
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
