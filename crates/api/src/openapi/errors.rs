//! Errors in the OpenAPI description.
//!
//! An operation lists its error codes in the extension `x-errors`, in groups such as [`API_KEY`] or
//! one by one. A test calls every operation and compares the errors it sees with the description.

use super::request_id_header;
use crate::error::Code;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{ContentBuilder, HeaderBuilder, Ref, RefOr, ResponseBuilder};

/// Extension with an operation's error codes. Removed before the description is published.
const ERRORS: &str = "x-errors";

/// Errors from the shared layers. Any operation may return them.
const ALWAYS: &[Code] = &[Code::RateLimited, Code::Internal, Code::Unavailable];
/// Errors for a missing, invalid or insufficient private key, or one that another address may use.
pub(crate) const API_KEY: &[Code] = &[
    Code::MissingApiKey,
    Code::InvalidApiKey,
    Code::AddressNotAllowed,
    Code::InsufficientPermission,
    Code::PrivateKeyRequired,
];
/// Errors for a missing or invalid SDK key.
pub(crate) const SDK_KEY: &[Code] = &[Code::MissingApiKey, Code::InvalidApiKey];
/// Errors for an unreadable body, or for invalid or unknown fields in it.
pub(crate) const JSON_BODY: &[Code] = &[
    Code::MalformedJson,
    Code::RequestTimeout,
    Code::PayloadTooLarge,
    Code::UnsupportedMediaType,
    Code::ValidationFailed,
    Code::UnknownField,
];
/// Errors in an SDK request body. Unknown fields are ignored.
pub(crate) const SDK_BODY: &[Code] = &[
    Code::MalformedJson,
    Code::RequestTimeout,
    Code::PayloadTooLarge,
    Code::UnsupportedMediaType,
    Code::ValidationFailed,
];
/// Errors for invalid or unknown query parameters.
pub(crate) const QUERY: &[Code] = &[Code::ValidationFailed, Code::UnknownField];
/// Errors in the query of a paged list.
pub(crate) const PAGE_QUERY: &[Code] = &[
    Code::ValidationFailed,
    Code::UnknownField,
    Code::InvalidCursor,
];

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An error.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the envelope that ApiError writes")]
pub(super) struct ErrorEnvelope {
    error: ErrorBody,
}

/// Details of an error.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the envelope that ApiError writes")]
struct ErrorBody {
    /// Stable, machine-readable error code.
    code: String,
    /// Human-readable message: what is wrong and what to do.
    message: String,
    /// True when the same request may succeed later.
    retryable: bool,
    /// Id of the request in the service's log.
    request_id: String,
    /// Invalid fields, if any.
    details: Option<Vec<ErrorDetail>>,
}

/// An invalid field.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the envelope that ApiError writes")]
struct ErrorDetail {
    /// Path of the field.
    field: String,
    code: String,
    message: String,
}

/// Adds an operation's errors as responses, grouped by status.
pub(super) fn add(operation: &mut Operation) {
    let listed = take_listed(operation);
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in Code::ALL {
        if ALWAYS.contains(code) || contains(&listed, *code) {
            let status = code.status().as_u16();
            by_status.entry(status).or_default().push(*code);
        }
    }
    for (status, codes) in by_status {
        let response = RefOr::T(response(status, &codes));
        let responses = &mut operation.responses.responses;
        responses.insert(status.to_string(), response);
    }
}

fn take_listed(operation: &mut Operation) -> Value {
    let Some(extensions) = &mut operation.extensions else {
        return Value::Null;
    };
    let listed = extensions.remove(ERRORS);
    if extensions.is_empty() {
        operation.extensions = None;
    }
    listed.unwrap_or_default()
}

/// Tells whether a list contains a code, directly or in a group.
fn contains(listed: &Value, code: Code) -> bool {
    match listed {
        Value::Array(items) => items.iter().any(|item| contains(item, code)),
        word => word == code.as_str(),
    }
}

fn response(status: u16, codes: &[Code]) -> utoipa::openapi::Response {
    let names: Vec<String> = codes
        .iter()
        .map(|code| format!("`{}`", code.as_str()))
        .collect();
    let example = codes.first().map(|code| {
        json!({"error": {
            "code": code.as_str(),
            "message": "What is wrong and what to do.",
            "retryable": code.is_retryable(),
            "requestId": "req_6f1ce0d2a47b8c3e5d9f0a1b",
        }})
    });
    let schema = Ref::from_schema_name("ErrorEnvelope");
    let content = ContentBuilder::new()
        .schema(Some(schema))
        .example(example)
        .build();
    let mut response = ResponseBuilder::new()
        .header("X-Request-Id", request_id_header())
        .description(format!("Code {}.", names.join(" or ")))
        .content("application/json", content);
    if matches!(status, 429 | 503) {
        let retry = HeaderBuilder::new()
            .description(Some("Seconds to wait before a retry."))
            .build();
        response = response.header("Retry-After", retry);
    }
    response.build()
}
