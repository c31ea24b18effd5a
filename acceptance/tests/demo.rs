//! `tributary demo`, as a newcomer meets it: one command, a filled dashboard that moves, and nothing left behind.

use crate::networks::now_ms;
use reqwest::{Client, StatusCode};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tributary_testkit::{TestDatabase, client};

/// How long an unoptimised demo may take to fill its database on a machine that does other things beside it.
const READY_MAX: Duration = Duration::from_mins(6);
/// How long until something new must have happened.
const NEWS_MAX: Duration = Duration::from_mins(3);
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The binary, with nothing of the test's own environment.
fn tributary(arguments: &[&str]) -> Command {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    let mut command = Command::new(folder.join("tributary"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

/// A demo in a process of its own.
struct Demo {
    child: Child,
    output: PathBuf,
    /// Where it makes its temporary folder.
    temporary: tempfile::TempDir,
    client: Client,
}

impl Demo {
    fn start() -> Self {
        let client = client();
        let temporary = TestDatabase::temp_folder();
        let output = temporary.path().join("output");
        let child = tributary(&["demo", "--listen", "127.0.0.1:0"])
            // Its own; a setting of a real server that must not matter.
            .env("TMPDIR", temporary.path())
            .env(
                "TRIBUTARY_DATABASE_URL",
                "postgres://nobody@127.0.0.1:1/real",
            )
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

    /// What stands behind a label of its greeting.
    fn told(&self, label: &str) -> String {
        let output = self.output();
        let line = output
            .lines()
            .find_map(|line| line.trim().strip_prefix(label));
        let line = line.unwrap_or_else(|| panic!("no {label} in {output}"));
        line.split_whitespace().next().unwrap().to_owned()
    }

    async fn ready(&mut self) {
        let begun = Instant::now();
        while !self.output().contains("Ctrl-C stops it") {
            let ended = self.child.try_wait().unwrap();
            assert_eq!(ended, None, "{}", self.output());
            assert!(begun.elapsed() < READY_MAX, "{}", self.output());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn get(&self, path: &str) -> Value {
        let base = self.told("Dashboard");
        let answer = self
            .client
            .get(format!("{}{path}", base.trim_end_matches('/')))
            .bearer_auth(self.told("API key"))
            .send()
            .await
            .unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    fn stop(mut self) -> tempfile::TempDir {
        let told = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        assert!(told.unwrap().success());
        assert!(self.child.wait().unwrap().success());
        std::mem::replace(&mut self.temporary, TestDatabase::temp_folder())
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Already ended where the test stopped it.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The folders in a folder.
fn folders(of: &std::path::Path) -> Vec<PathBuf> {
    let entries = of.read_dir().unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_command_shows_everything_and_leaves_nothing_behind() {
    let mut demo = Demo::start();
    demo.ready().await;
    let base = demo.told("Dashboard").trim_end_matches('/').to_owned();
    assert_eq!(folders(demo.temporary.path()).len(), 1);

    // The account that it prints is let in, by the page that people use.
    let form = format!(
        "email={}&password={}",
        demo.told("E-mail").replace('@', "%40"),
        demo.told("Password")
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
    let front = demo
        .client
        .get(format!("{base}/portfolio"))
        .header("cookie", cookie)
        .send()
        .await
        .unwrap();
    assert_eq!(front.status(), StatusCode::OK);
    let page = front.text().await.unwrap();
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
        is_lively(&demo, app).await;
    }
    moves(&demo, &apps).await;

    let folder = folders(demo.temporary.path()).remove(0);
    let temporary = demo.stop();
    assert!(!folder.exists());
    assert_eq!(folders(temporary.path()), Vec::<PathBuf>::new());
}

/// Sixty days of everything.
async fn is_lively(demo: &Demo, app: &str) {
    let path = format!("/api/v1/apps/{app}");
    let from = jiff::Timestamp::from_millisecond(now_ms() - 59 * DAY_MS).unwrap();
    let from = from.strftime("%Y-%m-%d");
    let question = format!("{path}/stats?groupBy=day&from={from}&timezone=UTC&limit=500");
    let stats = demo.get(&question).await;
    let busy = stats["data"].as_array().unwrap().iter();
    let busy = busy.filter(|day| day["installs"].as_i64().unwrap() > 0);
    assert!(busy.count() > 50, "{stats}");
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

    let installs = demo
        .get(&format!("{path}/events?name=install&limit=500"))
        .await;
    let installs = installs["data"].as_array().unwrap();
    let by = |install: &Value| {
        install["attribution"]["matchType"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let match_types: BTreeSet<String> = installs.iter().map(by).collect();
    let every = [
        "adservices",
        "click_id",
        "organic",
        "probabilistic",
        "referrer",
    ];
    assert_eq!(match_types, every.map(str::to_owned).into());
    assert!(is_suspicious(demo, &path, installs).await, "nobody cheats");
}

/// Whether any of the installs was marked, or refused.
async fn is_suspicious(demo: &Demo, path: &str, installs: &[Value]) -> bool {
    for install in installs {
        let device = install["deviceId"].as_str().unwrap();
        let story = demo
            .get(&format!("{path}/devices/{device}"))
            .await
            .to_string();
        if story.contains("short_ctit") || story.contains("impossible_device") {
            return true;
        }
    }
    false
}

/// Something new happens, and what happened of late is delivered to the networks.
async fn moves(demo: &Demo, apps: &[String]) {
    let begun = Instant::now();
    let started = now_ms();
    let (mut news, mut delivered) = (false, false);
    while !(news && delivered) {
        assert!(
            begun.elapsed() < NEWS_MAX,
            "news: {news}, delivered: {delivered}"
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
        for app in apps {
            let newest = demo
                .get(&format!("/api/v1/apps/{app}/events?limit=1"))
                .await;
            news |= newest["data"][0]["timestampMs"].as_i64().unwrap() > started;
            let path = format!("/api/v1/apps/{app}/deliveries?status=delivered&limit=1");
            delivered |= demo.get(&path).await["data"][0].is_object();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_is_taken_is_said_before_anything_is_made() {
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
