//! Tracking links: `/c/{link}`, `/w/{link}` and `/g/{link}`.
//!
//! Advertisers pay for taps, so the redirect must not fail. The click is recorded before the
//! redirect. If the database is unavailable, the click record is lost, but the visitor is still
//! redirected. [`tributary_domain::click::destination`] chooses the destination from the operator's
//! settings, never from the request.
//!
//! Browsers use these endpoints, so the endpoints are not in the OpenAPI description and show
//! errors as HTML pages. Each kind of link has its own path, because installed apps claim only
//! `/c/*`.

mod assets;
mod click;
mod click_request;
mod find;
mod funnel;
mod hints;
mod landing;
mod page;
mod tap;

use crate::state::ApiState;
use axum::Router;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

/// Requests client hints, because Chrome's user agent no longer contains model and OS version.
const ACCEPT_CH: (HeaderName, HeaderValue) = (
    HeaderName::from_static("accept-ch"),
    HeaderValue::from_static("Sec-CH-UA-Model, Sec-CH-UA-Platform-Version"),
);

/// Forbids caching: destinations change, and every tap must be counted.
const NO_STORE: (HeaderName, HeaderValue) =
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// Returns the routes. Slugs contain no dot, so the asset paths cannot collide with links. A
/// trailing slash is accepted, because people add it when they copy links.
pub(crate) fn router() -> Router<ApiState> {
    Router::new()
        .route("/c/{id}", get(click::tap))
        .route("/c/{id}/", get(click::tap))
        .route("/w/{id}", get(funnel::tap))
        .route("/w/{id}/", get(funnel::tap))
        .route("/g/{id}", get(landing::show))
        .route("/g/{id}/", get(landing::show))
        .route("/g/{id}/hints", post(hints::add))
        .route(assets::STYLE_PATH, get(assets::style))
        .route(assets::SCRIPT_PATH, get(assets::script))
}

/// Builds a 302 redirect.
fn redirect(url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else {
        // Unreachable: stored URLs are ASCII, and added parameters are encoded.
        tracing::error!("redirect URL is not a valid header value");
        return page::internal_error();
    };
    let headers = [(header::LOCATION, location), NO_STORE, ACCEPT_CH];
    (StatusCode::FOUND, headers).into_response()
}
