//! Backups: made under load, restored elsewhere, and refused where something would be lost.

use crate::website::Website;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// Clients that send at a time.
const CLIENTS: usize = 6;
/// Events that are acknowledged before the backup begins.
const BEFORE: usize = 200;

/// Sends purchases without end, and writes down which were acknowledged.
async fn send(site: Website, client: usize, acknowledged: Arc<Mutex<Vec<String>>>) {
    for number in 0.. {
        let id = format!("order-{client}-{number}");
        site.accepted(&site.purchase(&id, "9.99")).await;
        acknowledged.lock().unwrap().push(id);
    }
}

/// How often each event is in the log.
async fn times(site: &Website) -> BTreeMap<String, usize> {
    let mut times = BTreeMap::new();
    for event in site.log().await {
        let id = event["eventId"].as_str().unwrap().to_owned();
        *times.entry(id).or_default() += 1;
    }
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_has_everything_that_was_acknowledged_before_it() {
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
    while acknowledged.lock().unwrap().len() < BEFORE {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let file = database.folder().join("backup.db");
    let before = acknowledged.lock().unwrap().clone();
    let made = {
        let arguments = ["backup", file.to_str().unwrap()];
        tokio::task::block_in_place(|| ServerProcess::run(&database, &arguments))
    };
    assert!(made.unwrap().contains("checked"));
    let after = acknowledged.lock().unwrap().len();
    println!(
        "{} acknowledged before, {} when it was done",
        before.len(),
        after
    );
    assert!(after > before.len(), "nobody waits for a backup");
    clients.shutdown().await;

    let elsewhere = TestDatabase::new(Engine::Sqlite).await;
    ServerProcess::run(&elsewhere, &["restore", file.to_str().unwrap()]).unwrap();
    let restored = ServerProcess::start(&elsewhere).await;
    let times = times(&site.through(restored.base_url())).await;
    for id in &before {
        assert_eq!(times.get(id), Some(&1), "{id}");
    }
    assert!(times.values().all(|times| *times == 1));
    // It goes on where it was: the same event again is known, a new one is taken.
    let site = site.through(restored.base_url());
    let again = site.send(&site.purchase(&before[0], "9.99")).await;
    assert_eq!(again.expect(202).data()["duplicate"], true);
    site.accepted(&site.purchase("order-after", "9.99")).await;
    assert_eq!(times_of(&site, &before[0]).await, 1);
    assert_eq!(times_of(&site, "order-after").await, 1);
    assert!(server.terminate().success() && restored.terminate().success());
}

async fn times_of(site: &Website, id: &str) -> usize {
    times(site).await.get(id).copied().unwrap_or(0)
}

/// A command on a data folder, whose key is in it.
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

fn done(data: &Path, arguments: &[&str]) -> String {
    let output = tributary(data, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(data: &Path, arguments: &[&str]) -> String {
    let output = tributary(data, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    errors
}

#[test]
fn one_file_is_all_that_it_takes_and_it_is_its_owners_alone() {
    let folder = TestDatabase::temp_folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let file = folder.path().join("backup.db");
    let name = file.to_str().unwrap();
    done(&from, &["migrate"]);
    done(&from, &["admin", "organization", "create", "First"]);
    let told = done(&from, &["backup", name]);
    assert!(told.contains("secret key"), "{told}");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );

    done(&to, &["restore", name]);
    let key = |folder: &Path| std::fs::read_to_string(folder.join("secret_key")).unwrap();
    assert_eq!(key(&from), key(&to));
    assert!(done(&to, &["admin", "organization", "list"]).contains("First"));
    let left: Vec<_> = folder.path().read_dir().unwrap().collect();
    assert_eq!(left.len(), 3, "nothing else is left behind: {left:?}");
}

#[test]
fn nothing_is_overwritten() {
    let folder = TestDatabase::temp_folder();
    let (data, file) = (folder.path().join("data"), folder.path().join("backup.db"));
    let name = file.to_str().unwrap();
    let text = refused(&data, &["backup", name]);
    assert!(text.contains("right folder") && !data.exists(), "{text}");
    done(&data, &["migrate"]);
    done(&data, &["admin", "organization", "create", "First"]);
    done(&data, &["backup", name]);
    let text = refused(&data, &["backup", name]);
    assert!(text.contains("--force"), "{text}");
    done(&data, &["backup", name, "--force"]);
    let text = refused(&data, &["restore", name]);
    assert!(
        text.contains("already") && text.contains("data_dir"),
        "{text}"
    );
    // Somebody took the file from under a server.
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("tributary.db-wal"), "").unwrap();
    let text = refused(&other, &["restore", name]);
    assert!(text.contains("stop"), "{text}");
}

/// The marker of a damaged database that was moved away does not make the restored one pass for unclean.
#[test]
fn a_marker_that_was_left_behind_goes() {
    let folder = TestDatabase::temp_folder();
    let (data, file) = (folder.path().join("data"), folder.path().join("backup.db"));
    let name = file.to_str().unwrap();
    done(&data, &["migrate"]);
    done(&data, &["admin", "organization", "create", "First"]);
    done(&data, &["backup", name]);
    let (database, marker) = (data.join("tributary.db"), data.join("tributary.db-unclean"));
    std::fs::write(&marker, "").unwrap();
    let text = refused(&data, &["restore", name]);
    assert!(text.contains("-unclean"), "{text}");
    assert!(marker.exists(), "a refusal removes nothing");

    std::fs::rename(&database, folder.path().join("moved.db")).unwrap();
    done(&data, &["restore", name]);
    assert!(!marker.exists());
    let listed = tributary(&data, &["admin", "organization", "list"]);
    let told = String::from_utf8_lossy(&listed.stdout).into_owned();
    let log = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(told.contains("First"), "{told}{log}");
    assert!(!marker.exists());
}

#[test]
fn a_backup_without_its_key_asks_for_it() {
    let folder = TestDatabase::temp_folder();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let file = folder.path().join("backup.db");
    let name = file.to_str().unwrap();
    done(&from, &["migrate"]);
    done(&from, &["admin", "organization", "create", "First"]);
    done(&from, &["backup", name, "--without-key"]);
    let text = refused(&to, &["restore", name]);
    assert!(text.contains("TRIBUTARY_SECRET_KEY"), "{text}");
    assert!(!to.join("tributary.db").exists());
    done(&to, &["migrate"]);
    done(&to, &["admin", "organization", "create", "Another"]);
    for file in ["tributary.db", "tributary.db-wal", "tributary.db-shm"] {
        // Whether the last command left them does not matter.
        let _gone = std::fs::remove_file(to.join(file));
    }
    let text = refused(&to, &["restore", name]);
    assert!(text.contains("not the one"), "{text}");
    std::fs::copy(from.join("secret_key"), to.join("secret_key")).unwrap();
    done(&to, &["restore", name]);
    assert!(done(&to, &["admin", "organization", "list"]).contains("First"));
}

#[test]
fn what_is_no_backup_is_not_restored() {
    let folder = TestDatabase::temp_folder();
    let (data, file) = (folder.path().join("data"), folder.path().join("letter"));
    let name = file.to_str().unwrap();
    let text = refused(&data, &["restore", name]);
    assert!(text.contains("no file"), "{text}");
    std::fs::write(&file, "these are the words of a letter ".repeat(500)).unwrap();
    let text = refused(&data, &["restore", name]);
    assert!(text.contains("no backup of Tributary"), "{text}");
    assert!(!data.exists());
}
