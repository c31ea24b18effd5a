//! The way of a request, the same for all networks: fault, body, fault, network, books, answer.

use crate::connection::Connection;
use crate::faults::{EarlyPick, SimulatedFault};
use crate::ledger::{RecordedBody as Kept, RefusalRecord, RequestRecord};
use crate::network::{Endpoint, SimulatedNetwork};
use crate::reply::{SimulatedOutcome, SimulatedReply};
use crate::world::World;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::Value;
use std::time::Duration;
use url::form_urlencoded;

/// Bytes of a body that are read.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Where a request came to.
#[derive(Debug, Clone)]
pub(crate) struct RequestRoute {
    pub(crate) network: SimulatedNetwork,
    pub(crate) endpoint: Endpoint,
    /// When the address names it.
    pub(crate) account: Option<String>,
}

/// How a network takes requests.
pub(crate) struct EndpointHandler {
    /// The account that a body names, where the address does not.
    pub(crate) account_of: fn(&ReceivedRequest) -> Option<String>,
    pub(crate) process: fn(&World, &mut ReceivedRequest) -> SimulatedOutcome,
    /// The answer to credentials that are no longer good.
    pub(crate) expired: fn(&World) -> SimulatedOutcome,
}

/// A request whose body was read.
#[derive(Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) route: RequestRoute,
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    /// The body as JSON, when it is.
    pub(crate) json: Option<Value>,
    /// What is kept of it, unless it is JSON.
    pub(crate) recorded_body: Option<Kept>,
    events: usize,
    pub(crate) now: i64,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// The type of the body, without its parameters.
    pub(crate) fn content_type(&self) -> &str {
        let whole = self.header("content-type").unwrap_or_default();
        whole.split(';').next().unwrap_or_default().trim()
    }

    /// The token after `Bearer`.
    pub(crate) fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }

    /// A parameter of the query.
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        let query = self.parts.uri.query()?;
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let found = pairs.find(|(one, _)| one == name);
        found.map(|(_, value)| value.into_owned())
    }

    /// Counts the events of a body, for the books.
    pub(crate) fn count_events(&mut self, body: &Value) {
        let list = body.get("data").or_else(|| body.get("events"));
        self.events = list.and_then(Value::as_array).map_or(0, Vec::len);
    }
}

/// Leads a request through.
pub(crate) async fn handle(
    world: &World,
    call: RequestRoute,
    door: &EndpointHandler,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let connection = parts.extensions.get::<Connection>().cloned();
    let early = {
        let account = call.account.as_deref();
        let mut state = world.state();
        state
            .faults
            .pick_early(call.network, call.endpoint, account)
    };
    let mut arrived = ReceivedRequest {
        route: call,
        parts,
        body: Bytes::new(),
        json: None,
        recorded_body: None,
        events: 0,
        now: world.clock.now(),
    };
    if let EarlyPick::Taken(fault) = early {
        record(world, &arrived, None, Some(fault.kind()), None);
        return reset(connection);
    }
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        record(world, &arrived, Some(status), None, None);
        return status.into_response();
    };
    arrived.body = body;
    if arrived.content_type() == "application/json" {
        arrived.json = serde_json::from_slice(&arrived.body).ok();
        if let Some(body) = arrived.json.take() {
            arrived.count_events(&body);
            arrived.json = Some(body);
        }
    }
    if arrived.route.account.is_none() {
        arrived.route.account = (door.account_of)(&arrived);
    }
    let fault = {
        let RequestRoute {
            network,
            endpoint,
            account,
        } = &arrived.route;
        world
            .state()
            .faults
            .pick(*network, *endpoint, account.as_deref())
    };
    answer(world, door, arrived, fault, connection).await
}

async fn answer(
    world: &World,
    door: &EndpointHandler,
    mut arrived: ReceivedRequest,
    fault: Option<SimulatedFault>,
    connection: Option<Connection>,
) -> Response {
    let kind = fault.as_ref().map(SimulatedFault::kind);
    let outcome = match &fault {
        Some(SimulatedFault::ResetBefore {}) => {
            record(world, &arrived, None, kind, None);
            return reset(connection);
        }
        Some(SimulatedFault::Status {
            status,
            body,
            headers,
            processed,
        }) => {
            if *processed {
                // What the network says is lost; what it did stays.
                drop((door.process)(world, &mut arrived));
            }
            SimulatedOutcome::accepted(SimulatedReply::scripted(*status, body, headers))
        }
        Some(SimulatedFault::Hang {}) => {
            record(world, &arrived, None, kind, None);
            let mut cleared = world.cleared.subscribe();
            // It ends when the faults are cleared, when the caller gives up, and with the simulator.
            if cleared.changed().await.is_err() {
                return reset(connection);
            }
            return (door.process)(world, &mut arrived).reply.into_response();
        }
        Some(SimulatedFault::ExpireTokens {}) => (door.expired)(world),
        _ => (door.process)(world, &mut arrived),
    };
    let is_lost = matches!(fault, Some(SimulatedFault::ResetAfter {}));
    let status = (!is_lost).then_some(outcome.reply.status());
    record(world, &arrived, status, kind, outcome.refusal);
    match fault {
        Some(SimulatedFault::ResetAfter {}) => return reset(connection),
        // Taken in already: whoever gave up waiting does not know, as with the real ones.
        Some(SimulatedFault::Delay { ms }) => tokio::time::sleep(Duration::from_millis(ms)).await,
        _ => {}
    }
    outcome.reply.into_response()
}

/// Writes it into the books.
fn record(
    world: &World,
    arrived: &ReceivedRequest,
    status: Option<StatusCode>,
    fault: Option<&'static str>,
    refusal: Option<(String, String)>,
) {
    let account = arrived.route.account.clone();
    let kept = match &arrived.recorded_body {
        Some(kept) => kept.clone(),
        None if arrived.body.is_empty() => Kept::Absent,
        None => Kept::json(arrived.body.clone()),
    };
    let refusal = refusal.map(|(reason, words)| RefusalRecord {
        received: arrived.now,
        account: account.clone(),
        reason,
        words,
        events: arrived.events as u64,
    });
    let line = RequestRecord {
        received: arrived.now,
        status: status.map(|status| status.as_u16()),
        method: arrived.parts.method.to_string(),
        path: arrived.parts.uri.path().to_owned(),
        account,
        events: arrived.events,
        fault,
        body: kept,
    };
    world
        .state()
        .ledger(arrived.route.network)
        .note(line, refusal);
}

/// The answer is never written: the stream fails first. Without a connection of ours there is only an error.
fn reset(connection: Option<Connection>) -> Response {
    if let Some(connection) = connection {
        connection.reset();
    }
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}
