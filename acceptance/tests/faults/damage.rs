//! A database file is damaged after SIGKILL: the server detects it and does not serve it silently.

use crate::website::Website;
use rusqlite::Connection;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tributary_testkit::{Engine, ServerProcess, TestDatabase, TestResponse};

/// Files up to this size are checked before serving (docs/OPERATIONS.md, "A damaged database").
const CHECKED_BEFORE_SERVING_BYTES_MAX: u64 = 512 * 1024 * 1024;
const PAGE_BYTES: u64 = 4_096;
const SMALL: u64 = 100 * PAGE_BYTES;
const WAIT_MAX: Duration = Duration::from_secs(30);

/// An instance whose server was killed after it acknowledged an event.
struct KilledInstance {
    database: TestDatabase,
    site: Website,
    filler_ends_at: u64,
}

impl KilledInstance {
    /// Creates one with a filler table of this size, which only the integrity check reads.
    async fn new(filler_bytes: u64) -> Self {
        let database = TestDatabase::new(Engine::Sqlite).await;
        let key = ServerProcess::full_key(&database);
        let filler_ends_at = add_filler(&database.folder().join("tributary.db"), filler_bytes);
        let server = ServerProcess::start(&database).await;
        let site = Website::open_at(server.base_url(), &key).await;
        let site = site.at_real_time();
        site.send_accepted(&site.purchase("before", "9.99")).await;
        server.signal_and_wait("KILL");
        let killed = Self {
            database,
            site,
            filler_ends_at,
        };
        assert!(killed.marker().exists(), "SIGKILL leaves the marker");
        killed
    }

    fn file(&self) -> PathBuf {
        self.database.folder().join("tributary.db")
    }

    fn marker(&self) -> PathBuf {
        self.database.folder().join("tributary.db-unclean")
    }

    /// Overwrites pages of the filler.
    fn damage(&self) {
        let file = std::fs::OpenOptions::new().write(true).open(self.file());
        let noise = vec![0xff; 40_960];
        file.unwrap()
            .write_all_at(&noise, self.filler_ends_at - 20 * PAGE_BYTES)
            .unwrap();
    }

    /// Enlarges the file so that the server checks it in the background. `SQLite` ignores bytes
    /// after the last page, and a sparse file takes no disk space.
    fn enlarge(&self) {
        let file = std::fs::OpenOptions::new().write(true).open(self.file());
        let size = CHECKED_BEFORE_SERVING_BYTES_MAX + 1;
        file.unwrap().set_len(size).unwrap();
    }

    /// Checks that the old event exists, that a new one is accepted, and that a clean shutdown
    /// removes the marker.
    async fn assert_serves(&self) {
        let server = ServerProcess::start(&self.database).await;
        let site = self.site.through(server.base_url());
        site.logged_event("before").await;
        site.send_accepted(&site.purchase("after", "9.99")).await;
        let log = server.log();
        assert!(log.contains("after an unclean shutdown"), "{log}");
        assert!(self.marker().exists());
        // The marker stays if the background check is still running.
        if log.contains("in the background") {
            wait_until(|| server.log().contains("database check passed")).await;
        }
        assert!(server.terminate().success());
        assert!(!self.marker().exists());
        let again = ServerProcess::start(&self.database).await;
        assert!(!again.log().contains("after an unclean shutdown"));
        assert!(again.terminate().success());
    }
}

/// Adds a table at the end of the file. Returns the offset of its end.
fn add_filler(path: &Path, bytes: u64) -> u64 {
    let connection = Connection::open(path).unwrap();
    // A rollback journal and syncs would slow down writing a large file.
    connection
        .execute_batch("pragma journal_mode = delete; pragma synchronous = off")
        .unwrap();
    let sql = format!(
        "create table filler (x blob) strict; insert into filler values (zeroblob({bytes}))"
    );
    connection.execute_batch(&sql).unwrap();
    drop(connection);
    std::fs::metadata(path).unwrap().len()
}

/// Waits until a condition holds.
async fn wait_until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < WAIT_MAX);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_database_is_served_after_a_kill() {
    let killed = KilledInstance::new(SMALL).await;
    killed.assert_serves().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_sound_database_is_served_after_a_kill() {
    let killed = KilledInstance::new(SMALL).await;
    killed.enlarge();
    killed.assert_serves().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_database_is_not_served_and_its_backup_is() {
    let killed = KilledInstance::new(SMALL).await;
    let backup = killed.database.folder().join("backup.db");
    let backup = backup.to_str().unwrap();
    ServerProcess::run(&killed.database, &["backup", backup]).unwrap();
    killed.damage();
    for start in 0..2 {
        let started = ServerProcess::try_start_with(&killed.database, &[]).await;
        let ended = started.expect_err("the server does not start");
        assert_eq!(ended.status.code(), Some(3), "start {start}: {ended}");
        for part in [
            "the database is damaged",
            "copy the whole data folder",
            "tributary restore",
            "docs/OPERATIONS.md",
        ] {
            assert!(ended.log.contains(part), "{part}: {ended}");
        }
        assert!(killed.marker().exists());
    }

    let elsewhere = TestDatabase::new(Engine::Sqlite).await;
    ServerProcess::run(&elsewhere, &["restore", backup]).unwrap();
    let server = ServerProcess::start(&elsewhere).await;
    killed
        .site
        .through(server.base_url())
        .logged_event("before")
        .await;
    assert!(server.terminate().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_in_a_large_database_is_found_while_serving() {
    let killed = KilledInstance::new(CHECKED_BEFORE_SERVING_BYTES_MAX).await;
    killed.damage();
    let mut server = ServerProcess::spawn(&killed.database, &[]);
    wait_until(|| server.output().contains("Tributary is running at ")).await;
    let output = server.output();
    let url = output
        .split_whitespace()
        .find(|word| word.starts_with("http"));
    let site = killed.site.through(url.unwrap());
    let get = async |path: &str| {
        let answer = site.client.get(format!("{}{path}", site.base)).send();
        let answer = answer.await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let is_damage = |status: u16, text: &str| status == 503 && text.contains("database is damaged");
    let begun = Instant::now();
    loop {
        let (status, text) = get("/readyz").await;
        if is_damage(status, &text) {
            break;
        }
        assert_eq!(status, 200, "{text}");
        assert!(begun.elapsed() < WAIT_MAX);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let refused: TestResponse = site.send(&site.purchase("after", "9.99")).await;
    assert!(
        is_damage(refused.status.as_u16(), &refused.text),
        "{refused:?}"
    );
    // Reads still work and the process keeps running.
    assert_eq!(get("/healthz").await.0, 200);
    let log = site.log().await;
    assert!(log.iter().any(|event| event["eventId"] == "before"));
    assert!(log.iter().all(|event| event["eventId"] != "after"));
    assert!(server.is_running());
    assert!(
        server.log().contains("tributary restore"),
        "{}",
        server.log()
    );
    assert!(server.terminate().success());
    assert!(
        killed.marker().exists(),
        "the marker stays, so that the next start checks again"
    );
}
