//! An instance under test: a database, one or more nodes, a simulator of the networks, and an app.

use crate::requests::{LoadRequest, WebEvent};
use crate::site::Site;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tributary_simulator::{RunningSimulator, Simulator, SimulatorConfig};
use tributary_testkit::{Engine, ServerExit, ServerProcess, TestDatabase};

/// Maximum time until an instance accepts an event after a fault has ended. Longer is a violation.
pub const RECOVERY_MAX: Duration = Duration::from_mins(1);
/// Conversions that the simulated networks remember: more than an episode delivers.
const CONVERSIONS_MAX: usize = 5_000_000;
/// Pause between two attempts to send an event.
const RECOVERY_PAUSE: Duration = Duration::from_millis(10);

/// Settings of a server process, by environment variable.
pub type Settings = Vec<(String, String)>;

/// Returns settings from literals.
pub fn settings(pairs: &[(&str, &str)]) -> Settings {
    let owned = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

fn borrowed(settings: &Settings) -> Vec<(&str, &str)> {
    let pairs = settings
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    pairs.collect()
}

/// Base URLs of the nodes. Clients use one after the other.
#[derive(Debug, Default)]
pub struct Addresses {
    nodes: Mutex<Vec<String>>,
    next: AtomicUsize,
}

impl Addresses {
    /// Returns the next node.
    pub fn next(&self) -> String {
        let nodes = self.nodes.lock().unwrap();
        nodes[self.next.fetch_add(1, Ordering::Relaxed) % nodes.len()].clone()
    }

    /// Sends clients to another address, such as a proxy in front of a node.
    pub fn set(&self, node: usize, address: &str) {
        address.clone_into(&mut self.nodes.lock().unwrap()[node]);
    }
}

/// A database with its nodes, the simulated networks, and an app.
pub struct Instance {
    /// The engine under test.
    pub engine: Engine,
    /// The database, and the nodes' data folder.
    pub database: TestDatabase,
    /// The four networks.
    pub simulator: RunningSimulator,
    /// The app.
    pub site: Site,
    /// Where clients send requests.
    pub addresses: Arc<Addresses>,
    /// Events that were sent to measure recovery. All were acknowledged.
    pub probes: Vec<LoadRequest>,
    settings: Settings,
    nodes: Vec<Option<ServerProcess>>,
}

impl Instance {
    /// Starts an instance with this number of nodes.
    pub async fn start(engine: Engine, nodes: usize) -> Self {
        Self::start_with(engine, nodes, Settings::new()).await
    }

    /// Starts an instance with additional settings, such as the URL of another database.
    pub async fn start_with(engine: Engine, nodes: usize, more: Settings) -> Self {
        let database = TestDatabase::new(engine).await;
        let simulator = Simulator::start(SimulatorConfig {
            conversions_max: CONVERSIONS_MAX,
            ..SimulatorConfig::default()
        })
        .await
        .unwrap();
        let base = simulator.base_url();
        let token = format!("{base}/token");
        let mut settings = settings(&[
            ("TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES", "true"),
            ("TRIBUTARY_NETWORKS__NETWORK_A__BASE_URL", &base),
            ("TRIBUTARY_NETWORKS__NETWORK_B__BASE_URL", &base),
            ("TRIBUTARY_NETWORKS__NETWORK_B__TOKEN_URL", &token),
            ("TRIBUTARY_NETWORKS__NETWORK_C__BASE_URL", &base),
            ("TRIBUTARY_NETWORKS__NETWORK_D__BASE_URL", &base),
            ("TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_KEY", "0"),
            ("TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_ADDRESS", "0"),
        ]);
        settings.extend(more);
        let run = |arguments: &[&str]| {
            ServerProcess::run_with(&database, &borrowed(&settings), arguments).unwrap()
        };
        run(&["migrate"]);
        let key = run(&["admin", "key", "create", "--permission", "full"]);
        let mut started = Vec::new();
        for _ in 0..nodes {
            started.push(ServerProcess::start_with(&database, &borrowed(&settings)).await);
        }
        let addresses = Addresses::default();
        let urls = started.iter().map(|node| node.base_url().to_owned());
        *addresses.nodes.lock().unwrap() = urls.collect();
        Self {
            engine,
            site: Site::create(started[0].base_url(), &key).await,
            simulator,
            addresses: Arc::new(addresses),
            probes: Vec::new(),
            settings,
            nodes: started.into_iter().map(Some).collect(),
            database,
        }
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns a running node.
    pub fn node(&self, node: usize) -> &ServerProcess {
        self.nodes[node].as_ref().expect("the node runs")
    }

    /// Sends SIGKILL to a node. Clients keep sending requests to its address.
    pub fn kill(&mut self, node: usize) {
        self.node(node).kill_now();
        self.nodes[node] = None;
    }

    /// Starts a node that was killed.
    pub async fn restart(&mut self, node: usize) {
        let started = self.try_restart(node, &Settings::new()).await;
        started.unwrap_or_else(|exit| panic!("{exit}"));
    }

    /// Starts a node that was killed, with additional settings. Returns an error if it exits before it
    /// is ready.
    pub async fn try_restart(&mut self, node: usize, more: &Settings) -> Result<(), ServerExit> {
        let all = [self.settings.clone(), more.clone()].concat();
        let server = ServerProcess::try_start_with(&self.database, &borrowed(&all)).await?;
        self.addresses.set(node, server.base_url());
        self.nodes[node] = Some(server);
        Ok(())
    }

    /// Sends an event until the instance accepts it. Returns the time since `since`, or `None` after
    /// [`RECOVERY_MAX`].
    pub async fn wait_until_accepting(&mut self, since: Instant) -> Option<Duration> {
        let id = format!("probe-{}", self.probes.len());
        let probe = WebEvent::purchase(&id, 1_000_000).request(&self.site, 0, self.site.now_ms());
        let mut recovered = None;
        while recovered.is_none() && since.elapsed() < RECOVERY_MAX {
            if probe
                .send(&self.site, &self.addresses.next())
                .await
                .is_success(&probe)
            {
                recovered = Some(since.elapsed());
            } else {
                tokio::time::sleep(RECOVERY_PAUSE).await;
            }
        }
        if recovered.is_some() {
            self.probes.push(probe);
        }
        recovered
    }

    /// Runs a command beside the nodes, with additional settings.
    pub fn run(&self, more: &Settings, arguments: &[&str]) -> Result<String, String> {
        let all = [self.settings.clone(), more.clone()].concat();
        ServerProcess::run_with(&self.database, &borrowed(&all), arguments)
    }

    /// Stops all nodes and runs a command on the database. Returns what it printed.
    pub fn stop_and_run(&mut self, arguments: &[&str]) -> Result<String, String> {
        for node in self.nodes.iter_mut().filter_map(Option::take) {
            let status = node.terminate();
            if !status.success() {
                return Err(format!("a node exited with {status}"));
            }
        }
        self.run(&Settings::new(), arguments)
    }
}
