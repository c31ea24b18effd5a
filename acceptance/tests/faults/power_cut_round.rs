//! One round of a power cut: `tributary serve` under load with `acceptance/tools/powercut.c` preloaded, killed, and then
//! only the bytes that it had made durable.

use crate::website::{Website, with};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tributary_testkit::{Database, Engine, ServerProcess};

/// Clients that send at a time.
const CLIENTS: usize = 12;
/// Bytes of each event's page address, so that the log fills up and is checkpointed.
const PADDING_BYTES: usize = 900;
/// How long to wait for answers before a cut, at most.
const ANSWERS_WAIT_MAX: Duration = Duration::from_secs(10);

/// How a round goes.
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
    /// How long the load goes on.
    pub(super) load: Duration,
    /// Whether the process is killed and started again once before the power fails.
    pub(super) restarted: bool,
}

/// What a round came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) acknowledged: usize,
    pub(super) unavailable: usize,
    pub(super) injected: usize,
    /// The first line of `integrity_check`, where it is not `ok`.
    pub(super) damage: Option<String>,
    pub(super) lost: Vec<String>,
}

/// An instance that loses its power again and again.
pub(super) struct Machine {
    database: Database,
    library: PathBuf,
    _tools: TempDir,
    site: Website,
    /// Every event that was ever acknowledged.
    acknowledged: BTreeSet<String>,
    rounds: u64,
}

impl Machine {
    /// Compiles the library and sets an instance up, without faults.
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
        let database = Database::new(Engine::Sqlite).await;
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
            rounds: 0,
        }
    }

    /// Runs a server under load, cuts its power, and looks at what is on the disk. The next round goes on from there.
    pub(super) async fn round(&mut self, plan: &Plan) -> Outcome {
        self.rounds += 1;
        let disk = tempfile::tempdir().unwrap();
        copy_files(&self.database.folder(), disk.path());
        let mut outcome = Outcome::default();
        if plan.restarted {
            self.load(plan, disk.path(), &mut outcome).await;
            let calm = Plan {
                faults: String::new(),
                ..plan.clone()
            };
            self.load(&calm, disk.path(), &mut outcome).await;
        } else {
            self.load(plan, disk.path(), &mut outcome).await;
        }
        std::fs::remove_dir_all(disk.path().join(".powercut")).unwrap();
        for file in database_files(&self.database.folder()) {
            std::fs::remove_file(file).unwrap();
        }
        copy_files(disk.path(), &self.database.folder());
        self.look(disk.path(), &mut outcome);
        outcome
    }

    /// Starts a server, sends events until it is time, and kills it.
    async fn load(&mut self, plan: &Plan, disk: &Path, outcome: &mut Outcome) {
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
            ("POWERCUT_FAST", "1"),
        ];
        let server = match ServerProcess::try_start_with(&self.database, &settings).await {
            Ok(server) => server,
            // An injected error may keep it from starting; then nothing was acknowledged.
            Err(ended) => {
                outcome.injected += count_injected(&ended.log);
                return;
            }
        };
        let site = self.site.through(server.base_url());
        let stopped = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicUsize::new(0));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let name = format!("r{}-{}-c{client}", self.rounds, outcome.acknowledged);
                let state = (stopped.clone(), answered.clone());
                tokio::spawn(send_until_stopped(site.clone(), name, state))
            })
            .collect();
        tokio::time::sleep(plan.load).await;
        let begun = Instant::now();
        while answered.load(Ordering::Relaxed) < CLIENTS && begun.elapsed() < ANSWERS_WAIT_MAX {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server.kill_now();
        stopped.store(true, Ordering::Relaxed);
        for client in clients {
            let (acknowledged, unavailable) = client.await.unwrap();
            outcome.acknowledged += acknowledged.len();
            outcome.unavailable += unavailable;
            self.acknowledged.extend(acknowledged);
        }
        outcome.injected += count_injected(&server.log());
    }

    fn look(&self, disk: &Path, outcome: &mut Outcome) {
        match stored(&disk.join("tributary.db")) {
            Ok(stored) => {
                let lost = self.acknowledged.difference(&stored);
                outcome.lost = lost.cloned().collect();
            }
            Err(damage) => outcome.damage = Some(damage),
        }
    }
}

async fn send_until_stopped(
    site: Website,
    name: String,
    (stopped, answered): (Arc<AtomicBool>, Arc<AtomicUsize>),
) -> (Vec<String>, usize) {
    let (mut acknowledged, mut unavailable) = (Vec::new(), 0);
    for number in 0.. {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("{name}-{number}");
        let page = format!("{}/{}", crate::website::SHOP, "x".repeat(PADDING_BYTES));
        let event = with(&site.purchase(&id, "9.99"), "sourceUrl", page);
        let event = with(&with(&event, "deviceId", id.as_str()), "timestampMs", now());
        match site.try_send(&event).await {
            Some(answer) if answer.status == 202 => {
                answered.fetch_add(1, Ordering::Relaxed);
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

/// The ids of all events of a sound database; otherwise what is wrong with it.
fn stored(path: &Path) -> Result<BTreeSet<String>, String> {
    let read = || -> Result<(String, BTreeSet<String>), rusqlite::Error> {
        let connection = Connection::open(path)?;
        let check = connection.query_row("pragma integrity_check", (), |row| row.get(0))?;
        let mut statement = connection.prepare("select given_id from events")?;
        let ids = statement.query_map((), |row| row.get(0))?;
        Ok((check, ids.collect::<Result<_, _>>()?))
    };
    match read() {
        Ok((check, ids)) if check == "ok" => Ok(ids),
        Ok((damage, _)) => Err(damage),
        Err(error) => Err(error.to_string()),
    }
}

/// The files that a power cut concerns: not `-shm`, which is rebuilt, and not what the test wrote.
fn database_files(folder: &Path) -> Vec<PathBuf> {
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("tributary.db"))
    };
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(is_ours).collect()
}

fn copy_files(from: &Path, to: &Path) {
    for file in database_files(from) {
        let name = file.file_name().unwrap();
        if !name.to_str().unwrap().ends_with("-shm") {
            std::fs::copy(&file, to.join(name)).unwrap();
        }
    }
}

fn count_injected(log: &str) -> usize {
    log.matches("powercut: injected").count()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server in another process has the real clock"
)]
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap().as_millis()).unwrap()
}
