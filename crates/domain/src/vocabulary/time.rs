//! Time as whole milliseconds since 1970 in UTC. The clock is outside the domain.

use crate::vocabulary::fault::{FaultCode, Problem};
use std::time::Duration;

/// Earliest accepted event time: 2015-01-01T00:00:00Z. An earlier one is nearly always a time in
/// seconds that was sent as milliseconds.
pub const EARLIEST_EVENT: Timestamp = Timestamp::from_millis(1_420_070_400_000);

/// A point in time. The domain receives the current time and never reads a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates a timestamp from milliseconds since 1970-01-01T00:00:00Z.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Adds a duration and saturates.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// Subtracts a duration and saturates.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// Returns the time since `earlier`; zero if this is before it.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }
}

/// Parses an event time in milliseconds since 1970. Rejects times before [`EARLIEST_EVENT`].
pub fn event_time(millis: i64) -> Result<Timestamp, Problem> {
    let time = Timestamp::from_millis(millis);
    if time >= EARLIEST_EVENT {
        return Ok(time);
    }
    let message =
        "Must be milliseconds since 1970 and not before 2015-01-01. Was the time sent in seconds?";
    Err(Problem::new(FaultCode::OutOfRange, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::seconds(1_794_845_507, false)]
    #[case::the_epoch(0, false)]
    #[case::negative(-1, false)]
    #[case::smallest(i64::MIN, false)]
    #[case::the_last_of_2014(1_420_070_399_999, false)]
    #[case::the_first_of_2015(1_420_070_400_000, true)]
    #[case::milliseconds(1_794_845_507_000, true)]
    #[case::largest(i64::MAX, true)]
    fn rejects_event_times_before_2015(#[case] millis: i64, #[case] accepted: bool) {
        let read = event_time(millis);
        assert_eq!(read.is_ok(), accepted);
        if let Err(problem) = read {
            assert_eq!(problem.code, FaultCode::OutOfRange);
            assert!(problem.message.contains("seconds"), "{}", problem.message);
        }
    }
}
