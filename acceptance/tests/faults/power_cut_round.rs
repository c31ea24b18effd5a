//! One round of the power-cut tests. `tributary serve` runs under load with
//! `acceptance/tools/powercut.c` preloaded and is killed. Only the bytes that it had synced remain.

use crate::website::{Website, with};
use rusqlite::Connection;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tributary_testkit::{Engine, ServerExit, ServerProcess, TestDatabase};

/// Concurrent clients.
const CLIENTS: usize = 12;
/// Bytes added to each event's page URL, so that the log fills up and is checkpointed.
const PADDING_BYTES: usize = 900;
/// Maximum wait for responses and for the injected errors.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// The pause between two erasures.
const ERASURE_INTERVAL: Duration = Duration::from_millis(100);

/// File or folder that an injected error hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Log,
    Database,
    Folder,
}

/// Parameters of a round.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// `POWERCUT_FAIL`.
    pub(super) faults: String,
    /// `POWERCUT_IGNORE`.
    pub(super) ignored: &'static str,
    /// `POWERCUT_LEAK`.
    pub(super) leak: u64,
    /// Seed of the leaks.
    pub(super) seed: u64,
    /// How long the load continues after the last fault.
    pub(super) load: Duration,
    /// Whether devices are erased during the load. Each erasure checkpoints the log.
    pub(super) erases_devices: bool,
    /// Whether the process is killed and restarted once before the power cut.
    pub(super) restarts: bool,
}

/// Result of a round.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) acknowledged: usize,
    pub(super) unavailable: usize,
    /// Number of devices whose erasure was acknowledged.
    pub(super) erased: usize,
    /// Injected errors with their targets.
    pub(super) injected: Vec<(Target, String)>,
    /// Checkpoints that a process with faults completed.
    pub(super) checkpoints: usize,
    /// First line of `integrity_check`, unless it is `ok`.
    pub(super) damage: Option<String>,
    /// Acknowledged events that are missing.
    pub(super) lost: Vec<String>,
    /// Erased devices that reappeared.
    pub(super) reappeared: Vec<String>,
}

/// An instance that survives one power cut after another.
pub(super) struct Machine {
    database: TestDatabase,
    library: PathBuf,
    _tools: TempDir,
    site: Website,
    /// Acknowledged events of all rounds.
    acknowledged: BTreeSet<String>,
    /// Erased devices of all rounds.
    erased: BTreeSet<String>,
    rounds: u64,
}

impl Machine {
    /// Compiles the library and sets up an instance without faults.
    pub(super) async fn new() -> Self {
        let tools = tempfile::tempdir().unwrap();
        let library = tools.path().join("libpowercut.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/powercut.c");
        let compiled = Command::new("cc")
            .args([
                "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
            ])
            .args([&library, &source])
            .args(["-ldl", "-pthread"])
            .status();
        assert!(compiled.expect("a C compiler (cc)").success());
        let database = TestDatabase::new(Engine::Sqlite).await;
        let key = ServerProcess::full_key(&database);
        let server = ServerProcess::start(&database).await;
        let site = Website::open_at(server.base_url(), &key).await;
        assert!(server.terminate().success());
        Self {
            database,
            library,
            _tools: tools,
            site,
            acknowledged: BTreeSet::new(),
            erased: BTreeSet::new(),
            rounds: 0,
        }
    }

    /// Runs a server under load, cuts the power, and checks the disk. The next round continues with
    /// that disk.
    pub(super) async fn round(&mut self, plan: &Plan) -> Outcome {
        self.rounds += 1;
        let disk = tempfile::tempdir().unwrap();
        copy_files(&self.database.folder(), disk.path());
        let mut outcome = Outcome::default();
        let started = self.load(plan, disk.path(), &mut outcome).await;
        // A supervisor would restart a process that failed to start.
        if plan.restarts || !started {
            let without_faults = Plan {
                faults: String::new(),
                ..plan.clone()
            };
            let started = self.load(&without_faults, disk.path(), &mut outcome).await;
            assert!(started, "the server starts without faults: {plan:?}");
        }
        std::fs::remove_dir_all(disk.path().join(".powercut")).unwrap();
        for file in database_files(&self.database.folder()) {
            std::fs::remove_file(file).unwrap();
        }
        copy_files(disk.path(), &self.database.folder());
        self.check(disk.path(), &mut outcome);
        outcome
    }

    /// Starts a server whose disk becomes full after some events. Keep the returned folder until
    /// the server has stopped.
    pub(super) async fn with_full_disk(&self) -> (ServerProcess, Website, TempDir) {
        let disk = tempfile::tempdir().unwrap();
        copy_files(&self.database.folder(), disk.path());
        let plan = Plan {
            faults: "write:-wal:400:full,write:.db:1:full".to_owned(),
            ignored: "",
            leak: 0,
            seed: 1,
            load: Duration::ZERO,
            erases_devices: false,
            restarts: false,
        };
        let server = self.start(&plan, disk.path()).await;
        let server = server.unwrap_or_else(|ended| panic!("{ended}"));
        let site = self.site.through(server.base_url()).at_real_time();
        (server, site, disk)
    }

    /// Starts a server with the library preloaded.
    async fn start(&self, plan: &Plan, disk: &Path) -> Result<ServerProcess, ServerExit> {
        let live = self.database.folder();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let (live, disk, library) = (text(&live), text(disk), text(&self.library));
        let (leak, seed) = (plan.leak.to_string(), plan.seed.to_string());
        let settings = [
            ("LD_PRELOAD", library.as_str()),
            ("POWERCUT_LIVE", &live),
            ("POWERCUT_DISK", &disk),
            ("POWERCUT_FAIL", &plan.faults),
            ("POWERCUT_IGNORE", plan.ignored),
            ("POWERCUT_LEAK", &leak),
            ("POWERCUT_SEED", &seed),
            ("POWERCUT_TELL", ".db"),
            // Real syncs are not needed, because the kernel survives the kill. Only bytes that the
            // library copied to its own folder after a successful sync count.
            ("POWERCUT_FAST", "1"),
        ];
        ServerProcess::try_start_with(&self.database, &settings).await
    }

    /// Starts a server, sends events, and kills it. Returns false if the server did not start.
    async fn load(&mut self, plan: &Plan, disk: &Path, outcome: &mut Outcome) -> bool {
        let server = match self.start(plan, disk).await {
            Ok(server) => server,
            Err(ended) => {
                assert!(!plan.faults.is_empty(), "{ended}");
                outcome.injected.extend(injected(&ended.log));
                return false;
            }
        };
        let load = Load {
            site: self.site.through(server.base_url()),
            name: format!("r{}-{}", self.rounds, outcome.acknowledged),
            stopped: Arc::default(),
            answered: Arc::default(),
        };
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| tokio::spawn(load.clone().send(client)))
            .collect();
        let eraser = plan
            .erases_devices
            .then(|| tokio::spawn(load.clone().erase()));
        wait_until(|| load.answered.load(Ordering::Relaxed) >= CLIENTS).await;
        let faults = plan.faults.split(',').filter(|fault| !fault.is_empty());
        let faults = faults.count();
        wait_until(|| injected(&server.log()).len() >= faults).await;
        tokio::time::sleep(plan.load).await;
        server.kill_now();
        load.stopped.store(true, Ordering::Relaxed);
        for client in clients {
            let (acknowledged, unavailable) = client.await.unwrap();
            outcome.acknowledged += acknowledged.len();
            outcome.unavailable += unavailable;
            self.acknowledged.extend(acknowledged);
        }
        if let Some(eraser) = eraser {
            let erased = eraser.await.unwrap();
            outcome.erased += erased.len();
            self.erased.extend(erased);
        }
        let log = server.log();
        if faults > 0 {
            outcome.checkpoints += log.matches("powercut: synced tributary.db\n").count();
        }
        outcome.injected.extend(injected(&log));
        true
    }

    /// Compares the database on the disk with the acknowledged requests.
    fn check(&self, disk: &Path, outcome: &mut Outcome) {
        match stored(&disk.join("tributary.db")) {
            Ok((events, devices)) => {
                let lost = self.acknowledged.difference(&events);
                outcome.lost = lost.cloned().collect();
                let reappeared = self.erased.intersection(&devices);
                outcome.reappeared = reappeared.cloned().collect();
            }
            Err(damage) => outcome.damage = Some(damage),
        }
    }
}

/// Waits until a condition holds, for at most `WAIT_MAX`.
async fn wait_until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() && begun.elapsed() < WAIT_MAX {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// State shared by the clients of one process.
#[derive(Debug, Clone)]
struct Load {
    site: Website,
    /// Prefix of the event ids.
    name: String,
    stopped: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
}

impl Load {
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Builds a purchase whose device has the same id.
    fn purchase(&self, id: &str) -> Value {
        let page = format!("{}/{}", crate::website::SHOP, "x".repeat(PADDING_BYTES));
        let event = with(&self.site.purchase(id, "9.99"), "sourceUrl", page);
        with(&with(&event, "deviceId", id), "timestampMs", now())
    }

    /// Sends events. Returns the acknowledged ids and the number of 503 responses.
    async fn send(self, client: usize) -> (Vec<String>, usize) {
        let (mut acknowledged, mut unavailable) = (Vec::new(), 0);
        for number in 0.. {
            if self.is_stopped() {
                break;
            }
            let id = format!("{}-c{client}-{number}", self.name);
            match self.site.try_send(&self.purchase(&id)).await {
                Some(answer) if answer.status == 202 => {
                    self.answered.fetch_add(1, Ordering::Relaxed);
                    acknowledged.push(id);
                }
                Some(answer) => {
                    assert_eq!(answer.status, 503, "{answer:?}");
                    unavailable += 1;
                }
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
        (acknowledged, unavailable)
    }

    /// Erases one device after another, which checkpoints the log. Returns the devices whose
    /// erasure was acknowledged.
    async fn erase(self) -> Vec<String> {
        let mut erased = Vec::new();
        for number in 0.. {
            if self.is_stopped() {
                break;
            }
            let id = format!("{}-erased-{number}", self.name);
            if let Some(sent) = self.site.try_send(&self.purchase(&id)).await
                && sent.status == 202
            {
                let path = format!("/devices/{id}");
                match self.site.try_call("DELETE", &path, Value::Null).await {
                    Some(answer) if answer.status == 204 => erased.push(id),
                    Some(answer) => assert_eq!(answer.status, 503, "{answer:?}"),
                    None => {}
                }
            }
            tokio::time::sleep(ERASURE_INTERVAL).await;
        }
        erased
    }
}

/// Returns the ids of all events and devices, or the damage that the integrity check found.
fn stored(path: &Path) -> Result<(BTreeSet<String>, BTreeSet<String>), String> {
    let read = || -> Result<(String, BTreeSet<String>, BTreeSet<String>), rusqlite::Error> {
        let connection = Connection::open(path)?;
        let check = connection.query_row("pragma integrity_check", (), |row| row.get(0))?;
        let ids = |sql| -> Result<BTreeSet<String>, rusqlite::Error> {
            let mut statement = connection.prepare(sql)?;
            let ids = statement.query_map((), |row| row.get(0))?;
            ids.collect()
        };
        let events = ids("select given_id from events")?;
        let devices = ids("select device_id from events where device_id is not null")?;
        Ok((check, events, devices))
    };
    match read() {
        Ok((check, events, devices)) if check == "ok" => Ok((events, devices)),
        Ok((damage, ..)) => Err(damage),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the database files of a folder.
fn database_files(folder: &Path) -> Vec<PathBuf> {
    let is_database_file = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("tributary.db"))
    };
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(is_database_file).collect()
}

/// Copies the database files, except `-shm`, which SQLite rebuilds.
fn copy_files(from: &Path, to: &Path) {
    for file in database_files(from) {
        let name = file.file_name().unwrap();
        if !name.to_str().unwrap().ends_with("-shm") {
            std::fs::copy(&file, to.join(name)).unwrap();
        }
    }
}

/// Returns the errors that the library reported in the log.
fn injected(log: &str) -> Vec<(Target, String)> {
    let lines = log
        .lines()
        .filter_map(|line| line.split_once("powercut: injected "));
    lines
        .map(|(_, injected)| {
            let (fault, file) = injected.split_once(" into ").unwrap();
            let target = match file {
                "tributary.db-wal" => Target::Log,
                "tributary.db" => Target::Database,
                "." => Target::Folder,
                _ => panic!("unknown target: {injected}"),
            };
            let (_, error) = fault.rsplit_once(':').unwrap();
            (target, error.to_owned())
        })
        .collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server process uses the system clock"
)]
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap().as_millis()).unwrap()
}
