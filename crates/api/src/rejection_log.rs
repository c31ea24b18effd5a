//! Logs rejected credentials: at once, then one line per interval with their number.
//!
//! A line for each would let a stranger fill the log. Lines contain neither the key nor the address.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum time between two lines.
const INTERVAL: Duration = Duration::from_secs(10);

/// Counts rejected credentials between two lines.
#[derive(Debug, Default)]
pub(crate) struct RejectionLog(Mutex<Rejections>);

#[derive(Debug, Default)]
struct Rejections {
    /// Rejections since the last line.
    count: u64,
    logged_at: Option<Instant>,
}

impl Rejections {
    /// Counts one more. Returns the number for a line, if one is due.
    fn add(&mut self, now: Instant) -> Option<u64> {
        self.count = self.count.saturating_add(1);
        let is_due = self
            .logged_at
            .is_none_or(|last| now.saturating_duration_since(last) >= INTERVAL);
        is_due.then(|| {
            self.logged_at = Some(now);
            std::mem::take(&mut self.count)
        })
    }
}

impl RejectionLog {
    /// Counts a rejection, and logs the number if a line is due.
    pub(crate) fn note(&self, now: Instant) {
        let due = {
            let mut rejections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            rejections.add(now)
        };
        if let Some(count) = due {
            tracing::warn!(count, "rejected API keys");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_logged_as_a_number() {
        let (mut rejections, start) = (Rejections::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(rejections.add(start), Some(1), "the first one at once");
        let flood: Vec<_> = (0..9).map(|second| rejections.add(at(second))).collect();
        assert_eq!(flood, [None; 9]);
        assert_eq!(rejections.add(at(10)), Some(10));
        assert_eq!(rejections.add(at(19)), None);
        assert_eq!(rejections.add(at(60)), Some(2));
    }
}
