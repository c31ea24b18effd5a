//! `GET /`: a page that shows what each network received, deduplicated and rejected. It needs no
//! JavaScript.

mod view;

use crate::control;
use crate::network::SimulatedNetwork;
use crate::state::SimulatorState;
use askama::Template as _;
use axum::body::to_bytes;
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde_json::{Value, json};
use std::sync::Arc;
use url::form_urlencoded;
use view::SimulatorPage;

const STYLE: &str = include_str!("../../static/simulator.css");
/// Allows only the style sheet, and forms that post to this server.
const POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";
/// Maximum size of a form.
const FORM_BYTES_MAX: usize = 4 * 1024;

pub(crate) async fn show(Shared(world): Shared<Arc<SimulatorState>>, request: Request) -> Response {
    let is_still = request.uri().query() == Some("still");
    let text = match SimulatorPage::of(&world, is_still).render() {
        Ok(text) => text,
        Err(error) => {
            tracing::error!(%error, "failed to render page");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)));
    (headers, text).into_response()
}

pub(crate) async fn style() -> Response {
    let kind = HeaderValue::from_static("text/css; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], STYLE).into_response()
}

/// Handles `POST /page/faults`: injects a common fault for the next request.
pub(crate) async fn inject(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let form = form(request).await;
    let (network, kind) = (field(&form, "network"), field(&form, "kind"));
    let fault = match kind {
        "server_error" => json!({"kind": "status", "status": 500, "body": "Internal Server Error"}),
        "throttled" => json!({"kind": "status", "status": 429, "headers": {"retry-after": "5"}}),
        "slow" => json!({"kind": "delay", "ms": 15_000}),
        other => json!({"kind": other}),
    };
    let injection = json!({"network": network, "fault": fault, "times": 1});
    back(control::inject_fault(&world, injection).map(drop))
}

/// Handles `POST /page/clear`: clears one network's faults, or all faults.
pub(crate) async fn clear(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let form = form(request).await;
    match field(&form, "network") {
        "" => control::clear_faults(&world, None),
        label => match SimulatedNetwork::parse(label) {
            Some(network) => control::clear_faults(&world, Some(network)),
            None => return back(Err("unknown network".to_owned())),
        },
    }
    back(Ok(()))
}

fn back(done: Result<(), String>) -> Response {
    match done {
        Ok(()) => Redirect::to("/").into_response(),
        Err(message) => (StatusCode::BAD_REQUEST, message).into_response(),
    }
}

async fn form(request: Request) -> Value {
    let bytes = to_bytes(request.into_body(), FORM_BYTES_MAX)
        .await
        .unwrap_or_default();
    form_urlencoded::parse(&bytes)
        .map(|(name, value)| (name.into_owned(), json!(value)))
        .collect()
}

fn field<'f>(form: &'f Value, name: &str) -> &'f str {
    form.get(name).and_then(Value::as_str).unwrap_or_default()
}
