//! The simulator's own clock, which the control interface can set ahead or back.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const SECOND: i64 = 1_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

/// The machine's time and what is added to it.
#[derive(Debug, Default)]
pub(crate) struct SimulatedClock {
    ahead_ms: AtomicI64,
}

impl SimulatedClock {
    /// Unix milliseconds.
    pub(crate) fn now(&self) -> i64 {
        machine_now().saturating_add(self.ahead())
    }

    /// Milliseconds ahead of the machine.
    pub(crate) fn ahead(&self) -> i64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }

    /// Sets it ahead, or back when negative.
    pub(crate) fn set_ahead(&self, milliseconds: i64) {
        self.ahead_ms.store(milliseconds, Ordering::Relaxed);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is outside: it has a clock of its own, as the networks have"
)]
fn machine_now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// As people read it, to the second.
pub(crate) fn format_time(milliseconds: i64) -> String {
    jiff::Timestamp::from_millisecond(milliseconds)
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}
