//! Backups: taken under load, restored elsewhere, and refused if they would overwrite data.

use crate::website::Website;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// Concurrent clients.
const CLIENTS: usize = 6;
/// Acknowledged events before the backup starts.
const EVENTS_BEFORE: usize = 200;

/// Sends purchases until the task is aborted and records which were acknowledged.
async fn send(site: Website, client: usize, acknowledged: Arc<Mutex<Vec<String>>>) {
    for number in 0.. {
        let id = format!("order-{client}-{number}");
        site.send_accepted(&site.purchase(&id, "9.99")).await;
        acknowledged.lock().unwrap().push(id);
    }
}

/// Counts how often each event is in the event log.
async fn event_counts(site: &Website) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in site.log().await {
        let id = event["eventId"].as_str().unwrap().to_owned();
        *counts.entry(id).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_contains_everything_acknowledged_before_it() {
    let database = TestDatabase::new(Engine::Sqlite).await;
    let server = ServerProcess::start(&database).await;
    let key = ServerProcess::full_key(&database);
    let site = Website::open_at(server.base_url(), &key)
        .await
        .at_real_time();
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let site = site.through(server.base_url());
        clients.spawn(send(site, client, acknowledged.clone()));
    }
    while acknowledged.lock().unwrap().len() < EVENTS_BEFORE {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let file = database.folder().join("backup.db");
    let before = acknowledged.lock().unwrap().clone();
    let backup = {
        let arguments = ["backup", file.to_str().unwrap()];
        tokio::task::block_in_place(|| ServerProcess::run(&database, &arguments))
    };
    assert!(backup.unwrap().contains("verified"));
    let after = acknowledged.lock().unwrap().len();
    println!(
        "{} acknowledged before the backup, {} after it",
        before.len(),
        after
    );
    assert!(after > before.len(), "a backup does not block requests");
    clients.shutdown().await;

    let elsewhere = TestDatabase::new(Engine::Sqlite).await;
    ServerProcess::run(&elsewhere, &["restore", file.to_str().unwrap()]).unwrap();
    let restored = ServerProcess::start(&elsewhere).await;
    let counts = event_counts(&site.through(restored.base_url())).await;
    for id in &before {
        assert_eq!(counts.get(id), Some(&1), "{id}");
    }
    assert!(counts.values().all(|count| *count == 1));
    // The restored server detects a repeated event and accepts a new one.
    let site = site.through(restored.base_url());
    let again = site.send(&site.purchase(&before[0], "9.99")).await;
    assert_eq!(again.expect(202).data()["duplicate"], true);
    site.send_accepted(&site.purchase("order-after", "9.99"))
        .await;
    assert_eq!(event_count(&site, &before[0]).await, 1);
    assert_eq!(event_count(&site, "order-after").await, 1);
    assert!(server.terminate().success() && restored.terminate().success());
}

async fn event_count(site: &Website, id: &str) -> usize {
    event_counts(site).await.get(id).copied().unwrap_or(0)
}

/// Runs a command on a data folder that contains its secret key.
fn tributary(data: &Path, arguments: &[&str]) -> Output {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    Command::new(folder.join("tributary"))
        .args(arguments)
        .env_clear()
        .env("TRIBUTARY_DATA_DIR", data)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn run(data: &Path, arguments: &[&str]) -> String {
    let output = tributary(data, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn run_refused(data: &Path, arguments: &[&str]) -> String {
    let output = tributary(data, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    errors
}

#[test]
fn a_backup_is_one_file_that_only_its_owner_can_read() {
    let folder = TestDatabase::temp_folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let file = folder.path().join("backup.db");
    let name = file.to_str().unwrap();
    run(&from, &["migrate"]);
    run(&from, &["admin", "organization", "create", "First"]);
    let text = run(&from, &["backup", name]);
    assert!(text.contains("secret key"), "{text}");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );

    run(&to, &["restore", name]);
    let key = |folder: &Path| std::fs::read_to_string(folder.join("secret_key")).unwrap();
    assert_eq!(key(&from), key(&to));
    assert!(run(&to, &["admin", "organization", "list"]).contains("First"));
    let left: Vec<_> = folder.path().read_dir().unwrap().collect();
    assert_eq!(left.len(), 3, "no other files remain: {left:?}");
}

#[test]
fn backup_and_restore_do_not_overwrite_files() {
    let folder = TestDatabase::temp_folder();
    let (data, file) = (folder.path().join("data"), folder.path().join("backup.db"));
    let name = file.to_str().unwrap();
    let text = run_refused(&data, &["backup", name]);
    assert!(text.contains("check data_dir") && !data.exists(), "{text}");
    run(&data, &["migrate"]);
    run(&data, &["admin", "organization", "create", "First"]);
    run(&data, &["backup", name]);
    let text = run_refused(&data, &["backup", name]);
    assert!(text.contains("--force"), "{text}");
    run(&data, &["backup", name, "--force"]);
    let text = run_refused(&data, &["restore", name]);
    assert!(
        text.contains("already") && text.contains("data_dir"),
        "{text}"
    );
    // The database file was removed while a server was running.
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("tributary.db-wal"), "").unwrap();
    let text = run_refused(&other, &["restore", name]);
    assert!(text.contains("stop"), "{text}");
}

/// A damaged database was moved away; its marker must not mark the restored one as unclean.
#[test]
fn restore_removes_a_leftover_unclean_marker() {
    let folder = TestDatabase::temp_folder();
    let (data, file) = (folder.path().join("data"), folder.path().join("backup.db"));
    let name = file.to_str().unwrap();
    run(&data, &["migrate"]);
    run(&data, &["admin", "organization", "create", "First"]);
    run(&data, &["backup", name]);
    let (database, marker) = (data.join("tributary.db"), data.join("tributary.db-unclean"));
    std::fs::write(&marker, "").unwrap();
    let text = run_refused(&data, &["restore", name]);
    assert!(text.contains("-unclean"), "{text}");
    assert!(marker.exists(), "a refused restore removes nothing");

    std::fs::rename(&database, folder.path().join("moved.db")).unwrap();
    run(&data, &["restore", name]);
    assert!(!marker.exists());
    let listed = tributary(&data, &["admin", "organization", "list"]);
    let output = String::from_utf8_lossy(&listed.stdout).into_owned();
    let log = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(output.contains("First"), "{output}{log}");
    assert!(!marker.exists());
}

#[test]
fn restoring_a_backup_without_its_key_asks_for_the_key() {
    let folder = TestDatabase::temp_folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let file = folder.path().join("backup.db");
    let name = file.to_str().unwrap();
    run(&from, &["migrate"]);
    run(&from, &["admin", "organization", "create", "First"]);
    run(&from, &["backup", name, "--without-key"]);
    let text = run_refused(&to, &["restore", name]);
    assert!(text.contains("TRIBUTARY_SECRET_KEY"), "{text}");
    assert!(!to.join("tributary.db").exists());
    run(&to, &["migrate"]);
    run(&to, &["admin", "organization", "create", "Another"]);
    for file in ["tributary.db", "tributary.db-wal", "tributary.db-shm"] {
        // The last command may have removed them.
        let _gone = std::fs::remove_file(to.join(file));
    }
    let text = run_refused(&to, &["restore", name]);
    assert!(text.contains("does not match"), "{text}");
    std::fs::copy(from.join("secret_key"), to.join("secret_key")).unwrap();
    run(&to, &["restore", name]);
    assert!(run(&to, &["admin", "organization", "list"]).contains("First"));
}

#[test]
fn restore_rejects_a_file_that_is_not_a_backup() {
    let folder = TestDatabase::temp_folder();
    let (data, file) = (folder.path().join("data"), folder.path().join("text"));
    let name = file.to_str().unwrap();
    let text = run_refused(&data, &["restore", name]);
    assert!(text.contains("does not exist"), "{text}");
    std::fs::write(&file, "this text is not a database file ".repeat(500)).unwrap();
    let text = run_refused(&data, &["restore", name]);
    assert!(text.contains("not a Tributary backup"), "{text}");
    assert!(!data.exists());
}
