//! A server in this process, on a port of its own.

use crate::probe::TestProbe;
use crate::runtime::{TestClock, TestRandom};
use crate::{Engine, TestDatabase, TestResponse};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tributary_api::{RateSettings, Timeouts};
use tributary_domain::access::key::{ApiKey, KeyKind};
use tributary_domain::access::{Actor, Environment, Permission};
use tributary_domain::billing::certificate::Roots;
use tributary_domain::keyring::Keyring;
use tributary_domain::runtime::Runtime;
use tributary_domain::skan::postback::Keys;
use tributary_domain::vocabulary::id::{KeyId, OrganizationId};
use tributary_domain::vocabulary::text::Name;
use tributary_server::http::{self, ListenerSettings};
use tributary_server::wiring::{self, ServerParts};
use tributary_store::{NewKey, Organization, Store};

/// What a test may want otherwise.
#[derive(Debug, Clone)]
pub struct TestServerSettings {
    /// How often somebody may ask; off unless a test is about it.
    pub rates: RateSettings,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Until a request's head has arrived.
    pub header_timeout: Duration,
    /// How long a client may go without reading its answer.
    pub write_timeout: Duration,
    /// Connections at a time.
    pub connections: usize,
    /// Proxies whose word is believed.
    pub proxies: Vec<IpAddr>,
    /// Where the service says it is reached.
    pub base_url: String,
    /// Who may sign postbacks.
    pub postback_keys: Keys,
    /// Who may vouch for the App Store.
    pub store_roots: Roots,
}

impl Default for TestServerSettings {
    fn default() -> Self {
        Self {
            rates: RateSettings {
                per_key: 0,
                per_address: 0,
                failures_per_minute: 0,
            },
            timeouts: Timeouts {
                body: Duration::from_secs(20),
                request: Duration::from_secs(30),
            },
            header_timeout: Duration::from_secs(15),
            write_timeout: Duration::from_secs(30),
            connections: 1_000,
            proxies: Vec::new(),
            base_url: "https://t.example.com".to_owned(),
            postback_keys: Keys::apple(),
            store_roots: Roots::apple(),
        }
    }
}

/// A server in this process.
pub struct TestServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its database.
    pub store: Arc<dyn Store>,
    /// Its clock.
    pub clock: Arc<TestClock>,
    source: Runtime,
    client: Client,
    stop: Option<oneshot::Sender<()>>,
    running: Option<tokio::task::JoinHandle<()>>,
    /// Dropped last: the database outlives the server.
    pub database: TestDatabase,
}

impl TestServer {
    /// Starts one on a fresh database.
    pub async fn start(engine: Engine) -> Self {
        Self::start_with(engine, TestServerSettings::default()).await
    }

    /// Starts one that differs.
    pub async fn start_with(engine: Engine, settings: TestServerSettings) -> Self {
        let database = TestDatabase::new(engine).await;
        let store = database.open().await;
        let clock = Arc::new(TestClock::default());
        let source = Runtime::new(clock.clone(), Arc::new(TestRandom::default()));
        let proxies = settings.proxies;
        let parts = ServerParts {
            store: store.clone(),
            runtime: source.clone(),
            keyring: Keyring::new([7; 32]),
            base_url: settings.base_url,
            timeouts: settings.timeouts,
            rate_limits: settings.rates,
            is_trusted_proxy: Arc::new(move |address| proxies.contains(&address)),
            geo_lookup: tributary_api::no_geo_lookup(),
            country_header: None,
            postback_keys: settings.postback_keys,
            app_store_roots: settings.store_roots,
            probe: Arc::new(TestProbe),
            metrics: None,
        };
        let (router, _limits) = wiring::router(parts);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let listening = ListenerSettings {
            header_timeout: settings.header_timeout,
            write_timeout: settings.write_timeout,
            connections: settings.connections,
            drain: Duration::from_secs(10),
        };
        let until = async move {
            let _either = stopped.await;
        };
        let running = tokio::spawn(http::serve(listener, router, listening, until));
        Self {
            address,
            store,
            clock,
            source,
            client: client(),
            stop: Some(stop),
            running: Some(running),
            database,
        }
    }

    /// Stops it and waits until what was accepted is finished.
    pub async fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _gone = stop.send(());
        }
        if let Some(running) = self.running.take() {
            running.await.expect("the server ends without a panic");
        }
    }

    /// Makes an organization.
    pub async fn organization(&self, name: &str) -> OrganizationId {
        let at = self.source.now();
        let id = OrganizationId::new(at, self.source.random_bytes());
        let name = Name::parse(name).expect("a name");
        let organization = Organization {
            id,
            name,
            created_at: at,
        };
        let origin = self.source.origin(Actor::Operator, None, None);
        self.store
            .create_organization(organization, origin)
            .await
            .expect("an organization");
        id
    }

    /// Makes a key.
    pub async fn key(
        &self,
        organization: OrganizationId,
        permission: Permission,
        environment: Environment,
    ) -> String {
        let text = self.source.new_key(KeyKind::Private, environment);
        let at = self.source.now();
        let key = ApiKey {
            id: KeyId::new(at, self.source.random_bytes()),
            organization,
            name: "Test".to_owned(),
            permission,
            environment,
            hint: text.hint().to_owned(),
            created_at: at,
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        };
        let new = NewKey {
            key,
            digest: text.digest(),
        };
        let origin = self.source.origin(Actor::Operator, None, None);
        self.store.create_key(new, origin).await.expect("a key");
        text.reveal().to_owned()
    }

    /// Makes an organization with a full live key.
    pub async fn full_key(&self) -> String {
        let organization = self.organization("Example").await;
        self.key(organization, Permission::Full, Environment::Live)
            .await
    }

    /// A request that is not sent yet.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("http://{}{path}", self.address))
    }

    /// Sends a request.
    pub async fn send(&self, request: RequestBuilder) -> TestResponse {
        TestResponse::read(request.send().await.expect("the server answers")).await
    }

    /// Calls with a key, and with a body where there is one.
    pub async fn call(
        &self,
        method: &str,
        path: &str,
        key: &str,
        body: Option<Value>,
    ) -> TestResponse {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.request(method, path).bearer_auth(key);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        self.send(request).await
    }

    /// GET.
    pub async fn get(&self, path: &str, key: &str) -> TestResponse {
        self.call("GET", path, key, None).await
    }

    /// POST.
    pub async fn post(&self, path: &str, key: &str, body: Value) -> TestResponse {
        self.call("POST", path, key, Some(body)).await
    }

    /// PATCH.
    pub async fn patch(&self, path: &str, key: &str, body: Value) -> TestResponse {
        self.call("PATCH", path, key, Some(body)).await
    }

    /// Makes an app and gives its path.
    pub async fn app(&self, key: &str) -> String {
        let answer = self
            .post("/api/v1/apps", key, serde_json::json!({"name": "Runner"}))
            .await;
        let data = answer.expect(201).data();
        format!("/api/v1/apps/{}", data["id"].as_str().expect("an id"))
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
        }
    }
}

/// A client that waits for nothing for ever and follows nothing.
pub fn client() -> Client {
    // The server's client has TLS, so every client in this process has, and asks who provides it. A second
    // call finds the first one's provider.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .timeout(Duration::from_mins(1))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .expect("a client")
}
