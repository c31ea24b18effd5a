//! A server in this process, on a free port.

use crate::dns::TestDns;
use crate::probe::TestProbe;
use crate::runtime::{TestClock, TestRandom};
use crate::{Engine, TestDatabase, TestResponse};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tributary_api::{Documents, RateSettings, Timeouts};
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::person::{Role, SETUP_LINK_LIFETIME, SetupLink};
use tributary_domain::access::unverified_writes::UnverifiedWriteQuota;
use tributary_domain::access::{Actor, Environment, Permission};
use tributary_domain::attestation::app_attest_roots;
use tributary_domain::billing::certificate::TrustedRoots;
use tributary_domain::keyring::Keyring;
use tributary_domain::node_role::NodeRoles;
use tributary_domain::runtime::Runtime;
use tributary_domain::skan::postback::Keys;
use tributary_domain::vocabulary::digest::hex;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::text::Name;
use tributary_server::config::Config;
use tributary_server::dns::TxtClient;
use tributary_server::http::{self, ListenerSettings};
use tributary_server::mail::Mailer;
use tributary_server::notices::NoticeService;
use tributary_server::outbound::AddressPolicy;
use tributary_server::sign_on::ProviderClient;
use tributary_server::system;
use tributary_server::wiring::{self, ServerParts};
use tributary_store::report_slots::ReportSlots;
use tributary_store::{NewKey, NewSetupLink, Organization, Store};

/// Settings that a test may override.
#[derive(Debug, Clone)]
pub struct TestServerSettings {
    /// Rate limits; off by default.
    pub rates: RateSettings,
    /// Daily quotas for writes on behalf of unverified senders; off by default.
    pub unverified_writes: UnverifiedWriteQuota,
    /// Body and request timeouts.
    pub timeouts: Timeouts,
    /// Time limit for a request's headers.
    pub header_timeout: Duration,
    /// Time limit for a client that does not read its response.
    pub write_timeout: Duration,
    /// Maximum concurrent connections.
    pub connections: usize,
    /// Maximum concurrent connections from one address; 0 is unlimited.
    pub connections_per_address: usize,
    /// Slots for reports and exports; unlimited by default.
    pub report_slots: ReportSlots,
    /// Time limit for one query of a report.
    pub report_timeout: Duration,
    /// Trusted proxies.
    pub proxies: Vec<IpAddr>,
    /// Public base URL.
    pub base_url: String,
    /// Keys that may sign postbacks.
    pub postback_keys: Keys,
    /// Root certificates for App Store notifications.
    pub store_roots: TrustedRoots,
    /// Root certificates for App Attest.
    pub app_attest_roots: TrustedRoots,
    /// URL of the mail server; empty sends no e-mail.
    pub mail_url: String,
}

impl Default for TestServerSettings {
    fn default() -> Self {
        Self {
            rates: RateSettings {
                per_key: 0,
                per_address: 0,
                failures_per_minute: 0,
            },
            unverified_writes: UnverifiedWriteQuota::UNLIMITED,
            timeouts: Timeouts {
                body: Duration::from_secs(20),
                request: Duration::from_secs(30),
                export_idle: Duration::from_secs(30),
            },
            header_timeout: Duration::from_secs(15),
            write_timeout: Duration::from_secs(30),
            connections: 1_000,
            connections_per_address: 0,
            report_slots: ReportSlots::unlimited(),
            report_timeout: Duration::from_secs(10),
            proxies: Vec::new(),
            base_url: "https://t.example.com".to_owned(),
            postback_keys: Keys::apple(),
            store_roots: TrustedRoots::apple(),
            app_attest_roots: app_attest_roots(),
            mail_url: String::new(),
        }
    }
}

/// Reads the documents of the repository, which the binary contains.
fn documents() -> Arc<Documents> {
    static DOCUMENTS: LazyLock<Arc<Documents>> = LazyLock::new(|| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let entries = std::fs::read_dir(folder).expect("the folder of the documents");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let paths = paths.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
        let read = |path: std::path::PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let text = std::fs::read_to_string(&path).expect("a readable document");
            (name.into_owned(), text)
        };
        let mut texts: Vec<(String, String)> = paths.map(read).collect();
        texts.sort();
        let texts: Vec<(&str, &str)> = texts
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        Arc::new(Documents::new(&texts))
    });
    DOCUMENTS.clone()
}

/// Creates the service for notices with a mail server.
fn notice_service(
    store: &Arc<dyn Store>,
    runtime: &Runtime,
    mail_url: &str,
    base_url: &str,
) -> NoticeService {
    let variable = |name: &str, value: &str| (format!("TRIBUTARY_MAIL__{name}"), value.to_owned());
    let mut variables = vec![
        variable("URL", mail_url),
        variable("FROM", "reports@example.com"),
    ];
    if mail_url.is_empty() {
        variables.clear();
    }
    let config = Config::load(None, variables.into_iter()).expect("valid settings");
    NoticeService::new(
        store.clone(),
        runtime.clone(),
        Keyring::new([7; 32]),
        Mailer::new(&config).expect("a mailer"),
        AddressPolicy::PublicOnly,
        base_url,
    )
    .expect("a service")
}

/// A server in this process.
pub struct TestServer {
    /// Address that the server listens on.
    pub address: SocketAddr,
    /// The server's store.
    pub store: Arc<dyn Store>,
    /// The server's clock.
    pub clock: Arc<TestClock>,
    /// The server's name server.
    pub dns: TestDns,
    /// Looks at notices and sends their messages. No worker does it.
    pub notices: NoticeService,
    runtime: Runtime,
    client: Client,
    stop: Option<oneshot::Sender<()>>,
    running: Option<tokio::task::JoinHandle<()>>,
    /// Dropped last, so that the database outlives the server.
    pub database: TestDatabase,
}

impl TestServer {
    /// Starts a server on a migrated database without rows.
    pub async fn start(engine: Engine) -> Self {
        Self::start_with(engine, TestServerSettings::default()).await
    }

    /// Starts a server with these settings.
    pub async fn start_with(engine: Engine, settings: TestServerSettings) -> Self {
        let database = TestDatabase::migrated(engine).await;
        let store = database.open_with(settings.report_timeout).await;
        let clock = Arc::new(TestClock::default());
        let runtime = Runtime::new(clock.clone(), Arc::new(TestRandom::default()));
        let (proxies, dns) = (settings.proxies, TestDns::start().await);
        let trusted = proxies.clone();
        let notices = notice_service(&store, &runtime, &settings.mail_url, &settings.base_url);
        let parts = ServerParts {
            store: store.clone(),
            runtime: runtime.clone(),
            keyring: Keyring::new([7; 32]),
            roles: NodeRoles::ALL,
            base_url: settings.base_url,
            timeouts: settings.timeouts,
            rate_limits: settings.rates,
            report_slots: settings.report_slots,
            unverified_writes: settings.unverified_writes,
            is_trusted_proxy: Arc::new(move |address| proxies.contains(&address)),
            geo_lookup: tributary_api::no_geo_lookup(),
            country_header: None,
            documents: documents(),
            postback_keys: settings.postback_keys,
            app_store_roots: settings.store_roots,
            app_attest_roots: settings.app_attest_roots,
            probe: Arc::new(TestProbe),
            notices: notices.clone(),
            sign_on: Arc::new(ProviderClient::new(true).expect("a client")),
            txt_lookup: wiring::txt_lookup(TxtClient::new(Some(dns.address), system::runtime())),
            metrics: None,
        };
        let (router, _limits) = wiring::router(parts);
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("find a free port");
        let address = listener.local_addr().expect("local address");
        let (stop, stopped) = oneshot::channel::<()>();
        let listening = ListenerSettings {
            header_timeout: settings.header_timeout,
            write_timeout: settings.write_timeout,
            connections: settings.connections,
            connections_per_address: settings.connections_per_address,
            is_trusted_proxy: Arc::new(move |address| trusted.contains(&address)),
            drain: Duration::from_secs(10),
            certificates: None,
        };
        let until = async move {
            let _either = stopped.await;
        };
        let running = tokio::spawn(http::serve(listener, router, listening, until));
        Self {
            address,
            store,
            clock,
            dns,
            notices,
            runtime,
            client: client(),
            stop: Some(stop),
            running: Some(running),
            database,
        }
    }

    /// Stops the server after it has finished the accepted requests.
    pub async fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _gone = stop.send(());
        }
        if let Some(running) = self.running.take() {
            running.await.expect("server stopped without a panic");
        }
    }

    /// Creates an organization.
    pub async fn organization(&self, name: &str) -> OrganizationId {
        let at = self.runtime.now();
        let id = OrganizationId::new(at, self.runtime.random_bytes());
        let name = Name::parse(name).expect("valid name");
        let organization = Organization {
            id,
            name,
            created_at: at,
        };
        let origin = self.runtime.origin(Actor::Operator, None, None);
        self.store
            .create_organization(organization, origin)
            .await
            .expect("create organization");
        id
    }

    /// Creates an API key.
    pub async fn key(
        &self,
        organization: OrganizationId,
        permission: Permission,
        environment: Environment,
    ) -> String {
        let (key, text) =
            self.runtime
                .new_private_key(organization, "Test", permission, environment);
        let new = NewKey {
            key,
            digest: text.digest(),
        };
        let origin = self.runtime.origin(Actor::Operator, None, None);
        self.store
            .create_key(new, origin)
            .await
            .expect("create key");
        text.reveal().to_owned()
    }

    /// Creates an account with a role through a setup link. Returns its session cookie.
    pub async fn sign_in_as(&self, organization: OrganizationId, role: Role) -> String {
        let token = self.runtime.new_key(KeyKind::Setup, Environment::Live);
        let link = SetupLink {
            organization,
            role,
            email: None,
            expires_at: self.runtime.now().plus(SETUP_LINK_LIFETIME),
            used_at: None,
            created_by: None,
        };
        let digest = token.digest();
        let origin = self.runtime.origin(Actor::Operator, None, None);
        let stored = self
            .store
            .create_setup_link(NewSetupLink { link, digest }, origin);
        stored.await.expect("create setup link");
        let form = format!(
            "email={}@example.com&password=correct-horse-battery",
            hex(&self.runtime.random_bytes::<8>())
        );
        let request = self
            .request(Method::POST, &format!("/setup/{}", token.reveal()))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin")
            .body(form);
        let created = self.send(request).await.expect(200);
        let cookie = created.header("set-cookie").expect("a session cookie");
        cookie.split(';').next().unwrap_or_default().to_owned()
    }

    /// Creates an organization and returns a full live key.
    pub async fn full_key(&self) -> String {
        let organization = self.organization("Example").await;
        self.key(organization, Permission::Full, Environment::Live)
            .await
    }

    /// Builds a request.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("http://{}{path}", self.address))
    }

    /// Sends a request.
    pub async fn send(&self, request: RequestBuilder) -> TestResponse {
        TestResponse::read(request.send().await.expect("the server responds")).await
    }

    /// Sends a request with a key and an optional JSON body.
    pub async fn call(
        &self,
        method: &str,
        path: &str,
        key: &str,
        body: Option<Value>,
    ) -> TestResponse {
        let method = Method::from_bytes(method.as_bytes()).expect("valid method");
        let mut request = self.request(method, path).bearer_auth(key);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        self.send(request).await
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str, key: &str) -> TestResponse {
        self.call("GET", path, key, None).await
    }

    /// Sends a POST request.
    pub async fn post(&self, path: &str, key: &str, body: Value) -> TestResponse {
        self.call("POST", path, key, Some(body)).await
    }

    /// Sends a PATCH request.
    pub async fn patch(&self, path: &str, key: &str, body: Value) -> TestResponse {
        self.call("PATCH", path, key, Some(body)).await
    }

    /// Creates an app and returns its path. Tests install within seconds of a click, which the
    /// default policy would hold.
    pub async fn app(&self, key: &str) -> String {
        let app = serde_json::json!({"name": "Runner", "attribution": {"fraud": "refuse"}});
        let response = self.post("/api/v1/apps", key, app).await;
        let data = response.expect(201).data();
        format!(
            "/api/v1/apps/{}",
            data["id"].as_str().expect("id in the response")
        )
    }
}

impl TestServer {
    /// Publishes the TXT record that verifies an app's link domain.
    pub async fn publish_record(&self, app: &str, key: &str) {
        let data = self.get(app, key).await.expect(200).data();
        let record = &data["linkDomainVerification"];
        let text = |field: &str| record[field].as_str().expect("a record").to_owned();
        self.dns.publish(&text("recordName"), &text("recordValue"));
    }

    /// Sets an app's link domain and verifies it.
    pub async fn link_domain(&self, app: &str, key: &str, domain: &str) {
        let change = serde_json::json!({"linkDomain": domain});
        self.patch(app, key, change).await.expect(200);
        self.publish_record(app, key).await;
        let path = format!("{app}/link-domain/verify");
        self.call("POST", &path, key, None).await.expect(200);
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
        }
    }
}

/// Returns an HTTP client with a timeout that does not follow redirects.
pub fn client() -> Client {
    // The server's HTTP client enables TLS for the whole process, which needs a crypto provider.
    // Installing it again fails harmlessly.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .timeout(Duration::from_mins(1))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .expect("build HTTP client")
}
