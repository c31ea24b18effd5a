//! The simulator's state, behind one lock that is held only briefly.

use crate::SimulatorConfig;
use crate::clock::SimulatedClock;
use crate::faults::FaultQueue;
use crate::ledger::{Bounds, Ledger};
use crate::network::SimulatedNetwork;
use crate::network_b::{IssuedTokens, RequestStatuses};
use crate::registry::Registry;
use crate::reports::ReportAccounts;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Mutable state.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) registry: Registry,
    pub(crate) faults: FaultQueue,
    pub(crate) tokens: IssuedTokens,
    pub(crate) statuses: RequestStatuses,
    pub(crate) reports: ReportAccounts,
    ledgers: [Ledger; 4],
    /// Number of successful responses from `network_d`. Every second response has an empty body.
    pub(crate) successes_d: u64,
}

impl State {
    fn new(bounds: Bounds) -> Self {
        Self {
            registry: Registry::default(),
            faults: FaultQueue::default(),
            tokens: IssuedTokens::default(),
            statuses: RequestStatuses::default(),
            reports: ReportAccounts::default(),
            ledgers: SimulatedNetwork::ALL.map(|_| Ledger::new(bounds)),
            successes_d: 0,
        }
    }

    pub(crate) fn ledger(&mut self, network: SimulatedNetwork) -> &mut Ledger {
        &mut self.ledgers[network.index()]
    }

    pub(crate) fn read_ledger(&self, network: SimulatedNetwork) -> &Ledger {
        &self.ledgers[network.index()]
    }
}

#[derive(Debug)]
pub(crate) struct SimulatorState {
    pub(crate) options: SimulatorConfig,
    pub(crate) clock: SimulatedClock,
    state: Mutex<State>,
    /// Incremented when faults are cleared, which resumes hanging requests.
    pub(crate) cleared: watch::Sender<u64>,
    serial: AtomicU64,
    /// Makes ids unique across runs.
    started: i64,
}

impl SimulatorState {
    pub(crate) fn new(options: SimulatorConfig) -> Self {
        let clock = SimulatedClock::default();
        let started = clock.now();
        let state = State::new(bounds(&options));
        let world = Self {
            options,
            clock,
            state: Mutex::new(state),
            cleared: watch::Sender::new(0),
            serial: AtomicU64::new(0),
            started,
        };
        world.reset();
        world
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // After a panic the ledger may miss one entry, which is acceptable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resets everything to the initial options.
    pub(crate) fn reset(&self) {
        let mut fresh = State::new(bounds(&self.options));
        for account in &self.options.accounts {
            if let Err(error) = fresh.registry.register(account.clone()) {
                tracing::warn!(error, "skipped an invalid account");
            }
        }
        *self.state() = fresh;
        self.clock.set_ahead(self.options.clock_ahead_ms);
        self.resume_hanging();
    }

    /// Resumes hanging requests.
    pub(crate) fn resume_hanging(&self) {
        self.cleared
            .send_modify(|times| *times = times.wrapping_add(1));
    }

    /// Returns unique hexadecimal digits for ids and tokens.
    pub(crate) fn fresh_hex(&self) -> String {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let mut hash = Sha256::new();
        hash.update(self.started.to_be_bytes());
        hash.update(serial.to_be_bytes());
        hex(&hash.finalize())
    }
}

fn bounds(options: &SimulatorConfig) -> Bounds {
    Bounds {
        conversions: options.conversions_max,
        payloads: options.payloads_max,
    }
}

/// Formats bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a `String` cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
    }
    text
}
