//! Pages of any origin may use the SDK. Its key is public and no cookie is looked at, so there is nothing
//! that another page could borrow.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// What the paths of these doors begin with.
const PREFIX: &str = "/api/track/";
/// How long a browser may remember the answer to its question, in seconds: a day. Browsers cut it to what they
/// think right.
const MAX_AGE: &str = "86400";

/// Says on every answer of these doors, errors included, that any page may read it. The outermost layer of
/// all: a page has to be able to read that it asks too often, too.
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

/// The answer to a browser that asks whether it may.
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
