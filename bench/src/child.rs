//! Runs servers as child processes of this binary.

use crate::machine;
use crate::site::send_request;
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tributary_testkit::TestDatabase;

/// `secret_key` for all servers.
const SECRET_KEY: &str = "0909090909090909090909090909090909090909090909090909090909090909";
/// `secret_key` as bytes.
pub(crate) const SECRET_KEY_BYTES: [u8; 32] = [9; 32];
/// Highest rate limit that the settings accept.
const RATE_MAX: &str = "1000000";
/// Prefix of the first line that the server prints.
pub(crate) const GREETING: &str = "Tributary is running at http://";
/// Prefix of the first line that the simulator prints.
const SIMULATOR_GREETING: &str = "The simulator is running at http://";
/// Settings that differ from the defaults. Rate limits are so high that they do not cap the result,
/// but still cost their time. Exchange rates are not downloaded.
const SETTINGS: [(&str, &str); 9] = [
    ("TRIBUTARY_SECRET_KEY", SECRET_KEY),
    ("TRIBUTARY_LISTEN", "127.0.0.1:0"),
    ("TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_KEY", RATE_MAX),
    (
        "TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_ADDRESS",
        RATE_MAX,
    ),
    ("TRIBUTARY_LIMITS__UNVERIFIED_WRITES_PER_DAY", "0"),
    (
        "TRIBUTARY_LIMITS__UNVERIFIED_WRITES_PER_DAY_PER_ADDRESS",
        "0",
    ),
    // Requests name the visitor's address like behind a proxy.
    ("TRIBUTARY_TRUSTED_PROXIES", "127.0.0.1"),
    ("TRIBUTARY_RATES__URL", ""),
    ("TRIBUTARY_RATES__SECOND_URL", ""),
];

/// A running server. It is killed on drop.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// Returns a command that runs this binary on this database, with a clean environment.
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

/// Moves all data to an empty database. Returns the time that it took.
pub(crate) fn move_database(from: &TestDatabase, to: &TestDatabase) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let url = from.url();
    let arguments = ["tributary", "move", "--from", &url, "--cut-over"];
    let status = command(to, &arguments)?.status()?;
    if !status.success() {
        bail!("the move ended with {status}");
    }
    Ok(started.elapsed())
}

impl Server {
    /// Starts the product.
    pub(crate) fn product(database: &TestDatabase) -> anyhow::Result<Self> {
        Self::start(database, &["tributary", "serve"])
    }

    /// Starts the product with additional settings.
    pub(crate) fn product_with(
        database: &TestDatabase,
        settings: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let mut command = command(database, &["tributary", "serve"])?;
        command.envs(settings.iter().cloned());
        Self::spawn(command, GREETING)
    }

    /// Starts the bare server.
    pub(crate) fn bare() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("bare").env_clear().stdin(Stdio::null());
        Self::spawn(command, GREETING)
    }

    /// Starts the product under a tool such as `valgrind`: its program and arguments.
    pub(crate) fn under_tool(database: &TestDatabase, tool: &[String]) -> anyhow::Result<Self> {
        let product = command(database, &["postback-keys"])?;
        let (program, arguments) = tool.split_first().context("no tool")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .arg(product.get_program())
            .args(product.get_args())
            .env_clear()
            .stdin(Stdio::null());
        for (name, value) in product.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        // Idle threads that look for work would add instructions at random.
        command.env("TOKIO_WORKER_THREADS", "1");
        Self::spawn(command, GREETING)
    }

    /// Starts the product with test keys for postback signatures.
    pub(crate) fn with_postback_keys(database: &TestDatabase) -> anyhow::Result<Self> {
        Self::start(database, &["postback-keys"])
    }

    /// Starts a server and waits for its address. Its log goes to `/dev/null`, because a log file
    /// would compete with the database for the disk.
    fn start(database: &TestDatabase, arguments: &[&str]) -> anyhow::Result<Self> {
        Self::spawn(command(database, arguments)?, GREETING)
    }

    fn spawn(mut command: Command, greeting: &str) -> anyhow::Result<Self> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(File::create("/dev/null")?)
            .spawn()?;
        let output = child.stdout.take().context("stdout is not piped")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let address = line
            .strip_prefix(greeting)
            .and_then(|rest| rest.split(&[' ', '/', '\n']).next())
            .and_then(|address| address.parse().ok());
        let Some(address) = address else {
            let status = child.wait()?;
            bail!("the server did not start ({status}): {command:?}");
        };
        Ok(Self { child, address })
    }

    /// Returns the resident memory in bytes.
    pub(crate) fn memory(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|rest| rest.split_whitespace().next());
        let kilobytes: u64 = kilobytes.context("no VmRSS in /proc status")?.parse()?;
        Ok(kilobytes * 1024)
    }

    /// Returns the CPU time used so far, user and system.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        machine::processor_time(self.child.id())
    }

    /// Sends SIGTERM and waits until the server has finished the accepted requests.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.terminate()?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the server exited with {status}");
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
        // The process is already gone after `stop`.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Creates the database if no server has done so yet.
fn migrate(database: &TestDatabase) -> anyhow::Result<()> {
    let output = command(database, &["tributary", "migrate"])?.output()?;
    if !output.status.success() {
        bail!(
            "failed to create the database: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// Creates the tables and distributes them.
pub(crate) fn distribute(database: &TestDatabase) -> anyhow::Result<()> {
    run_tributary(database, &["migrate", "--distributed"])?;
    Ok(())
}

/// Runs a `tributary` command to its end. Returns its output.
pub(crate) fn run_tributary(database: &TestDatabase, arguments: &[&str]) -> anyhow::Result<String> {
    let arguments = [&["tributary"], arguments].concat();
    let output = command(database, &arguments)?.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("the command failed: {text}{error}");
    }
    Ok(text)
}

/// Creates a full live key with the command line.
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
    let output = command(database, &arguments)?.output()?;
    if !output.status.success() {
        bail!(
            "failed to create a key: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Creates a setup link with the command line.
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
    // Only the link's path is used, so any base URL will do.
    let output = command(database, &arguments)?
        .env("TRIBUTARY_BASE_URL", "http://127.0.0.1")
        .output()?;
    if !output.status.success() {
        bail!(
            "failed to create a setup link: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The network simulator as a child process.
#[derive(Debug)]
pub(crate) struct SimulatorProcess {
    process: Server,
}

impl SimulatorProcess {
    /// Starts the simulator on a free port.
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

    /// Returns the settings that make a server send to this simulator.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let base = format!("http://{}", self.process.address);
        let network = |name: &str| (format!("TRIBUTARY_NETWORKS__{name}"), base.clone());
        vec![
            network("NETWORK_A__BASE_URL"),
            network("NETWORK_B__BASE_URL"),
            network("NETWORK_B__TOKEN_URL"),
            network("NETWORK_B__REPORTS_URL"),
            network("NETWORK_C__BASE_URL"),
            network("NETWORK_D__BASE_URL"),
            (
                "TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES".to_owned(),
                "true".to_owned(),
            ),
        ]
    }

    /// Calls the control API.
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
