//! `tributary demo`: runs the server, simulated networks and a sample organization in one process.

mod folder;

use super::{print_line, serve};
use crate::cli::DemoOptions;
use crate::config::Config;
use crate::shutdown::StopSignals;
use crate::{DocumentSources, descriptors, logging, system, wiring, with_documents};
use anyhow::{Context as _, anyhow};
use folder::DemoFolder;
use serve::StartedServer;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tributary_domain::access::Environment;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::person::Email;
use tributary_domain::runtime::Runtime;
use tributary_sample::{LiveStream, Sample, SampleOwner};
use tributary_simulator::{RunningSimulator, Simulator, SimulatorConfig};
use tributary_store::Store;

const EMAIL: &str = "demo@example.com";
/// Preferred port for the simulator. If it is taken, the simulator uses any free port.
const SIMULATOR_PORT: u16 = 8090;
/// Days for which the demo keeps finished deliveries: more than the history has.
const DELIVERY_DAYS: &str = "90";
/// Interval for checking the event stream.
const STREAM_INTERVAL: Duration = Duration::from_millis(500);
/// Letters and digits for passwords, without those that are easily confused.
const PASSWORD_LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Letters in each group of a password.
const PASSWORD_GROUP: usize = 4;

/// Credentials that are printed once.
struct SignIn {
    password: String,
    key: String,
}

/// A demo that is ready to run.
struct PreparedDemo {
    started: StartedServer,
    sample: Sample,
    stream: LiveStream,
    sign_in: SignIn,
}

/// Runs the demo until SIGTERM or SIGINT. Its server shows these documents.
pub async fn run(options: DemoOptions, documents: DocumentSources) -> anyhow::Result<()> {
    let started_at = Instant::now();
    let mut signals = StopSignals::install().context("cannot install signal handlers")?;
    // Bind first, because it is the most likely step to fail.
    let listener = TcpListener::bind(options.listen).await.with_context(|| {
        format!(
            "cannot listen on {}; if another program uses this port, use --listen 127.0.0.1:0 for \
             any free port",
            options.listen
        )
    })?;
    let folder = DemoFolder::new(options.keep)?;
    let simulator = start_simulator()
        .await
        .context("cannot start the simulator")?;
    let config = Arc::new(settings(folder.path(), options.listen, &simulator)?);
    let _log = logging::init(&config.log)?;
    descriptors::raise_limit(&config);
    let metrics = serve::install_metrics(&config)?;
    print_line("Generating an organization with sixty days of history …");
    let runtime = system::runtime();
    let ready = tokio::select! {
        ready = prepare(&config, &runtime, listener, options.seed) => ready?,
        () = signals.wait() => return folder.clean_up(),
    };
    let PreparedDemo {
        started,
        sample,
        stream,
        sign_in,
    } = ready;
    announce(&started.base_url, &sign_in, &simulator, started_at);
    print_line(pace(stream.expected_installs(runtime.now())));
    print_line(how_to_stop(&folder));
    let store = started.store.clone();
    let clock = runtime.clone();
    serve::serve_until_stopped(
        &config,
        started,
        |parts| wiring::router(with_documents(parts, documents)),
        metrics,
        signals,
        |tasks, stopped| {
            tasks.spawn(run_stream(
                store,
                stream,
                clock,
                serve::wait_for_stop(stopped),
            ));
        },
    )
    .await?;
    if let DemoFolder::Kept(_) = folder {
        let store = wiring::open_existing_store(&config).await?;
        sample.disconnect(&*store, &runtime).await?;
        store.close().await;
    }
    simulator.shutdown().await;
    folder.clean_up()
}

async fn start_simulator() -> std::io::Result<RunningSimulator> {
    let at = |port| SimulatorConfig {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        ..SimulatorConfig::default()
    };
    match Simulator::start(at(SIMULATOR_PORT)).await {
        Ok(running) => Ok(running),
        Err(_) => Simulator::start(at(0)).await,
    }
}

/// Returns the default settings, with all data in the folder and all outbound requests sent to the
/// simulator.
fn settings(
    folder: &Path,
    listen: SocketAddr,
    simulator: &RunningSimulator,
) -> anyhow::Result<Config> {
    let networks = simulator.base_url();
    let token = format!("{networks}/token");
    let (folder, listen) = (folder.display().to_string(), listen.to_string());
    let settings = [
        ("DATA_DIR", folder.as_str()),
        ("LISTEN", &listen),
        ("LOG__LEVEL", "warn"),
        // The history has deliveries on all of its days.
        ("RETENTION__DELIVERY_DAYS", DELIVERY_DAYS),
        // The compiled-in rates are sufficient.
        ("RATES__URL", ""),
        ("RATES__SECOND_URL", ""),
        ("ADSERVICES__BASE_URL", &networks),
        ("NETWORKS__ALLOW_PRIVATE_ADDRESSES", "true"),
        ("NETWORKS__NETWORK_A__BASE_URL", &networks),
        ("NETWORKS__NETWORK_B__BASE_URL", &networks),
        ("NETWORKS__NETWORK_B__TOKEN_URL", &token),
        ("NETWORKS__NETWORK_B__REPORTS_URL", &networks),
        ("NETWORKS__NETWORK_C__BASE_URL", &networks),
        ("NETWORKS__NETWORK_D__BASE_URL", &networks),
    ];
    let variables = settings.map(|(name, value)| (format!("TRIBUTARY_{name}"), value.to_owned()));
    Ok(Config::load(None, variables.into_iter())?)
}

async fn prepare(
    config: &Config,
    runtime: &Runtime,
    listener: TcpListener,
    seed: u64,
) -> anyhow::Result<PreparedDemo> {
    let (store, keyring) = wiring::open(config).await?;
    let password = password(runtime.random_bytes());
    let (hashed, salt) = (password.clone(), runtime.random_bytes());
    let hash =
        tokio::task::spawn_blocking(move || tributary_dashboard::password_hash(&hashed, salt));
    let key = runtime.new_key(KeyKind::Private, Environment::Live);
    let owner = SampleOwner {
        email: Email::parse(EMAIL).map_err(|problem| anyhow!(problem.message))?,
        password_hash: hash.await?.map_err(|error| anyhow!("{error}"))?,
        key: key.clone(),
    };
    let sample = tributary_sample::create_sample(&*store, owner, runtime.now(), seed).await?;
    let until = tributary_sample::write_history(&store, &sample, &keyring, runtime).await?;
    let sign_in = SignIn {
        password,
        key: key.reveal().to_owned(),
    };
    Ok(PreparedDemo {
        started: serve::prepare_server(config, store, keyring, listener).await?,
        stream: LiveStream::new(&sample, until),
        sample,
        sign_in,
    })
}

/// Returns a password of three groups: easy to type, but hard to guess, because the demo may be
/// reachable from other machines.
fn password(random: [u8; 3 * PASSWORD_GROUP]) -> String {
    let letters = random.map(|byte| PASSWORD_LETTERS[usize::from(byte) % PASSWORD_LETTERS.len()]);
    let groups = letters.chunks(PASSWORD_GROUP).map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join("-")
}

/// Returns how much the live stream adds. `installs` are those expected in this hour, in thousandths.
fn pace(installs: u64) -> String {
    let installs = installs.div_ceil(1_000);
    format!(
        "New clicks, installs and payments arrive at the pace of the history: about {installs} installs \
         in this hour."
    )
}

/// Feeds the event stream into the store until shutdown.
async fn run_stream(
    store: Arc<dyn Store>,
    mut stream: LiveStream,
    runtime: Runtime,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => return,
            () = tokio::time::sleep(STREAM_INTERVAL) => {}
        }
        for step in stream.due(runtime.now()) {
            if let Err(error) = step.apply(&*store).await {
                tracing::warn!(%error, "failed to apply a demo event");
            }
        }
    }
}

fn announce(base_url: &str, sign_in: &SignIn, simulator: &RunningSimulator, started_at: Instant) {
    let seconds = started_at.elapsed().as_secs_f32();
    print_line(format!(
        "Tributary is running at {base_url} (ready after {seconds:.1} s)"
    ));
    print_line("");
    print_line(format!("  Dashboard       {base_url}/"));
    print_line(format!("  Email           {EMAIL}"));
    print_line(format!("  Password        {}", sign_in.password));
    print_line(format!("  API key         {}", sign_in.key));
    print_line(format!("  API reference   {base_url}/api/v1/docs"));
    print_line(format!(
        "  Ad networks     {}/ (simulated; shows what they received)",
        simulator.base_url()
    ));
    print_line("");
}

fn how_to_stop(folder: &DemoFolder) -> String {
    let path = folder.path().display();
    match folder {
        DemoFolder::Temporary(_) => {
            format!("Press Ctrl-C to stop the demo and remove its data ({path}).")
        }
        DemoFolder::Kept(_) => format!(
            "Press Ctrl-C to stop the demo. The data stays in {path}; run \
             TRIBUTARY_DATA_DIR={path} tributary serve to see it again, with the integrations \
             disabled."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::access::person::check_password;

    #[test]
    fn generated_passwords_are_valid() {
        let random = [7, 201, 33, 94, 0, 255, 68, 150, 12, 181, 240, 59];
        let generated = password(random);
        assert!(
            check_password(&generated, "demo@example.com", &[]).is_ok(),
            "{generated}"
        );
        assert_eq!(password([0; 12]), "aaaa-aaaa-aaaa");
    }
}
