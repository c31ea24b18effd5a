//! JSON-RPC 2.0 messages, as the Model Context Protocol uses them.

use super::result::RpcResult;
use crate::error::ApiError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Codes that JSON-RPC defines.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;
/// Codes that the protocol defines.
const HEADER_MISMATCH: i32 = -32_020;
const UNSUPPORTED_VERSION: i32 = -32_022;

/// A message from a client.
#[derive(Debug, PartialEq)]
pub(super) enum RpcMessage {
    /// A request, which gets a response.
    Request(RpcRequest),
    /// A notification, or a response to a request that no version of this server sends.
    NoAnswer,
}

/// A request.
#[derive(Debug, PartialEq)]
pub(super) struct RpcRequest {
    /// A string or a number, which the response repeats.
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

/// A request that cannot be carried out. Errors of a tool are results instead, which the model sees.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcFault {
    pub(super) code: i32,
    message: String,
    data: Option<Value>,
}

impl RpcMessage {
    /// Reads a message.
    pub(super) fn read(body: &[u8]) -> Result<Self, RpcFault> {
        let value: Value = serde_json::from_slice(body).map_err(|_| {
            let message = "The body must be one JSON-RPC message in UTF-8.";
            RpcFault::new(PARSE_ERROR, message)
        })?;
        let Value::Object(mut fields) = value else {
            let message = "Send one JSON-RPC message per request; batches are not supported.";
            return Err(RpcFault::invalid_request(message));
        };
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(RpcFault::invalid_request("`jsonrpc` must be \"2.0\"."));
        }
        let method = match fields.remove("method") {
            Some(Value::String(method)) => method,
            None if fields.contains_key("result") || fields.contains_key("error") => {
                return Ok(Self::NoAnswer);
            }
            _ => return Err(RpcFault::invalid_request("`method` must be a string.")),
        };
        let params = match fields.remove("params") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err(RpcFault::invalid_request("`params` must be an object.")),
        };
        match fields.remove("id") {
            Some(id @ Value::String(_)) => Ok(Self::Request(RpcRequest { id, method, params })),
            Some(Value::Number(id)) if id.is_i64() || id.is_u64() => {
                let id = Value::Number(id);
                Ok(Self::Request(RpcRequest { id, method, params }))
            }
            None if method.starts_with("notifications/") => Ok(Self::NoAnswer),
            _ => Err(RpcFault::invalid_request(
                "`id` must be a string or an integer.",
            )),
        }
    }
}

impl RpcFault {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(super) fn method_not_found() -> Self {
        let message = "This server does not have this method.";
        Self::new(METHOD_NOT_FOUND, message)
    }

    pub(super) fn header_mismatch(header: &str) -> Self {
        let message = format!("The header {header} must be present and match the body.");
        Self::new(HEADER_MISMATCH, message)
    }

    pub(super) fn unsupported_version(supported: &[&str], requested: &str) -> Self {
        Self {
            data: Some(json!({"supported": supported, "requested": requested})),
            ..Self::new(UNSUPPORTED_VERSION, "Unsupported protocol version.")
        }
    }

    pub(super) const fn is_unknown_method(&self) -> bool {
        self.code == METHOD_NOT_FOUND
    }

    /// Builds the response to a request with an id, or to a message without a readable one.
    pub(super) fn respond(self, status: StatusCode, id: Option<Value>) -> Response {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = self.data {
            error["data"] = data;
        }
        let mut body = json!({"jsonrpc": "2.0", "error": error});
        if let Some(id) = id {
            body["id"] = id;
        }
        json_response(status, &body)
    }
}

/// The response to a request that was carried out.
#[derive(Serialize)]
struct ResultBody {
    jsonrpc: &'static str,
    id: Value,
    result: RpcResult,
}

/// Builds the response to a request that was carried out.
pub(super) fn result_response(id: Value, result: RpcResult) -> Response {
    let jsonrpc = "2.0";
    json_response(
        StatusCode::OK,
        &ResultBody {
            jsonrpc,
            id,
            result,
        },
    )
}

fn json_response(status: StatusCode, body: &impl Serialize) -> Response {
    let json = HeaderValue::from_static("application/json");
    match serde_json::to_vec(body) {
        Ok(body) => (status, [(header::CONTENT_TYPE, json)], body).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to serialize response");
            ApiError::internal().into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::number(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}), json!(1))]
    #[case::text(json!({"jsonrpc": "2.0", "id": "a", "method": "ping", "params": null}), json!("a"))]
    fn requests(#[case] body: Value, #[case] id: Value) {
        let expected = RpcRequest {
            id,
            method: "ping".to_owned(),
            params: Map::new(),
        };
        let read = RpcMessage::read(body.to_string().as_bytes());
        assert_eq!(read, Ok(RpcMessage::Request(expected)));
    }

    #[rstest]
    #[case::notification(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))]
    #[case::result(json!({"jsonrpc": "2.0", "id": 1, "result": {}}))]
    #[case::error(json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}))]
    fn messages_without_an_answer(#[case] body: Value) {
        let read = RpcMessage::read(body.to_string().as_bytes());
        assert_eq!(read, Ok(RpcMessage::NoAnswer));
    }

    #[rstest]
    #[case::no_json("{", PARSE_ERROR)]
    #[case::nothing("", PARSE_ERROR)]
    #[case::two("{} {}", PARSE_ERROR)]
    #[case::batch(r#"[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]"#, INVALID_REQUEST)]
    #[case::text(r#""ping""#, INVALID_REQUEST)]
    #[case::version(r#"{"jsonrpc": "1.0", "id": 1, "method": "ping"}"#, INVALID_REQUEST)]
    #[case::no_version(r#"{"id": 1, "method": "ping"}"#, INVALID_REQUEST)]
    #[case::no_method(r#"{"jsonrpc": "2.0", "id": 1}"#, INVALID_REQUEST)]
    #[case::method_of_another_type(r#"{"jsonrpc": "2.0", "id": 1, "method": 5}"#, INVALID_REQUEST)]
    #[case::null_id(r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, INVALID_REQUEST)]
    #[case::broken_id(r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#, INVALID_REQUEST)]
    #[case::no_id(r#"{"jsonrpc": "2.0", "method": "ping"}"#, INVALID_REQUEST)]
    #[case::list(
        r#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}"#,
        INVALID_REQUEST
    )]
    fn faults(#[case] body: &str, #[case] code: i32) {
        assert_eq!(RpcMessage::read(body.as_bytes()).unwrap_err().code, code);
    }
}
