//! `POST /.well-known/skadnetwork/report-attribution/` and
//! `POST /.well-known/appattribution/report-attribution/` — accept postbacks from Apple devices,
//! sent directly or forwarded by ad networks.
//!
//! Anyone can post, so only the signature proves the origin. Every well-formed postback gets 200,
//! whether or not its signature is valid or its app exists, so that the response reveals nothing.
//! Malformed postbacks get 400. Success is returned after the commit. Postbacks without a valid
//! signature are stored up to a daily quota, so that strangers cannot fill the disk.

mod read;

use crate::body::{BodyLimits, read_bytes_within};
use crate::error::{ApiError, Code};
use crate::gzip::GzipLimits;
use crate::metrics;
use crate::request::client_of;
use crate::state::ApiState;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tributary_domain::report::postback::ReceivedPostback;
use tributary_domain::skan::postback::{Protocol, Signature};
use tributary_domain::vocabulary::id::PostbackId;
use tributary_store::PostbackOutcome;

/// Largest postback in bytes. Apple's postbacks have less than 2000, but forwarding ad networks add
/// fields.
const POSTBACK_BYTES_MAX: usize = 32 * 1024;

/// Limits for a postback, whose only proof is in its body.
const LIMITS: BodyLimits = BodyLimits {
    bytes: POSTBACK_BYTES_MAX,
    gzip: GzipLimits::unproven(POSTBACK_BYTES_MAX),
};

const SKADNETWORK: &str = "/.well-known/skadnetwork/report-attribution";
const ADATTRIBUTIONKIT: &str = "/.well-known/appattribution/report-attribution";

/// Returns the routes. Apple's paths end with a slash; people who forward postbacks by hand often
/// omit it.
pub(super) fn router() -> Router<ApiState> {
    let skadnetwork = || get(ready).post(skadnetwork);
    let adattributionkit = || get(ready).post(adattributionkit);
    Router::new()
        .route(SKADNETWORK, skadnetwork())
        .route(&format!("{SKADNETWORK}/"), skadnetwork())
        .route(ADATTRIBUTIONKIT, adattributionkit())
        .route(&format!("{ADATTRIBUTIONKIT}/"), adattributionkit())
}

fn status(status: &str) -> Response {
    let json = HeaderValue::from_static("application/json");
    let body = format!("{{\"data\":{{\"status\":\"{status}\"}}}}");
    ([(header::CONTENT_TYPE, json)], Body::from(body)).into_response()
}

/// Responds to GET, so that operators can check that the path reaches the service.
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
    // For AdAttributionKit, Apple documents retries only after a 500.
    answer.map_err(|error| match error.code() {
        Code::Unavailable => {
            let message = "The database is unavailable. Send the same postback again.";
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
    let bytes = read_bytes_within(&parts.headers, body, state, LIMITS).await?;
    let read = read::read_postback(protocol, &bytes, &state.postback_keys);
    let (parsed, body) =
        read.inspect_err(|_| metrics::count_postback(protocol.as_str(), "malformed"))?;
    let signature = parsed.signature;
    let received_at = state.runtime.now();
    let is_allowed = signature == Signature::Valid
        || state
            .unverified_writes
            .allows("postback", client_of(&parts)?.address, received_at);
    if !is_allowed {
        metrics::count_postback(protocol.as_str(), "dropped");
        return Ok(status("received"));
    }
    let postback = ReceivedPostback {
        id: PostbackId::new(received_at, state.runtime.id_bytes()),
        received_at,
        parsed,
        body,
    };
    let outcome = match state.store.accept_postback(postback).await? {
        PostbackOutcome::Stored => signature.as_str(),
        PostbackOutcome::Duplicate => "duplicate",
        PostbackOutcome::Unclaimed => "unclaimed",
        PostbackOutcome::Dropped => "dropped",
    };
    metrics::count_postback(protocol.as_str(), outcome);
    Ok(status("received"))
}
