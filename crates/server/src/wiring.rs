//! Builds the server from its parts, for the server itself, the commands and the tests.

use crate::config::{Config, DatabaseConfig};
use crate::dns::TxtClient;
use crate::geo::GeoFiles;
use crate::mail::Mailer;
use crate::metrics::Exporter;
use crate::notices::NoticeService;
use crate::secret_key::{self, SECRET_KEY_FILE, SecretKeyError};
use crate::sign_on::ProviderClient;
use crate::system;
use anyhow::Context as _;
use axum::Router;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use axum::routing::get;
use secrecy::ExposeSecret as _;
use std::net::IpAddr;
use std::sync::Arc;
use tributary_api::{
    ApiHandles, Documents, GeoLookup, IntegrationProbe, RateLimits, RateSettings, Timeouts,
    TxtLookup, UnmatchedPages, UnverifiedWrites,
};
use tributary_dashboard::{
    Dashboard, DashboardState, NoticeMessages, SendAccountMail, SignOnProviders,
};
use tributary_domain::access::unverified_writes::UnverifiedWriteQuota;
use tributary_domain::attestation::app_attest_roots;
use tributary_domain::billing::certificate::TrustedRoots;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::keyring::rotation::StoredCheck;
use tributary_domain::keyring::{Keyring, KnownKeys};
use tributary_domain::node_role::{NodeRole, NodeRoles};
use tributary_domain::runtime::Runtime;
use tributary_domain::skan::postback::Keys;
use tributary_domain::vocabulary::digest::hex;
use tributary_store::Store;
use tributary_store::report_slots::ReportSlots;
use tributary_store_postgres::{PostgresOptions, PostgresStore, StandbyOptions};
use tributary_store_sqlite::SqliteStore;

/// Opens the configured database, migrates its schema, and checks that it was set up with this
/// secret key.
pub async fn open(config: &Config) -> anyhow::Result<(Arc<dyn Store>, Keyring)> {
    let store = open_store(config).await?;
    match load_keyring(config, &*store).await {
        Ok(keyring) => Ok((store, keyring)),
        Err(error) => {
            store.close().await;
            Err(error)
        }
    }
}

/// Loads the secret key for this database. A new key is written only for a database that was set up
/// without one.
async fn load_keyring(config: &Config, store: &dyn Store) -> anyhow::Result<Keyring> {
    let keys = match secret_key::load(config)? {
        Some(keys) => keys,
        None if store.stored_keys().await?.check.is_some() => {
            return Err(SecretKeyError::Missing(config.data_dir.join(SECRET_KEY_FILE)).into());
        }
        None => secret_key::load_or_create(config, &system::runtime())?,
    };
    open_keyring(store, keys).await
}

/// Opens the keyring of a database. Rejects secret keys that do not match it. A database without a
/// key adopts the current one.
pub async fn open_keyring(store: &dyn Store, keys: KnownKeys) -> anyhow::Result<Keyring> {
    let adopted = store
        .adopt_key(StoredCheck::of_first_key(&keys.current))
        .await;
    adopted.context(
        "cannot write to the database; its file and folder must be writable by the server's user, \
         and the disk must not be full",
    )?;
    let stored = store.stored_keys().await?;
    Ok(Keyring::for_database(
        keys,
        &stored,
        system::runtime().now(),
    )?)
}

/// Same as [`open`], for commands that work on a server's data. A missing SQLite database is an
/// error instead of being created, because the command was probably run in the wrong folder.
pub async fn open_existing(config: &Config) -> anyhow::Result<(Arc<dyn Store>, Keyring)> {
    require_database(config)?;
    open(config).await
}

/// Fails if there is no SQLite database at the configured path.
pub fn require_database(config: &Config) -> anyhow::Result<()> {
    match config.database() {
        DatabaseConfig::Sqlite(path) if !path.exists() => anyhow::bail!(
            "there is no database at {}; check data_dir, or create one with `tributary serve` or \
             `tributary migrate`",
            path.display()
        ),
        DatabaseConfig::Sqlite(_) | DatabaseConfig::Postgres(_) => Ok(()),
    }
}

/// Opens the store without the secret key, and creates the data folder if necessary.
pub async fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    if !config.database().is_postgres() {
        secret_key::create_data_folder(&config.data_dir)?;
    }
    open_existing_store(config).await
}

/// Opens the store without the secret key, in an existing folder. Migrates an older schema.
pub async fn open_existing_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    match config.database() {
        DatabaseConfig::Sqlite(path) => {
            let file = path.display().to_string();
            let timeout = config.limits.report_timeout;
            let open = move || SqliteStore::open_with(&path, timeout);
            let opened = tokio::task::spawn_blocking(open).await?;
            let store = opened.with_context(|| {
                format!(
                    "cannot open the database {file}; check data_dir and database_url in \
                     `tributary config print`, and that the server's user can read and write the \
                     file and its folder"
                )
            })?;
            Ok(Arc::new(store))
        }
        DatabaseConfig::Postgres(url) => {
            let standby = config.database_read_url.as_ref();
            let standby = standby.map(|url| StandbyOptions {
                url: url.expose_secret(),
                lag_max: config.postgres.standby_lag_max,
            });
            let options = postgres_options(config);
            let store = PostgresStore::connect_with(url.expose_secret(), options, standby)
                .await
                .context("cannot open the PostgreSQL database in database_url")?;
            Ok(Arc::new(store))
        }
    }
}

/// Returns the settings of the connections to PostgreSQL.
pub fn postgres_options(config: &Config) -> PostgresOptions {
    let count = |setting: u32| usize::try_from(setting).unwrap_or(usize::MAX);
    PostgresOptions {
        connections: count(config.postgres.connections),
        worker_connections: count(config.postgres.worker_connections),
        report_connections: count(config.postgres.report_connections),
        connect_timeout: config.postgres.connect_timeout,
        statement_timeout: config.postgres.statement_timeout,
        report_timeout: config.limits.report_timeout,
        statement_cache: config.postgres.statement_cache,
        merges_increments: config.roles.has(NodeRole::Forward),
    }
}

/// Everything that the router needs.
pub struct ServerParts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// Clock and random number generator.
    pub runtime: Runtime,
    /// Keys derived from the instance's secret key.
    pub keyring: Keyring,
    /// Roles of this node.
    pub roles: NodeRoles,
    /// The server's public base URL.
    pub base_url: String,
    /// Timeouts for bodies and requests.
    pub timeouts: Timeouts,
    /// Rate limits per key and per address.
    pub rate_limits: RateSettings,
    /// Slots for reports and exports.
    pub report_slots: ReportSlots,
    /// Daily quotas for writes on behalf of unverified senders.
    pub unverified_writes: UnverifiedWriteQuota,
    /// Returns whether a peer is one of the operator's proxies.
    pub is_trusted_proxy: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// GeoIP lookup for addresses.
    pub geo_lookup: GeoLookup,
    /// Header in which a proxy sends the client's country.
    pub country_header: Option<HeaderName>,
    /// Documents that are served as Markdown. The binary contains them; a library has none.
    pub documents: Arc<Documents>,
    /// Keys that may sign postbacks: Apple's, except in tests.
    pub postback_keys: Keys,
    /// Root certificates trusted for App Store notifications.
    pub app_store_roots: TrustedRoots,
    /// Root certificates trusted for App Attest.
    pub app_attest_roots: TrustedRoots,
    /// Sends test events for integrations.
    pub probe: Arc<dyn IntegrationProbe>,
    /// Writes and sends the messages of notices.
    pub notices: NoticeService,
    /// Sends requests to the providers for single sign-on.
    pub sign_on: Arc<dyn SignOnProviders>,
    /// Looks up TXT records, which verify link domains.
    pub txt_lookup: TxtLookup,
    /// The metrics exporter, if `/metrics` is served on the main port.
    pub metrics: Option<Exporter>,
}

impl ServerParts {
    /// Creates the parts from the configuration.
    pub fn new(
        config: Arc<Config>,
        store: Arc<dyn Store>,
        keyring: Keyring,
        base_url: String,
        geo: Arc<GeoFiles>,
        (probe, notices): (Arc<dyn IntegrationProbe>, NoticeService),
        metrics: Option<Exporter>,
    ) -> anyhow::Result<Self> {
        let (limits, runtime) = (&config.limits, system::runtime());
        let sign_on = ProviderClient::new(config.single_sign_on.allow_private_addresses)?;
        Ok(Self {
            sign_on: Arc::new(sign_on),
            store,
            txt_lookup: txt_lookup(TxtClient::new(config.dns.server, runtime.clone())),
            runtime,
            keyring,
            roles: config.roles,
            base_url,
            timeouts: Timeouts {
                body: config.http.body_timeout,
                request: config.http.request_timeout,
                export_idle: limits.export_idle,
            },
            report_slots: limits.report_slots(),
            rate_limits: RateSettings {
                per_key: limits.requests_per_second_per_key,
                per_address: limits.requests_per_second_per_address,
                failures_per_minute: limits.failed_authentications_per_minute_per_address,
            },
            unverified_writes: UnverifiedWriteQuota {
                per_day: limits.unverified_writes_per_day,
                per_day_per_address: limits.unverified_writes_per_day_per_address,
            },
            country_header: config.geo.country_header.clone(),
            is_trusted_proxy: Arc::new(move |address| config.is_trusted_proxy(address)),
            geo_lookup: Arc::new(move |address| geo.locate(address)),
            documents: Arc::default(),
            postback_keys: Keys::apple(),
            app_store_roots: TrustedRoots::apple(),
            app_attest_roots: app_attest_roots(),
            probe,
            notices,
            metrics,
        })
    }
}

/// Returns the lookup that the handlers use.
pub fn txt_lookup(client: TxtClient) -> TxtLookup {
    Arc::new(move |name| {
        let client = client.clone();
        Box::pin(async move { client.txt_records(&name).await })
    })
}

/// Returns all of the server's routes, and the rate limits, which need periodic upkeep.
pub fn router(parts: ServerParts) -> (Router, Arc<RateLimits>) {
    let base_url: Arc<str> = parts.base_url.trim_end_matches('/').into();
    let limits = Arc::new(RateLimits::new(parts.rate_limits));
    let probe = parts.probe.clone();
    let dashboard = Dashboard::new(DashboardState {
        store: parts.store.clone(),
        runtime: parts.runtime.clone(),
        keyring: parts.keyring.clone(),
        report_slots: parts.report_slots.clone(),
        probe: Arc::new(move |organization, integration| {
            let probe = probe.clone();
            Box::pin(async move { probe.probe(organization, &integration).await })
        }),
        sign_on: parts.sign_on.clone(),
        txt_lookup: parts.txt_lookup.clone(),
        notices: notice_messages(&parts.notices),
        account_mail: account_mail(parts.notices.mailer(), &parts.runtime),
        base_url: base_url.clone(),
        body_timeout: parts.timeouts.body,
    });
    let handles = ApiHandles {
        store: parts.store,
        runtime: parts.runtime,
        click_tokens: ClickTokens::new(&parts.keyring),
        keyring: parts.keyring,
        roles: parts.roles,
        base_url,
        timeouts: parts.timeouts,
        limits: limits.clone(),
        report_slots: parts.report_slots,
        readiness: Arc::default(),
        is_trusted_proxy: parts.is_trusted_proxy,
        geo_lookup: parts.geo_lookup,
        country_header: parts.country_header,
        documents: parts.documents,
        link_cache: Arc::default(),
        postback_keys: Arc::new(parts.postback_keys),
        app_store_roots: Arc::new(parts.app_store_roots),
        app_attest_roots: Arc::new(parts.app_attest_roots),
        probe: parts.probe,
        notices: Arc::new(parts.notices),
        txt_lookup: parts.txt_lookup,
        read_cache: Arc::default(),
        decompressor: Arc::default(),
        unverified_writes: Arc::new(UnverifiedWrites::new(parts.unverified_writes)),
        unmatched_pages: Some(unmatched_pages(&dashboard)),
    };
    let mut others = dashboard.router();
    if let Some(metrics) = parts.metrics {
        others = others.merge(metrics_router(metrics));
    }
    (tributary_api::router(handles.into(), others), limits)
}

/// Returns the pages for people who follow a wrong address.
fn unmatched_pages(dashboard: &Dashboard) -> UnmatchedPages {
    let (no_path, no_method) = (dashboard.clone(), dashboard.clone());
    UnmatchedPages {
        no_such_path: Arc::new(move |uri, headers| {
            Box::pin(no_path.clone().no_such_path_page(uri, headers))
        }),
        no_such_method: Arc::new(move |uri, headers| {
            Box::pin(no_method.clone().no_such_method_page(uri, headers))
        }),
    }
}

/// Returns the previews and tests of notices for the pages.
fn notice_messages(service: &NoticeService) -> NoticeMessages {
    let (previews, tests) = (service.clone(), service.clone());
    NoticeMessages {
        sends_mail: service.sends_mail(),
        preview: Arc::new(move |organization, notice| {
            let service = previews.clone();
            Box::pin(async move { service.preview(organization, &notice).await })
        }),
        send_test: Arc::new(move |organization, notice| {
            let service = tests.clone();
            Box::pin(async move { service.send_test(organization, &notice).await })
        }),
    }
}

/// Returns the e-mails about accounts for the pages, if e-mail is set up.
fn account_mail(mailer: &Mailer, runtime: &Runtime) -> Option<SendAccountMail> {
    let (mailer, runtime) = (mailer.clone(), runtime.clone());
    mailer.is_set_up().then(|| -> SendAccountMail {
        Arc::new(move |to, message| {
            let (mailer, id) = (mailer.clone(), mail_id(&runtime));
            Box::pin(async move {
                let sent = mailer.send_message(vec![to], &message, id).await;
                sent.map_err(|error| error.to_string())
            })
        })
    })
}

/// Returns the id of a message that is sent once.
pub fn mail_id(runtime: &Runtime) -> String {
    hex(&runtime.random_bytes::<16>())
}

/// Returns a router for `/metrics` on a separate port. It adds request ids, because the API's
/// layers do not run there.
pub fn standalone_metrics_router(metrics: Exporter, runtime: Runtime) -> Router {
    let name = move |mut response: Response| {
        let id = HeaderValue::from_bytes(&runtime.request_id().to_ascii());
        async move {
            let headers = response.headers_mut();
            headers.extend(id.ok().map(|id| (tributary_api::X_REQUEST_ID, id)));
            response
        }
    };
    metrics_router(metrics).layer(axum::middleware::map_response(name))
}

/// Returns the `/metrics` route, for the main port or a separate port.
fn metrics_router<S: Clone + Send + Sync + 'static>(metrics: Exporter) -> Router<S> {
    Router::new().route("/metrics", get(move || async move { metrics.render() }))
}
