//! The way to the ad networks: the strict simulator in this process, behind a line with faults.

use crate::scenario::{NetworkFaultKind, Weakening};
use crate::world::World;
use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tower::ServiceExt as _;
use tributary_domain::integration::Network;
use tributary_forwarder::{RequestTarget, Transport, TransportOutcome};
use tributary_networks::{NetworkRequest, NetworkResponse, RequestMethod, SendOutcome};
use tributary_simulator::{Simulator, SimulatorConfig};

/// Maximum size of a response.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Longest time to the network and back without a fault, in milliseconds.
const ROUND_TRIP_MAX: u64 = 120;
/// Fields with an event's deduplication id, by network.
const ID_FIELDS: [&str; 3] = ["event_id", "transactionId", "id"];

/// What a network received under one deduplication id.
#[derive(Debug, Default, Clone)]
pub(crate) struct Received {
    /// How often.
    pub(crate) times: u64,
    /// The different contents.
    pub(crate) contents: Vec<String>,
}

/// A request that is still on its way.
#[derive(Debug)]
struct LateRequest {
    arrives_at: i64,
    target: RequestTarget,
    request: NetworkRequest,
}

/// The four networks.
#[derive(Debug)]
pub(crate) struct Networks {
    pub(crate) simulator: Simulator,
    received: Mutex<BTreeMap<(Network, String), Received>>,
    /// Requests on their way. They arrive even if their sender has died.
    late: Mutex<Vec<LateRequest>>,
}

impl Networks {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            simulator: Simulator::new(SimulatorConfig::default()),
            received: Mutex::default(),
            late: Mutex::default(),
        })
    }

    /// Returns what the networks received, by network and deduplication id.
    pub(crate) fn received(&self) -> MutexGuard<'_, BTreeMap<(Network, String), Received>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the requests arrive that are late until now.
    pub(crate) async fn receive_late(&self, now: i64) {
        loop {
            let due = {
                let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
                let is_due = |one: &LateRequest| one.arrives_at <= now;
                let Some(index) = late.iter().position(is_due) else {
                    return;
                };
                late.remove(index)
            };
            self.process(due.target, &due.request, due.arrives_at).await;
        }
    }

    fn delay(&self, arrives_at: i64, target: RequestTarget, request: NetworkRequest) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        late.push(LateRequest {
            arrives_at,
            target,
            request,
        });
    }

    /// Lets a network process a request at this time.
    async fn process(
        &self,
        target: RequestTarget,
        request: &NetworkRequest,
        now: i64,
    ) -> NetworkResponse {
        self.simulator.set_time(now);
        if let RequestTarget::Network(network) = target {
            self.note(network, &request.body);
        }
        let path = match target {
            RequestTarget::TokenEndpoint => "/token",
            _ => &request.path_and_query,
        };
        let method = match request.method {
            RequestMethod::Post => "POST",
            RequestMethod::Get => "GET",
        };
        let mut built = axum::http::Request::builder().method(method).uri(path);
        for (name, value) in &request.headers {
            built = built.header(*name, value);
        }
        let built = built.body(Body::from(request.body.clone()));
        let built = built.expect("the adapters build valid requests");
        let answered = self.simulator.router().oneshot(built).await;
        let Ok(response) = answered;
        let status = response.status().as_u16();
        let headers = response.headers().iter();
        let headers = headers.filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        });
        let headers = headers.collect();
        let body = to_bytes(response.into_body(), RESPONSE_BYTES_MAX).await;
        NetworkResponse {
            status,
            headers,
            body: body.expect("a short body").to_vec(),
            truncated: false,
        }
    }

    /// Notes the events of a request.
    fn note(&self, network: Network, body: &[u8]) {
        let mut received = self.received();
        for event in events(body) {
            let id = event_id(&event).to_owned();
            let content = event.to_string();
            let one = received.entry((network, id)).or_default();
            one.times += 1;
            if !one.contents.contains(&content) {
                one.contents.push(content);
            }
        }
    }
}

/// Returns the events of a request.
fn events(body: &[u8]) -> Vec<Value> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let list = body.get("data").or_else(|| body.get("events"));
    list.and_then(Value::as_array).cloned().unwrap_or_default()
}

fn event_id(event: &Value) -> &str {
    let mut fields = ID_FIELDS.into_iter();
    let found = fields.find_map(|field| event.get(field)?.as_str());
    found.unwrap_or_default()
}

/// The line between a server and the networks.
pub(crate) struct Line {
    pub(crate) world: Arc<World>,
    pub(crate) networks: Arc<Networks>,
}

#[async_trait]
impl Transport for Line {
    async fn send(
        &self,
        target: RequestTarget,
        mut request: NetworkRequest,
        timeout: Duration,
    ) -> TransportOutcome {
        let began = tokio::time::Instant::now();
        self.pass("send", 0).await;
        if self.world.weakening() == Weakening::ChangeDedupIds {
            self.change_ids(target, &mut request);
        }
        let outcome = self.send_with_faults(target, request, timeout).await;
        self.pass("answer", outcome_number(&outcome)).await;
        TransportOutcome {
            outcome,
            duration: began.elapsed(),
        }
    }
}

impl Line {
    /// A point at which the process may die. A dead process neither sends nor receives.
    async fn pass(&self, name: &str, detail: i64) {
        self.world.reach(name, detail);
        if self.world.is_down() {
            std::future::pending::<()>().await;
        }
    }

    async fn send_with_faults(
        &self,
        target: RequestTarget,
        request: NetworkRequest,
        timeout: Duration,
    ) -> SendOutcome {
        let fault = self.world.next_network_fault().map(|fault| fault.kind);
        let way = Duration::from_millis(self.world.random(ROUND_TRIP_MAX / 2) + 1);
        if fault == Some(NetworkFaultKind::NotSent) {
            tokio::time::sleep(way).await;
            return SendOutcome::NotSent;
        }
        if let Some(NetworkFaultKind::Late { millis }) = fault {
            let delay = timeout + Duration::from_millis(millis);
            let delay = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
            let arrives_at = self.world.true_now().saturating_add(delay);
            self.networks.delay(arrives_at, target, request);
            tokio::time::sleep(timeout).await;
            return SendOutcome::Interrupted;
        }
        if fault == Some(NetworkFaultKind::RequestLost) {
            tokio::time::sleep(timeout).await;
            return SendOutcome::Interrupted;
        }
        tokio::time::sleep(way).await;
        if let Some(NetworkFaultKind::Status(status)) = fault {
            return SendOutcome::Response(NetworkResponse {
                status,
                headers: Vec::new(),
                body: b"{}".to_vec(),
                truncated: false,
            });
        }
        self.pass("process", 0).await;
        let now = self.world.true_now();
        self.networks.receive_late(now).await;
        let response = self.networks.process(target, &request, now).await;
        match fault {
            Some(NetworkFaultKind::AnswerLost) => {
                tokio::time::sleep(timeout.saturating_sub(way)).await;
                return SendOutcome::Interrupted;
            }
            Some(NetworkFaultKind::Twice) => {
                self.networks.process(target, &request, now).await;
            }
            Some(NetworkFaultKind::Slow { millis }) => {
                let left = timeout.saturating_sub(way);
                let slow = Duration::from_millis(millis);
                tokio::time::sleep(slow.min(left)).await;
                if slow >= left {
                    return SendOutcome::Interrupted;
                }
            }
            _ => {}
        }
        tokio::time::sleep(way).await;
        SendOutcome::Response(response)
    }

    /// Gives events that were sent before another deduplication id.
    fn change_ids(&self, target: RequestTarget, request: &mut NetworkRequest) {
        let RequestTarget::Network(network) = target else {
            return;
        };
        let mut text = String::from_utf8_lossy(&request.body).into_owned();
        for event in events(&request.body) {
            let id = event_id(&event).to_owned();
            if self
                .networks
                .received()
                .contains_key(&(network, id.clone()))
            {
                let other: String = id.chars().rev().collect();
                text = text.replace(&id, &other);
            }
        }
        request.body = text.into_bytes();
    }
}

fn outcome_number(outcome: &SendOutcome) -> i64 {
    match outcome {
        SendOutcome::Response(response) => i64::from(response.status),
        SendOutcome::NotSent => -1,
        SendOutcome::Interrupted => -2,
    }
}
