//! Test scene: an app, a scripted network and a manual clock.

use crate::pacing::ProjectPacer;
use crate::queue::process_queue;
use crate::tokens::TokenCache;
use crate::transport::{RequestTarget, Transport, TransportOutcome};
use crate::{ForwarderParts, ForwarderState};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::integration::{
    Credential, EventScope, IntegrationChange, Network, SettingValue,
};
use tributary_domain::keyring::Keyring;
use tributary_domain::runtime::{Clock, Random, Runtime};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_networks::{NetworkRequest, NetworkResponse, SendOutcome};
use tributary_store::contract::fixtures::at;
use tributary_store::contract::outbox_fixtures::{ForwardingApp, forwarding_app};
use tributary_store::{DeliveryWithEvent, QueueRef, Store};
use tributary_store_sqlite::SqliteStore;

/// Start time of every scene, in seconds.
pub(super) const BEGIN: i64 = 1_000;
/// A credential that must not appear in any output.
pub(super) const SECRET: &str = "canary-token-0123456789";

/// A clock that the test sets.
#[derive(Default)]
pub(super) struct SceneClock(AtomicI64);

impl Clock for SceneClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Counts up, so that lease ids differ and back-off delays are minimal.
struct CountingRandom(AtomicU64);

impl Random for CountingRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        for (index, byte) in bytes.iter_mut().rev().enumerate() {
            *byte = number
                .get(7_usize.wrapping_sub(index))
                .copied()
                .unwrap_or(0);
        }
    }
}

/// Returns a network's response to a request.
pub(super) type Script = Box<dyn FnMut(&Value) -> SendOutcome + Send>;

/// A scripted network that records its requests.
pub(super) struct ScriptedNetwork {
    pub(super) script: Mutex<Script>,
    pub(super) requests: Mutex<Vec<Value>>,
    pub(super) tokens: Mutex<VecDeque<SendOutcome>>,
    pub(super) token_requests: AtomicU64,
}

#[async_trait]
impl Transport for ScriptedNetwork {
    async fn send(
        &self,
        service: RequestTarget,
        request: NetworkRequest,
        _timeout: Duration,
    ) -> TransportOutcome {
        let outcome = if service == RequestTarget::TokenEndpoint {
            self.token_requests.fetch_add(1, Ordering::SeqCst);
            let next = self.tokens.lock().unwrap().pop_front();
            next.unwrap_or_else(|| response(200, r#"{"access_token": "at-1", "expires_in": 3600}"#))
        } else {
            let path = Value::String(request.path_and_query.clone());
            let body = serde_json::from_slice(&request.body).unwrap_or(path);
            self.requests.lock().unwrap().push(body.clone());
            (self.script.lock().unwrap())(&body)
        };
        TransportOutcome {
            outcome,
            duration: Duration::from_millis(5),
        }
    }
}

pub(super) fn response(status: u16, body: &str) -> SendOutcome {
    with_headers(status, body, &[])
}

pub(super) fn with_headers(status: u16, body: &str, headers: &[(&str, &str)]) -> SendOutcome {
    let header = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    SendOutcome::Response(NetworkResponse {
        status,
        headers: headers.iter().map(header).collect(),
        body: body.as_bytes().to_vec(),
        truncated: false,
    })
}

/// The response with which `network_d` accepts a request.
pub(super) fn accepted() -> SendOutcome {
    response(200, "")
}

/// A test scene.
pub(super) struct Scene {
    pub(super) store: Arc<dyn Store>,
    pub(super) fixture: ForwardingApp,
    pub(super) queue: QueueRef,
    pub(super) network: Arc<ScriptedNetwork>,
    pub(super) clock: Arc<SceneClock>,
    shared: Arc<ForwarderState>,
    _folder: TempDir,
}

/// Creates a runtime with this clock.
pub(super) fn runtime(clock: Arc<SceneClock>) -> Runtime {
    Runtime::new(clock, Arc::new(CountingRandom(AtomicU64::new(1))))
}

impl Scene {
    /// Creates an app connected to a scripted network.
    pub(super) async fn new(
        network: Network,
        script: impl FnMut(&Value) -> SendOutcome + Send + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tributary.db");
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await;
        let store: Arc<dyn Store> = Arc::new(opened.unwrap().unwrap());
        let one = forwarding_app(&store).await;
        let keyring = Keyring::new([5; 32]);
        connect(&one, &keyring, network).await;
        let scripted = Arc::new(ScriptedNetwork {
            script: Mutex::new(Box::new(script)),
            requests: Mutex::default(),
            tokens: Mutex::default(),
            token_requests: AtomicU64::new(0),
        });
        let clock = Arc::new(SceneClock(AtomicI64::new(at(BEGIN).as_millis())));
        let runtime = runtime(clock.clone());
        let parts = ForwarderParts {
            store: store.clone(),
            runtime,
            keyring,
            transport: scripted.clone(),
            base_url: "https://t.example".into(),
        };
        let queue = QueueRef {
            app: one.queue.app,
            network,
        };
        Self {
            store,
            fixture: one,
            queue,
            network: scripted,
            clock,
            shared: Arc::new(ForwarderState {
                parts,
                tokens: TokenCache::default(),
                pacer: ProjectPacer::default(),
            }),
            _folder: folder,
        }
    }

    /// Returns the forwarder's parts.
    pub(super) fn parts(&self) -> &ForwarderParts {
        &self.shared.parts
    }

    /// Records events to be sent.
    pub(super) async fn events(&self, count: usize) {
        let ids: Vec<String> = (0..count).map(|number| format!("e{number}")).collect();
        for ids in ids.chunks(100) {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            self.fixture
                .send_events("phone", &ids, "sign_up", BEGIN)
                .await;
        }
    }

    /// Processes the queue once, if it is due.
    pub(super) async fn work(&self) {
        let now = self.clock.now();
        let network = self.queue.network;
        let due = self.store.due_queues(network, now, 10).await.unwrap();
        if due.contains(&self.queue) {
            let stopping = CancellationToken::new();
            process_queue(self.shared.clone(), self.queue, stopping).await;
        }
    }

    /// Advances the clock and processes the queue.
    pub(super) async fn advance(&self, wait: Duration) {
        let millis = i64::try_from(wait.as_millis()).unwrap();
        self.clock.0.fetch_add(millis, Ordering::SeqCst);
        self.work().await;
    }

    /// Advances in steps of fifteen minutes until nothing is pending, for at most a day.
    pub(super) async fn finish(&self) {
        for _ in 0..96 {
            if !self.status_counts().await.contains_key("pending") {
                return;
            }
            self.advance(Duration::from_mins(15)).await;
        }
    }

    pub(super) async fn deliveries(&self) -> Vec<DeliveryWithEvent> {
        let filter = DeliveryFilter {
            network: Some(self.queue.network),
            ..DeliveryFilter::default()
        };
        self.fixture.deliveries(filter).await
    }

    /// Returns the number of deliveries per status.
    pub(super) async fn status_counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for one in self.deliveries().await {
            *counts.entry(one.delivery.status.as_str()).or_default() += 1;
        }
        counts
    }

    /// Returns the number of events in each request.
    pub(super) fn batches(&self) -> Vec<usize> {
        let requests = self.network.requests.lock().unwrap();
        let events = |body: &Value| {
            let list = body["events"].as_array().or(body["data"].as_array());
            list.map_or(0, Vec::len)
        };
        requests.iter().map(events).collect()
    }

    /// Replaces the network's script.
    pub(super) fn set_script(&self, script: impl FnMut(&Value) -> SendOutcome + Send + 'static) {
        *self.network.script.lock().unwrap() = Box::new(script);
    }
}

/// Connects the app to a network, with valid credentials.
async fn connect(one: &ForwardingApp, keyring: &Keyring, network: Network) {
    let text = |text: &str| Change::Set(SettingValue::Text(text.to_owned()));
    let organization = one.tenant.writer.organization().to_string();
    let app = one.queue.app.to_string();
    let credential = |name: &'static str| {
        let context = [&*organization, &*app, network.as_str(), name];
        let sealed = keyring.seal(&context, [9; 24], SECRET.as_bytes());
        (name, Change::Set(Credential { sealed, hint: None }))
    };
    let (settings, credentials) = match network {
        Network::A => (
            vec![("pixelId", text("1"))],
            vec![credential("accessToken")],
        ),
        Network::B => {
            let actions = BTreeMap::from([("sign_up".to_owned(), "7".to_owned())]);
            let flag = |on| Change::Set(SettingValue::Flag(on));
            (
                vec![
                    ("operatingAccountId", text("1")),
                    ("clientId", text("c")),
                    ("userDataEnabled", flag(true)),
                    ("conversionActions", Change::Set(SettingValue::Map(actions))),
                ],
                vec![credential("clientSecret"), credential("refreshToken")],
            )
        }
        Network::C => (
            vec![("pixelCode", text("1"))],
            vec![credential("accessToken")],
        ),
        Network::D => (vec![("pixelId", text("1"))], vec![credential("apiKey")]),
    };
    let change = IntegrationChange {
        enabled: Change::Set(true),
        scope: Change::Set(EventScope::All),
        settings: settings.into_iter().collect(),
        credentials: credentials.into_iter().collect(),
        ..IntegrationChange::default()
    };
    one.change(network, change, 5).await;
}
