//! `tributary serve`: everything, until told to stop.

use super::print_line;
use crate::config::Config;
use crate::exit_code::is_transient;
use crate::geo::GeoFiles;
use crate::http::{self, ListenerSettings};
use crate::metrics::Exporter;
use crate::probe::NetworkProbe;
use crate::shutdown::StopSignals;
use crate::transport::NetworkTransport;
use crate::wiring::{self, ServerParts};
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
use tributary_forwarder::Forwarder;
use tributary_store::Store;

/// How often histograms are folded and idle limits forgotten.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(10);
/// Where a request's duration falls, in seconds.
const DURATION_BUCKETS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// The first pause before a database that cannot be opened is tried again; each further one is twice as long.
const OPEN_RETRY_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const OPEN_RETRY_MAX: Duration = Duration::from_secs(30);

/// What the server runs on, once it is ready to run.
pub(super) struct StartedServer {
    pub(super) store: Arc<dyn Store>,
    keyring: Keyring,
    listener: TcpListener,
    metrics_listener: Option<TcpListener>,
    pub(super) base_url: String,
    setup_link: Option<String>,
    geo: Arc<GeoFiles>,
}

/// Serves until SIGTERM or SIGINT, then finishes what was accepted. A second signal does not wait for that.
/// The routes are what `wire` makes of the parts.
pub async fn run(
    config: Config,
    wire: impl FnOnce(ServerParts) -> (Router, Arc<RateLimits>),
) -> anyhow::Result<()> {
    let config = Arc::new(config);
    let mut signals = StopSignals::install().context("signals cannot be listened for")?;
    descriptors::raise_limit(&config);
    let metrics = install_metrics(&config)?;
    // A database that does not answer, or a long migration, must not make the process deaf.
    let started = tokio::select! {
        started = start(&config) => started?,
        () = signals.wait() => {
            tracing::info!("told to stop while starting");
            return Ok(());
        }
    };
    // Before the first answer, so that whoever finds the server ready finds the link printed. The port is bound:
    // whoever is quicker still waits in its queue.
    announce(&started.base_url, started.setup_link.as_deref());
    serve_until_stopped(&config, started, wire, metrics, signals, |_, _| {}).await
}

/// Serves what was started until a signal, then finishes what was accepted. `beside` may spawn what else is to run
/// until then.
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
    let mut tasks = spawn_tasks(config, started, wire, metrics, stopped.clone())?;
    beside(&mut tasks, stopped);
    tracing::info!(base_url, "ready");
    signals.wait().await;
    tracing::info!("stopping: finishing what was accepted");
    stop.send_replace(true);
    let finishing = async {
        while tasks.join_next().await.is_some() {}
        store.close().await;
    };
    tokio::select! {
        () = finishing => tracing::info!("stopped"),
        // What was answered is committed; the rest was promised to nobody.
        () = signals.wait() => tracing::warn!("told again to stop: requests under way are cut off"),
    }
    Ok(())
}

/// Opens the database, waiting for it if necessary, then the ports. Until then connections are refused, also for
/// `/healthz`.
async fn start(config: &Config) -> anyhow::Result<StartedServer> {
    let (store, keyring) = open_with_retry(config).await?;
    let listener = bind(config.listen).await?;
    prepare_server(config, store, keyring, listener).await
}

/// Opens the database. A failure that may heal, such as a database server that is still starting, is tried again with
/// growing pauses for as long as it takes; a wrong setting ends the start.
async fn open_with_retry(config: &Config) -> anyhow::Result<(Arc<dyn Store>, Keyring)> {
    let mut pause = OPEN_RETRY_MIN;
    loop {
        match wiring::open(config).await {
            Err(error) if is_transient(&error) => {
                let seconds = pause.as_secs();
                tracing::warn!("cannot open the database, trying again in {seconds} s: {error:#}");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(OPEN_RETRY_MAX);
            }
            opened => return opened,
        }
    }
}

/// What else it takes to run on a database and a port.
pub(super) async fn prepare_server(
    config: &Config,
    store: Arc<dyn Store>,
    keyring: Keyring,
    listener: TcpListener,
) -> anyhow::Result<StartedServer> {
    let metrics_listener = match config.metrics.listen {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let base_url = config.base_url_at(listener.local_addr()?);
    let setup_link = first_run::prepare_setup_link(&*store, &system::runtime(), &base_url).await?;
    let places = load_geo_files(config).await?;
    Ok(StartedServer {
        store,
        keyring,
        listener,
        metrics_listener,
        base_url,
        setup_link,
        geo: places,
    })
}

/// Before the first request, which would not know its country otherwise. What cannot be read is logged, and
/// tried again by the worker when it changes.
async fn load_geo_files(config: &Config) -> anyhow::Result<Arc<GeoFiles>> {
    let places = Arc::new(GeoFiles::new(&config.geo));
    let read = places.clone();
    tokio::task::spawn_blocking(move || read.refresh()).await?;
    Ok(places)
}

/// Everything that runs until the stop.
fn spawn_tasks(
    config: &Arc<Config>,
    started: StartedServer,
    wire: impl FnOnce(ServerParts) -> (Router, Arc<RateLimits>),
    metrics: Exporter,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<JoinSet<()>> {
    let mut tasks = JoinSet::new();
    workers::start(
        config,
        &started.store,
        &system::runtime(),
        &started.keyring,
        started.geo.clone(),
        &mut tasks,
        || wait_for_stop(stopped.clone()),
    )?;
    let forwarding = tributary_forwarder::ForwarderParts {
        store: started.store.clone(),
        runtime: system::runtime(),
        keyring: started.keyring.clone(),
        transport: Arc::new(NetworkTransport::new(&config.networks)?),
        base_url: started.base_url.trim_end_matches('/').into(),
    };
    tasks.spawn(Forwarder::new(forwarding.clone()).run(wait_for_stop(stopped.clone())));
    let served_here = config.metrics.listen.is_none().then(|| metrics.clone());
    let parts = ServerParts::new(
        config.clone(),
        started.store,
        started.keyring,
        started.base_url,
        started.geo,
        Arc::new(NetworkProbe::new(forwarding)),
        served_here,
    );
    let (router, limits) = wire(parts);
    let settings = listener_settings(config);
    if let Some(listener) = started.metrics_listener {
        let router = wiring::standalone_metrics_router(metrics.clone(), system::runtime());
        tasks.spawn(http::serve(
            listener,
            router,
            settings,
            wait_for_stop(stopped.clone()),
        ));
    }
    tasks.spawn(run_upkeep(metrics, limits, wait_for_stop(stopped.clone())));
    tasks.spawn(http::serve(
        started.listener,
        router,
        settings,
        wait_for_stop(stopped),
    ));
    Ok(tasks)
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address}; if another program has this port, set listen \
             (TRIBUTARY_LISTEN) to another one"
        )
    })
}

fn listener_settings(config: &Config) -> ListenerSettings {
    ListenerSettings {
        header_timeout: config.http.header_timeout,
        write_timeout: config.http.request_timeout,
        connections: usize::try_from(config.limits.connections).unwrap_or(usize::MAX),
        drain: config.http.drain,
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
    // A sender that is gone is a stop, too.
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

fn announce(base_url: &str, setup_link: Option<&str>) {
    print_line(format!(
        "Tributary is running at {base_url} (API reference: {base_url}/api/v1/docs)"
    ));
    if let Some(link) = setup_link {
        print_line("");
        print_line(
            "Nobody has an account yet. Open this link to make the owner's; it works once, for 7 days:",
        );
        print_line("");
        print_line(format!("  {link}"));
        print_line("");
    }
}
