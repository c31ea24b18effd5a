//! CORS for the SDK. Every origin is allowed, because the SDK key is public and cookies are not
//! used.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Path prefix of the SDK endpoints.
const PREFIX: &str = "/api/track/";
/// How long browsers may cache a preflight response, in seconds: one day. Browsers may use a
/// shorter time.
const MAX_AGE: &str = "86400";

/// Adds CORS headers to every response from the SDK endpoints. This is the outermost layer, so that
/// pages can read errors such as 429, too.
pub(crate) async fn allow_every_origin(request: Request, next: Next) -> Response {
    let is_ours = request.uri().path().starts_with(PREFIX);
    let mut response = next.run(request).await;
    if is_ours {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, text("*"));
        let readable = text("ETag, Retry-After, X-Request-Id");
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, readable);
    }
    response
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
