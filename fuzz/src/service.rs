//! The product's router on a new SQLite database, called without a socket.

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime as TokioRuntime};
use tower::ServiceExt as _;
use tributary_api::{
    ApiHandles, IntegrationProbe, NoticeSender, RateLimits, RateSettings, TestEventResult,
    Timeouts, UnverifiedWrites, no_geo_lookup,
};
use tributary_domain::access::unverified_writes::UnverifiedWriteQuota;
use tributary_domain::access::{Actor, Environment, Permission};
use tributary_domain::attestation::app_attest_roots;
use tributary_domain::billing::certificate::TrustedRoots;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::integration::Integration;
use tributary_domain::keyring::Keyring;
use tributary_domain::node_role::NodeRoles;
use tributary_domain::notice::{Notice, NoticePreview};
use tributary_domain::runtime::{Clock, Random, Runtime};
use tributary_domain::skan::postback::Keys;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::report_slots::ReportSlots;
use tributary_store::{NewKey, Organization, Store, StoreResult};
use tributary_store_sqlite::SqliteStore;

/// The time of every request: 2026-01-01T00:00:00Z.
const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);
/// Generous, because nothing outside this process is involved.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Secret of the billing providers of [`Service::shop`].
pub(crate) const BILLING_SECRET: &str = "a secret of the fuzz targets";

/// A fixed clock, and a counter as the random source, so that runs are reproducible.
#[derive(Default)]
struct FixedRuntime(AtomicU64);

impl Clock for FixedRuntime {
    fn now(&self) -> Timestamp {
        NOW
    }
}

impl Random for FixedRuntime {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        bytes.fill(0);
        for (byte, digit) in bytes.iter_mut().rev().zip(number.into_iter().rev()) {
            *byte = digit;
        }
    }
}

/// Sends no messages.
struct NoSender;

#[async_trait]
impl NoticeSender for NoSender {
    async fn preview(&self, _: OrganizationId, _: &Notice) -> StoreResult<NoticePreview> {
        Ok(NoticePreview {
            subject: String::new(),
            body: String::new(),
            html: None,
        })
    }

    async fn send_test(&self, _: OrganizationId, _: &Notice) -> StoreResult<Result<(), String>> {
        Ok(Err("Nothing is sent.".to_owned()))
    }
}

struct NoProbe;

#[async_trait]
impl IntegrationProbe for NoProbe {
    async fn probe(&self, _: OrganizationId, _: &Integration) -> Result<TestEventResult, String> {
        Err("Fuzz targets send no requests.".to_owned())
    }
}

/// A response of the router.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

impl Response {
    fn data(&self, status: u16) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{text}");
        let value: Value = serde_json::from_slice(&self.body).expect("JSON");
        value["data"].clone()
    }
}

/// The router, and the keys and ids to call it with. The fields are dropped in this order.
pub(crate) struct Service {
    router: Router,
    executor: TokioRuntime,
    /// The `Authorization` header of a full key.
    pub(crate) bearer: String,
    /// The id of an app with a `revenuecat` secret.
    pub(crate) shop: String,
    /// The SDK key of that app.
    pub(crate) sdk_key: String,
    /// The id of an app without billing secrets, which accepts App Store notifications.
    pub(crate) plain: String,
    _folder: TempDir,
}

thread_local! {
    static SERVICE: Service = Service::start();
}

/// Calls `run` with the service of this thread.
pub(crate) fn with_service(run: impl FnOnce(&Service)) {
    SERVICE.with(run);
}

impl Service {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let store = SqliteStore::open(&folder.path().join("fuzz.db")).expect("a new database");
        let store: Arc<dyn Store> = Arc::new(store);
        let fixed = Arc::new(FixedRuntime::default());
        let runtime = Runtime::new(fixed.clone(), fixed);
        let executor = Builder::new_current_thread().enable_all().build();
        let executor = executor.expect("a tokio runtime");
        let key = executor.block_on(create_key(store.as_ref(), &runtime));
        let router = tributary_api::router(handles(store, runtime).into(), Router::new());
        let mut service = Self {
            router,
            executor,
            bearer: format!("Bearer {key}"),
            shop: String::new(),
            sdk_key: String::new(),
            plain: String::new(),
            _folder: folder,
        };
        let shop = service.create_app(json!({
            "name": "Shop", "billing": {
                "revenuecat": {"secret": BILLING_SECRET}, "adapty": {"secret": BILLING_SECRET},
                "qonversion": {"secret": BILLING_SECRET},
            },
        }));
        let ios = json!({"bundleId": "com.example.runner", "appStoreId": "1234567890"});
        let plain = service.create_app(json!({"name": "Plain", "ios": ios}));
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        (service.shop, service.plain) = (text(&shop["id"]), text(&plain["id"]));
        service.sdk_key = text(&shop["sdk"]["liveKey"]);
        service
    }

    fn create_app(&self, body: Value) -> Value {
        let headers = [
            ("authorization", self.bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let body = body.to_string();
        let sent = self.send("POST", "/api/v1/apps", &headers, body.as_bytes());
        sent.expect("a request").data(201)
    }

    /// Sends a request and checks the response. Returns `None` if no client could send this path.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Option<Response> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "t.example");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_vec())).ok()?;
        let (response, headers) = self.executor.block_on(async {
            let result = self.router.clone().oneshot(request).await;
            let (parts, body) = result.expect("the router always responds").into_parts();
            let body = body.collect().await.expect("a body in memory").to_bytes();
            let response = Response {
                status: parts.status,
                body: body.to_vec(),
            };
            (response, parts.headers)
        });
        check(&response, &headers, path);
        Some(response)
    }
}

/// Checks that the status is below 500 and that a JSON error has a code.
fn check(response: &Response, headers: &HeaderMap, path: &str) {
    let (status, text) = (response.status, String::from_utf8_lossy(&response.body));
    assert!(!status.is_server_error(), "{status} at {path}: {text}");
    // JSON-RPC has codes of its own.
    if path.starts_with("/mcp") {
        return;
    }
    let content_type = headers.get(header::CONTENT_TYPE);
    if content_type.is_some_and(|kind| kind.as_bytes() == b"application/json") {
        let value: Value = serde_json::from_slice(&response.body).expect("JSON");
        let has_code = value["error"]["code"].is_string();
        assert_eq!(has_code, status.is_client_error(), "{path}: {text}");
    }
}

fn handles(store: Arc<dyn Store>, runtime: Runtime) -> ApiHandles {
    let rates = RateSettings {
        per_key: 0,
        per_address: 0,
        failures_per_minute: 0,
    };
    let keyring = Keyring::new([1; 32]);
    ApiHandles {
        store,
        runtime,
        roles: NodeRoles::ALL,
        base_url: "https://t.example".into(),
        timeouts: Timeouts {
            body: TIMEOUT,
            request: TIMEOUT,
            export_idle: TIMEOUT,
        },
        limits: Arc::new(RateLimits::new(rates)),
        report_slots: ReportSlots::unlimited(),
        readiness: Arc::default(),
        is_trusted_proxy: Arc::new(|_| false),
        geo_lookup: no_geo_lookup(),
        country_header: None,
        documents: Arc::default(),
        link_cache: Arc::default(),
        postback_keys: Arc::new(Keys::apple()),
        app_store_roots: Arc::new(TrustedRoots::apple()),
        app_attest_roots: Arc::new(app_attest_roots()),
        probe: Arc::new(NoProbe),
        notices: Arc::new(NoSender),
        txt_lookup: Arc::new(|_| Box::pin(async { None })),
        read_cache: Arc::default(),
        decompressor: Arc::default(),
        unverified_writes: Arc::new(UnverifiedWrites::new(UnverifiedWriteQuota::UNLIMITED)),
        unmatched_pages: None,
        click_tokens: ClickTokens::new(&keyring),
        keyring,
    }
}

/// Creates an organization and a full-access key.
async fn create_key(store: &dyn Store, runtime: &Runtime) -> String {
    let organization = OrganizationId::new(NOW, runtime.random_bytes());
    let new = Organization {
        id: organization,
        name: Name::parse("Example").expect("a name"),
        created_at: NOW,
    };
    let origin = runtime.origin(Actor::Operator, None, None);
    let created = store.create_organization(new, origin).await;
    created.expect("an organization");
    let (key, text) =
        runtime.new_private_key(organization, "Fuzz", Permission::Full, Environment::Live);
    let digest = text.digest();
    let origin = runtime.origin(Actor::Operator, None, None);
    let created = store.create_key(NewKey { key, digest }, origin).await;
    created.expect("a key");
    text.reveal().to_owned()
}
