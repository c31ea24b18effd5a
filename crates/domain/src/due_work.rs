//! Kinds of work that become due, and when to look for an app's due work again.
//!
//! On a distributed database, workers do not search all shards for due work. A table of hints says
//! which app to look at, and when. After each look, the rules here decide about the next one.

use crate::integration::Network;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Delay after an app's work could not be read. Its database server may be down, and asking it more
/// often would keep connections waiting.
const FAILED_LOOK_DELAY: Duration = Duration::from_secs(5);

/// A kind of work that becomes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// Deliveries to a network, and checks of their status.
    Deliveries(Network),
    /// Trials on hold.
    Trials,
    /// AdServices tokens.
    Tokens,
    /// Alerts.
    Alerts,
    /// Increments of nodes that do not merge.
    Increments,
}

impl WorkKind {
    /// Returns the name in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deliveries(network) => network.as_str(),
            Self::Trials => "trials",
            Self::Tokens => "tokens",
            Self::Alerts => "alerts",
            Self::Increments => "increments",
        }
    }

    /// Parses the name in the database.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "trials" => Some(Self::Trials),
            "tokens" => Some(Self::Tokens),
            "alerts" => Some(Self::Alerts),
            "increments" => Some(Self::Increments),
            network => Network::parse(network).map(Self::Deliveries),
        }
    }
}

/// An app's work of one kind, as a look found it or left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AppWork {
    /// Earliest due time, if any work is left.
    pub earliest_due: Option<Timestamp>,
    /// End of a lease or a back-off. Nothing can be taken before.
    pub blocked_until: Option<Timestamp>,
    /// End of the last lease of a queue that nodes share. Another node may take a part of it.
    pub shared_until: Option<Timestamp>,
    /// Whether nothing can be taken until a setting changes, such as a pause.
    pub is_stopped: bool,
}

/// When to look at an app's work again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextLook {
    /// At once, as early as before: work is due and can be taken.
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
    /// Returns whether work is due and can be taken.
    pub fn can_be_taken(&self, now: Timestamp) -> bool {
        let is_past = |time: Timestamp| time <= now;
        !self.is_stopped
            && self.earliest_due.is_some_and(is_past)
            && self.blocked_until.is_none_or(is_past)
    }

    /// Decides when to look again. A shared queue that is leased can be looked at again at once, but
    /// comes after all work that is due by now. Otherwise the same shared queues would be found
    /// first every time, although their holders cannot take more.
    pub fn next_look(&self, now: Timestamp) -> NextLook {
        let Some(due_at) = self.earliest_due.filter(|_| !self.is_stopped) else {
            return NextLook::AfterChange;
        };
        let can_be_taken = self.can_be_taken(now);
        let is_shared = self.shared_until.is_some_and(|until| until > now);
        match (can_be_taken, is_shared) {
            (true, false) => NextLook::Now,
            (true, true) => NextLook::Later {
                due_at,
                blocked_until: Some(now),
            },
            (false, _) => NextLook::Later {
                due_at,
                blocked_until: self.blocked_until,
            },
        }
    }
}

impl NextLook {
    /// Decides when to look again after an app's work could not be read. `elapsed` is the time since
    /// `begun`: a server that does not respond takes longer than the delay.
    pub fn after_failure(begun: Timestamp, elapsed: Duration) -> Self {
        Self::Later {
            due_at: begun,
            blocked_until: Some(begun.plus(elapsed).plus(FAILED_LOOK_DELAY)),
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
            ..AppWork::default()
        };
        assert_eq!(work.next_look(time(NOW)), expected);
        assert_eq!(work.can_be_taken(time(NOW)), expected == NextLook::Now);
    }

    #[rstest]
    #[case::leased(1_001, None, later(900, Some(NOW)), true)]
    #[case::the_lease_ends_now(1_000, None, NextLook::Now, true)]
    #[case::backs_off(1_001, Some(1_500), later(900, Some(1_500)), false)]
    fn a_shared_queue_comes_after_work_that_is_due_by_now(
        #[case] shared_until: i64,
        #[case] blocked_until: Option<i64>,
        #[case] expected: NextLook,
        #[case] can_be_taken: bool,
    ) {
        let work = AppWork {
            earliest_due: Some(time(900)),
            blocked_until: blocked_until.map(time),
            shared_until: Some(time(shared_until)),
            is_stopped: false,
        };
        assert_eq!(work.next_look(time(NOW)), expected);
        assert_eq!(work.can_be_taken(time(NOW)), can_be_taken);
    }

    #[test]
    fn kinds_are_parsed_from_their_names() {
        use WorkKind::{Alerts, Deliveries, Increments, Tokens, Trials};
        let others = [Trials, Tokens, Alerts, Increments];
        for kind in Network::ALL.map(Deliveries).into_iter().chain(others) {
            assert_eq!(WorkKind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(WorkKind::parse("unknown"), None);
    }

    #[test]
    fn a_failed_look_is_not_repeated_at_once() {
        for (elapsed, expected) in [(0, 6_000), (20, 26_000)] {
            let elapsed = Duration::from_secs(elapsed);
            let next = NextLook::after_failure(time(NOW), elapsed);
            assert_eq!(next, later(NOW, Some(expected)));
        }
    }
}
