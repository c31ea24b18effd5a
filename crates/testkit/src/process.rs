//! The real binary, in a process of its own that can be killed.

use crate::server::client;
use crate::{TestDatabase, TestResponse};
use reqwest::{Client, Method};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tributary_domain::keyring::Keyring;

/// How long a server may take to be ready.
const START_MAX: Duration = Duration::from_secs(30);
/// What every process of a test shares: PostgreSQL demands a key that all nodes have.
const SECRET_KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";

/// Where the networks and Apple are reached, unless a test says otherwise.
const OUTBOUND_URL_SETTINGS: [&str; 6] = [
    "TRIBUTARY_NETWORKS__NETWORK_A__BASE_URL",
    "TRIBUTARY_NETWORKS__NETWORK_B__BASE_URL",
    "TRIBUTARY_NETWORKS__NETWORK_B__TOKEN_URL",
    "TRIBUTARY_NETWORKS__NETWORK_C__BASE_URL",
    "TRIBUTARY_NETWORKS__NETWORK_D__BASE_URL",
    "TRIBUTARY_ADSERVICES__BASE_URL",
];

/// A server in a process of its own.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    base_url: String,
    client: Client,
    log: PathBuf,
    output: PathBuf,
}

/// A server that ended before it was ready.
#[derive(Debug)]
pub struct ServerExit {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to its log.
    pub log: String,
}

impl std::fmt::Display for ServerExit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "the server ended with {}: {}",
            self.status, self.log
        )
    }
}

/// The binary, which `./test` builds before the tests run.
fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    let folder = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("target/<profile>/deps");
    let binary = folder.join("tributary");
    assert!(
        binary.exists(),
        "{} is missing: run ./test, or cargo build first",
        binary.display()
    );
    binary
}

/// A command of the binary on this database, with nothing of the test's own environment.
fn command(database: &TestDatabase, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    apply_settings(database, command.args(arguments).env_clear());
    command
}

/// The settings that every process of a test has.
fn apply_settings(database: &TestDatabase, command: &mut Command) {
    command
        .env("TRIBUTARY_DATA_DIR", database.folder())
        .env("TRIBUTARY_DATABASE_URL", database.url())
        .env("TRIBUTARY_SECRET_KEY", SECRET_KEY)
        // No test asks a bank for its rates.
        .env("TRIBUTARY_RATES__URL", "")
        .env("TRIBUTARY_RATES__SECOND_URL", "")
        // And no test calls a network: nobody listens there.
        .envs(OUTBOUND_URL_SETTINGS.map(|setting| (setting, "http://127.0.0.1:9")))
        .stdin(Stdio::null());
}

impl ServerProcess {
    /// Starts one and waits until it is ready.
    pub async fn start(database: &TestDatabase) -> Self {
        Self::start_with(database, &[]).await
    }

    /// Starts one with settings of its own, on a port that the system chooses.
    pub async fn start_with(database: &TestDatabase, settings: &[(&str, &str)]) -> Self {
        let started = Self::try_start_with(database, settings).await;
        started.unwrap_or_else(|ended| panic!("{ended}"))
    }

    /// Starts one with these settings; an error when it ends instead of becoming ready.
    pub async fn try_start_with(
        database: &TestDatabase,
        settings: &[(&str, &str)],
    ) -> Result<Self, ServerExit> {
        let mut server = Self::spawn(database, settings);
        server.wait_until_ready().await?;
        Ok(server)
    }

    /// Starts one with settings of its own and does not wait until it is ready.
    pub fn spawn(database: &TestDatabase, settings: &[(&str, &str)]) -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let log = database.folder().join(format!("log-{run}"));
        let output = database.folder().join(format!("output-{run}"));
        let open = |path| std::fs::File::create(path).expect("a file");
        let child = command(database, &["serve"])
            .env("TRIBUTARY_LISTEN", "127.0.0.1:0")
            .envs(settings.iter().copied())
            .stdout(open(&output))
            .stderr(open(&log))
            .spawn()
            .expect("the server starts");
        Self {
            child,
            base_url: String::new(),
            client: client(),
            log,
            output,
        }
    }

    /// Starts one that writes its output and its log elsewhere, on a free port, and waits until it is ready.
    pub async fn start_writing_to(database: &TestDatabase, output: impl Fn() -> Stdio) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let child = command(database, &["serve"])
            .env("TRIBUTARY_LISTEN", &address)
            .stdout(output())
            .stderr(output())
            .spawn()
            .expect("the server starts");
        let mut server = Self {
            child,
            base_url: format!("http://{address}"),
            client: client(),
            log: PathBuf::new(),
            output: PathBuf::new(),
        };
        let ready = server.wait_until_ready().await;
        ready.unwrap_or_else(|ended| panic!("{ended}"));
        server
    }

    /// Waits until it answers that it is ready; an error when it ends instead.
    pub async fn wait_until_ready(&mut self) -> Result<(), ServerExit> {
        let begun = Instant::now();
        while begun.elapsed() < START_MAX {
            if let Some(status) = self.child.try_wait().expect("the process is ours") {
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
        panic!("the server is not ready: {}", self.log());
    }

    /// It says where it listens, and then it answers there.
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
        ready.await.is_ok_and(|answer| answer.status().is_success())
    }

    /// The secret that every process of a test has.
    pub fn keyring() -> Keyring {
        let bytes = tributary_domain::vocabulary::digest::from_hex(SECRET_KEY);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        Keyring::new(bytes.expect("32 bytes in hex"))
    }

    /// Where it is reached.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// What it wrote to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// What it printed.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Kills it with SIGKILL, which it cannot notice, while others may still be calling it.
    pub fn kill_now(&self) {
        let status = Command::new("kill")
            .args(["-KILL", &self.child.id().to_string()])
            .status();
        assert!(status.expect("kill is there").success());
    }

    /// Whether the process has not ended.
    pub fn is_running(&mut self) -> bool {
        let ended = self.child.try_wait().expect("the process is ours");
        ended.is_none()
    }

    /// Tells it to stop, as a supervisor would, and waits.
    pub fn terminate(self) -> ExitStatus {
        self.signal_and_wait("TERM")
    }

    /// Sends it a signal that ends it, and waits.
    pub fn signal_and_wait(mut self, signal: &str) -> ExitStatus {
        let status = Command::new("kill")
            .args(["-s", signal, &self.child.id().to_string()])
            .status();
        assert!(status.expect("kill is there").success());
        self.child.wait().expect("the process ends")
    }

    /// Calls with a key; nothing when no answer came.
    pub async fn try_call(
        &self,
        method: &str,
        path: &str,
        key: &str,
        body: Option<Value>,
    ) -> Option<TestResponse> {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
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

    /// Calls with a key.
    pub async fn call(
        &self,
        method: &str,
        path: &str,
        key: &str,
        body: Option<Value>,
    ) -> TestResponse {
        self.try_call(method, path, key, body)
            .await
            .expect("the server answers")
    }

    /// Runs another command of the binary beside it; gives what it printed.
    pub fn run(database: &TestDatabase, arguments: &[&str]) -> Result<String, String> {
        let done = command(database, arguments)
            .output()
            .expect("the command starts");
        let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
        if done.status.success() {
            Ok(text(&done.stdout))
        } else {
            Err(text(&done.stderr))
        }
    }

    /// A shell on this database, in which `tributary` is the binary, with nothing of the test's own environment. It
    /// is ended after a time.
    pub fn shell(database: &TestDatabase, time_limit: Duration) -> Command {
        let binary = binary();
        let folder = binary.parent().expect("a binary is in a folder").display();
        let mut command = Command::new("timeout");
        apply_settings(database, command.env_clear());
        command
            .env("PATH", format!("{folder}:/usr/local/bin:/usr/bin:/bin"))
            .args([&time_limit.as_secs().to_string(), "bash"]);
        command
    }

    /// A full live key, made by the command line.
    pub fn full_key(database: &TestDatabase) -> String {
        // Creates the database where no server has done so yet.
        Self::run(database, &["migrate"]).expect("a database");
        Self::run(
            database,
            &["admin", "key", "create", "--permission", "full"],
        )
        .expect("a key")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Already ended where a test killed it.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
