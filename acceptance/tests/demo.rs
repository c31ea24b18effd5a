//! `tributary demo` shows a dashboard with live sample data and cleans up after itself.

use crate::networks::now_ms;
use reqwest::{Client, StatusCode};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tributary_testkit::{TestDatabase, client};

/// Maximum time until an unoptimised demo on a busy machine has filled its database.
const READY_MAX: Duration = Duration::from_mins(6);
/// Maximum time until the simulated networks receive a delivery.
const DELIVERED_MAX: Duration = Duration::from_mins(3);
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Returns a command for the binary with an empty environment.
fn tributary(arguments: &[&str]) -> Command {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    let mut command = Command::new(folder.join("tributary"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

/// A running demo process.
struct Demo {
    child: Child,
    output: PathBuf,
    /// Parent of the demo's temporary folder.
    temporary: tempfile::TempDir,
    client: Client,
}

impl Demo {
    fn start() -> Self {
        let client = client();
        let temporary = TestDatabase::temp_folder();
        let output = temporary.path().join("output");
        let child = tributary(&["demo", "--listen", "127.0.0.1:0"])
            // The demo must ignore the settings of a real server.
            .env("TMPDIR", temporary.path())
            .env("TRIBUTARY_DATABASE_URL", "postgres://user@127.0.0.1:1/real")
            .stdout(std::fs::File::create(&output).unwrap())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Self {
            child,
            output,
            temporary,
            client,
        }
    }

    fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap()
    }

    /// Returns the value after a label of the start-up message.
    fn printed_value(&self, label: &str) -> String {
        let output = self.output();
        let line = output
            .lines()
            .find_map(|line| line.trim().strip_prefix(label));
        let line = line.unwrap_or_else(|| panic!("no {label} in {output}"));
        line.split_whitespace().next().unwrap().to_owned()
    }

    async fn wait_until_ready(&mut self) {
        let begun = Instant::now();
        while !self.output().contains("Ctrl-C to stop the demo") {
            let ended = self.child.try_wait().unwrap();
            assert_eq!(ended, None, "{}", self.output());
            assert!(begun.elapsed() < READY_MAX, "{}", self.output());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn get(&self, path: &str) -> Value {
        let base = self.printed_value("Dashboard");
        let answer = self
            .client
            .get(format!("{}{path}", base.trim_end_matches('/')))
            .bearer_auth(self.printed_value("API key"))
            .send()
            .await
            .unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    fn stop(mut self) -> tempfile::TempDir {
        let kill = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        assert!(kill.unwrap().success());
        assert!(self.child.wait().unwrap().success());
        std::mem::replace(&mut self.temporary, TestDatabase::temp_folder())
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // The test may have stopped it already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Lists the folders in a folder.
fn folders(parent: &std::path::Path) -> Vec<PathBuf> {
    let entries = parent
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_shows_sample_data_and_removes_its_files() {
    let mut demo = Demo::start();
    demo.wait_until_ready().await;
    let base = demo
        .printed_value("Dashboard")
        .trim_end_matches('/')
        .to_owned();
    assert_eq!(folders(demo.temporary.path()).len(), 1);

    // The printed account can sign in.
    let form = format!(
        "email={}&password={}",
        demo.printed_value("Email").replace('@', "%40"),
        demo.printed_value("Password")
    );
    let sign_in = demo
        .client
        .post(format!("{base}/sign-in"))
        .header("origin", &base)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await
        .unwrap();
    assert_eq!(sign_in.status(), StatusCode::SEE_OTHER);
    let cookie = sign_in.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let portfolio = demo
        .client
        .get(format!("{base}/portfolio"))
        .header("cookie", cookie)
        .send()
        .await
        .unwrap();
    assert_eq!(portfolio.status(), StatusCode::OK);
    let page = portfolio.text().await.unwrap();
    for app in ["Lantern", "Stride", "Quill"] {
        assert!(page.contains(app), "{app} is missing: {page}");
    }

    let apps = demo.get("/api/v1/apps").await["data"].clone();
    let apps: Vec<String> = apps
        .as_array()
        .unwrap()
        .iter()
        .map(|app| app["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(apps.len(), 3);
    for app in &apps {
        assert_has_history(&demo, app).await;
    }
    assert!(holds_an_install(&demo, &apps).await, "no install is held");
    wait_for_a_delivery(&demo, &apps).await;

    let folder = folders(demo.temporary.path()).remove(0);
    let temporary = demo.stop();
    assert!(!folder.exists());
    assert_eq!(folders(temporary.path()), Vec::<PathBuf>::new());
}

/// Checks that an app has sixty days of data of every kind.
async fn assert_has_history(demo: &Demo, app: &str) {
    let path = format!("/api/v1/apps/{app}");
    let from = jiff::Timestamp::from_millisecond(now_ms() - 59 * DAY_MS).unwrap();
    let from = from.strftime("%Y-%m-%d");
    let query = format!("{path}/stats?groupBy=day&from={from}&timezone=UTC&limit=500");
    let stats = demo.get(&query).await;
    let days = stats["data"].as_array().unwrap().iter();
    let days_with_installs = days.filter(|day| day["installs"].as_i64().unwrap() > 0);
    assert!(days_with_installs.count() > 50, "{stats}");
    let totals = &stats["meta"]["totals"];
    for figure in [
        "clicks",
        "installs",
        "organicInstalls",
        "trials",
        "purchases",
        "renewals",
        "refunds",
        "revenue",
        "cost",
    ] {
        assert!(totals[figure].as_f64().unwrap() > 0.0, "{figure}: {totals}");
    }
    let overview = demo.get(&format!("{path}/overview")).await;
    assert!(
        overview["data"]["topCampaigns"][0].is_object(),
        "{overview}"
    );
    let postbacks = demo.get(&format!("{path}/skan/postbacks")).await;
    assert!(postbacks["data"][0].is_object(), "{postbacks}");

    for name in ["start_trial", "subscribe", "renewal", "refund"] {
        let query = format!("{path}/events?source=billing&name={name}&limit=1");
        let events = demo.get(&query).await;
        assert!(
            events["data"][0]["deviceId"].is_string(),
            "{name}: {events}"
        );
    }

    let installs = demo
        .get(&format!("{path}/events?name=install&limit=500"))
        .await;
    let installs = installs["data"].as_array().unwrap();
    let match_type = |install: &Value| {
        install["attribution"]["matchType"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let match_types: BTreeSet<String> = installs.iter().map(match_type).collect();
    let expected = [
        "adservices",
        "click_id",
        "organic",
        "probabilistic",
        "referrer",
    ];
    assert_eq!(match_types, expected.map(str::to_owned).into());
    assert!(
        has_fraud_signal(demo, &path, installs).await,
        "no install has a fraud signal"
    );
}

/// Returns whether an install was flagged or rejected as fraud.
async fn has_fraud_signal(demo: &Demo, path: &str, installs: &[Value]) -> bool {
    for install in installs {
        let device = install["deviceId"].as_str().unwrap();
        let device = demo
            .get(&format!("{path}/devices/{device}"))
            .await
            .to_string();
        if device.contains("short_ctit") || device.contains("impossible_device") {
            return true;
        }
    }
    false
}

/// Returns whether an install waits for a review.
async fn holds_an_install(demo: &Demo, apps: &[String]) -> bool {
    for app in apps {
        let held = demo.get(&format!("/api/v1/apps/{app}/held?limit=1")).await;
        if held["data"][0].is_object() {
            return true;
        }
    }
    false
}

/// Waits until the simulated networks receive a delivery. The live stream continues the history, so
/// at night minutes may pass without a new event; its tests are in the crate `sample`.
async fn wait_for_a_delivery(demo: &Demo, apps: &[String]) {
    let begun = Instant::now();
    loop {
        for app in apps {
            let path = format!("/api/v1/apps/{app}/deliveries?status=delivered&limit=1");
            if demo.get(&path).await["data"][0].is_object() {
                return;
            }
        }
        assert!(begun.elapsed() < DELIVERED_MAX, "nothing was delivered");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_occupied_port_is_reported_before_the_demo_creates_files() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let temporary = TestDatabase::temp_folder();
    let demo = tributary(&["demo", "--listen", &address])
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&demo.stderr).into_owned();
    assert_eq!(demo.status.code(), Some(1), "{text}");
    assert!(
        text.contains(&address) && text.contains("--listen"),
        "{text}"
    );
    assert_eq!(folders(temporary.path()), Vec::<PathBuf>::new());
}
