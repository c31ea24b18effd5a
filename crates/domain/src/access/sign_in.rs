//! Slowing down whoever guesses passwords: a few mistakes are free, each further one doubles the wait.

use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Wrong passwords that cost nobody any time.
pub const FREE_FAILURES: u32 = 5;
/// The wait after the first one too many. It doubles with each that follows.
pub const FIRST_WAIT: Duration = Duration::from_secs(10);
/// The longest wait.
pub const WAIT_MAX: Duration = Duration::from_mins(15);
/// After so long without another one, failures are forgotten.
pub const FAILURES_EXPIRE_AFTER: Duration = Duration::from_hours(1);

/// Wrong passwords of late, for one address or one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignInFailures {
    count: u32,
    last_at: Timestamp,
}

impl SignInFailures {
    /// With one more.
    pub fn with_failure(before: Option<Self>, now: Timestamp) -> Self {
        let count = before
            .filter(|one| !one.is_expired(now))
            .map_or(0, |one| one.count);
        Self {
            count: count.saturating_add(1),
            last_at: now,
        }
    }

    /// Whether they are forgotten.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now.since(self.last_at) >= FAILURES_EXPIRE_AFTER
    }

    /// How long the next attempt has to wait; nothing when it may be made now.
    pub fn wait(&self, now: Timestamp) -> Option<Duration> {
        let excess = self.count.checked_sub(FREE_FAILURES)?;
        let doubled = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(excess.min(16)));
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
    #[case::six_waited_for(6, 20, None)]
    #[case::very_many(1_000, 0, Some(900))]
    fn waits(#[case] count: u32, #[case] seconds: i64, #[case] expected: Option<u64>) {
        let now = Timestamp::from_millis(seconds * 1_000);
        let wait = failures(count).wait(now).map(|wait| wait.as_secs());
        assert_eq!(wait, expected);
    }

    #[test]
    fn old_failures_are_forgotten() {
        let later = Timestamp::from_millis(60 * 60 * 1_000);
        assert!(failures(9).is_expired(later));
        assert_eq!(
            SignInFailures::with_failure(Some(failures(9)), later).wait(later),
            None
        );
    }
}
