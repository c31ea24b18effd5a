//! `POST /.well-known/skadnetwork/report-attribution/` and `POST /.well-known/appattribution/report-attribution/`: what
//! Apple's devices, and ad networks that pass it on, report.
//!
//! Anybody may post, so a body proves nothing but what its signature does. Whatever could have come from a device is
//! kept and answered with 200, whether it verifies or not and whoever's app it is about: the answer tells a stranger
//! nothing. What no device sends is 400. Success is answered after the commit.

mod read;

use crate::body::read_bytes_within;
use crate::error::{ApiError, Code};
use crate::metrics;
use crate::state::ApiState;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tributary_domain::report::postback::ReceivedPostback;
use tributary_domain::skan::postback::Protocol;
use tributary_domain::vocabulary::id::PostbackId;
use tributary_store::PostbackOutcome;

/// Bytes of a postback. Apple's have less than two thousand; ad networks that pass them on add fields of their own.
const POSTBACK_BYTES_MAX: usize = 32 * 1024;

const SKADNETWORK: &str = "/.well-known/skadnetwork/report-attribution";
const ADATTRIBUTIONKIT: &str = "/.well-known/appattribution/report-attribution";

/// The two doors. Apple's paths end with a slash; who copies one by hand leaves it out.
pub(super) fn router() -> Router<ApiState> {
    let skadnetwork = || get(ready).post(skadnetwork);
    let adattributionkit = || get(ready).post(adattributionkit);
    Router::new()
        .route(SKADNETWORK, skadnetwork())
        .route(&format!("{SKADNETWORK}/"), skadnetwork())
        .route(ADATTRIBUTIONKIT, adattributionkit())
        .route(&format!("{ADATTRIBUTIONKIT}/"), adattributionkit())
}

fn status(word: &str) -> Response {
    let json = HeaderValue::from_static("application/json");
    let body = format!("{{\"data\":{{\"status\":\"{word}\"}}}}");
    ([(header::CONTENT_TYPE, json)], Body::from(body)).into_response()
}

/// For an operator who wants to see whether the path leads here.
async fn ready() -> Response {
    status("ready")
}

async fn skadnetwork(
    State(state): State<ApiState>,
    request: Request,
) -> Result<Response, ApiError> {
    accept(&state, Protocol::SkAdNetwork, request).await
}

async fn adattributionkit(
    State(state): State<ApiState>,
    request: Request,
) -> Result<Response, ApiError> {
    let answer = accept(&state, Protocol::AdAttributionKit, request).await;
    // Here a 500 is the only status after which Apple says that devices try again.
    answer.map_err(|error| match error.code() {
        Code::Unavailable => {
            let message = "The database cannot answer right now. Send the same postback again.";
            ApiError::new(Code::Internal, message)
        }
        _ => error,
    })
}

async fn accept(
    state: &ApiState,
    protocol: Protocol,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let bytes = read_bytes_within(&parts.headers, body, state, POSTBACK_BYTES_MAX).await?;
    let read = read::postback(protocol, &bytes, &state.postback_keys);
    let (received, body) =
        read.inspect_err(|_| metrics::count_postback(protocol.as_str(), "malformed"))?;
    let signature = received.signature;
    let received_at = state.runtime.now();
    let arrival = ReceivedPostback {
        id: PostbackId::new(received_at, state.runtime.random_bytes()),
        received_at,
        parsed: received,
        body,
    };
    let outcome = match state.store.accept_postback(arrival).await? {
        PostbackOutcome::Stored => signature.as_str(),
        PostbackOutcome::Duplicate => "duplicate",
        PostbackOutcome::Unclaimed => "unclaimed",
    };
    metrics::count_postback(protocol.as_str(), outcome);
    Ok(status("received"))
}
