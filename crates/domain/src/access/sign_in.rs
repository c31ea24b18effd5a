//! Throttling of failed sign-ins: the first few failures cause no wait; after that, each failure
//! doubles the wait.

use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Number of failures without a wait.
pub const FREE_FAILURES: u32 = 5;
/// Wait after the first throttled failure. Each further failure doubles it.
pub const FIRST_WAIT: Duration = Duration::from_secs(10);
/// Maximum wait.
pub const WAIT_MAX: Duration = Duration::from_mins(15);
/// How long after the last failure the count resets.
pub const FAILURES_EXPIRE_AFTER: Duration = Duration::from_hours(1);

/// Recent failed sign-ins from one address or for one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignInFailures {
    count: u32,
    last_at: Timestamp,
}

impl SignInFailures {
    /// Adds a failure at `now` to the earlier failures.
    pub fn with_failure(before: Option<Self>, now: Timestamp) -> Self {
        let count = before
            .filter(|one| !one.is_expired(now))
            .map_or(0, |one| one.count);
        Self {
            count: count.saturating_add(1),
            last_at: now,
        }
    }

    /// Returns whether the failures have expired.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now.since(self.last_at) >= FAILURES_EXPIRE_AFTER
    }

    /// Returns the wait before the next attempt; `None` if an attempt is allowed now.
    pub fn wait(&self, now: Timestamp) -> Option<Duration> {
        let throttled = self.count.checked_sub(FREE_FAILURES)?;
        let doubled = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(throttled.min(16)));
        let wait = doubled.min(WAIT_MAX);
        let waited = now.since(self.last_at);
        wait.checked_sub(waited).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn failures(count: u32) -> SignInFailures {
        let mut failures = None;
        for _ in 0..count {
            failures = Some(SignInFailures::with_failure(
                failures,
                Timestamp::from_millis(0),
            ));
        }
        failures.unwrap()
    }

    #[rstest]
    #[case::one(1, 0, None)]
    #[case::four(4, 0, None)]
    #[case::five(5, 0, Some(10))]
    #[case::six(6, 0, Some(20))]
    #[case::six_some_time_later(6, 15, Some(5))]
    #[case::six_after_the_wait(6, 20, None)]
    #[case::very_many(1_000, 0, Some(900))]
    fn waits_double_up_to_the_maximum(
        #[case] count: u32,
        #[case] seconds: i64,
        #[case] expected: Option<u64>,
    ) {
        let now = Timestamp::from_millis(seconds * 1_000);
        let wait = failures(count).wait(now).map(|wait| wait.as_secs());
        assert_eq!(wait, expected);
    }

    #[test]
    fn old_failures_expire() {
        let later = Timestamp::from_millis(60 * 60 * 1_000);
        assert!(failures(9).is_expired(later));
        assert_eq!(
            SignInFailures::with_failure(Some(failures(9)), later).wait(later),
            None
        );
    }
}
