//! One process of the server: the real store, router and forwarder on one thread.

use crate::disk::DATABASE;
use crate::network::{Line, Networks};
use crate::scenario::Weakening;
use crate::world::{ProcessTask, World};
use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode, header};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;
use tributary_api::{IntegrationProbe, RateSettings, TestEventResult, Timeouts};
use tributary_domain::access::unverified_writes::UnverifiedWriteQuota;
use tributary_domain::attestation::app_attest_roots;
use tributary_domain::billing::certificate::TrustedRoots;
use tributary_domain::integration::Integration;
use tributary_domain::keyring::Keyring;
use tributary_domain::node_role::NodeRoles;
use tributary_domain::skan::postback::Keys;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_forwarder::{Forwarder, ForwarderParts, Poller};
use tributary_server::config::Config;
use tributary_server::mail::Mailer;
use tributary_server::notices::NoticeService;
use tributary_server::outbound::AddressPolicy;
use tributary_server::sign_on::ProviderClient;
use tributary_server::wiring::{self, ServerParts};
use tributary_store::Store;
use tributary_store::report_slots::ReportSlots;
use tributary_store_sqlite::{AnswerTime, SqliteOpenError, SqliteSteps, SqliteStore};

/// The server's public base URL.
pub(crate) const BASE_URL: &str = "https://t.example.com";
/// Longest pause of the writer between two batches, in milliseconds.
const WRITER_PAUSE_MAX: u64 = 6;
/// Longest pause of the idle writer, in milliseconds.
const WRITER_IDLE_MAX: u64 = 48;
/// Longest pause of the checkpointer, in milliseconds.
const CHECKPOINTER_PAUSE_MAX: u64 = 300;
/// Maximum size of a response.
const RESPONSE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A process of the server.
pub(crate) struct Node {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) router: Router,
    /// One per forwarding task. A channel with several receivers would wake them in random order.
    stop: Vec<oneshot::Sender<()>>,
    forwarding: Vec<JoinHandle<()>>,
    stepping: Vec<JoinHandle<()>>,
}

impl Node {
    /// Opens the store and starts everything.
    pub(crate) fn start(
        world: &Arc<World>,
        networks: &Arc<Networks>,
        folder: &Path,
    ) -> Result<Self, SqliteOpenError> {
        let pages = world.scenario.log_pages_max;
        let (store, steps) = SqliteStore::open_stepped(&folder.join(DATABASE), pages)?;
        if world.weakening() == Weakening::AnswerBeforeCommit {
            steps.set_answer_time(AnswerTime::BeforeCommit);
        }
        let store: Arc<dyn Store> = Arc::new(store);
        let mut stop = Vec::new();
        let poller = Poller::new(store.clone(), world.runtime());
        let forwarder = Forwarder::new(ForwarderParts {
            store: store.clone(),
            runtime: world.runtime(),
            keyring: keyring(),
            transport: Arc::new(Line {
                world: world.clone(),
                networks: networks.clone(),
            }),
            base_url: BASE_URL.into(),
        });
        let due = poller.subscribe();
        let mut wait = || {
            let (sender, stopped) = oneshot::channel::<()>();
            stop.push(sender);
            async move {
                // A dropped sender also means shutdown.
                let _either = stopped.await;
            }
        };
        let forwarding = vec![
            tokio::spawn(ProcessTask::new(world, "poller", poller.run(wait()))),
            tokio::spawn(ProcessTask::new(
                world,
                "forwarder",
                forwarder.run(due, wait()),
            )),
        ];
        let stepping = vec![
            tokio::spawn(ProcessTask::idle(
                world,
                step_writer(world.clone(), steps.clone()),
            )),
            tokio::spawn(ProcessTask::idle(
                world,
                step_checkpointer(world.clone(), steps),
            )),
        ];
        let router = router(world, &store);
        Ok(Self {
            store,
            router,
            stop,
            forwarding,
            stepping,
        })
    }

    /// Stops as after SIGTERM: the forwarder finishes its requests, then the database is closed.
    pub(crate) async fn stop(self) {
        drop(self.stop);
        for task in self.forwarding {
            // A task that panicked shows in the checks.
            let _panicked = task.await;
        }
        for task in &self.stepping {
            task.abort();
        }
        self.store.close().await;
    }
}

/// Steps the writer, each time after a random pause, which is longer while nothing is queued.
async fn step_writer(world: Arc<World>, steps: SqliteSteps) {
    let mut pause = WRITER_PAUSE_MAX;
    loop {
        world.wait_at_most(pause).await;
        if steps.queued_jobs() == 0 {
            pause = (pause * 2).min(WRITER_IDLE_MAX);
            continue;
        }
        if let Some(stall) = world.next_stall() {
            tokio::time::sleep(stall).await;
        }
        let jobs = steps.step_writer();
        world.reach("batch", i64::try_from(jobs).unwrap_or(0));
        pause = WRITER_PAUSE_MAX;
    }
}

/// Steps the checkpointer, each time after a random pause.
async fn step_checkpointer(world: Arc<World>, steps: SqliteSteps) {
    loop {
        world.wait_at_most(CHECKPOINTER_PAUSE_MAX).await;
        steps.step_checkpointer();
    }
}

fn keyring() -> Keyring {
    Keyring::new([7; 32])
}

fn router(world: &Arc<World>, store: &Arc<dyn Store>) -> Router {
    let config = Config::load(None, std::iter::empty()).expect("valid settings");
    let notices = NoticeService::new(
        store.clone(),
        world.runtime(),
        keyring(),
        Mailer::new(&config).expect("a mailer that sends nothing"),
        AddressPolicy::PublicOnly,
        BASE_URL,
    );
    let parts = ServerParts {
        store: store.clone(),
        runtime: world.runtime(),
        keyring: keyring(),
        roles: NodeRoles::ALL,
        base_url: BASE_URL.to_owned(),
        timeouts: Timeouts {
            body: Duration::from_secs(10),
            request: Duration::from_secs(30),
            export_idle: Duration::from_secs(30),
        },
        rate_limits: RateSettings {
            per_key: 0,
            per_address: 0,
            failures_per_minute: 0,
        },
        report_slots: ReportSlots::unlimited(),
        unverified_writes: UnverifiedWriteQuota::UNLIMITED,
        is_trusted_proxy: Arc::new(|_| false),
        geo_lookup: tributary_api::no_geo_lookup(),
        country_header: None,
        documents: Arc::default(),
        postback_keys: Keys::apple(),
        app_store_roots: TrustedRoots::apple(),
        app_attest_roots: app_attest_roots(),
        probe: Arc::new(NoProbe),
        notices: notices.expect("a service that sends nothing"),
        sign_on: Arc::new(ProviderClient::new(false).expect("a client")),
        txt_lookup: Arc::new(|_| Box::pin(async { None })),
        metrics: None,
    };
    wiring::router(parts).0
}

/// A probe that sends nothing.
struct NoProbe;

#[async_trait]
impl IntegrationProbe for NoProbe {
    async fn probe(
        &self,
        _organization: OrganizationId,
        _integration: &Integration,
    ) -> Result<TestEventResult, String> {
        Err("The simulation tests no integrations.".to_owned())
    }
}

/// A request to the server.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

impl Call {
    pub(crate) fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Value::Null,
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("authorization", format!("Bearer {key}"))
    }

    pub(crate) fn json(mut self, body: Value) -> Self {
        self.body = body;
        self.header("content-type", "application/json")
    }
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) location: Option<String>,
    pub(crate) body: Value,
}

impl Answer {
    /// Returns the code of an error.
    pub(crate) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }
}

/// Sends a request through the router.
pub(crate) async fn call(router: &Router, call: &Call) -> Answer {
    let mut request = Request::builder().method(call.method).uri(&call.path);
    for (name, value) in &call.headers {
        request = request.header(*name, value);
    }
    let body = match &call.body {
        Value::Null => Body::empty(),
        body => Body::from(body.to_string()),
    };
    let peer = SocketAddr::from((Ipv4Addr::new(198, 51, 100, 7), 40_000));
    let request = request.extension(ConnectInfo(peer)).body(body);
    let request = request.expect("the simulation builds valid requests");
    let Ok(response) = router.clone().oneshot(request).await;
    let status = response.status();
    let location = response.headers().get(header::LOCATION);
    let location = location.and_then(|value| value.to_str().ok());
    let location = location.map(str::to_owned);
    let bytes = to_bytes(response.into_body(), RESPONSE_BYTES_MAX).await;
    let bytes = bytes.unwrap_or_default();
    Answer {
        status,
        location,
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
    }
}
