//! Runs a scenario: one process of the server after another on the same disk, and the checks.

use crate::check;
use crate::client::Client;
use crate::disk::Disk;
use crate::network::Networks;
use crate::node::Node;
use crate::scenario::{EndKind, Scenario, Weakening};
use crate::template::Template;
use crate::totals::Totals;
use crate::vfs;
use crate::world::{ProcessTask, World};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Pause of a supervisor before it starts a process again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// A folder in memory, which is faster, if the machine has one.
const MEMORY_FOLDER: &str = "/dev/shm";

/// The result of a run.
#[derive(Debug, Clone)]
pub struct RunReport {
    /// Counts of what happened.
    pub totals: Totals,
    /// What the checks found. Empty if all is well.
    pub violations: Vec<String>,
    /// Hash of everything that happened, in order.
    pub trace_hash: String,
    /// Points at which the first process might have died.
    pub points: u64,
}

impl RunReport {
    /// Returns the kind of the first violation: its first word.
    pub fn kind(&self) -> Option<String> {
        let first = self.violations.first()?;
        first.split([' ', ':']).next().map(str::to_owned)
    }
}

/// How a process ended.
enum LifeEnd {
    /// It died or was stopped as planned.
    Planned(EndKind),
    /// All clients have finished.
    Finished,
    /// The database could not be opened because of an injected error. The server tries again by
    /// itself. There are finitely many errors, so it succeeds in the end.
    FailedToStart,
    /// The database could not be opened, and the server would not try again, or no error was injected.
    GaveUp(String),
}

/// Creates a runtime with one thread and virtual time.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true);
    builder.build().expect("a runtime without threads")
}

/// Runs a scenario.
pub fn run(scenario: &Scenario, weakening: Weakening, logs: bool) -> RunReport {
    vfs::register();
    let template = Template::get();
    let world = World::new(scenario.clone(), weakening, logs);
    let mut folder = temp_folder();
    template.restore(folder.path()).expect("write the template");
    let disk = Arc::new(Disk::new(world.clone(), folder.path()));
    let networks = Networks::new();
    let mut totals = Totals::default();
    let mut violations = Vec::new();
    let mut failed_starts = 0_u64;
    vfs::set_disk(Some(disk.clone()));
    loop {
        let planned = world.planned_end();
        let end = live(&world, &networks, &disk, planned.is_none());
        world.ledger().note_process_end();
        match end {
            LifeEnd::Planned(EndKind::PowerCut) => {
                totals.crashes += 1;
                let fresh = temp_folder();
                disk.cut_power(fresh.path()).expect("write the disk");
                folder = fresh;
            }
            LifeEnd::Planned(EndKind::Kill) => totals.crashes += 1,
            LifeEnd::Planned(EndKind::Stop) => totals.stops += 1,
            LifeEnd::Finished if planned.is_none() => break,
            LifeEnd::Finished => {}
            LifeEnd::FailedToStart => failed_starts += 1,
            LifeEnd::GaveUp(error) => {
                violations.push(format!("the database does not open: {error}"));
                break;
            }
        }
        world.skip(RESTART_PAUSE);
    }
    if violations.is_empty() {
        violations = check_all(&world, &networks, &disk);
    }
    vfs::set_disk(None);
    drop(folder);
    let ledger = world.ledger();
    totals.seeds = 1;
    totals.failed_starts = failed_starts;
    totals.disk_errors = world.disk_errors_count();
    totals.acknowledged = ledger.counts.acknowledged;
    totals.unknown = ledger.counts.unknown;
    totals.refused = ledger.counts.refused;
    violations.extend(ledger.unexpected.iter().cloned());
    totals.count_violations(&violations);
    drop(ledger);
    RunReport {
        totals,
        violations,
        trace_hash: world.trace_hash(),
        points: world.first_life_points(),
    }
}

fn temp_folder() -> TempDir {
    let memory = Path::new(MEMORY_FOLDER);
    let folder = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    folder.expect("a temporary folder")
}

/// Runs one process until it ends.
fn live(world: &Arc<World>, networks: &Arc<Networks>, disk: &Arc<Disk>, is_final: bool) -> LifeEnd {
    let runtime = runtime();
    let end = runtime.block_on(async {
        world.start_process();
        let end = live_until_end(world, networks, disk, is_final).await;
        world.end_process();
        end
    });
    // Drops what the process had open. A dead process's connections cannot write any more.
    drop(runtime);
    end
}

async fn live_until_end(
    world: &Arc<World>,
    networks: &Arc<Networks>,
    disk: &Arc<Disk>,
    is_final: bool,
) -> LifeEnd {
    let errors_before = world.disk_errors_count();
    let node = match Node::start(world, networks, &disk.folder()) {
        Ok(node) => node,
        Err(_) if world.is_down() => return planned(world),
        Err(error) if error.is_transient() && world.disk_errors_count() > errors_before => {
            return LifeEnd::FailedToStart;
        }
        Err(error) => return LifeEnd::GaveUp(error.to_string()),
    };
    let mut clients = tokio::task::JoinSet::new();
    for index in 0..world.scenario.clients {
        let client = Client {
            world: world.clone(),
            instance: &Template::get().instance,
            router: node.router.clone(),
            folder: disk.folder(),
            is_final,
        };
        clients.spawn(ProcessTask::new(world, "client", client.run(index)));
    }
    let finished = async {
        while let Some(ended) = clients.join_next().await {
            if ended.is_err() {
                let unexpected = "a request panicked".to_owned();
                world.ledger().unexpected.push(unexpected);
            }
        }
    };
    tokio::select! {
        biased;
        () = world.ended() => {}
        () = finished => {}
    }
    if world.is_down() {
        return planned(world);
    }
    let is_planned = world.has_ended();
    // Their connections are cut.
    clients.abort_all();
    tokio::select! {
        biased;
        () = world.died() => {}
        () = node.stop() => {}
    }
    if world.is_down() || is_planned {
        return planned(world);
    }
    LifeEnd::Finished
}

fn planned(world: &World) -> LifeEnd {
    let kind = world.planned_end().map(|end| end.kind);
    LifeEnd::Planned(kind.unwrap_or(EndKind::Kill))
}

/// Starts a last process without faults, lets it finish all deliveries, and checks everything.
fn check_all(world: &Arc<World>, networks: &Arc<Networks>, disk: &Arc<Disk>) -> Vec<String> {
    world.repair();
    let runtime = runtime();
    runtime.block_on(async {
        world.start_process();
        match Node::start(world, networks, &disk.folder()) {
            Ok(node) => check::check(world, networks, node, &disk.folder()).await,
            Err(error) => vec![format!("the database does not open: {error}")],
        }
    })
}
