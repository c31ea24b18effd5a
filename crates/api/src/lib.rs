//! HTTP endpoints for machines, plus tracking links and their landing page.
//!
//! Each endpoint is a file named after its URL and verb: `v1/links/create.rs` is
//! `POST /api/v1/apps/{appId}/links`. An endpoint checks the caller's scope, reads the request,
//! calls the store once and shapes the response. Business rules are in `domain`, and SQL is in the
//! stores.

mod actor;
mod body;
mod caller;
mod campaign;
mod choices;
mod client_address;
mod consent;
mod current_document;
mod days;
mod decimal;
mod decompressor;
mod docs;
mod documents;
mod edge;
mod error;
mod geo;
mod gzip;
mod health;
mod host;
mod if_match;
mod limits;
mod link_cache;
mod mcp;
mod notice_sender;
mod openapi;
mod page;
mod path;
mod probe;
mod query;
mod read_cache;
mod readiness;
mod redirect;
mod rejection_log;
mod report;
mod request;
mod response_headers;
mod sealing;
mod state;
mod time_text;
mod track;
mod txt_lookup;
mod unmatched;
mod unverified_writes;
mod v1;
mod webhook;
mod well_known;

pub mod metrics;

pub use body::BODY_BYTES_MAX;
pub use decompressor::BodyDecompressor;
pub use documents::{DocumentSources, Documents};
pub use error::{ApiError, Code};
pub use geo::{GeoLocation, GeoLookup, no_geo_lookup};
pub use limits::{RateLimits, RateSettings};
pub use link_cache::LinkCache;
pub use notice_sender::NoticeSender;
pub use probe::{IntegrationProbe, TestEventResult};
pub use read_cache::ReadCache;
pub use readiness::Readiness;
pub use response_headers::X_REQUEST_ID;
pub use state::{ApiHandles, ApiState, Timeouts};
pub use txt_lookup::{TxtLookup, TxtLookupFuture};
pub use unmatched::{UnmatchedPage, UnmatchedPages};
pub use unverified_writes::UnverifiedWrites;
pub use v1::export::{EXPORT_LINE_BYTES_MAX, read_exported_event};
pub use v1::web_events::WebEventRequest;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use edge::EdgeLayer;
use mcp::RestTool;
use std::sync::LazyLock;
use tributary_fields::{self as fields, json};
use utoipa_axum::routes;

/// Returns the documented routes and their OpenAPI description.
fn described_routes() -> (Router<ApiState>, utoipa::openapi::OpenApi) {
    let (routes, api) = openapi::router()
        .merge(v1::router())
        .merge(track::router())
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .split_for_parts();
    (routes, openapi::complete(api))
}

/// The documented routes, their OpenAPI description as YAML, and the tools for agents that call them.
/// Built once per process, because tests start many servers; each response shares the bytes.
static DESCRIBED_ROUTES: LazyLock<(Router<ApiState>, Bytes, Vec<RestTool>)> = LazyLock::new(|| {
    let (routes, api) = described_routes();
    (routes, Bytes::from(openapi::yaml(&api)), mcp::tools(&api))
});

/// Returns the OpenAPI description as YAML.
pub fn openapi_yaml() -> String {
    openapi::yaml(&described_routes().1)
}

/// Builds the router: this crate's endpoints and `others`, behind the edge: request ids,
/// logging, rate limits, deadlines and error bodies.
pub fn router(state: ApiState, others: Router<ApiState>) -> Router {
    let (routes, yaml, tools) = LazyLock::force(&DESCRIBED_ROUTES);
    // Without the edge, which a call of a tool has passed.
    let rest = routes
        .clone()
        .method_not_allowed_fallback(unmatched::no_such_method)
        .fallback(unmatched::no_such_path)
        .with_state(state.clone());
    routes
        .clone()
        .merge(docs::router())
        .merge(documents::router())
        .merge(mcp::router(rest, tools))
        .merge(redirect::router())
        .merge(well_known::router())
        .merge(webhook::router())
        .merge(others)
        .route(
            "/openapi.yaml",
            get(move || std::future::ready(openapi::serve(yaml.clone()))),
        )
        .method_not_allowed_fallback(unmatched::no_such_method)
        .fallback(unmatched::no_such_path)
        .layer(EdgeLayer::new(state.clone()))
        .with_state(state)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use http_body_util::BodyExt as _;
    use rstest::rstest;
    use std::sync::Arc;
    use std::time::Duration;
    use tower::ServiceExt as _;
    use tributary_domain::access::unverified_writes::UnverifiedWriteQuota;
    use tributary_domain::billing::certificate::TrustedRoots;
    use tributary_domain::click::token::ClickTokens;
    use tributary_domain::keyring::Keyring;
    use tributary_domain::node_role::NodeRoles;
    use tributary_domain::runtime::{Clock, Random, Runtime};
    use tributary_domain::skan::postback::Keys;
    use tributary_domain::vocabulary::time::Timestamp;
    use tributary_store::report_slots::ReportSlots;
    use tributary_store_sqlite::SqliteStore;

    struct Fixed;

    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }
    }

    impl Random for Fixed {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(1);
        }
    }

    /// Returns handles with a new database in `folder`.
    pub(crate) fn handles_in(folder: &std::path::Path, request: Duration) -> ApiHandles {
        let rates = RateSettings {
            per_key: 0,
            per_address: 0,
            failures_per_minute: 0,
        };
        ApiHandles {
            store: Arc::new(SqliteStore::open(&folder.join("x.db")).unwrap()),
            runtime: Runtime::new(Arc::new(Fixed), Arc::new(Fixed)),
            keyring: Keyring::new([1; 32]),
            roles: NodeRoles::ALL,
            base_url: "http://t.example".into(),
            timeouts: Timeouts {
                body: request,
                request,
                export_idle: request,
            },
            limits: Arc::new(RateLimits::new(rates)),
            report_slots: ReportSlots::unlimited(),
            readiness: Arc::default(),
            is_trusted_proxy: Arc::new(|_| false),
            geo_lookup: no_geo_lookup(),
            country_header: None,
            documents: Arc::default(),
            link_cache: Arc::default(),
            postback_keys: Arc::new(Keys::apple()),
            app_store_roots: Arc::new(TrustedRoots::apple()),
            app_attest_roots: Arc::new(tributary_domain::attestation::app_attest_roots()),
            probe: Arc::new(probe::UnusedProbe),
            notices: Arc::new(notice_sender::UnusedSender),
            txt_lookup: txt_lookup::no_txt_lookup(),
            read_cache: Arc::default(),
            decompressor: Arc::default(),
            unverified_writes: Arc::new(UnverifiedWrites::new(UnverifiedWriteQuota::UNLIMITED)),
            unmatched_pages: None,
            click_tokens: ClickTokens::new(&Keyring::new([1; 32])),
        }
    }

    async fn get_odd(others: Router<ApiState>, request: Duration) -> (StatusCode, String) {
        let folder = tempfile::tempdir().unwrap();
        let state = handles_in(folder.path(), request).into();
        let request = Request::builder().uri("/odd").body(Body::empty()).unwrap();
        let answer = router(state, others).oneshot(request).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn bug() -> StatusCode {
        panic!("a bug with a secret in its message")
    }

    #[tokio::test]
    async fn a_panic_returns_the_standard_error_body() {
        let others = Router::new().route("/odd", get(bug));
        let (status, body) = get_odd(others, Duration::from_secs(5)).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(body.contains("\"code\":\"internal\"") && body.contains("\"retryable\":true"));
        assert!(!body.contains("secret"), "{body}");
    }

    /// Returns the status and the body of a response of a node with these roles.
    async fn get_from_node(roles: &[&str], path: &str) -> (StatusCode, String) {
        let folder = tempfile::tempdir().unwrap();
        let mut handles = handles_in(folder.path(), Duration::from_secs(5));
        handles.roles = NodeRoles::parse(roles.iter().copied()).unwrap();
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let router = router(handles.into(), Router::new());
        let answer = router.oneshot(request).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[rstest]
    #[case::tap_on_accept(&["accept"], "/c/none", 404)]
    #[case::tap_elsewhere(&["forward", "report"], "/c/none", 503)]
    #[case::report_on_report(&["report"], "/api/v1/apps", 401)]
    #[case::report_elsewhere(&["accept", "forward"], "/api/v1/apps", 503)]
    #[case::wrong_method(&["report"], "/api/track/events", 503)]
    #[case::unknown_path(&["forward"], "/none", 404)]
    #[case::liveness(&["forward"], "/healthz", 200)]
    #[case::readiness(&["forward"], "/readyz", 200)]
    #[tokio::test]
    async fn a_node_serves_the_endpoints_of_its_roles(
        #[case] roles: &[&str],
        #[case] path: &str,
        #[case] expected: u16,
    ) {
        let (status, body) = get_from_node(roles, path).await;
        assert_eq!(status.as_u16(), expected, "{body}");
        assert_eq!(
            body.contains("does not have the role"),
            expected == 503,
            "{body}"
        );
    }

    #[tokio::test]
    async fn a_handler_past_its_deadline_returns_unavailable() {
        let slow = || async { tokio::time::sleep(Duration::from_mins(1)).await };
        let others = Router::new().route("/odd", get(slow));
        let (status, body) = get_odd(others, Duration::from_millis(50)).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(body.contains("\"code\":\"unavailable\""), "{body}");
    }
}
