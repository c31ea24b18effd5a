//! Servers in processes of their own, out of this binary.

use crate::site::send_request;
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tributary_testkit::TestDatabase;

/// The secret of every server here.
const SECRET_KEY: &str = "0909090909090909090909090909090909090909090909090909090909090909";
/// What the server says first.
const GREETING: &str = "Tributary is running at http://";
/// What the simulator says first.
const SIMULATOR_GREETING: &str = "The simulator is running at http://";
/// What is set otherwise than by default. The limits are off on both sides, or a measurement would be of them;
/// nobody asks a bank for its rates meanwhile.
const SETTINGS: [(&str, &str); 6] = [
    ("TRIBUTARY_SECRET_KEY", SECRET_KEY),
    ("TRIBUTARY_LISTEN", "127.0.0.1:0"),
    ("TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_KEY", "0"),
    ("TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_ADDRESS", "0"),
    ("TRIBUTARY_RATES__URL", ""),
    ("TRIBUTARY_RATES__SECOND_URL", ""),
];

/// A running server. It is told to stop when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// A command of this binary on this database, with nothing of our own environment.
fn command(database: &TestDatabase, arguments: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(arguments)
        .env_clear()
        .env("TRIBUTARY_DATA_DIR", database.folder())
        .env("TRIBUTARY_DATABASE_URL", database.url())
        .envs(SETTINGS)
        .stdin(Stdio::null());
    Ok(command)
}

impl Server {
    /// The product.
    pub(crate) fn product(database: &TestDatabase) -> anyhow::Result<Self> {
        Self::start(database, &["tributary", "serve"])
    }

    /// The product, with settings of its own.
    pub(crate) fn product_with(
        database: &TestDatabase,
        settings: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let mut command = command(database, &["tributary", "serve"])?;
        command.envs(settings.iter().cloned());
        Self::spawn(command, GREETING)
    }

    /// The one that only parses.
    pub(crate) fn bare(database: &TestDatabase) -> anyhow::Result<Self> {
        Self::start(database, &["bare"])
    }

    /// The product, with keys of our own for postbacks.
    pub(crate) fn with_postback_keys(database: &TestDatabase) -> anyhow::Result<Self> {
        Self::start(database, &["postback-keys"])
    }

    /// Starts one, and waits until it says where it is. Its log is written as it always is, and read by nobody:
    /// in a file it would compete with the database for the disk.
    fn start(database: &TestDatabase, arguments: &[&str]) -> anyhow::Result<Self> {
        Self::spawn(command(database, arguments)?, GREETING)
    }

    fn spawn(mut command: Command, greeting: &str) -> anyhow::Result<Self> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(File::create("/dev/null")?)
            .spawn()?;
        let output = child.stdout.take().context("its output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let address = line
            .strip_prefix(greeting)
            .and_then(|rest| rest.split(&[' ', '/', '\n']).next())
            .and_then(|address| address.parse().ok());
        let Some(address) = address else {
            let status = child.wait()?;
            bail!("it did not start ({status}): {command:?}");
        };
        Ok(Self { child, address })
    }

    /// Bytes of memory that it occupies.
    pub(crate) fn memory(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|rest| rest.split_whitespace().next());
        let kilobytes: u64 = kilobytes.context("no VmRSS")?.parse()?;
        Ok(kilobytes * 1024)
    }

    /// Processor time that it has used so far, in its own code and in the kernel.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // Behind the name, which may hold anything, but ends with the last bracket: fields 3 and on.
        let (_, fields) = stat.rsplit_once(')').context("no name")?;
        let ticks: Vec<u64> = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let tick = Duration::from_secs(1) / u32::try_from(rustix::param::clock_ticks_per_second())?;
        Ok(tick * u32::try_from(ticks.iter().sum::<u64>())?)
    }

    /// Tells it to stop, and waits until it has finished what it accepted.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.terminate()?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("a server ended with {status}");
        }
        Ok(())
    }

    fn terminate(&self) -> anyhow::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone where it was stopped.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Creates the database where no server has done so yet.
fn migrate(database: &TestDatabase) -> anyhow::Result<()> {
    let done = command(database, &["tributary", "migrate"])?.output()?;
    if !done.status.success() {
        bail!("no database: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(())
}

/// A full live key, made by the command line.
pub(crate) fn full_key(database: &TestDatabase) -> anyhow::Result<String> {
    let arguments = [
        "tributary",
        "admin",
        "key",
        "create",
        "--permission",
        "full",
    ];
    migrate(database)?;
    let done = command(database, &arguments)?.output()?;
    if !done.status.success() {
        bail!("no key: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(String::from_utf8(done.stdout)?.trim().to_owned())
}

/// A link by which an account is made, from the command line.
pub(crate) fn setup_link(database: &TestDatabase) -> anyhow::Result<String> {
    let arguments = [
        "tributary",
        "admin",
        "user",
        "create",
        "--email",
        "bench@example.com",
    ];
    migrate(database)?;
    // Whatever the address: only what comes behind it is used.
    let done = command(database, &arguments)?
        .env("TRIBUTARY_BASE_URL", "http://127.0.0.1")
        .output()?;
    if !done.status.success() {
        bail!("no link: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(String::from_utf8(done.stdout)?.trim().to_owned())
}

/// The four networks, simulated.
#[derive(Debug)]
pub(crate) struct SimulatorProcess {
    process: Server,
}

impl SimulatorProcess {
    /// Starts them, on a port that the system chooses.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["tributary", "simulator", "--listen", "127.0.0.1:0"])
            .env_clear()
            .envs(SETTINGS)
            .stdin(Stdio::null());
        Ok(Self {
            process: Server::spawn(command, SIMULATOR_GREETING)?,
        })
    }

    /// What makes a server send there.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let base = format!("http://{}", self.process.address);
        let network = |name: &str| (format!("TRIBUTARY_NETWORKS__{name}"), base.clone());
        vec![
            network("NETWORK_A__BASE_URL"),
            network("NETWORK_B__BASE_URL"),
            network("NETWORK_B__TOKEN_URL"),
            network("NETWORK_C__BASE_URL"),
            network("NETWORK_D__BASE_URL"),
            (
                "TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES".to_owned(),
                "true".to_owned(),
            ),
        ]
    }

    /// Calls their control interface.
    pub(crate) fn call(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let headers = format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        let (head, body) = send_request(self.process.address, method, path, &headers, &body)?;
        if !head.starts_with("HTTP/1.1 20") {
            bail!("{method} {path}: {body}");
        }
        Ok(serde_json::from_str(&body).unwrap_or_default())
    }
}
