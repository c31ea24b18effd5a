//! Tests the binary's workers from outside, with fake servers for Apple and the bank.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tributary_server::outbound::{self, AddressPolicy, Outbound};
use url::Url;

/// Timeout for startup, for redeeming a token after one "not ready" response, and for shutdown.
const WAIT_MAX: Duration = Duration::from_secs(30);
const TOKEN: &str = "Y2FuYXJ5LXRva2Vu";
const DEVICE: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";
const TAP: &str = r#"{"attribution":true,"orgId":1,"campaignId":542370539,"claimType":"Click"}"#;
const RATES: &str = "date,currency,perEur\n2026-10-01,USD,1.15\n";

/// Responds "not ready" to the first request.
async fn redeem(
    State(request_count): State<Arc<AtomicUsize>>,
    token: String,
) -> (StatusCode, &'static str) {
    assert_eq!(token, TOKEN);
    match request_count.fetch_add(1, Ordering::SeqCst) {
        0 => (StatusCode::NOT_FOUND, ""),
        _ => (StatusCode::OK, TAP),
    }
}

/// Starts the fake servers and returns their address.
async fn start_fake_servers() -> String {
    let router = Router::new()
        .route("/apple/api/v1/", post(redeem))
        .route("/rates.csv", get(|| async { RATES }))
        .with_state(Arc::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// A data folder and the binary that uses it.
struct Installation {
    folder: PathBuf,
    fake_servers: String,
}

impl Installation {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
        command
            .args(arguments)
            .env_clear()
            .env("TRIBUTARY_DATA_DIR", &self.folder)
            .env("TRIBUTARY_LISTEN", "127.0.0.1:0")
            .env("TRIBUTARY_LOG__LEVEL", "debug")
            .env("TRIBUTARY_METRICS__ON_PUBLIC_PORT", "true")
            .env("TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES", "true")
            .env(
                "TRIBUTARY_ADSERVICES__BASE_URL",
                format!("{}/apple", self.fake_servers),
            )
            .env(
                "TRIBUTARY_RATES__URL",
                format!("{}/rates.csv", self.fake_servers),
            )
            .env("TRIBUTARY_RATES__SECOND_URL", "")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary runs")
    }

    /// Returns the output of a command, which must succeed.
    fn run_ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{output:?}");
        text(output.stdout).trim().to_owned()
    }

    fn import_from_standard_input(&self, content: &str) -> String {
        let mut import = self.command(&["fx", "import", "-"]);
        let mut child = import
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        child
            .stdin
            .take()
            .expect("it is piped")
            .write_all(content.as_bytes())
            .expect("it reads");
        let output = child.wait_with_output().expect("the binary runs");
        assert!(output.status.success(), "{output:?}");
        text(output.stdout)
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

/// Polls until there is a result.
async fn eventually<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let started_at = Instant::now();
    while started_at.elapsed() < WAIT_MAX {
        if let Some(result) = poll().await {
            return result;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not in time: {what}");
}

/// Returns the base URL that the server prints.
async fn base_url(output: &Path) -> String {
    eventually("the server is ready", async || {
        let text = fs::read_to_string(output).unwrap_or_default();
        let rest = text.strip_prefix("Tributary is running at ")?;
        rest.split_whitespace().next().map(str::to_owned)
    })
    .await
}

async fn call(url: String, key: (&str, &str), body: &Value) -> Value {
    let outbound = Outbound::new(AddressPolicy::Anywhere, WAIT_MAX).expect("a client");
    let request = outbound
        .request(Method::POST, &Url::parse(&url).expect("a URL"))
        .header(key.0, key.1)
        .json(body);
    let response = outbound.send(request).await.expect("a response");
    let status = response.status();
    let content = outbound::read_body(response, 1_000_000)
        .await
        .expect("a body");
    let text = text(content);
    assert!(status.is_success(), "{url}: {status} {text}");
    serde_json::from_str(&text).expect("JSON")
}

async fn metrics(base_url: &str) -> String {
    let outbound = Outbound::new(AddressPolicy::Anywhere, WAIT_MAX).expect("a client");
    let url = Url::parse(&format!("{base_url}/metrics")).expect("a URL");
    let response = outbound.send(outbound.request(Method::GET, &url)).await;
    let content = outbound::read_body(response.expect("a response"), 1_000_000)
        .await
        .expect("a body");
    text(content)
}

fn stop(mut child: Child) -> Option<i32> {
    kill_process(Pid::from_child(&child), Signal::TERM).expect("the process is ours");
    let started_at = Instant::now();
    while started_at.elapsed() < WAIT_MAX {
        if let Some(status) = child.try_wait().expect("the process is ours") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("the process is ours");
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_server_redeems_tokens_and_fetches_rates() {
    let folder = tempfile::tempdir().unwrap();
    let installation = Installation {
        folder: folder.path().join("data"),
        fake_servers: start_fake_servers().await,
    };
    let (output, log) = (folder.path().join("output"), folder.path().join("log"));
    let child = installation
        .command(&["serve"])
        .stdout(fs::File::create(&output).unwrap())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let base_url = base_url(&output).await;

    let key = installation.run_ok(&["admin", "key", "create", "--permission", "full"]);
    let bearer = format!("Bearer {key}");
    let apps = format!("{base_url}/api/v1/apps");
    let app = call(apps, ("authorization", &bearer), &json!({"name": "Runner"})).await;
    let sdk_key = app["data"]["sdk"]["liveKey"].as_str().unwrap();
    let configure = json!({"deviceId": DEVICE, "platform": "ios", "adServicesToken": TOKEN});
    let match_type = async || {
        let url = format!("{base_url}/api/track/configure");
        let response = call(url, ("x-tributary-key", sdk_key), &configure).await;
        response["data"]["attribution"]["matchType"]
            .as_str()
            .map(str::to_owned)
    };
    assert_eq!(
        match_type().await.as_deref(),
        Some("organic"),
        "the first response does not wait for Apple"
    );
    eventually("the token is redeemed", async || {
        match_type().await.filter(|found| found == "adservices")
    })
    .await;

    eventually("the rates are fetched", async || {
        let status = installation.run_ok(&["fx", "status"]);
        status.contains("imported: up to 2026-10-01").then_some(())
    })
    .await;
    let later = "date,currency,perUsd\n2026-10-02,UAH,41.2\n2026-10-02,KES,129\n";
    assert_eq!(
        installation.import_from_standard_input(later).trim(),
        "standard input: 2 rates for 2 currencies (KES UAH), 2026-10-02; 2 new or different"
    );
    let again = installation.import_from_standard_input(later);
    assert!(again.contains("; 0 new or different"), "{again}");

    let metrics = metrics(&base_url).await;
    for line in [
        "tributary_ad_services_attempts_total{outcome=\"not_ready\"} 1",
        "tributary_ad_services_attempts_total{outcome=\"attributed\"} 1",
        "tributary_worker_runs_total{worker=\"rates\",outcome=\"ok\"} 1",
        "tributary_rates_days_behind ",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
    assert_eq!(stop(child), Some(0));
    let log = fs::read_to_string(&log).unwrap();
    assert!(
        log.contains("fetched exchange rates") && log.contains("stopped"),
        "{log}"
    );
    for secret in [TOKEN, DEVICE, "542370539"] {
        assert!(!log.contains(secret), "{secret} is in the log: {log}");
    }
}

#[tokio::test]
async fn rejects_an_invalid_rate_file_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let installation = Installation {
        folder: folder.path().join("data"),
        fake_servers: "http://127.0.0.1:1".to_owned(),
    };
    let output = installation.run(&["fx", "status"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("there is no database"), "{text}");
    assert!(!installation.folder.exists(), "nothing is created");

    installation.run_ok(&["migrate"]);
    let file = folder.path().join("rates.csv");
    fs::write(&file, format!("{RATES}2026-10-02,UAH,cheap\n")).unwrap();
    let output = installation.run(&["fx", "import", file.to_str().unwrap()]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("rates.csv; nothing was stored"), "{text}");
    assert!(
        text.contains("line 3: UAH: must be a decimal number"),
        "{text}"
    );
}
