//! The real binary as a child process that can be killed.

use crate::server::client;
use crate::{TestDatabase, TestResponse};
use reqwest::{Client, Method};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tributary_domain::keyring::Keyring;

/// Maximum time until a server is ready.
const START_MAX: Duration = Duration::from_secs(30);
/// Time after which a line is in the log. The server writes the log every 10 ms.
const LOG_DELAY_MAX: Duration = Duration::from_millis(100);
/// `secret_key` shared by all processes in a test. PostgreSQL nodes need a common key.
const SECRET_KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";

/// Settings for the URLs of the networks and Apple. By default, tests point them at a closed port.
const OUTBOUND_URL_SETTINGS: [&str; 7] = [
    "TRIBUTARY_NETWORKS__NETWORK_A__BASE_URL",
    "TRIBUTARY_NETWORKS__NETWORK_B__BASE_URL",
    "TRIBUTARY_NETWORKS__NETWORK_B__TOKEN_URL",
    "TRIBUTARY_NETWORKS__NETWORK_B__REPORTS_URL",
    "TRIBUTARY_NETWORKS__NETWORK_C__BASE_URL",
    "TRIBUTARY_NETWORKS__NETWORK_D__BASE_URL",
    "TRIBUTARY_ADSERVICES__BASE_URL",
];

/// A server as a child process.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    base_url: String,
    client: Client,
    log: PathBuf,
    output: PathBuf,
}

/// A server that exited before it was ready.
#[derive(Debug)]
pub struct ServerExit {
    /// Exit status.
    pub status: ExitStatus,
    /// Log output.
    pub log: String,
}

impl std::fmt::Display for ServerExit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "the server exited with {}: {}",
            self.status, self.log
        )
    }
}

/// Returns the path of the binary, which `./test` builds before the tests run.
fn binary() -> PathBuf {
    // Tests are in target/<profile>/deps, other programs in target/<profile>.
    let program = std::env::current_exe().expect("path of this program");
    let found = program
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("tributary"))
        .find(|binary| binary.exists());
    found.unwrap_or_else(|| {
        panic!(
            "there is no binary `tributary` near {}: run ./test or `cargo build` first",
            program.display()
        )
    })
}

/// Returns a command that runs the binary on this database, with a clean environment.
fn command(database: &TestDatabase, arguments: &[&str]) -> Command {
    command_of(&binary(), database, arguments)
}

fn command_of(binary: &Path, database: &TestDatabase, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary);
    apply_settings(database, command.args(arguments).env_clear());
    command
}

/// Runs a command. Returns what it printed.
fn output_of(command: &mut Command) -> Result<String, String> {
    let output = command.output().expect("start the command");
    let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

/// Applies the settings common to all processes in a test.
fn apply_settings(database: &TestDatabase, command: &mut Command) {
    command
        .env("TRIBUTARY_DATA_DIR", database.folder())
        .env("TRIBUTARY_DATABASE_URL", database.url())
        .env("TRIBUTARY_SECRET_KEY", SECRET_KEY)
        // Tests do not download exchange rates.
        .env("TRIBUTARY_RATES__URL", "")
        .env("TRIBUTARY_RATES__SECOND_URL", "")
        // Tests read the metrics on the port that they know.
        .env("TRIBUTARY_METRICS__ON_PUBLIC_PORT", "true")
        // Tests do not call real networks: this port is closed.
        .envs(OUTBOUND_URL_SETTINGS.map(|setting| (setting, "http://127.0.0.1:9")))
        .stdin(Stdio::null());
}

impl ServerProcess {
    /// Starts a server and waits until it is ready.
    pub async fn start(database: &TestDatabase) -> Self {
        Self::start_with(database, &[]).await
    }

    /// Starts a server with additional settings, on a free port.
    pub async fn start_with(database: &TestDatabase, settings: &[(&str, &str)]) -> Self {
        let started = Self::try_start_with(database, settings).await;
        started.unwrap_or_else(|exit| panic!("{exit}"))
    }

    /// Starts a server with additional settings. Returns an error if it exits before it is ready.
    pub async fn try_start_with(
        database: &TestDatabase,
        settings: &[(&str, &str)],
    ) -> Result<Self, ServerExit> {
        let mut server = Self::spawn(database, settings);
        server.wait_until_ready().await?;
        Ok(server)
    }

    /// Starts a server of another version, or of this one if `binary` is `None`.
    pub async fn start_version(database: &TestDatabase, binary: Option<&Path>) -> Self {
        let current = self::binary();
        let mut server = Self::spawn_binary(binary.unwrap_or(&current), database, &[]);
        let ready = server.wait_until_ready().await;
        ready.unwrap_or_else(|exit| panic!("{exit}"));
        server
    }

    /// Starts a server with additional settings without waiting until it is ready.
    pub fn spawn(database: &TestDatabase, settings: &[(&str, &str)]) -> Self {
        Self::spawn_binary(&binary(), database, settings)
    }

    fn spawn_binary(binary: &Path, database: &TestDatabase, settings: &[(&str, &str)]) -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let log = database.folder().join(format!("log-{run}"));
        let output = database.folder().join(format!("output-{run}"));
        let open = |path| std::fs::File::create(path).expect("create file");
        let child = command_of(binary, database, &["serve"])
            .env("TRIBUTARY_LISTEN", "127.0.0.1:0")
            .envs(settings.iter().copied())
            .stdout(open(&output))
            .stderr(open(&log))
            .spawn()
            .expect("start the server");
        Self {
            child,
            base_url: String::new(),
            client: client(),
            log,
            output,
        }
    }

    /// Starts a server with redirected output and log, on a free port, and waits until it is ready.
    pub async fn start_writing_to(database: &TestDatabase, output: impl Fn() -> Stdio) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("find a free port");
        let address = free.local_addr().expect("local address").to_string();
        drop(free);
        let child = command(database, &["serve"])
            .env("TRIBUTARY_LISTEN", &address)
            .stdout(output())
            .stderr(output())
            .spawn()
            .expect("start the server");
        let mut server = Self {
            child,
            base_url: format!("http://{address}"),
            client: client(),
            log: PathBuf::new(),
            output: PathBuf::new(),
        };
        let ready = server.wait_until_ready().await;
        ready.unwrap_or_else(|exit| panic!("{exit}"));
        server
    }

    /// Waits until `/readyz` succeeds. Returns an error if the server exits first.
    pub async fn wait_until_ready(&mut self) -> Result<(), ServerExit> {
        let begun = Instant::now();
        while begun.elapsed() < START_MAX {
            if let Some(status) = self.child.try_wait().expect("query the child process") {
                return Err(ServerExit {
                    status,
                    log: self.log(),
                });
            }
            if self.is_ready().await {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the server did not become ready: {}", self.log());
    }

    /// Reads the printed address once, then checks `/readyz`.
    async fn is_ready(&mut self) -> bool {
        if self.base_url.is_empty() {
            let output = self.output();
            let Some(url) = output.strip_prefix("Tributary is running at ") else {
                return false;
            };
            let url = url.split_whitespace().next().unwrap_or_default();
            url.clone_into(&mut self.base_url);
        }
        let ready = self.client.get(format!("{}/readyz", self.base_url)).send();
        ready
            .await
            .is_ok_and(|response| response.status().is_success())
    }

    /// Returns the keyring for the shared `secret_key`.
    pub fn keyring() -> Keyring {
        let bytes = tributary_domain::vocabulary::digest::from_hex(SECRET_KEY);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        Keyring::new(bytes.expect("32 bytes in hex"))
    }

    /// Returns the base URL.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the log output, including all lines about requests that have ended.
    pub fn log(&self) -> String {
        std::thread::sleep(LOG_DELAY_MAX);
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns the printed output.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Sends SIGKILL without waiting, so that requests may still be in flight.
    pub fn kill_now(&self) {
        let status = Command::new("kill")
            .args(["-KILL", &self.child.id().to_string()])
            .status();
        assert!(status.expect("run kill").success());
    }

    /// Returns the resident memory of the process in KiB.
    pub fn resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("read the status of the process");
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("VmRSS in the status");
        let number = value.trim().trim_end_matches(" kB");
        number.parse().expect("a number of KiB")
    }

    /// Returns whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        let status = self.child.try_wait().expect("query the child process");
        status.is_none()
    }

    /// Sends SIGTERM, like a supervisor, and waits.
    pub fn terminate(self) -> ExitStatus {
        self.signal_and_wait("TERM")
    }

    /// Sends a terminating signal and waits.
    pub fn signal_and_wait(mut self, signal: &str) -> ExitStatus {
        let status = Command::new("kill")
            .args(["-s", signal, &self.child.id().to_string()])
            .status();
        assert!(status.expect("run kill").success());
        self.child.wait().expect("wait for the process")
    }

    /// Sends a request with a key. Returns `None` if there was no response.
    pub async fn try_call(
        &self,
        method: &str,
        path: &str,
        key: &str,
        body: Option<Value>,
    ) -> Option<TestResponse> {
        let method = Method::from_bytes(method.as_bytes()).expect("valid method");
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.base_url))
            .bearer_auth(key);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let response = request.send().await.ok()?;
        let (status, headers) = (response.status(), response.headers().clone());
        Some(TestResponse {
            status,
            headers,
            text: response.text().await.ok()?,
        })
    }

    /// Sends a request with a key.
    pub async fn call(
        &self,
        method: &str,
        path: &str,
        key: &str,
        body: Option<Value>,
    ) -> TestResponse {
        self.try_call(method, path, key, body)
            .await
            .expect("response from the server")
    }

    /// Returns a command that runs the binary with these arguments, for tests that interrupt it.
    pub fn command(database: &TestDatabase, arguments: &[&str]) -> Command {
        command(database, arguments)
    }

    /// Runs the binary with these arguments. Returns what it printed.
    pub fn run(database: &TestDatabase, arguments: &[&str]) -> Result<String, String> {
        Self::run_with(database, &[], arguments)
    }

    /// Runs the binary with additional settings. Returns what it printed.
    pub fn run_with(
        database: &TestDatabase,
        settings: &[(&str, &str)],
        arguments: &[&str],
    ) -> Result<String, String> {
        let mut command = command(database, arguments);
        output_of(command.envs(settings.iter().copied()))
    }

    /// Runs a binary of another version, or this one if `binary` is `None`.
    pub fn run_version(
        database: &TestDatabase,
        binary: Option<&Path>,
        arguments: &[&str],
    ) -> Result<String, String> {
        let current = self::binary();
        output_of(&mut command_of(
            binary.unwrap_or(&current),
            database,
            arguments,
        ))
    }

    /// Returns a shell with a time limit and a clean environment, in which `tributary` is the
    /// binary on this database.
    pub fn shell(database: &TestDatabase, time_limit: Duration) -> Command {
        let binary = binary();
        let folder = binary.parent().expect("binary has a folder").display();
        let mut command = Command::new("timeout");
        apply_settings(database, command.env_clear());
        command
            .env("PATH", format!("{folder}:/usr/local/bin:/usr/bin:/bin"))
            .args([&time_limit.as_secs().to_string(), "bash"]);
        command
    }

    /// Creates a full live key with the command line.
    pub fn full_key(database: &TestDatabase) -> String {
        // Creates the database if no server has done so yet.
        Self::run(database, &["migrate"]).expect("create database");
        Self::run(
            database,
            &["admin", "key", "create", "--permission", "full"],
        )
        .expect("create key")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The process may already be gone.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
