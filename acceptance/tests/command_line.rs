//! The command line. Wrong settings are named and exit with 2; errors worth a retry exit with 1.

use serde_json::json;
use std::process::{Command, Output, Stdio};
use tributary_domain::forwarding::alert::AlertKind;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// Runs the binary with only these environment variables.
pub(crate) fn tributary(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    command(arguments, environment).output().unwrap()
}

/// Returns a command that runs the binary with only these environment variables.
pub(crate) fn command(arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let test = std::env::current_exe().unwrap();
    let binary = test
        .parent()
        .and_then(|deps| deps.parent())
        .unwrap()
        .join("tributary");
    let mut command = Command::new(binary);
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(Stdio::null());
    command
}

fn run_refused(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    run_failing(2, arguments, environment)
}

fn run_failing(code: i32, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let output = tributary(arguments, environment);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    text
}

#[test]
fn a_wrong_setting_is_named() {
    let text = run_refused(&["serve"], &[("TRIBUTARY_LISTEN", "everywhere")]);
    assert!(text.contains("TRIBUTARY_LISTEN"), "{text}");
    let text = run_refused(&["serve"], &[("TRIBUTARY_LISTNE", "127.0.0.1:0")]);
    assert!(
        text.contains("TRIBUTARY_LISTNE") && text.contains("TRIBUTARY_LISTEN"),
        "{text}"
    );
    let folder = TestDatabase::temp_folder();
    let file = folder.path().join("t.toml");
    std::fs::write(&file, "listen = 5\n[limits]\nconections = 3\n").unwrap();
    let text = run_refused(&["serve", "--config", file.to_str().unwrap()], &[]);
    assert!(
        text.contains("listen") && text.contains("conections"),
        "every fault is reported at once: {text}"
    );
}

#[test]
fn a_command_in_the_wrong_folder_creates_no_database_there() {
    let folder = TestDatabase::temp_folder();
    let data = folder.path().to_str().unwrap();
    for command in [
        "admin organization list",
        "admin organization create Acme",
        "admin user create --email you@example.com",
        "admin key list",
        "admin key create --permission full",
        "admin key revoke key_00000000000000000000000000",
        "fx status",
        "fx import -",
        "import --app app_00000000000000000000000000 -",
        "rollups rebuild",
        "backup file.db",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let text = run_refused(&words, &[("TRIBUTARY_DATA_DIR", data)]);
        assert!(text.contains("check data_dir"), "{text}");
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn an_occupied_port_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = TestDatabase::temp_folder();
    let data = folder.path().to_str().unwrap();
    // The port may become free, so a supervisor should retry.
    let text = run_failing(
        1,
        &["serve"],
        &[("TRIBUTARY_LISTEN", &address), ("TRIBUTARY_DATA_DIR", data)],
    );
    assert!(
        text.contains(&address) && text.contains("TRIBUTARY_LISTEN"),
        "{text}"
    );
}

#[test]
fn postgres_errors_name_the_setting_and_hide_the_password() {
    let url = "postgres://someone:canary-password@127.0.0.1:1/x";
    let text = run_refused(&["serve"], &[("TRIBUTARY_DATABASE_URL", url)]);
    assert!(text.contains("secret_key"), "{text}");
    let key = "ab".repeat(32);
    let environment = [
        ("TRIBUTARY_DATABASE_URL", url),
        ("TRIBUTARY_SECRET_KEY", &key),
    ];
    let text = run_failing(1, &["migrate"], &environment);
    assert!(
        text.contains("database_url") && !text.contains("canary"),
        "{text}"
    );
}

#[test]
fn an_unwritable_folder_and_a_file_that_is_not_a_database_are_named() {
    let folder = TestDatabase::temp_folder();
    let file = folder.path().join("file");
    std::fs::write(&file, "text, not a database".repeat(100)).unwrap();
    // Not even root can create a folder below a file.
    let data = file.join("data");
    let data = data.to_str().unwrap();
    let text = run_refused(&["serve"], &[("TRIBUTARY_DATA_DIR", data)]);
    assert!(
        text.contains(data) && text.contains("writable") && text.contains("TRIBUTARY_DATA_DIR"),
        "{text}"
    );
    let url = format!("sqlite:{}", file.display());
    let data = folder.path().join("data");
    let environment = [
        ("TRIBUTARY_DATABASE_URL", url.as_str()),
        ("TRIBUTARY_DATA_DIR", data.to_str().unwrap()),
        ("TRIBUTARY_LISTEN", "127.0.0.1:0"),
    ];
    // The setting may name the wrong file, or the database's first page may be damaged.
    let text = run_failing(3, &["serve"], &environment);
    assert!(
        text.contains(file.to_str().unwrap()) && text.contains("database_url"),
        "{text}"
    );
}

#[test]
fn the_compiled_in_rates_work_without_a_rate_source() {
    let folder = TestDatabase::temp_folder();
    let data = folder.path().to_str().unwrap();
    let environment = [
        ("TRIBUTARY_DATA_DIR", data),
        ("TRIBUTARY_RATES__URL", ""),
        ("TRIBUTARY_RATES__SECOND_URL", ""),
    ];
    assert!(tributary(&["migrate"], &environment).status.success());
    let output = tributary(&["fx", "status"], &environment);
    let status = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{status}");
    assert!(
        status.contains("compiled in: up to") && status.contains("rates.url is not set"),
        "{status}"
    );
}

#[test]
fn help_describes_the_product_and_every_command() {
    let help = |arguments: &[&str]| {
        let output = tributary(arguments, &[]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}");
        text
    };
    let text = help(&["--help"]);
    assert!(
        text.starts_with("Self-hosted install attribution"),
        "{text}"
    );
    let (_, commands) = text.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let names: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    for name in [
        "serve",
        "demo",
        "backup",
        "restore",
        "doctor",
        "completions",
        "man",
    ] {
        assert!(names.contains(&name), "{name}: {text}");
    }
    for name in names.into_iter().filter(|name| *name != "help") {
        let text = help(&[name, "--help"]);
        assert!(text.contains(&format!("Usage: tributary {name}")), "{text}");
    }
}

#[test]
fn completions_and_man_pages_list_the_commands() {
    let invalid_settings = [("TRIBUTARY_LISTEN", "everywhere")];
    for (shell, marker) in [
        ("bash", "complete -F _tributary"),
        ("zsh", "#compdef tributary"),
        ("fish", "complete -c tributary"),
    ] {
        let output = tributary(&["completions", shell], &invalid_settings);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "completions ignore the settings");
        assert!(
            text.contains(marker) && text.contains("without-key"),
            "{shell}"
        );
    }
    let output = tributary(&["man"], &invalid_settings);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains(".TH tributary 1") && text.contains("backup"),
        "{text}"
    );
    let folder = TestDatabase::temp_folder();
    let path = folder.path().join("man1");
    let written = tributary(
        &["man", "--folder", path.to_str().unwrap()],
        &invalid_settings,
    );
    assert!(written.status.success());
    for page in ["tributary.1", "tributary-demo.1", "tributary-admin-key.1"] {
        assert!(path.join(page).exists(), "{page}");
    }
}

#[test]
fn backup_and_restore_of_postgres_refer_to_pg_dump() {
    let key = "ab".repeat(32);
    let environment = [
        ("TRIBUTARY_DATABASE_URL", "postgres://someone@127.0.0.1:1/x"),
        ("TRIBUTARY_SECRET_KEY", key.as_str()),
    ];
    for command in ["backup", "restore"] {
        let text = run_refused(&[command, "file"], &environment);
        assert!(text.contains("pg_dump"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_different_secret_key_refuses_to_start() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let database = TestDatabase::new(engine).await;
        ServerProcess::full_key(&database);
        let (url, data) = (database.url(), database.folder());
        let key = "ab".repeat(32);
        let text = run_refused(
            &["serve"],
            &[
                ("TRIBUTARY_DATABASE_URL", &url),
                ("TRIBUTARY_DATA_DIR", data.to_str().unwrap()),
                ("TRIBUTARY_SECRET_KEY", &key),
                ("TRIBUTARY_LISTEN", "127.0.0.1:0"),
            ],
        );
        assert!(text.contains("secret_key"), "{engine:?}: {text}");
    }
}

#[test]
fn a_database_of_a_newer_version_is_rejected() {
    let folder = TestDatabase::temp_folder();
    let data = folder.path().to_str().unwrap();
    let environment = [
        ("TRIBUTARY_DATA_DIR", data),
        ("TRIBUTARY_LISTEN", "127.0.0.1:0"),
    ];
    assert!(tributary(&["migrate"], &environment).status.success());
    let path = folder.path().join("tributary.db");
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute(
            "insert into schema_migrations (number, name, checksum) values (999, 'future', 'x')",
            (),
        )
        .unwrap();
    let text = run_refused(&["serve"], &environment);
    assert!(
        text.contains("newer version") && text.contains("999"),
        "{text}"
    );
}

#[test]
fn doctor_reports_no_errors_for_a_new_installation() {
    let folder = TestDatabase::temp_folder();
    let data = folder.path().to_str().unwrap();
    let environment = [("TRIBUTARY_DATA_DIR", data)];
    for command in [
        vec!["migrate"],
        vec!["admin", "organization", "create", "First"],
    ] {
        assert!(tributary(&command, &environment).status.success());
    }
    let output = tributary(&["doctor"], &environment);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for area in [
        "configuration",
        "database",
        "disk",
        "clock",
        "postbacks",
        "rates",
        "network",
    ] {
        assert!(text.contains(area), "{area} is missing: {text}");
    }
    assert_eq!(output.status.code(), Some(0), "{text}");
}

#[test]
fn settings_are_printed_without_secrets() {
    let key = "ab".repeat(32);
    let output = tributary(&["config", "print"], &[("TRIBUTARY_SECRET_KEY", &key)]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("listen") && !text.contains(&key),
        "{text}"
    );
}

/// Sends an alert to a host that resolves to this machine. Returns the logged error.
async fn error_for_a_private_webhook(setting: &str) -> String {
    let database = TestDatabase::new(Engine::Sqlite).await;
    let server = ServerProcess::start(&database).await;
    let key = ServerProcess::full_key(&database);
    let app = json!({"name": "Runner", "alertWebhookUrl": "https://localhost/hook"});
    server
        .call("POST", "/api/v1/apps", &key, Some(app))
        .await
        .expect(201);
    assert!(server.terminate().success());
    let store = database.open().await;
    let now = Timestamp::from_millis(1_790_000_000_000);
    let (kind, message) = (AlertKind::RatesStale, "Stale.".to_owned());
    let raised = store.raise_alert_everywhere(kind, message, now, now, [1; 8]);
    assert_eq!(raised.await.unwrap(), 1);
    store.close().await;
    drop(store);
    let settings = [(setting, "true"), ("TRIBUTARY_LOG__LEVEL", "debug")];
    let server = ServerProcess::start_with(&database, &settings).await;
    for _ in 0..3_000 {
        let log = server.log();
        if let Some(line) = log
            .lines()
            .find(|line| line.contains("failed to send alert"))
        {
            return line.to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("no attempt was made: {}", server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_setting_for_simulators_does_not_open_the_network_to_webhooks() {
    let line = error_for_a_private_webhook("TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES").await;
    assert!(line.contains("private address"), "{line}");
    let line = error_for_a_private_webhook("TRIBUTARY_WEBHOOKS__ALLOW_PRIVATE_ADDRESSES").await;
    assert!(!line.contains("private address"), "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_served_on_a_separate_port_only() {
    let database = TestDatabase::new(Engine::Sqlite).await;
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().to_string()
    };
    let settings = [
        ("TRIBUTARY_METRICS__LISTEN", port.as_str()),
        ("TRIBUTARY_METRICS__ON_PUBLIC_PORT", "false"),
    ];
    let server = ServerProcess::start_with(&database, &settings).await;
    let public = reqwest::get(format!("{}/metrics", server.base_url()))
        .await
        .unwrap();
    assert_eq!(public.status(), 404);
    let private = reqwest::get(format!("http://{port}/metrics"))
        .await
        .unwrap();
    assert_eq!(private.status(), 200);
    let unknown = reqwest::get(format!("http://{port}/")).await.unwrap();
    assert_eq!(unknown.status(), 404);
    for response in [&public, &private, &unknown] {
        let id = response.headers()["x-request-id"].to_str().unwrap();
        assert!(id.starts_with("req_"), "{id}");
    }
    assert!(
        private
            .text()
            .await
            .unwrap()
            .contains("tributary_http_requests_total")
    );
}
