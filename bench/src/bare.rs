//! The baseline: the same server with one extra route that parses a web event and discards it.
//!
//! The baseline shares the listener, deadlines, request id, log line, limits, metrics and body
//! parser with the product. The difference is therefore authentication and the work after parsing.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::post;
use serde_json::json;
use std::process::ExitCode;
use tributary_api::WebEventRequest;
use tributary_server::config::{self, Config};
use tributary_server::wiring::router_with;

/// Path of the parse-only route.
pub(crate) const PATH: &str = "/bare/web-events";

/// Serves until it receives a stop signal.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    let config = Config::load(None, config::environment())?;
    let more = Router::new().route(PATH, post(parse));
    tributary_server::serve(config, |parts| router_with(parts, more))?;
    Ok(ExitCode::SUCCESS)
}

/// Responds like the product. The extractor has already validated every field.
async fn parse(event: WebEventRequest) -> impl IntoResponse {
    let response = json!({"data": {
        "eventId": event.event_id(),
        "status": "accepted",
        "duplicate": false,
        "receivedAt": "2026-01-01T00:00:00.000Z",
    }});
    let content_type = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::ACCEPTED, content_type, response.to_string())
}
