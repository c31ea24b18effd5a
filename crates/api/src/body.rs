//! Reads request bodies and writes responses.
//!
//! A body is JSON of at most [`BODY_BYTES_MAX`] bytes, optionally gzipped, and must arrive before
//! the body deadline. Every failure becomes an [`ApiError`]. Handlers authenticate the caller before
//! they read the body, so that strangers cannot cause decompression.

use crate::current_document::CurrentDocument;
use crate::error::{ApiError, Code};
use crate::fields::Fields;
use crate::gzip::GzipLimits;
use crate::json::{self, JsonNode};
use crate::response_headers::RESPONSE_HEADERS;
use crate::state::ApiState;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use tributary_domain::vocabulary::fault::Faults;

/// Largest accepted body, before and after decompression.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Limits for a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    /// Largest uncompressed body in bytes.
    pub(crate) bytes: usize,
    /// Limits for a compressed body.
    pub(crate) gzip: GzipLimits,
}

impl BodyLimits {
    /// Limits for senders that are authenticated.
    pub(crate) const AUTHENTICATED: Self = Self {
        bytes: BODY_BYTES_MAX,
        gzip: GzipLimits::AUTHENTICATED,
    };
}

/// A parsed JSON body. The handler reads its fields.
#[derive(Debug)]
pub(crate) struct JsonBody(JsonNode);

impl JsonBody {
    /// Reads the fields with `read`. If any field has a fault, returns an error that lists all
    /// faults.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&mut Fields<'_>) -> T) -> Result<T, ApiError> {
        let mut faults = Faults::new();
        let mut fields = Fields::of_body(&self.0, &mut faults);
        let value = read(&mut fields);
        fields.finish();
        faults.into_result()?;
        Ok(value)
    }

    /// Reads the fields of a PATCH body. A field whose value equals its current value counts as
    /// absent, so it changes nothing.
    pub(crate) fn read_change<T>(
        &self,
        current: &CurrentDocument,
        read: impl FnOnce(&mut Fields<'_>) -> T,
    ) -> Result<T, ApiError> {
        let mut faults = Faults::new();
        let mut fields = Fields::of_change(&self.0, current.document(), &mut faults);
        let value = read(&mut fields);
        fields.finish();
        faults.into_result()?;
        Ok(value)
    }

    /// Like [`Self::read`], for a `read` function that returns `None` after it has added a fault.
    pub(crate) fn read_whole<T>(
        &self,
        read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
    ) -> Result<T, ApiError> {
        // A `read` function that returns `None` has added a fault, so `self.read` has already
        // failed.
        self.read(read)?.ok_or_else(ApiError::internal)
    }
}

impl FromRequest<ApiState> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        require_json(&parts.headers)?;
        let bytes = read_bytes(&parts.headers, body, state).await?;
        let text = std::str::from_utf8(&bytes).map_err(|_| malformed())?;
        json::parse(text).map(Self).map_err(|_| malformed())
    }
}

/// Reads the complete body of an authenticated sender and decompresses it.
pub(crate) async fn read_bytes(
    headers: &HeaderMap,
    body: Body,
    state: &ApiState,
) -> Result<Bytes, ApiError> {
    read_bytes_within(headers, body, state, BodyLimits::AUTHENTICATED).await
}

/// Reads the complete body within the deadline and these limits, and decompresses it.
pub(crate) async fn read_bytes_within(
    headers: &HeaderMap,
    body: Body,
    state: &ApiState,
    limits: BodyLimits,
) -> Result<Bytes, ApiError> {
    let packed = is_gzip(headers)?;
    let limit = if packed {
        limits.gzip.bytes
    } else {
        limits.bytes
    };
    let read = tokio::time::timeout(state.timeouts.body, collect(body, limit)).await;
    let bytes = read.map_err(|_| {
        ApiError::new(
            Code::RequestTimeout,
            "The request body did not arrive in time.",
        )
    })??;
    if packed {
        state.decompressor.run(bytes, limits.gzip).await
    } else {
        Ok(bytes)
    }
}

/// Returns the error for a body that is not JSON.
pub(crate) fn malformed() -> ApiError {
    ApiError::new(
        Code::MalformedJson,
        "The body must be a single JSON value in UTF-8, nested at most 32 levels deep.",
    )
}

/// Returns the error for a body that exceeds a size limit.
pub(crate) fn too_large(limit: usize) -> ApiError {
    let message = format!("The body must have at most {limit} bytes, even after decompression.");
    // The rest of the body stays unread, so the connection cannot be reused.
    ApiError::new(Code::PayloadTooLarge, message)
        .with_header(header::CONNECTION, HeaderValue::from_static("close"))
}

/// Returns the declared content type without parameters. It may be in any case.
pub(crate) fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

/// Tells whether a content type is JSON.
pub(crate) fn is_json(essence: &str) -> bool {
    let Some((top, kind)) = essence.split_once('/') else {
        return false;
    };
    let suffix = kind.rsplit_once('+').map_or(kind, |(_, suffix)| suffix);
    top.eq_ignore_ascii_case("application") && suffix.eq_ignore_ascii_case("json")
}

fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    if content_type(headers).is_some_and(is_json) {
        return Ok(());
    }
    let message = "Send JSON with the header `Content-Type: application/json`.";
    Err(ApiError::new(Code::UnsupportedMediaType, message))
}

fn is_gzip(headers: &HeaderMap) -> Result<bool, ApiError> {
    match headers
        .get(header::CONTENT_ENCODING)
        .map(HeaderValue::as_bytes)
    {
        None | Some(b"identity") => Ok(false),
        Some(encoding) if encoding.eq_ignore_ascii_case(b"gzip") => Ok(true),
        Some(_) => {
            let message = "Send the body uncompressed, or with `Content-Encoding: gzip`.";
            Err(ApiError::new(Code::UnsupportedMediaType, message))
        }
    }
}

async fn collect(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => Err(too_large(limit)),
        // The client disconnected, so this response is never read.
        Err(_) => Err(ApiError::new(
            Code::MalformedJson,
            "The body ended before its declared length.",
        )),
    }
}

/// JSON response with one object: `{"data": …}`.
#[derive(Debug)]
pub(crate) struct JsonResponse<T> {
    status: StatusCode,
    data: T,
    meta: Option<serde_json::Value>,
    headers: HeaderMap,
}

impl<T: Serialize> JsonResponse<T> {
    /// Builds a 200 response.
    pub(crate) fn ok(data: T) -> Self {
        Self {
            status: StatusCode::OK,
            data,
            meta: None,
            headers: HeaderMap::with_capacity(RESPONSE_HEADERS),
        }
    }

    /// Builds a 202 response.
    pub(crate) fn accepted(data: T) -> Self {
        Self {
            status: StatusCode::ACCEPTED,
            ..Self::ok(data)
        }
    }

    /// Builds a 201 response with the object's `Location`.
    pub(crate) fn created(data: T, location: &str) -> Self {
        let mut answer = Self {
            status: StatusCode::CREATED,
            ..Self::ok(data)
        };
        if let Ok(location) = HeaderValue::from_str(location) {
            answer.headers.insert(header::LOCATION, location);
        }
        answer
    }

    /// Adds the ETag that clients send in `If-Match`.
    pub(crate) fn with_etag(mut self, tag: &str) -> Self {
        if let Ok(tag) = HeaderValue::from_str(&format!("\"{tag}\"")) {
            self.headers.insert(header::ETAG, tag);
        }
        self
    }

    /// Adds `meta` beside `data`.
    pub(crate) fn with_meta(mut self, meta: serde_json::Value) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// Body of a response with one object. The OpenAPI schema is in `openapi::envelopes`.
#[derive(Serialize)]
pub(crate) struct Envelope<T> {
    data: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<serde_json::Value>,
}

impl<T: Serialize> IntoResponse for JsonResponse<T> {
    fn into_response(self) -> Response {
        let envelope = Envelope {
            data: self.data,
            meta: self.meta,
        };
        match serde_json::to_vec(&envelope) {
            Ok(body) => {
                let json = HeaderValue::from_static("application/json");
                let mut response = Response::new(Body::from(body));
                *response.status_mut() = self.status;
                *response.headers_mut() = self.headers;
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
            Err(error) => {
                tracing::error!(%error, "failed to serialize response");
                ApiError::internal().into_response()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("application/json", true)]
    #[case("application/json; charset=utf-8", true)]
    #[case("Application/JSON", true)]
    #[case("application/merge-patch+json", true)]
    #[case("text/json", false)]
    #[case("application/jsonp", false)]
    #[case("text/plain", false)]
    #[case("", false)]
    fn content_types(#[case] value: &'static str, #[case] accepted: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(value));
        assert_eq!(require_json(&headers).is_ok(), accepted);
    }
}
