//! The ceiling: the server with one route more, whose handler parses the body of a website event and does nothing.
//!
//! It is the server's own main path (listener, deadlines, request id, log line, limits, metrics) and its own reader
//! of bodies, so what is left between the two is what the product does about an event once it is read, and the key.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::post;
use serde_json::json;
use std::process::ExitCode;
use tributary_api::WebEventRequest;
use tributary_server::config::{self, Config};
use tributary_server::wiring::router_with;

/// Where it is.
pub(crate) const PATH: &str = "/bare/web-events";

/// Serves until told to stop.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    let config = Config::load(None, config::environment())?;
    let more = Router::new().route(PATH, post(parse));
    tributary_server::serve(config, |parts| router_with(parts, more))?;
    Ok(ExitCode::SUCCESS)
}

/// Answers as the product does. Extracting the body has checked every field of it.
async fn parse(event: WebEventRequest) -> impl IntoResponse {
    let answer = json!({"data": {
        "eventId": event.event_id(),
        "status": "accepted",
        "duplicate": false,
        "receivedAt": "2026-01-01T00:00:00.000Z",
    }});
    let content_type = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::ACCEPTED, content_type, answer.to_string())
}
