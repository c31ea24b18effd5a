//! Headers that every response carries.

use crate::state::ApiState;
use crate::track;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use tributary_domain::audit::RequestId;

/// Response header with the request id.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Number of headers to reserve for a response: those below, plus content type and length. A map
/// that grows allocates twice.
pub(crate) const RESPONSE_HEADERS: usize = 12;

/// Headers with which a response is sent unless its handler has set them.
const DEFAULTS: [(HeaderName, HeaderValue); 5] = [
    (header::CACHE_CONTROL, text("no-store")),
    (header::X_CONTENT_TYPE_OPTIONS, text("nosniff")),
    (
        header::REFERRER_POLICY,
        text("strict-origin-when-cross-origin"),
    ),
    (
        header::CONTENT_SECURITY_POLICY,
        text("default-src 'none'; frame-ancestors 'none'"),
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        text("same-origin"),
    ),
];

const fn text(value: &'static str) -> HeaderValue {
    HeaderValue::from_static(value)
}

/// The headers to add to the response of one request.
#[derive(Debug)]
pub(crate) struct ResponseHeaders {
    request_id: RequestId,
    /// The request is for an SDK endpoint, which every origin may call.
    is_from_sdk: bool,
    /// The service is reached over TLS only.
    is_https: bool,
}

impl ResponseHeaders {
    /// Chooses the headers for the response to a request.
    pub(crate) fn new(request_id: RequestId, uri: &Uri, state: &ApiState) -> Self {
        Self {
            request_id,
            is_from_sdk: track::is_sdk_path(uri.path()),
            is_https: state.base_url.starts_with("https://"),
        }
    }

    /// Returns the request's id.
    pub(crate) const fn request_id(&self) -> RequestId {
        self.request_id
    }

    /// Adds the headers to a response.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        let missing = RESPONSE_HEADERS.saturating_sub(headers.len());
        headers.reserve(missing);
        if let Ok(id) = HeaderValue::from_bytes(&self.request_id.to_ascii()) {
            headers.insert(X_REQUEST_ID, id);
        }
        for (name, value) in DEFAULTS {
            headers.entry(name).or_insert(value);
        }
        if self.is_https {
            headers
                .entry(header::STRICT_TRANSPORT_SECURITY)
                .or_insert(text("max-age=31536000"));
        }
        if self.is_from_sdk {
            track::allow_every_origin(headers);
        }
    }
}
