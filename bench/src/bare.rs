//! The bare server: axum without middleware. Each route parses the same body as the product's
//! endpoint, and returns a response with the same status and a similar size. It checks no key and
//! stores nothing.

use crate::child::GREETING;
use crate::report::print_line;
use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use serde_json::Value;
use std::fmt::Write as _;
use std::process::ExitCode;
use tokio::net::TcpListener;
use tributary_testkit::postbacks::{ADATTRIBUTIONKIT, SKADNETWORK};

/// Response to `configure`, with the fields of a device without a click.
const CONFIGURED: &str = r#"{"data":{"sdkEnabled":true,"firstOpen":true,"attribution":{"id":"att_01m7ncpw89fj88awhjhmpzfzap","network":"organic","matchType":"organic","confidence":null,"linkId":null,"clickId":null,"campaign":{"id":null,"name":null,"adsetId":null,"adsetName":null,"adId":null,"adName":null},"deepLink":null,"customData":{},"queryParams":{},"reason":"No click was found for this install: the device sent no Play Store referrer.","decidedAt":"2026-01-01T00:00:00.000Z"},"opened":null,"skan":{"version":0,"enabled":false,"currency":"USD","maxAgeSeconds":604800,"rates":{},"windows":[],"server":{}}}}"#;

/// Serves until the process is killed.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    let router = Router::new()
        .route("/api/v1/apps/{app}/web-events", post(web_event))
        .route("/c/{link}", get(redirect))
        .route("/api/track/configure", post(configure))
        .route("/api/track/events", post(sdk_events))
        .route("/api/webhook/revenuecat/{app}", post(notification))
        .route(SKADNETWORK, post(postback))
        .route(ADATTRIBUTIONKIT, post(postback));
    tokio::runtime::Runtime::new()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        print_line(format_args!("{GREETING}{}", listener.local_addr()?));
        let listener = listener.tap_io(|stream| {
            // A delayed response would only flatter the product.
            let _best_effort = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Responds with JSON, or with 400 if the body is not JSON.
fn respond(body: &Bytes, status: StatusCode, answer: impl Fn(&Value) -> String) -> Response {
    match serde_json::from_slice(body) {
        Ok(parsed) => {
            let content_type = [(header::CONTENT_TYPE, "application/json")];
            (status, content_type, answer(&parsed)).into_response()
        }
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

async fn web_event(body: Bytes) -> Response {
    respond(&body, StatusCode::ACCEPTED, |event| {
        format!(
            r#"{{"data":{{"eventId":{},"status":"accepted","duplicate":false,"receivedAt":"2026-01-01T00:00:00.000Z"}}}}"#,
            event["eventId"]
        )
    })
}

async fn redirect(Path(link): Path<String>) -> Response {
    let store = "https://play.google.com/store/apps/details?id=com.example.runner";
    let url = format!("{store}&referrer=ar_click_id%3D{link}{link}");
    (StatusCode::FOUND, [(header::LOCATION, url)]).into_response()
}

async fn configure(body: Bytes) -> Response {
    respond(&body, StatusCode::OK, |_| CONFIGURED.to_owned())
}

async fn sdk_events(body: Bytes) -> Response {
    respond(&body, StatusCode::ACCEPTED, |batch| {
        let mut answer = String::from(r#"{"data":["#);
        let events = batch["events"].as_array().map_or(&[][..], Vec::as_slice);
        for (index, event) in events.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let id = &event["eventId"];
            // Writing to a string cannot fail.
            let _written = write!(answer, r#"{comma}{{"eventId":{id},"status":"accepted"}}"#);
        }
        answer + "]}"
    })
}

async fn notification(body: Bytes) -> Response {
    respond(&body, StatusCode::OK, |_| {
        r#"{"data":{"received":true,"duplicate":false}}"#.to_owned()
    })
}

/// Rejects the malformed postbacks of the mix, like the product.
async fn postback(body: Bytes) -> Response {
    match serde_json::from_slice::<Value>(&body) {
        Ok(postback) if !postback["redownload"].is_string() => StatusCode::OK.into_response(),
        _ => StatusCode::BAD_REQUEST.into_response(),
    }
}
