//! `tributary serve`: runs the server until a stop signal.

use super::print_line;
use crate::config::Config;
use crate::exit_code::is_transient;
use crate::geo::GeoFiles;
use crate::http::{self, Certificates, ListenerSettings};
use crate::mail::Mailer;
use crate::metrics::Exporter;
use crate::notices::NoticeService;
use crate::outbound::AddressPolicy;
use crate::probe::NetworkProbe;
use crate::shutdown::StopSignals;
use crate::transport::NetworkTransport;
use crate::wiring::{self, ServerParts};
use crate::workers::KeyWatch;
use crate::{descriptors, first_run, system, workers};
use anyhow::Context as _;
use axum::Router;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tributary_api::RateLimits;
use tributary_domain::keyring::Keyring;
use tributary_domain::keyring::rotation::KeyMismatch;
use tributary_domain::node_role::NodeRole;
use tributary_forwarder::{Forwarder, Poller};
use tributary_store::Store;

/// Interval for aggregating histogram samples and dropping idle rate limits.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(10);
/// Histogram buckets for request durations, in seconds.
const DURATION_BUCKETS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// Interval for checking whether the TLS certificate was replaced.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(10);

/// First delay before retrying to open the database; each retry doubles it.
const OPEN_RETRY_MIN: Duration = Duration::from_secs(1);
/// Longest delay between retries.
const OPEN_RETRY_MAX: Duration = Duration::from_secs(30);

/// A server that is ready to run.
pub(super) struct StartedServer {
    pub(super) store: Arc<dyn Store>,
    keyring: Keyring,
    listener: TcpListener,
    metrics_listener: Option<TcpListener>,
    redirect_listener: Option<TcpListener>,
    certificates: Option<Arc<Certificates>>,
    pub(super) base_url: String,
    setup_link: Option<String>,
    geo: Arc<GeoFiles>,
}

/// Serves until SIGTERM or SIGINT, then drains requests. A second signal stops the server without
/// draining. `wire` builds the routes from the parts.
pub async fn run(
    config: Config,
    wire: impl FnOnce(ServerParts) -> (Router, Arc<RateLimits>),
) -> anyhow::Result<()> {
    let config = Arc::new(config);
    let mut signals = StopSignals::install().context("cannot install signal handlers")?;
    descriptors::raise_limit(&config);
    let metrics = install_metrics(&config)?;
    // The process must react to signals even while the database is unreachable or a migration runs.
    let started = tokio::select! {
        started = start(&config) => started?,
        () = signals.wait() => {
            tracing::info!("stop signal received during startup");
            return Ok(());
        }
    };
    // Print the link before serving, so that it is there once the server is ready. The port is
    // already bound; early connections wait in the backlog.
    announce(&started.base_url, started.setup_link.as_deref());
    serve_until_stopped(&config, started, wire, metrics, signals, |_, _| {}).await
}

/// Serves until a stop signal, then drains requests. `beside` may spawn further tasks that run
/// until shutdown.
pub(super) async fn serve_until_stopped(
    config: &Arc<Config>,
    started: StartedServer,
    wire: impl FnOnce(ServerParts) -> (Router, Arc<RateLimits>),
    metrics: Exporter,
    mut signals: StopSignals,
    beside: impl FnOnce(&mut JoinSet<()>, watch::Receiver<bool>),
) -> anyhow::Result<()> {
    let (store, base_url) = (started.store.clone(), started.base_url.clone());
    let (stop, stopped) = watch::channel(false);
    let keys = KeyWatch::new(
        config,
        store.clone(),
        system::runtime(),
        started.keyring.clone(),
    );
    // Before the first request, so that no rotation of the secret key begins without this node.
    keys.note().await?;
    let (failed, mut failure) = watch::channel(None);
    let mut tasks = spawn_tasks(config, started, wire, metrics, stopped.clone())?;
    tasks.spawn(keys.run(failed, wait_for_stop(stopped.clone())));
    beside(&mut tasks, stopped);
    tracing::info!(base_url, roles = %config.roles, "ready");
    let mismatch = tokio::select! {
        () = signals.wait() => None,
        mismatch = wait_for_mismatch(&mut failure) => Some(mismatch),
    };
    match &mismatch {
        None => tracing::info!("stopping; draining requests"),
        Some(mismatch) => tracing::error!("stopping, because {mismatch}"),
    }
    stop.send_replace(true);
    let finishing = async {
        while tasks.join_next().await.is_some() {}
        store.close().await;
    };
    tokio::select! {
        () = finishing => tracing::info!("stopped"),
        // Everything acknowledged is committed, so dropping unfinished requests is safe.
        () = signals.wait() => {
            tracing::warn!("second stop signal received; dropping unfinished requests");
        }
    }
    mismatch.map_or(Ok(()), |mismatch| Err(mismatch.into()))
}

/// Waits until the node cannot continue, because it does not know the secret key in use.
async fn wait_for_mismatch(failure: &mut watch::Receiver<Option<KeyMismatch>>) -> KeyMismatch {
    let mismatch = match failure.wait_for(Option::is_some).await {
        Ok(found) => *found,
        // The watch has ended with the others.
        Err(_) => None,
    };
    match mismatch {
        Some(mismatch) => mismatch,
        None => std::future::pending().await,
    }
}

/// Opens the database, waiting for it if necessary, and then the ports. Until then the system
/// refuses all connections, including those to `/healthz`.
async fn start(config: &Config) -> anyhow::Result<StartedServer> {
    let (store, keyring) = open_with_retry(config).await?;
    let listener = bind(config.listen)?;
    prepare_server(config, store, keyring, listener).await
}

/// Opens the database. Transient failures, such as a database server that is still starting, are
/// retried with back-off indefinitely; a wrong setting ends the start.
async fn open_with_retry(config: &Config) -> anyhow::Result<(Arc<dyn Store>, Keyring)> {
    let mut pause = OPEN_RETRY_MIN;
    loop {
        match wiring::open(config).await {
            Err(error) if is_transient(&error) => {
                tracing::warn!(
                    retry_in_seconds = pause.as_secs(),
                    error = format!("{error:#}"),
                    "failed to open the database; retrying"
                );
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(OPEN_RETRY_MAX);
            }
            opened => return opened,
        }
    }
}

/// Prepares everything that the server needs besides a database and a port.
pub(super) async fn prepare_server(
    config: &Config,
    store: Arc<dyn Store>,
    keyring: Keyring,
    listener: TcpListener,
) -> anyhow::Result<StartedServer> {
    let metrics_listener = config.metrics.listen.map(bind).transpose()?;
    let redirect_listener = config.tls.redirect_listen.map(bind).transpose()?;
    let certificates = load_certificates(config).await?;
    let base_url = config.base_url_at(listener.local_addr()?);
    let setup_link = first_run::prepare_setup_link(&*store, &system::runtime(), &base_url).await?;
    let geo = load_geo_files(config).await?;
    Ok(StartedServer {
        store,
        keyring,
        listener,
        metrics_listener,
        redirect_listener,
        certificates,
        base_url,
        setup_link,
        geo,
    })
}

/// Loads the certificate, if TLS is on. A server without a valid one does not start.
async fn load_certificates(config: &Config) -> anyhow::Result<Option<Arc<Certificates>>> {
    let Some((certificate, key)) = config.tls.files() else {
        return Ok(None);
    };
    let (certificate, key) = (certificate.to_owned(), key.to_owned());
    let now = system::runtime().now();
    let load = move || Certificates::load(&certificate, &key, now);
    Ok(Some(Arc::new(tokio::task::spawn_blocking(load).await??)))
}

/// Loads the GeoIP files before the first request, so that this request already has a country.
/// Unreadable files are logged; the worker retries when they change.
async fn load_geo_files(config: &Config) -> anyhow::Result<Arc<GeoFiles>> {
    let geo = Arc::new(GeoFiles::new(&config.geo));
    let loading = geo.clone();
    tokio::task::spawn_blocking(move || loading.refresh()).await?;
    Ok(geo)
}

/// Spawns all tasks that run until shutdown.
fn spawn_tasks(
    config: &Arc<Config>,
    started: StartedServer,
    wire: impl FnOnce(ServerParts) -> (Router, Arc<RateLimits>),
    metrics: Exporter,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<JoinSet<()>> {
    let mut tasks = JoinSet::new();
    let redirect = http::redirect_router(&started.base_url);
    let poller = Poller::new(started.store.clone(), system::runtime());
    let due = poller.subscribe();
    let notices = NoticeService::new(
        started.store.clone(),
        system::runtime(),
        started.keyring.clone(),
        Mailer::new(config)?,
        AddressPolicy::allowing(config.webhooks.allow_private_addresses),
        &started.base_url,
    )?;
    workers::start(
        config,
        (&started.store, &started.keyring),
        started.geo.clone(),
        notices.clone(),
        &mut tasks,
        &due,
        || wait_for_stop(stopped.clone()),
    )?;
    let forwarding = tributary_forwarder::ForwarderParts {
        store: started.store.clone(),
        runtime: system::runtime(),
        keyring: started.keyring.clone(),
        transport: Arc::new(NetworkTransport::new(&config.networks)?),
        base_url: started.base_url.trim_end_matches('/').into(),
    };
    if config.roles.has(NodeRole::Forward) {
        tasks.spawn(poller.run(wait_for_stop(stopped.clone())));
        let forwarder = Forwarder::new(forwarding.clone());
        tasks.spawn(forwarder.run(due, wait_for_stop(stopped.clone())));
    }
    let served_here = config.metrics.on_public_port.then(|| metrics.clone());
    let parts = ServerParts::new(
        config.clone(),
        started.store,
        started.keyring,
        started.base_url,
        started.geo,
        (Arc::new(NetworkProbe::new(forwarding)), notices),
        served_here,
    )?;
    let (router, limits) = wire(parts);
    let settings = listener_settings(config);
    if let Some(listener) = started.redirect_listener {
        tasks.spawn(http::serve(
            listener,
            redirect,
            settings.clone(),
            wait_for_stop(stopped.clone()),
        ));
    }
    if let Some(listener) = started.metrics_listener {
        let router = wiring::standalone_metrics_router(metrics.clone(), system::runtime());
        tasks.spawn(http::serve(
            listener,
            router,
            settings.clone(),
            wait_for_stop(stopped.clone()),
        ));
    }
    tasks.spawn(run_upkeep(metrics, limits, wait_for_stop(stopped.clone())));
    if let Some(certificates) = &started.certificates {
        let stop = wait_for_stop(stopped.clone());
        tasks.spawn(watch_certificates(certificates.clone(), stop));
    }
    let settings = ListenerSettings {
        certificates: started.certificates,
        ..settings
    };
    tasks.spawn(http::serve(
        started.listener,
        router,
        settings,
        wait_for_stop(stopped),
    ));
    Ok(tasks)
}

fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    http::listen(address).with_context(|| {
        format!(
            "cannot listen on {address}; if another program uses this port, set listen \
             (TRIBUTARY_LISTEN) to another one"
        )
    })
}

fn listener_settings(config: &Arc<Config>) -> ListenerSettings {
    let count = |setting: u32| usize::try_from(setting).unwrap_or(usize::MAX);
    let proxies = config.clone();
    ListenerSettings {
        header_timeout: config.http.header_timeout,
        write_timeout: config.http.request_timeout,
        connections: count(config.limits.connections),
        connections_per_address: count(config.limits.connections_per_address),
        is_trusted_proxy: Arc::new(move |address| proxies.is_trusted_proxy(address)),
        drain: config.http.drain,
        certificates: None,
    }
}

pub(super) fn install_metrics(config: &Config) -> anyhow::Result<Exporter> {
    let recorded = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), DURATION_BUCKETS)?
        .install_recorder()?;
    tributary_api::metrics::describe();
    tributary_forwarder::metrics::describe();
    tributary_store::metrics::describe();
    tributary_store_sqlite::metrics::describe();
    crate::metrics::describe();
    crate::metrics::set_build_info(config.database().engine());
    Ok(Exporter::new(recorded, system::runtime().now()))
}

pub(super) async fn wait_for_stop(mut stopped: watch::Receiver<bool>) {
    // A dropped sender also means shutdown.
    let _either = stopped.wait_for(|stopped| *stopped).await;
}

async fn run_upkeep(metrics: Exporter, limits: Arc<RateLimits>, stop: impl Future<Output = ()>) {
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => return,
            () = tokio::time::sleep(UPKEEP_INTERVAL) => {
                metrics.run_upkeep();
                limits.forget_idle();
            }
        }
    }
}

/// Reads a replaced certificate until `stop` completes.
async fn watch_certificates(certificates: Arc<Certificates>, stop: impl Future<Output = ()>) {
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => return,
            () = tokio::time::sleep(CERTIFICATE_INTERVAL) => {}
        }
        let (refreshed, now) = (certificates.clone(), system::runtime().now());
        if let Err(error) = tokio::task::spawn_blocking(move || refreshed.refresh(now)).await {
            tracing::error!(%error, "failed to check the TLS certificate");
        }
    }
}

fn announce(base_url: &str, setup_link: Option<&str>) {
    print_line(format!(
        "Tributary is running at {base_url} (API reference: {base_url}/api/v1/docs)"
    ));
    if let Some(link) = setup_link {
        print_line("");
        print_line(
            "No account exists yet. Open this link to create the owner's account (valid once, for \
             7 days):",
        );
        print_line("");
        print_line(format!("  {link}"));
        print_line("");
    }
}
