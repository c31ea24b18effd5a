//! Responses before they become HTTP.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;

/// A network's response, and the reason if the request was rejected.
#[derive(Debug)]
pub(crate) struct SimulatedOutcome {
    pub(crate) reply: SimulatedReply,
    /// Reason and message of a refusal.
    pub(crate) refusal: Option<(String, String)>,
}

impl SimulatedOutcome {
    pub(crate) fn accepted(reply: SimulatedReply) -> Self {
        Self {
            reply,
            refusal: None,
        }
    }

    pub(crate) fn refused(
        reply: SimulatedReply,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            reply,
            refusal: Some((reason.into(), message.into())),
        }
    }
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct SimulatedReply {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl SimulatedReply {
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    pub(crate) fn json(status: StatusCode, body: &Value) -> Self {
        let mut reply = Self::empty(status);
        reply.body = Bytes::from(body.to_string());
        reply.header(header::CONTENT_TYPE, "application/json; charset=utf-8")
    }

    /// Adds a header. An invalid value is skipped.
    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// Creates the response for a `status` fault.
    pub(crate) fn scripted(status: u16, body: &Value, headers: &BTreeMap<String, String>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut reply = match body {
            Value::Null => Self::empty(status),
            Value::String(text) => {
                let mut reply = Self::empty(status);
                reply.body = Bytes::from(text.clone());
                reply
            }
            other => Self::json(status, other),
        };
        for (name, value) in headers {
            if let Ok(name) = name.parse::<HeaderName>() {
                reply = reply.header(name, value);
            }
        }
        reply
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn into_response(self) -> Response {
        let mut response = (self.status, Body::from(self.body)).into_response();
        response.headers_mut().remove(header::CONTENT_TYPE);
        response.headers_mut().extend(self.headers);
        response
    }
}
