//! The simulator's clock, which the control API can shift.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const SECOND: i64 = 1_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

/// Value of `fixed_ms` while the machine's clock runs.
const RUNNING: i64 = i64::MIN;

/// The machine's clock plus an offset, or a fixed time.
#[derive(Debug)]
pub(crate) struct SimulatedClock {
    ahead_ms: AtomicI64,
    fixed_ms: AtomicI64,
}

impl Default for SimulatedClock {
    fn default() -> Self {
        Self {
            ahead_ms: AtomicI64::new(0),
            fixed_ms: AtomicI64::new(RUNNING),
        }
    }
}

impl SimulatedClock {
    /// Returns the time in Unix milliseconds.
    pub(crate) fn now(&self) -> i64 {
        match self.fixed_ms.load(Ordering::Relaxed) {
            RUNNING => machine_now().saturating_add(self.ahead()),
            fixed => fixed,
        }
    }

    /// Stops the clock at this time.
    pub(crate) fn fix(&self, milliseconds: i64) {
        self.fixed_ms.store(milliseconds, Ordering::Relaxed);
    }

    /// Returns the offset in milliseconds.
    pub(crate) fn ahead(&self) -> i64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }

    /// Sets the offset; negative values set the clock back.
    pub(crate) fn set_ahead(&self, milliseconds: i64) {
        self.ahead_ms.store(milliseconds, Ordering::Relaxed);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "like the real networks, the simulator has its own clock"
)]
fn machine_now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Formats a time with second precision.
pub(crate) fn format_time(milliseconds: i64) -> String {
    jiff::Timestamp::from_millisecond(milliseconds)
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}
