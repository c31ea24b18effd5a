//! The commands that read from a running server: `tributary apps`, `links`, `stats`, `events` and
//! `deliveries`.

use crate::command_line::{command, tributary};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::task::JoinSet;
use tributary_testkit::{
    Engine, ServerProcess, TestDatabase, client, test_authority, test_certificate,
};

/// More events than a page of the API contains.
const EVENTS: usize = 620;
/// Clients that use up a limit of requests.
const BUSY_CLIENTS: usize = 4;
/// Rounds until a command has met the limit. Its request may come first when a second begins.
const BUSY_ROUNDS_MAX: usize = 5;

/// A server with an app, a link and events.
struct ClientFixture {
    server: ServerProcess,
    database: TestDatabase,
    key: String,
    app: String,
}

impl ClientFixture {
    async fn start() -> Self {
        let database = TestDatabase::new(Engine::Sqlite).await;
        let server = ServerProcess::start(&database).await;
        let key = ServerProcess::full_key(&database);
        let body = json!({"name": "Runner \u{202e}"});
        let created = server.call("POST", "/api/v1/apps", &key, Some(body)).await;
        let app = created.expect(201).data();
        let id = app["id"].as_str().unwrap().to_owned();
        let link = json!({"name": "Spring", "network": "network_a", "tags": ["q4", "paid"]});
        let links = format!("/api/v1/apps/{id}/links");
        server
            .call("POST", &links, &key, Some(link))
            .await
            .expect(201);
        let url = format!("{}/api/track/events", server.base_url());
        for batch in (0..EVENTS).collect::<Vec<_>>().chunks(100) {
            let events = batch.iter().map(|number| {
                json!({"eventId": format!("order-{number}"), "name": "purchase",
                       "revenue": "9.99", "currency": "USD"})
            });
            let body = json!({"deviceId": "d1", "events": events.collect::<Vec<_>>()});
            let request = client().post(&url).body(body.to_string());
            let request = request
                .header("x-tributary-key", app["sdk"]["liveKey"].as_str().unwrap())
                .header("content-type", "application/json");
            assert_eq!(request.send().await.unwrap().status(), 202);
        }
        Self {
            server,
            database,
            key,
            app: id,
        }
    }

    /// Runs a command with the address and the key in variables.
    fn run(&self, line: &str) -> Output {
        let words: Vec<&str> = line.split_whitespace().collect();
        let environment = [
            ("TRIBUTARY_SERVER", self.server.base_url()),
            ("TRIBUTARY_API_KEY", &self.key),
        ];
        tributary(&words, &environment)
    }

    /// Runs a command that succeeds. Returns its output and its notes.
    fn read(&self, line: &str) -> (String, String) {
        let output = self.run(line);
        let notes = text(&output.stderr);
        assert!(output.status.success(), "{line}: {notes}");
        (text(&output.stdout), notes)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs a command that fails. Returns the message.
fn failed(code: i32, line: &str, environment: &[(&str, &str)]) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = tributary(&words, environment);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{line}: {message}");
    assert_eq!(text(&output.stdout), "", "{line}");
    message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_tables_or_one_object_per_line() {
    let fixture = ClientFixture::start().await;
    let (all, notes) = fixture.read("events --all --json");
    let events: Vec<Value> = all
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: BTreeSet<&str> = events
        .iter()
        .map(|event| event["eventId"].as_str().unwrap())
        .collect();
    assert_eq!(
        (events.len(), ids.len(), notes.as_str()),
        (EVENTS, EVENTS, "")
    );
    assert_eq!(events[0]["revenue"]["amount"], json!(9.99));

    let (some, notes) = fixture.read("events --json --limit 501");
    assert_eq!(
        some,
        all.split_inclusive('\n').take(501).collect::<String>()
    );
    assert!(notes.contains("--all"), "{notes}");
    let (one, notes) = fixture.read("events --json --event-id order-7 --name PURCHASE");
    assert!(one.lines().count() == 1 && one.contains("order-7"), "{one}");
    assert_eq!(notes, "");

    let (table, notes) = fixture.read("events --limit 2");
    let lines: Vec<&str> = table.lines().collect();
    let starts: BTreeSet<Option<usize>> = lines
        .iter()
        .map(|line| line.find("NAME").or(line.find("purchase")))
        .collect();
    assert_eq!((lines.len(), starts.len()), (3, 1), "{table}");
    assert!(notes.contains("2 rows; there are more"), "{notes}");

    let (figures, _) = fixture.read("stats --json --group-by platform,event --event purchase");
    let figures: Value = serde_json::from_str(&figures).unwrap();
    assert_eq!(
        (&figures["events"], &figures["event"]),
        (&json!(EVENTS), &json!("purchase"))
    );
    let (figures, _) = fixture.read("stats --group-by event");
    assert!(
        figures.starts_with("EVENT") && figures.contains("6193.8"),
        "{figures}"
    );

    let (none, notes) = fixture.read("deliveries --status failed");
    assert!(
        none.is_empty() && notes.contains("no rows"),
        "{none}{notes}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_json_or_one_field_per_line() {
    let fixture = ClientFixture::start().await;
    let (apps, _) = fixture.read("apps --json");
    let path = format!("/api/v1/apps/{}", fixture.app);
    let data = fixture.server.call("GET", &path, &fixture.key, None).await;
    let app: Value = serde_json::from_str(&apps).unwrap();
    assert_eq!(app, data.expect(200).data());
    let (one, _) = fixture.read(&format!("apps {} --json", fixture.app));
    assert_eq!(one, apps);
    let (fields, _) = fixture.read(&format!("apps {}", fixture.app));
    assert!(fields.contains("\nsdk.enabled "), "{fields}");
    for table in [fields, fixture.read("apps").0] {
        assert!(table.contains(r"Runner \u{202e}") && !table.contains('\u{202e}'));
    }
    let (links, _) = fixture.read(&format!("links --app {} --tag Q4", fixture.app));
    assert!(
        links.contains("paid") && links.contains("network_a"),
        "{links}"
    );
    let id = links
        .split_whitespace()
        .find(|word| word.starts_with("lnk_"));
    let (link, _) = fixture.read(&format!("links {} --json", id.unwrap()));
    assert!(link.contains("\"name\":\"Spring\""), "{link}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_is_the_export_of_the_api() {
    let fixture = ClientFixture::start().await;
    for format in ["ndjson", "csv"] {
        let path = format!("/api/v1/apps/{}/export?format={format}", fixture.app);
        let expected = fixture.server.call("GET", &path, &fixture.key, None).await;
        let expected = expected.expect(200).text;
        assert!(expected.lines().count() >= EVENTS);
        let (printed, notes) = fixture.read(&format!("events export --format {format}"));
        assert_eq!((printed.as_str(), notes.as_str()), (expected.as_str(), ""));
        let file = fixture.database.folder().join(format);
        let name = file.display();
        let (printed, notes) =
            fixture.read(&format!("events export --format {format} --output {name}"));
        assert_eq!(printed, "");
        assert!(
            notes.contains("0.") && notes.contains("MB written to"),
            "{notes}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    }
    let output = fixture.run("events export --format xlsx --output /dev/null/none");
    assert_eq!(output.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_pipe_is_the_end() {
    let fixture = ClientFixture::start().await;
    let script =
        "set -o pipefail; for n in 1 2 3 4 5; do tributary events --all --json | head -n 1; done";
    let output = ServerProcess::shell(&fixture.database, Duration::from_mins(1))
        .args(["-c", script])
        .env("TRIBUTARY_SERVER", fixture.server.base_url())
        .env("TRIBUTARY_API_KEY", &fixture.key)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_say_what_to_do() {
    let fixture = ClientFixture::start().await;
    let (server, key) = (fixture.server.base_url(), fixture.key.as_str());
    let environment = [("TRIBUTARY_SERVER", server), ("TRIBUTARY_API_KEY", key)];

    let message = failed(2, "stats --from yesterday --country Germany", &environment);
    assert!(
        message.contains("422") && message.contains("`from`"),
        "{message}"
    );
    assert!(message.contains("req_"), "{message}");
    let other = "app_01k9z3v7q8e4r9m2x5c6b7n8d5";
    let message = failed(2, &format!("links --app {other}"), &environment);
    assert!(message.contains("app_not_found"), "{message}");

    let wrong = "ak_live_canarycanarycanary";
    let settings = [("TRIBUTARY_SERVER", server), ("TRIBUTARY_API_KEY", wrong)];
    let message = failed(2, "apps", &settings);
    assert!(
        message.contains("invalid_api_key") && message.contains("--key-file"),
        "{message}"
    );
    assert!(!message.contains("canary"), "{message}");
    let message = failed(2, "apps", &[("TRIBUTARY_SERVER", server)]);
    assert!(message.contains("TRIBUTARY_API_KEY"), "{message}");
    let settings = [
        ("TRIBUTARY_SERVER", "somewhere"),
        ("TRIBUTARY_API_KEY", key),
    ];
    assert!(failed(2, "apps", &settings).contains("TRIBUTARY_SERVER"));

    // A closed port.
    let unreachable = "apps --server http://127.0.0.1:9";
    assert!(failed(1, unreachable, &environment).contains("http://127.0.0.1:9"));
    let message = failed(2, &format!("apps --server {server}/t"), &environment);
    assert!(message.contains("404"), "{message}");

    let body = json!({"name": "Another"});
    let created = fixture.server.call("POST", "/api/v1/apps", key, Some(body));
    created.await.expect(201);
    let message = failed(2, "events", &environment);
    assert!(message.contains("--app"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_can_be_in_a_file_and_the_variables_are_no_settings() {
    let fixture = ClientFixture::start().await;
    let file = fixture.database.folder().join("key");
    std::fs::write(&file, format!("{}\n", fixture.key)).unwrap();
    let (server, file) = (fixture.server.base_url(), file.display().to_string());
    let arguments = ["apps", "--json", "--server", server, "--key-file", &file];
    let output = tributary(&arguments, &[("TRIBUTARY_API_KEY", "ak_live_wrong")]);
    assert!(output.status.success() && text(&output.stdout).contains(&fixture.app));

    let checked = fixture.run("config print");
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(!text(&checked.stdout).contains(&fixture.key));
    // These commands read no settings, so wrong ones do not matter.
    let settings = [
        ("TRIBUTARY_API_KEY", fixture.key.as_str()),
        ("TRIBUTARY_LISTEN", "?"),
    ];
    assert!(tributary(&arguments[..4], &settings).status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_waits_for_a_busy_server() {
    let database = TestDatabase::new(Engine::Sqlite).await;
    let key = ServerProcess::full_key(&database);
    let settings = [("TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_KEY", "1")];
    let server = ServerProcess::start_with(&database, &settings).await;
    let environment = [
        ("TRIBUTARY_SERVER", server.base_url()),
        ("TRIBUTARY_API_KEY", &key),
    ];
    for _ in 0..BUSY_ROUNDS_MAX {
        // Another client uses up the limit until the command has met it.
        let busy = UsedUpLimit::start(&server, &key).await;
        let mut process = command(&["apps"], &environment)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let notes = BufReader::new(process.stderr.take().unwrap());
        let ended = tokio::task::spawn_blocking(move || {
            let mut notes = notes.lines().map(Result::unwrap);
            let has_waited = notes.any(|note| note.contains("(429); trying again in "));
            drop(busy);
            let rest: Vec<String> = notes.collect();
            let status = process.wait().unwrap();
            assert!(status.success(), "{rest:?}");
            has_waited
        });
        if ended.await.unwrap() {
            return;
        }
    }
    panic!("no command met the limit");
}

/// Clients that send requests with a key as fast as they can, until it is dropped.
struct UsedUpLimit {
    _clients: JoinSet<()>,
}

impl UsedUpLimit {
    /// Starts the clients. Returns when the first request is refused.
    async fn start(server: &ServerProcess, key: &str) -> Self {
        let client = client();
        let url = format!("{}/api/v1/apps", server.base_url());
        let request = client.get(url).bearer_auth(key);
        let again = || request.try_clone().unwrap();
        while again().send().await.unwrap().status() != StatusCode::TOO_MANY_REQUESTS {}
        let mut clients = JoinSet::new();
        for _ in 0..BUSY_CLIENTS {
            let request = again();
            clients.spawn(async move {
                loop {
                    let sent = request.try_clone().unwrap().send().await;
                    sent.unwrap();
                }
            });
        }
        Self { _clients: clients }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_certificate_of_the_server_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let [certificate, private] = test_certificate(None);
    let database = TestDatabase::new(Engine::Sqlite).await;
    let key = ServerProcess::full_key(&database);
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let url = format!("https://localhost:{}", address.port());
    let settings = [
        ("TRIBUTARY_LISTEN", address.to_string()),
        ("TRIBUTARY_BASE_URL", url.clone()),
        (
            "TRIBUTARY_TLS__CERTIFICATE",
            write("certificate.pem", certificate),
        ),
        ("TRIBUTARY_TLS__KEY", write("key.pem", private)),
    ];
    let settings = settings
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let server = ServerProcess::spawn(&database, &settings);
    let authority = write("authority.pem", test_authority());
    let trusting = [
        ("TRIBUTARY_SERVER", url.as_str()),
        ("TRIBUTARY_API_KEY", key.as_str()),
        ("SSL_CERT_FILE", authority.as_str()),
    ];
    let mut output = tributary(&["apps", "--json"], &trusting);
    for _ in 0..600 {
        if output.status.success() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        output = tributary(&["apps", "--json"], &trusting);
    }
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stderr),
        server.log()
    );
    let message = failed(1, "apps", &trusting[..2]);
    assert!(message.contains("certificate"), "{message}");
}
