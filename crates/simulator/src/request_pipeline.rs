//! Request pipeline shared by all networks: early fault, body, fault, network, ledger, response.

use crate::connection::Connection;
use crate::faults::{EarlyPick, SimulatedFault};
use crate::ledger::{RecordedBody, RefusalRecord, RequestRecord};
use crate::network::{Endpoint, SimulatedNetwork};
use crate::reply::{SimulatedOutcome, SimulatedReply};
use crate::state::SimulatorState;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::Value;
use std::time::Duration;
use url::form_urlencoded;

/// Maximum size of a body.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Endpoint that a request was sent to.
#[derive(Debug, Clone)]
pub(crate) struct RequestRoute {
    pub(crate) network: SimulatedNetwork,
    pub(crate) endpoint: Endpoint,
    /// Account in the URL, if the URL contains it.
    pub(crate) account: Option<String>,
}

/// An endpoint's network-specific steps.
pub(crate) struct EndpointHandler {
    /// Returns the account named in the body. Used only if the URL does not contain the account.
    pub(crate) account_of: fn(&ReceivedRequest) -> Option<String>,
    pub(crate) process: fn(&SimulatorState, &mut ReceivedRequest) -> SimulatedOutcome,
    /// Returns the response to expired credentials.
    pub(crate) expired: fn(&SimulatorState) -> SimulatedOutcome,
}

/// A request with its body.
#[derive(Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) route: RequestRoute,
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    /// The body, if it is JSON.
    pub(crate) json: Option<Value>,
    /// Body to record if it is not JSON.
    pub(crate) recorded_body: Option<RecordedBody>,
    events: usize,
    pub(crate) now: i64,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// Returns the content type without parameters.
    pub(crate) fn content_type(&self) -> &str {
        let whole = self.header("content-type").unwrap_or_default();
        whole.split(';').next().unwrap_or_default().trim()
    }

    /// Returns the bearer token.
    pub(crate) fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }

    /// Returns a query parameter.
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        let query = self.parts.uri.query()?;
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let found = pairs.find(|(one, _)| one == name);
        found.map(|(_, value)| value.into_owned())
    }

    /// Counts the events in a body, for the ledger.
    pub(crate) fn count_events(&mut self, body: &Value) {
        let list = body.get("data").or_else(|| body.get("events"));
        self.events = list.and_then(Value::as_array).map_or(0, Vec::len);
    }
}

/// Runs a request through the pipeline.
pub(crate) async fn handle(
    world: &SimulatorState,
    route: RequestRoute,
    handler: &EndpointHandler,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let connection = parts.extensions.get::<Connection>().cloned();
    let early = {
        let account = route.account.as_deref();
        let mut state = world.state();
        state
            .faults
            .pick_early(route.network, route.endpoint, account)
    };
    let mut received = ReceivedRequest {
        route,
        parts,
        body: Bytes::new(),
        json: None,
        recorded_body: None,
        events: 0,
        now: world.clock.now(),
    };
    if let EarlyPick::Taken(fault) = early {
        record(world, &received, None, Some(fault.kind()), None);
        return reset(connection);
    }
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        record(world, &received, Some(status), None, None);
        return status.into_response();
    };
    received.body = body;
    if received.content_type() == "application/json" {
        received.json = serde_json::from_slice(&received.body).ok();
        if let Some(body) = received.json.take() {
            received.count_events(&body);
            received.json = Some(body);
        }
    }
    if received.route.account.is_none() {
        received.route.account = (handler.account_of)(&received);
    }
    let fault = {
        let RequestRoute {
            network,
            endpoint,
            account,
        } = &received.route;
        world
            .state()
            .faults
            .pick(*network, *endpoint, account.as_deref())
    };
    respond(world, handler, received, fault, connection).await
}

async fn respond(
    world: &SimulatorState,
    handler: &EndpointHandler,
    mut received: ReceivedRequest,
    fault: Option<SimulatedFault>,
    connection: Option<Connection>,
) -> Response {
    let kind = fault.as_ref().map(SimulatedFault::kind);
    let outcome = match &fault {
        Some(SimulatedFault::ResetBefore {}) => {
            record(world, &received, None, kind, None);
            return reset(connection);
        }
        Some(SimulatedFault::Status {
            status,
            body,
            headers,
            processed,
        }) => {
            if *processed {
                // The response is discarded, but its effects remain.
                drop((handler.process)(world, &mut received));
            }
            SimulatedOutcome::accepted(SimulatedReply::scripted(*status, body, headers))
        }
        Some(SimulatedFault::Hang {}) => {
            record(world, &received, None, kind, None);
            let mut cleared = world.cleared.subscribe();
            // Ends when the faults are cleared, the caller gives up, or the simulator stops.
            if cleared.changed().await.is_err() {
                return reset(connection);
            }
            return (handler.process)(world, &mut received)
                .reply
                .into_response();
        }
        Some(SimulatedFault::ExpireTokens {}) => (handler.expired)(world),
        _ => (handler.process)(world, &mut received),
    };
    let is_lost = matches!(fault, Some(SimulatedFault::ResetAfter {}));
    let status = (!is_lost).then_some(outcome.reply.status());
    record(world, &received, status, kind, outcome.refusal);
    match fault {
        Some(SimulatedFault::ResetAfter {}) => return reset(connection),
        // The events are already accepted. As with the real networks, a caller that timed out does
        // not know that.
        Some(SimulatedFault::Delay { ms }) => tokio::time::sleep(Duration::from_millis(ms)).await,
        _ => {}
    }
    outcome.reply.into_response()
}

/// Records the request in the ledger.
fn record(
    world: &SimulatorState,
    received: &ReceivedRequest,
    status: Option<StatusCode>,
    fault: Option<&'static str>,
    refusal: Option<(String, String)>,
) {
    let account = received.route.account.clone();
    let body = match &received.recorded_body {
        Some(body) => body.clone(),
        None if received.body.is_empty() => RecordedBody::Absent,
        None => RecordedBody::json(received.body.clone()),
    };
    let refusal = refusal.map(|(reason, message)| RefusalRecord {
        received: received.now,
        account: account.clone(),
        reason,
        message,
        events: received.events as u64,
    });
    let request = RequestRecord {
        received: received.now,
        status: status.map(|status| status.as_u16()),
        method: received.parts.method.to_string(),
        path: received.parts.uri.path().to_owned(),
        account,
        events: received.events,
        fault,
        body,
    };
    world
        .state()
        .ledger(received.route.network)
        .note(request, refusal);
}

/// Resets the connection, so the response is never written. Under another server, the response is a
/// 500.
fn reset(connection: Option<Connection>) -> Response {
    if let Some(connection) = connection {
        connection.reset();
    }
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}
