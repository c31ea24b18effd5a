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

    /// Formats the time in UTC with milliseconds: `2026-11-15T02:37:00.000Z`.
    pub fn rfc3339(self) -> String {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => format!("{at:.3}"),
            // A time after the year 9999, which no clock returns.
            Err(_) => "9999-12-31T23:59:59.999Z".to_owned(),
        }
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

/// Parses a time such as `2027-01-31T12:00:00Z`.
pub fn parse_moment(text: &str) -> Result<Timestamp, Problem> {
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    parsed
        .map(|at| Timestamp::from_millis(at.as_millisecond()))
        .map_err(|_| {
            let message = "Must be a time with an offset from UTC, such as 2027-01-31T12:00:00Z.";
            Problem::new(FaultCode::InvalidFormat, message)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::utc("2027-01-31T12:00:00Z", Some(1_801_396_800_000))]
    #[case::with_offset("2027-01-31T13:00:00.005+01:00", Some(1_801_396_800_005))]
    #[case::without_offset("2027-01-31T12:00:00", None)]
    #[case::a_day("2027-01-31", None)]
    #[case::a_number("1801396800000", None)]
    fn times_are_parsed(#[case] text: &str, #[case] expected: Option<i64>) {
        let parsed = parse_moment(text).ok();
        assert_eq!(parsed.map(Timestamp::as_millis), expected);
    }

    #[rstest]
    #[case(0, "1970-01-01T00:00:00.000Z")]
    #[case(1_763_173_020_007, "2025-11-15T02:17:00.007Z")]
    #[case(i64::MAX, "9999-12-31T23:59:59.999Z")]
    fn milliseconds_are_always_written(#[case] millis: i64, #[case] expected: &str) {
        assert_eq!(Timestamp::from_millis(millis).rfc3339(), expected);
    }

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
