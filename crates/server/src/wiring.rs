//! Putting the parts together: one place, for the server, the commands and the tests.

use crate::config::{Config, DatabaseConfig};
use crate::geo::GeoFiles;
use crate::metrics::Exporter;
use crate::secret_key::{self, SECRET_KEY_FILE, SecretKeyError};
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
    ApiHandles, ApiState, GeoLookup, IntegrationProbe, RateLimits, RateSettings, Timeouts,
};
use tributary_dashboard::DashboardState;
use tributary_domain::billing::certificate::Roots;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::keyring::Keyring;
use tributary_domain::runtime::Runtime;
use tributary_domain::skan::postback::Keys;
use tributary_store::Store;
use tributary_store_postgres::{PostgresOptions, PostgresStore};
use tributary_store_sqlite::SqliteStore;

/// Opens the database that the configuration names, brings its schema up to date, and checks that it was
/// set up with this secret.
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

/// Loads the secret key that fits this database. A new one is written only for a database that was set up with none.
async fn load_keyring(config: &Config, store: &dyn Store) -> anyhow::Result<Keyring> {
    let key = match secret_key::load(config)? {
        Some(key) => key,
        None if store.has_secret().await? => {
            return Err(SecretKeyError::Missing(config.data_dir.join(SECRET_KEY_FILE)).into());
        }
        None => secret_key::load_or_create(config, &system::runtime())?,
    };
    let keyring = Keyring::new(key);
    check_secret(store, &keyring).await?;
    Ok(keyring)
}

/// Refuses a secret that is not the database's own. A database without one takes this one.
pub async fn check_secret(store: &dyn Store, keyring: &Keyring) -> anyhow::Result<()> {
    let fits = store.secret_fits(keyring.check_value()).await;
    let fits = fits.context(
        "the database cannot be written to; its file and its folder must be writable for the user of the server, \
         and their disk must have room",
    )?;
    if !fits {
        anyhow::bail!(
            "this secret_key is not the one the database was set up with; \
             use the same key (every node of one database shares it), or restore its file"
        );
    }
    Ok(())
}

/// As [`open`], for commands that work on a server's data: a missing embedded database is an error instead of being
/// created, since the command was most likely run in the wrong folder.
pub async fn open_existing(config: &Config) -> anyhow::Result<(Arc<dyn Store>, Keyring)> {
    require_database(config)?;
    open(config).await
}

/// Fails if there is no embedded database at the configured path.
pub fn require_database(config: &Config) -> anyhow::Result<()> {
    match config.database() {
        DatabaseConfig::Sqlite(path) if !path.exists() => anyhow::bail!(
            "there is no database at {}; is this the right folder (data_dir)? `tributary serve` or `tributary migrate` \
             creates a new one",
            path.display()
        ),
        DatabaseConfig::Sqlite(_) | DatabaseConfig::Postgres(_) => Ok(()),
    }
}

/// Opens the database alone, in a data folder that is made when it is not there.
pub async fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    if !config.database().is_postgres() {
        secret_key::create_data_folder(&config.data_dir)?;
    }
    open_existing_store(config).await
}

/// Opens the database alone, in the folder that is there. Brings an older schema up to date, too.
pub async fn open_existing_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    match config.database() {
        DatabaseConfig::Sqlite(path) => {
            let shown = path.display().to_string();
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await?;
            let store = opened.with_context(|| {
                format!(
                    "the database {shown} cannot be opened; see data_dir and database_url in `tributary config \
                     print`, and whether the user of the server may read and write the file and its folder"
                )
            })?;
            Ok(Arc::new(store))
        }
        DatabaseConfig::Postgres(url) => {
            let count = |setting: u32| usize::try_from(setting).unwrap_or(usize::MAX);
            let options = PostgresOptions {
                connections: count(config.postgres.connections),
                worker_connections: count(config.postgres.worker_connections),
                report_connections: count(config.postgres.report_connections),
                connect_timeout: config.postgres.connect_timeout,
                statement_timeout: config.postgres.statement_timeout,
                statement_cache: config.postgres.statement_cache,
            };
            let store = PostgresStore::connect(url.expose_secret(), options)
                .await
                .context("the PostgreSQL database of database_url cannot be opened")?;
            Ok(Arc::new(store))
        }
    }
}

/// What the router is made of.
pub struct ServerParts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The time and randomness.
    pub runtime: Runtime,
    /// The instance's secret.
    pub keyring: Keyring,
    /// Where the service is reached.
    pub base_url: String,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How often somebody may ask.
    pub rate_limits: RateSettings,
    /// Which peers are proxies of the operator's.
    pub is_trusted_proxy: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// Where an address is.
    pub geo_lookup: GeoLookup,
    /// The header in which a proxy tells the client's country.
    pub country_header: Option<HeaderName>,
    /// Who may sign postbacks: Apple, but for tests.
    pub postback_keys: Keys,
    /// Who may vouch for the App Store.
    pub app_store_roots: Roots,
    /// Tries integrations out.
    pub probe: Arc<dyn IntegrationProbe>,
    /// The metrics, where they are served on the main port.
    pub metrics: Option<Exporter>,
}

impl ServerParts {
    /// As the configuration says.
    pub fn new(
        config: Arc<Config>,
        store: Arc<dyn Store>,
        keyring: Keyring,
        base_url: String,
        places: Arc<GeoFiles>,
        probe: Arc<dyn IntegrationProbe>,
        metrics: Option<Exporter>,
    ) -> Self {
        let limits = &config.limits;
        Self {
            store,
            runtime: system::runtime(),
            keyring,
            base_url,
            timeouts: Timeouts {
                body: config.http.body_timeout,
                request: config.http.request_timeout,
            },
            rate_limits: RateSettings {
                per_key: limits.requests_per_second_per_key,
                per_address: limits.requests_per_second_per_address,
                failures_per_minute: limits.failed_authentications_per_minute_per_address,
            },
            country_header: config.geo.country_header.clone(),
            is_trusted_proxy: Arc::new(move |address| config.is_trusted_proxy(address)),
            geo_lookup: Arc::new(move |address| places.locate(address)),
            postback_keys: Keys::apple(),
            app_store_roots: Roots::apple(),
            probe,
            metrics,
        }
    }
}

/// Every route of the server, and the limits that want tidying now and then.
pub fn router(parts: ServerParts) -> (Router, Arc<RateLimits>) {
    router_with(parts, Router::new())
}

/// As [`router`], with more routes behind the same layers.
pub fn router_with(parts: ServerParts, more: Router<ApiState>) -> (Router, Arc<RateLimits>) {
    let base_url: Arc<str> = parts.base_url.trim_end_matches('/').into();
    let limits = Arc::new(RateLimits::new(parts.rate_limits));
    let handles = ApiHandles {
        store: parts.store.clone(),
        runtime: parts.runtime.clone(),
        click_tokens: ClickTokens::new(&parts.keyring),
        keyring: parts.keyring.clone(),
        base_url: base_url.clone(),
        timeouts: parts.timeouts,
        limits: limits.clone(),
        readiness: Arc::default(),
        is_trusted_proxy: parts.is_trusted_proxy,
        geo_lookup: parts.geo_lookup,
        country_header: parts.country_header,
        link_cache: Arc::default(),
        postback_keys: Arc::new(parts.postback_keys),
        app_store_roots: Arc::new(parts.app_store_roots),
        probe: parts.probe.clone(),
        read_cache: Arc::default(),
    };
    let probe = parts.probe;
    let mut others = tributary_dashboard::router(DashboardState {
        store: parts.store,
        source: parts.runtime,
        keyring: parts.keyring,
        probe: Arc::new(move |organization, integration| {
            let probe = probe.clone();
            Box::pin(async move { probe.probe(organization, &integration).await })
        }),
        base_url,
        body_timeout: parts.timeouts.body,
    })
    .merge(more);
    if let Some(metrics) = parts.metrics {
        others = others.merge(metrics_router(metrics));
    }
    (tributary_api::router(handles.into(), others), limits)
}

/// `/metrics` on a port of its own, where nothing else puts a name to requests.
pub fn standalone_metrics_router(metrics: Exporter, source: Runtime) -> Router {
    let name = move |mut answer: Response| {
        let id = HeaderValue::try_from(tributary_api::request_id(&source));
        async move {
            let headers = answer.headers_mut();
            headers.extend(id.ok().map(|id| (tributary_api::X_REQUEST_ID, id)));
            answer
        }
    };
    metrics_router(metrics).layer(axum::middleware::map_response(name))
}

/// `/metrics`, for the main port or for one of its own.
fn metrics_router<S: Clone + Send + Sync + 'static>(metrics: Exporter) -> Router<S> {
    Router::new().route("/metrics", get(move || async move { metrics.render() }))
}
