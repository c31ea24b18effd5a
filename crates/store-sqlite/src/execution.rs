//! How the adapter's loops and reads run: on threads, or on the caller's thread for tests that
//! repeat every step.

use crate::checkpoints::LOG_PAGES_MAX;
use std::time::Duration;

/// How the adapter's loops and reads run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Execution {
    /// The caller steps the loops, and reads run on the caller's thread.
    pub(crate) is_stepped: bool,
    /// Number of WAL pages that triggers a checkpoint.
    pub(crate) log_pages_max: u32,
}

impl Execution {
    /// One thread per loop, and threads for reads.
    pub(crate) const THREADS: Self = Self {
        is_stepped: false,
        log_pages_max: LOG_PAGES_MAX,
    };

    /// Waits before a retry. A stepped loop retries at its next step.
    pub(crate) fn pause(self, duration: Duration) {
        if !self.is_stepped {
            std::thread::sleep(duration);
        }
    }
}
