//! When to look for an app's due work again.
//!
//! On a distributed database, workers do not search all shards for due work. A table of hints says
//! which app to look at, and when. After each look, the rules here decide about the next one.

use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Delay after an app's work could not be read. Its database server may be down, and asking it more
/// often would keep connections waiting.
const FAILED_LOOK_DELAY: Duration = Duration::from_secs(5);

/// An app's work of one kind, as a look found it or left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AppWork {
    /// Earliest due time, if any work is left.
    pub earliest_due: Option<Timestamp>,
    /// End of a lease or a back-off. Nothing can be taken before.
    pub blocked_until: Option<Timestamp>,
    /// Whether nothing can be taken until a setting changes, such as a pause.
    pub is_stopped: bool,
}

/// When to look at an app's work again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextLook {
    /// Work is due and can be taken.
    Now,
    /// At the later of two times.
    Later {
        /// When the earliest work is due. Work that is added may be due earlier.
        due_at: Timestamp,
        /// Until when nothing can be taken, whatever is added.
        blocked_until: Option<Timestamp>,
    },
    /// When work is added or a setting changes.
    AfterChange,
}

impl AppWork {
    /// Decides when to look again.
    pub fn next_look(&self, now: Timestamp) -> NextLook {
        let Some(due_at) = self.earliest_due.filter(|_| !self.is_stopped) else {
            return NextLook::AfterChange;
        };
        let blocked_until = self.blocked_until;
        if due_at <= now && blocked_until.is_none_or(|until| until <= now) {
            return NextLook::Now;
        }
        NextLook::Later {
            due_at,
            blocked_until,
        }
    }
}

impl NextLook {
    /// Decides when to look again after an app's work could not be read.
    pub fn after_failure(now: Timestamp) -> Self {
        Self::Later {
            due_at: now,
            blocked_until: Some(now.plus(FAILED_LOOK_DELAY)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const NOW: i64 = 1_000;

    fn time(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn later(due_at: i64, blocked_until: Option<i64>) -> NextLook {
        NextLook::Later {
            due_at: time(due_at),
            blocked_until: blocked_until.map(time),
        }
    }

    #[rstest]
    #[case::no_work(None, None, false, NextLook::AfterChange)]
    #[case::no_work_in_a_leased_queue(None, Some(2_000), false, NextLook::AfterChange)]
    #[case::due(Some(900), None, false, NextLook::Now)]
    #[case::due_at_this_moment(Some(1_000), None, false, NextLook::Now)]
    #[case::due_later(Some(1_001), None, false, later(1_001, None))]
    #[case::due_and_leased(Some(900), Some(1_001), false, later(900, Some(1_001)))]
    #[case::due_and_the_lease_ends_now(Some(900), Some(1_000), false, NextLook::Now)]
    #[case::due_before_the_lease_ends(Some(1_500), Some(2_000), false, later(1_500, Some(2_000)))]
    #[case::due_after_a_back_off(Some(3_000), Some(2_000), false, later(3_000, Some(2_000)))]
    #[case::due_and_paused(Some(900), None, true, NextLook::AfterChange)]
    #[case::due_later_and_paused(Some(2_000), Some(1_500), true, NextLook::AfterChange)]
    fn looks_again_when_work_can_be_taken(
        #[case] earliest_due: Option<i64>,
        #[case] blocked_until: Option<i64>,
        #[case] is_stopped: bool,
        #[case] expected: NextLook,
    ) {
        let work = AppWork {
            earliest_due: earliest_due.map(time),
            blocked_until: blocked_until.map(time),
            is_stopped,
        };
        assert_eq!(work.next_look(time(NOW)), expected);
    }

    #[test]
    fn a_failed_look_is_not_repeated_at_once() {
        let next = NextLook::after_failure(time(NOW));
        assert_eq!(next, later(NOW, Some(6_000)));
    }
}
