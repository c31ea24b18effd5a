//! Waits between attempts.

use std::time::Duration;

/// Shortest wait between two attempts.
pub const DELAY_MIN: Duration = Duration::from_secs(1);
/// Longest wait between two attempts.
pub const DELAY_MAX: Duration = Duration::from_mins(15);
/// Upper bound of the first wait. It doubles with every failure.
const DELAY_BASE: Duration = Duration::from_secs(5);
/// Maximum number of doublings. With this many, the wait is above [`DELAY_MAX`] in any case.
const DOUBLINGS_MAX: u32 = 16;
/// Longest wait that a network can request.
pub const REQUESTED_WAIT_MAX: Duration = Duration::from_hours(1);

/// Returns the wait after this many earlier failures: random, up to an exponential bound, so that
/// clients that failed together do not retry together. `random` is any number.
pub fn backoff(failures: u32, random: u64) -> Duration {
    let bound = DELAY_BASE
        .saturating_mul(1 << failures.min(DOUBLINGS_MAX))
        .min(DELAY_MAX);
    let millis = u64::try_from(bound.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(random % millis.saturating_add(1)).max(DELAY_MIN)
}

/// Limits a wait that a network requested.
pub fn clamp_requested_wait(wait: Duration) -> Duration {
    wait.clamp(DELAY_MIN, REQUESTED_WAIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::first(0, 5_000)]
    #[case::second(1, 10_000)]
    #[case::eighth(7, 640_000)]
    #[case::from_then_on(8, 900_000)]
    #[case::for_ever(u32::MAX, 900_000)]
    fn the_bound_doubles(#[case] failures: u32, #[case] bound: u64) {
        assert_eq!(backoff(failures, bound), Duration::from_millis(bound));
        assert_eq!(backoff(failures, bound + 1), DELAY_MIN, "it wraps around");
        assert_eq!(backoff(failures, 0), DELAY_MIN, "never immediately");
    }

    #[rstest]
    #[case::absurdly_long(100_000, 3_600)]
    #[case::nothing(0, 1)]
    #[case::within(60, 60)]
    fn requested_waits_are_limited(#[case] seconds: u64, #[case] expected: u64) {
        assert_eq!(
            clamp_requested_wait(Duration::from_secs(seconds)),
            Duration::from_secs(expected)
        );
    }
}
