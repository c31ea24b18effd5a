//! Test support: the dashboard on a real SQLite store with a stopped clock.

use crate::sign_on::{CodeRedemption, ProviderFuture, RedeemedCode, SignOnProviders};
use crate::{Dashboard, DashboardState, NoticeMessages, SendAccountMail};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tower::ServiceExt;
use tributary_domain::access::credential::SignInCredential;
use tributary_domain::access::key::{KeyKind, KeyText};
use tributary_domain::access::person::{Email, Role, SETUP_LINK_LIFETIME, SetupLink};
use tributary_domain::access::session::Session;
use tributary_domain::access::session_client::SessionClient;
use tributary_domain::access::single_sign_on::{Issuer, ProviderFault, ProviderSummary};
use tributary_domain::access::{Actor, Environment};
use tributary_domain::audit::Client;
use tributary_domain::click::Click;
use tributary_domain::click::agent::Agent;
use tributary_domain::click::params::TrackingParams;
use tributary_domain::device::Platform;
use tributary_domain::integration::Network;
use tributary_domain::keyring::Keyring;
use tributary_domain::link::Campaign;
use tributary_domain::notice::NoticePreview;
use tributary_domain::ownership::link_domain::DomainChallenge;
use tributary_domain::runtime::{Clock, Random, Runtime};
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId, OrganizationId, UserId};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HostName;
use tributary_store::report_slots::ReportSlots;
use tributary_store::{NewSession, NewSetupLink, Organization, Redemption, Store};
use tributary_store_sqlite::SqliteStore;
use url::Url;

/// The time of the stopped clock.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
/// Default base URL.
pub(crate) const BASE_URL: &str = "http://127.0.0.1:8080";
/// A valid password that does not occur in any page.
pub(crate) const PASSWORD: &str = "canary-in-a-coal-mine";
/// Header that browsers send with a same-origin form.
pub(crate) const SAME_ORIGIN: (&str, &str) = ("sec-fetch-site", "same-origin");
/// Content type of a form.
pub(crate) const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// Secret of the instance.
pub(crate) const KEYRING: Keyring = Keyring::new([7; 32]);

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        NOW
    }
}

/// Random source that never repeats and gives the same bytes in every run.
#[derive(Default)]
struct SequentialRandom(AtomicU64);

impl Random for SequentialRandom {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            let count = self.0.fetch_add(1, Ordering::Relaxed);
            let digest = Digest::of(&count.to_le_bytes());
            chunk.copy_from_slice(&digest.as_bytes()[..chunk.len()]);
        }
    }
}

async fn organization(store: &dyn Store, source: &Runtime) -> OrganizationId {
    let organization = Organization {
        id: OrganizationId::new(NOW, source.random_bytes()),
        name: Name::parse("Example").unwrap(),
        created_at: NOW,
    };
    let (id, origin) = (organization.id, source.origin(Actor::Service, None, None));
    let created = store.create_organization(organization, origin);
    created.await.unwrap();
    id
}

/// Domain whose DNS servers do not answer.
pub(crate) const SILENT_DOMAIN: &str = "silent.example.com";

/// Returns a name's TXT records: none, or the record for the app that is named in the domain's
/// first label.
fn records_of(name: &str) -> Option<Vec<String>> {
    let host = HostName::parse(name.strip_prefix("_tributary.")?).ok()?;
    if host.as_str() == SILENT_DOMAIN {
        return None;
    }
    let app = host.as_str().split('.').next().and_then(|label| {
        let label = label.replacen("app-", "app_", 1);
        AppId::parse(&label).ok()
    });
    let record = |app| DomainChallenge::new(&KEYRING, app, &host).record_value;
    Some(app.map(record).into_iter().collect())
}

/// Builds a click on an ad, with the values that the network put into its URL.
pub(crate) fn ad_click(app: &str, link: &str, at: Timestamp) -> Click {
    Click {
        id: ClickId::new(at, [7; 10]),
        app: AppId::parse(app).unwrap(),
        link: LinkId::parse(link).unwrap(),
        clicked_at: at,
        network: Some(Network::A),
        network_by: None,
        bot: None,
        agent: Agent {
            platform: Platform::Ios,
            os_version: None,
            model: None,
        },
        language: None,
        timezone: None,
        screen: None,
        address: None,
        address_hash: None,
        advertising_hash: None,
        country: None,
        user_agent: None,
        referer: None,
        destination_origin: None,
        environment: None,
        captured: TrackingParams {
            campaign: Campaign {
                id: Some("120210".to_owned()),
                name: Some("Spring sale".to_owned()),
                ..Campaign::default()
            },
            ..TrackingParams::default()
        },
    }
}

/// Providers that show a sign-in page and redeem no code.
struct TestProviders;

impl SignOnProviders for TestProviders {
    fn allows_http(&self) -> bool {
        false
    }

    fn sign_in_page(&self, issuer: Issuer, _: Timestamp) -> ProviderFuture<Url> {
        let url = Url::parse(&format!("{}/in", issuer.as_str()));
        Box::pin(async { url.map_err(|_| ProviderFault::NotConnected) })
    }

    fn redeem(&self, _: CodeRedemption) -> ProviderFuture<RedeemedCode> {
        Box::pin(async { Err(ProviderFault::CodeRejected) })
    }

    fn test(&self, _: Issuer, _: Timestamp) -> ProviderFuture<ProviderSummary> {
        Box::pin(async { Err(ProviderFault::TimedOut) })
    }
}

/// The dashboard with its store and one organization.
pub(crate) struct TestDashboard {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) source: Runtime,
    pub(crate) organization: OrganizationId,
    router: Router,
    _folder: tempfile::TempDir,
}

impl TestDashboard {
    pub(crate) async fn start() -> Self {
        Self::at(BASE_URL).await
    }

    pub(crate) async fn at(base_url: &str) -> Self {
        Self::with(base_url, ReportSlots::unlimited(), None).await
    }

    /// Starts a dashboard that sends e-mails about accounts.
    pub(crate) async fn with_mail(mail: SendAccountMail) -> Self {
        Self::with(BASE_URL, ReportSlots::unlimited(), Some(mail)).await
    }

    /// Starts a dashboard whose reports and log pages wait for these slots.
    pub(crate) async fn with_slots(slots: ReportSlots) -> Self {
        Self::with(BASE_URL, slots, None).await
    }

    async fn with(
        base_url: &str,
        report_slots: ReportSlots,
        mail: Option<SendAccountMail>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("tributary.db")).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let source = Runtime::new(
            Arc::new(StoppedClock),
            Arc::new(SequentialRandom::default()),
        );
        let id = organization(&*store, &source).await;
        let pages = Dashboard::new(DashboardState {
            store: store.clone(),
            runtime: source.clone(),
            keyring: KEYRING,
            report_slots,
            probe: Arc::new(|_, _| Box::pin(async { Err("Tests send no events.".to_owned()) })),
            notices: NoticeMessages {
                sends_mail: false,
                preview: Arc::new(|_, notice| {
                    let preview = NoticePreview {
                        subject: "A subject <b>".to_owned(),
                        body: notice.settings.topic.kind().as_str().to_owned(),
                        html: None,
                    };
                    Box::pin(async { Ok(preview) })
                }),
                send_test: Arc::new(|_, _| {
                    Box::pin(async { Ok(Err("Tests send nothing.".to_owned())) })
                }),
            },
            account_mail: mail,
            sign_on: Arc::new(TestProviders),
            txt_lookup: Arc::new(|name| Box::pin(async move { records_of(&name) })),
            base_url: base_url.into(),
            body_timeout: Duration::from_millis(100),
        });
        // As in the server, which asks for these pages if the request comes from a browser.
        let (no_path, no_method) = (pages.clone(), pages.clone());
        let router = pages
            .router()
            .fallback(move |uri, headers| no_path.no_such_path_page(uri, headers))
            .method_not_allowed_fallback(move |uri, headers| {
                no_method.no_such_method_page(uri, headers)
            });
        Self {
            store,
            source,
            organization: id,
            router,
            _folder: folder,
        }
    }

    /// Creates another organization. Users created later belong to it.
    pub(crate) async fn switch_to_new_organization(&mut self) {
        self.organization = organization(&*self.store, &self.source).await;
    }

    /// Stores a setup link for an owner, modified by `change`, and returns its token.
    pub(crate) async fn setup_link(&self, change: impl FnOnce(&mut SetupLink)) -> String {
        let mut link = SetupLink {
            organization: self.organization,
            role: Role::Owner,
            email: None,
            expires_at: NOW.plus(SETUP_LINK_LIFETIME),
            used_at: None,
            created_by: None,
        };
        change(&mut link);
        let token = self.source.new_key(KeyKind::Setup, Environment::Live);
        let digest = token.digest();
        let origin = self.source.origin(Actor::Operator, None, None);
        let stored = self
            .store
            .create_setup_link(NewSetupLink { link, digest }, origin);
        stored.await.unwrap();
        token.reveal().to_owned()
    }

    /// Creates a user with this role and signs them in.
    pub(crate) async fn sign_in_as(&self, role: Role) -> TestUser<'_> {
        self.sign_in_at(role, "none".to_owned(), NOW).await
    }

    /// Creates a user with this role, whose password is [`PASSWORD`] and who signed in some time ago.
    pub(crate) async fn signed_in_earlier(&self, role: Role, ago: Duration) -> TestUser<'_> {
        let hash = crate::password_hash(PASSWORD, [3; 16]).unwrap();
        self.sign_in_at(role, hash, NOW.minus(ago)).await
    }

    async fn sign_in_at(
        &self,
        role: Role,
        password_hash: String,
        signed_in_at: Timestamp,
    ) -> TestUser<'_> {
        let unique = hex(&self.source.random_bytes::<4>());
        let email = format!("{}-{unique}@example.com", role.as_str());
        let email = Email::parse(&email).unwrap();
        let token = self.setup_link(|link| {
            link.role = role;
            link.email = Some(email.clone());
        });
        let digest = KeyText::parse(&token.await).unwrap().digest();
        let user = UserId::new(NOW, self.source.random_bytes());
        let redemption = Redemption {
            user,
            email,
            password_hash: password_hash.clone(),
            passkey: None,
            recovery_codes: Vec::new(),
            first_key: None,
        };
        let origin = || self.source.origin(Actor::User(user), None, None);
        let redeemed = self.store.redeem_setup_link(digest, redemption, origin());
        redeemed.await.unwrap();
        let token = self.source.new_key(KeyKind::Session, Environment::Live);
        let session = NewSession {
            session: Session::begin(user, signed_in_at, SessionClient::default()),
            digest: token.digest(),
            credential: SignInCredential::Password {
                hash: password_hash,
                has_second_step: false,
            },
        };
        self.store.begin_session(session, origin()).await.unwrap();
        TestUser {
            dashboard: self,
            cookie: format!("tributary={}", token.reveal()),
            form_token: KEYRING.form_token(token.digest()),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> PageResponse {
        self.send(Method::GET, path, &[], "").await
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> PageResponse {
        self.send(Method::POST, path, headers, body).await
    }

    /// Posts a body that never ends.
    pub(crate) async fn post_without_end(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> PageResponse {
        let body = Full::new(Bytes::from_static(b"email=you")).with_trailers(pending());
        self.request(Method::POST, path, headers, Body::new(body))
            .await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> PageResponse {
        self.request(method, path, headers, body.to_owned().into())
            .await
    }

    /// Returns a client with this address.
    pub(crate) fn client(&self, address: &str) -> Client {
        Client {
            address: address.parse().unwrap(),
            request_id: self.source.request_id(),
        }
    }

    /// Posts a form as a client whose address is known.
    pub(crate) async fn post_from(
        &self,
        client: Client,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> PageResponse {
        let mut request = build_request(Method::POST, path, headers, body.to_owned().into());
        request.extensions_mut().insert(client);
        self.answer(request).await
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> PageResponse {
        self.answer(build_request(method, path, headers, body))
            .await
    }

    async fn answer(&self, request: Request<Body>) -> PageResponse {
        let (parts, body) = self
            .router
            .clone()
            .oneshot(request)
            .await
            .unwrap()
            .into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        PageResponse {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

fn build_request(
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Body,
) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}

/// A signed-in user.
pub(crate) struct TestUser<'a> {
    dashboard: &'a TestDashboard,
    pub(crate) cookie: String,
    pub(crate) form_token: String,
}

impl TestUser<'_> {
    /// Returns the digest of the session's token.
    pub(crate) fn session_digest(&self) -> Digest {
        let token = self.cookie.strip_prefix("tributary=").unwrap();
        KeyText::parse(token).unwrap().digest()
    }

    pub(crate) async fn get(&self, path: &str) -> PageResponse {
        let headers = [("cookie", self.cookie.as_str())];
        self.dashboard.send(Method::GET, path, &headers, "").await
    }

    /// Posts a form with its token.
    pub(crate) async fn post(&self, path: &str, body: &str) -> PageResponse {
        let body = format!("formToken={}&{body}", self.form_token);
        self.post_without_token(path, &body).await
    }

    /// Posts a form without adding the token.
    pub(crate) async fn post_without_token(&self, path: &str, body: &str) -> PageResponse {
        let headers = [("cookie", self.cookie.as_str()), SAME_ORIGIN, FORM];
        self.dashboard.post(path, &headers, body).await
    }

    /// Creates a link with this form and returns its id.
    pub(crate) async fn create_link(&self, app: &str, form: &str) -> String {
        let response = self.post(&format!("/apps/{app}/links/new"), form).await;
        let mut parts = response.header("location").split(['/', '?']);
        let link = parts.find(|part| part.starts_with("lnk_"));
        link.expect("a link is created").to_owned()
    }

    /// Creates an app and returns its id.
    pub(crate) async fn create_app(&self) -> String {
        let response = self.post("/apps/new", "name=Runner").await;
        let path = response.header("location");
        path.split('/').nth(2).unwrap().to_owned()
    }
}

/// A response, fully read.
pub(crate) struct PageResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl PageResponse {
    /// Returns a header that must exist.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// Returns the `<input>` tag with this name.
    pub(crate) fn input(&self, name: &str) -> Tag<'_> {
        let tags = self.text.split("<input").skip(1);
        let mut tags = tags.map(|rest| Tag(rest.split('>').next().unwrap_or(rest)));
        tags.find(|tag| tag.attribute("name") == Some(name))
            .unwrap()
    }

    /// Returns the text of the element with this id.
    pub(crate) fn element(&self, id: &str) -> &str {
        let start = self.text.split_once(&format!("id=\"{id}\"")).unwrap().1;
        let start = start.split_once('>').unwrap().1;
        start.split_once('<').unwrap().0
    }
}

/// The text between `<input` and `>`.
#[derive(Debug)]
pub(crate) struct Tag<'a>(&'a str);

impl<'a> Tag<'a> {
    pub(crate) fn attribute(&self, name: &str) -> Option<&'a str> {
        let (_, rest) = self.0.split_once(&format!(" {name}=\""))?;
        rest.split('"').next()
    }

    pub(crate) fn has(&self, flag: &str) -> bool {
        self.0.split_whitespace().any(|word| word == flag)
    }
}
