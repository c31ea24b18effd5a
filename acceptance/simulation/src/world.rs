//! The simulated machine: its clock, its random numbers, the points at which it may fail, and a
//! trace of everything that happens.

use crate::disk::DiskFault;
use crate::model::Ledger;
use crate::rng::Rng;
use crate::scenario::{Element, End, EndKind, NetworkFault, Scenario, Weakening};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tributary_domain::runtime::{Clock, Random, Runtime};
use tributary_domain::vocabulary::time::Timestamp;

/// Start of the simulated time: 2026-01-01T00:00:00Z.
pub(crate) const START: i64 = 1_767_225_600_000;

#[derive(Debug)]
struct WorldState {
    /// Number of the process, from 0.
    life: usize,
    /// Points reached in this life.
    points: u64,
    /// Points reached in the first life, once it has ended.
    first_life_points: u64,
    is_down: bool,
    is_stopping: bool,
    /// No more faults.
    is_repaired: bool,
    /// The true time when this process started.
    started_ms: i64,
    started_at: Option<Instant>,
    /// How far the server's clock is ahead of the true time.
    ahead_ms: i64,
    network_requests: u64,
    writer_steps: u64,
    disk_errors: BTreeMap<&'static str, u64>,
    trace: Sha256,
    schedule: Rng,
    ids: Rng,
}

/// The simulated machine.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    weakening: Weakening,
    disk_faults: Vec<DiskFault>,
    ends: Vec<End>,
    state: Mutex<WorldState>,
    ledger: Mutex<Ledger>,
    end: Notify,
    logs: bool,
}

impl World {
    pub(crate) fn new(scenario: Scenario, weakening: Weakening, logs: bool) -> Arc<Self> {
        let elements = || scenario.elements.iter().map(|(_, element)| element);
        let disk_faults = elements().filter_map(|element| match element {
            Element::Disk(fault) => Some(*fault),
            _ => None,
        });
        let ends = elements().filter_map(|element| match element {
            Element::End(end) => Some(*end),
            _ => None,
        });
        let state = WorldState {
            life: 0,
            points: 0,
            first_life_points: 0,
            is_down: false,
            is_stopping: false,
            is_repaired: false,
            started_ms: START,
            started_at: None,
            ahead_ms: 0,
            network_requests: 0,
            writer_steps: 0,
            disk_errors: BTreeMap::new(),
            trace: Sha256::new(),
            schedule: Rng::new(scenario.seed, "schedule"),
            ids: Rng::new(scenario.seed, "ids"),
        };
        Arc::new(Self {
            weakening,
            disk_faults: disk_faults.collect(),
            ends: ends.collect(),
            state: Mutex::new(state),
            ledger: Mutex::new(Ledger::new(&scenario)),
            end: Notify::new(),
            scenario,
            logs,
        })
    }

    fn lock(&self) -> MutexGuard<'_, WorldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn weakening(&self) -> Weakening {
        self.weakening
    }

    pub(crate) fn disk_faults(&self) -> &[DiskFault] {
        if self.lock().is_repaired {
            return &[];
        }
        &self.disk_faults
    }

    /// Ends all faults and corrects the server's clock.
    pub(crate) fn repair(&self) {
        let mut state = self.lock();
        state.is_repaired = true;
        state.ahead_ms = 0;
    }

    /// Returns the end of the current process, unless nothing ends it.
    pub(crate) fn planned_end(&self) -> Option<End> {
        self.ends.get(self.lock().life).copied()
    }

    /// Starts the clock of a process. Call it in the process's runtime.
    pub(crate) fn start_process(&self) {
        let mut state = self.lock();
        state.points = 0;
        state.is_down = false;
        state.is_stopping = false;
        state.started_at = Some(Instant::now());
    }

    /// Stops the clock of a process and counts the process. Call it in the process's runtime.
    pub(crate) fn end_process(&self) {
        let now = self.true_now();
        let mut state = self.lock();
        state.started_ms = now;
        state.started_at = None;
        if state.life == 0 {
            state.first_life_points = state.points;
        }
        state.life += 1;
    }

    /// Returns the number of points that the first process reached.
    pub(crate) fn first_life_points(&self) -> u64 {
        self.lock().first_life_points
    }

    /// Returns whether the process has died.
    pub(crate) fn is_down(&self) -> bool {
        self.lock().is_down
    }

    /// Returns whether the process has died or was told to stop.
    pub(crate) fn has_ended(&self) -> bool {
        let state = self.lock();
        state.is_down || state.is_stopping
    }

    /// Lets the process die or stop here if the scenario says so.
    pub(crate) fn reach(&self, name: &str, detail: i64) {
        self.trace(name, detail);
        let mut state = self.lock();
        if state.is_down {
            return;
        }
        state.points += 1;
        let end = self.ends.get(state.life);
        if let Some(end) = end
            && end.point == state.points
        {
            match end.kind {
                EndKind::Kill | EndKind::PowerCut => state.is_down = true,
                EndKind::Stop => state.is_stopping = true,
            }
            if self.logs {
                log_line(&format!("{:?} at point {} ({name})", end.kind, end.point));
            }
            self.end.notify_one();
        }
    }

    /// Completes when the process dies or is told to stop.
    pub(crate) async fn ended(&self) {
        while !self.has_ended() {
            self.end.notified().await;
        }
    }

    /// Completes when the process dies.
    pub(crate) async fn died(&self) {
        while !self.is_down() {
            self.end.notified().await;
        }
    }

    /// Adds to the trace.
    pub(crate) fn trace(&self, name: &str, detail: i64) {
        let now = self.true_now();
        let mut state = self.lock();
        state.trace.update(name.as_bytes());
        state.trace.update(detail.to_le_bytes());
        state.trace.update(now.to_le_bytes());
        let point = state.points;
        drop(state);
        if self.logs {
            log_line(&format!("{:>8} {point:>6} {name} {detail}", now - START));
        }
    }

    /// Returns the hash of everything that happened.
    pub(crate) fn trace_hash(&self) -> String {
        let hash = self.lock().trace.clone().finalize();
        tributary_domain::vocabulary::digest::hex(&hash)
    }

    pub(crate) fn count_disk_error(&self, name: &'static str) {
        *self.lock().disk_errors.entry(name).or_default() += 1;
        self.trace("disk error", 0);
    }

    /// Returns the number of failed calls on the disk.
    pub(crate) fn disk_errors_count(&self) -> u64 {
        self.lock().disk_errors.values().sum()
    }

    /// Returns the true time, which clients and networks use.
    pub(crate) fn true_now(&self) -> i64 {
        let state = self.lock();
        let elapsed = state.started_at.map_or(Duration::ZERO, |at| at.elapsed());
        state.started_ms + i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
    }

    /// Lets time pass at once, without running timers.
    pub(crate) fn skip(&self, duration: Duration) {
        self.lock().started_ms += i64::try_from(duration.as_millis()).unwrap_or(0);
    }

    /// Lets the server's clock jump.
    pub(crate) fn jump(&self, millis: i64) {
        self.lock().ahead_ms += millis;
        self.trace("clock jump", millis);
    }

    /// Returns a random number below `limit`, for the order of events.
    pub(crate) fn random(&self, limit: u64) -> u64 {
        self.lock().schedule.below(limit)
    }

    /// Waits for a random time of at most `most`.
    pub(crate) async fn wait_at_most(&self, most: u64) {
        match self.random(most + 1) {
            0 => tokio::task::yield_now().await,
            millis => tokio::time::sleep(Duration::from_millis(millis)).await,
        }
    }

    /// Returns the fault of the next request to a network.
    pub(crate) fn next_network_fault(&self) -> Option<NetworkFault> {
        let mut state = self.lock();
        state.network_requests += 1;
        let number = state.network_requests;
        if state.is_repaired {
            return None;
        }
        drop(state);
        self.scenario
            .elements
            .iter()
            .find_map(|(_, one)| match one {
                Element::Network(fault) if fault.request == number => Some(*fault),
                _ => None,
            })
    }

    /// Returns how long the disk stalls before the next step of the writer.
    pub(crate) fn next_stall(&self) -> Option<Duration> {
        let mut state = self.lock();
        state.writer_steps += 1;
        let number = state.writer_steps;
        if state.is_repaired {
            return None;
        }
        drop(state);
        self.scenario
            .elements
            .iter()
            .find_map(|(_, one)| match one {
                Element::Stall { step, millis } if *step == number => {
                    Some(Duration::from_millis(*millis))
                }
                _ => None,
            })
    }

    /// Returns the time of the server's clock.
    pub(crate) fn runtime_now(&self) -> Timestamp {
        let ahead = self.lock().ahead_ms;
        Timestamp::from_millis(self.true_now() + ahead)
    }

    /// Returns the server's runtime.
    pub(crate) fn runtime(self: &Arc<Self>) -> Runtime {
        Runtime::new(
            Arc::new(ServerClock(self.clone())),
            Arc::new(ServerRandom(self.clone())),
        )
    }
}

struct ServerClock(Arc<World>);

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        self.0.runtime_now()
    }
}

struct ServerRandom(Arc<World>);

impl Random for ServerRandom {
    fn fill(&self, bytes: &mut [u8]) {
        self.0.lock().ids.fill(bytes);
    }
}

/// Writes a line of the log to standard error.
pub(crate) fn log_line(line: &str) {
    use std::io::Write as _;
    // Without standard error, the log is lost.
    let _lost = writeln!(std::io::stderr(), "{line}");
}

/// A task of a process. Each time it continues is a point at which the process may die; a dead
/// process's tasks do not continue.
pub(crate) struct ProcessTask<F> {
    world: Arc<World>,
    name: &'static str,
    work: Pin<Box<F>>,
}

impl<F> ProcessTask<F> {
    pub(crate) fn new(world: &Arc<World>, name: &'static str, work: F) -> Self {
        Self {
            world: world.clone(),
            name,
            work: Box::pin(work),
        }
    }

    /// Creates a task that names its points itself, because it is idle most of the time.
    pub(crate) fn idle(world: &Arc<World>, work: F) -> Self {
        Self::new(world, "", work)
    }
}

impl<F: Future> Future for ProcessTask<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if !self.world.is_down() && !self.name.is_empty() {
            self.world.reach(self.name, 0);
        }
        if self.world.is_down() {
            return Poll::Pending;
        }
        self.work.as_mut().poll(context)
    }
}
