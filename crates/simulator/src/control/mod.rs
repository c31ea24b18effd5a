//! `/control`: injects faults and reads the ledger.

mod inspect;
mod script;

pub(crate) use inspect::{conversions, requests, state};
pub(crate) use script::{clear_faults, inject_fault, register, register_report};

use crate::state::SimulatorState;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::sync::Arc;
use url::form_urlencoded;

/// Maximum size of a request body.
const BODY_BYTES_MAX: usize = 1024 * 1024;

pub(crate) fn router() -> Router<Arc<SimulatorState>> {
    let faults = get(inspect::list_faults)
        .post(script::post_fault)
        .delete(script::delete_faults);
    Router::new()
        .route("/control/state", get(inspect::get_state))
        .route(
            "/control/networks/{network}/conversions",
            get(inspect::get_conversions),
        )
        .route(
            "/control/networks/{network}/requests",
            get(inspect::get_requests),
        )
        .route("/control/accounts", post(script::post_account))
        .route("/control/reports", post(script::post_report))
        .route("/control/clock", post(script::post_clock))
        .route("/control/reset", post(script::post_reset))
        .route("/control/faults", faults)
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    (status, [(header::CONTENT_TYPE, json)], body.to_string()).into_response()
}

fn done() -> Response {
    json_response(StatusCode::OK, &json!({}))
}

fn bad_request(message: &str) -> Response {
    json_response(StatusCode::BAD_REQUEST, &json!({"error": message}))
}

/// Reads a JSON body.
pub(crate) async fn body(request: Request) -> Result<Value, String> {
    let bytes = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let bytes = bytes.map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// Returns a non-empty query parameter.
fn parameter(request: &Request, name: &str) -> Option<String> {
    let query = request.uri().query()?;
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let found = pairs.find(|(one, _)| one == name);
    found
        .map(|(_, value)| value.into_owned())
        .filter(|value| !value.is_empty())
}
