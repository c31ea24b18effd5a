//! CORS for the SDK. Every origin is allowed, because the SDK key is public and cookies are not
//! used.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;

/// Path prefix of the SDK endpoints.
const PREFIX: &str = "/api/track/";
/// How long browsers may cache a preflight response, in seconds: one day. Browsers may use a
/// shorter time.
const MAX_AGE: &str = "86400";

/// Tells whether a path belongs to an SDK endpoint.
pub(crate) fn is_sdk_path(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// Adds the CORS headers of a response from an SDK endpoint. Errors such as 429 have them, too, so
/// that pages can read them.
pub(crate) fn allow_every_origin(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, text("*"));
    let readable = text("ETag, Retry-After, X-Request-Id");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, readable);
}

/// Responds to a preflight request.
pub(super) async fn preflight() -> impl IntoResponse {
    let headers: [(HeaderName, HeaderValue); 3] = [
        (
            header::ACCESS_CONTROL_ALLOW_METHODS,
            text("GET, POST, OPTIONS"),
        ),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            text("Content-Type, Content-Encoding, If-None-Match, X-Tributary-Key, X-SDK-Version"),
        ),
        (header::ACCESS_CONTROL_MAX_AGE, text(MAX_AGE)),
    ];
    (StatusCode::NO_CONTENT, headers)
}

const fn text(value: &'static str) -> HeaderValue {
    HeaderValue::from_static(value)
}
