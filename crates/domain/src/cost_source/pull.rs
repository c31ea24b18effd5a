//! Which days are pulled, and when the next pull is due.

use crate::integration::Network;
use crate::vocabulary::day::Day;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Time between two pulls. Networks report spend with a delay of minutes to hours.
pub const PULL_INTERVAL: Duration = Duration::from_hours(4);
/// Days before today that the first pull includes: a quarter, for a comparison with the past.
pub const FIRST_PULL_DAYS: i32 = 90;
/// Most days before today that any pull includes: the longest range of a report.
pub const HISTORY_DAYS_MAX: i32 = 400;
/// Most days in one request. TikTok accepts 30 days by day; the others accept more.
pub const SPAN_DAYS_MAX: i32 = 30;
/// Wait after the first failure. It doubles with each further one.
const RETRY_FIRST: Duration = Duration::from_mins(5);
/// Longest wait after failures that do not say how long to wait.
const RETRY_MAX: Duration = PULL_INTERVAL;
/// Longest wait that a network can ask for.
const ASKED_WAIT_MAX: Duration = Duration::from_hours(24);
/// Time after a pull in which another request is ignored, because networks limit requests.
const REQUEST_INTERVAL: Duration = Duration::from_mins(5);

/// Returns the wait after a pull that failed after this many failures, if the network asks for none.
fn retry_wait(failures: u32) -> Duration {
    let doubled = RETRY_FIRST.saturating_mul(1 << failures.min(16));
    doubled.min(RETRY_MAX)
}

/// Returns how many days back a network may restate its costs.
pub const fn restated_days(network: Network) -> i32 {
    match network {
        // Meta's longest attribution window; reports may change that long.
        Network::A => 28,
        // Google Ads credits invalid clicks later and documents no limit. A month includes the
        // corrections before an invoice.
        Network::B => 30,
        // TikTok documents no limit. This keeps a regular pull in one request.
        Network::C | Network::D => SPAN_DAYS_MAX - 1,
    }
}

/// Days, both inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaySpan {
    /// First day.
    pub from: Day,
    /// Last day.
    pub to: Day,
}

/// Returns the days to pull, in spans for one request each, newest first. `pulled_until` is the last
/// day of the last complete pull. Days that the network may have restated since then are pulled
/// again.
pub fn days_to_pull(network: Network, today: Day, pulled_until: Option<Day>) -> Vec<DaySpan> {
    let back = |from: Day, days: i32| Day::from_days(from.as_days().saturating_sub(days));
    let first = match pulled_until {
        None => back(today, FIRST_PULL_DAYS),
        // A clock that went back must not leave a gap.
        Some(day) => back(day.min(today), restated_days(network)),
    };
    let first = first.max(back(today, HISTORY_DAYS_MAX));
    let mut spans = Vec::new();
    let mut to = today;
    while to >= first {
        let from = back(to, SPAN_DAYS_MAX - 1).max(first);
        spans.push(DaySpan { from, to });
        to = back(from, 1);
    }
    spans
}

/// Why a pull failed. Contains no secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullProblem {
    /// The network's code, or one of Tributary's own.
    pub code: String,
    /// Message for people.
    pub message: String,
    /// Whether the network refused the credentials, the account or the request.
    pub is_refusal: bool,
}

/// The pulls of a cost source so far, and the next one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PullState {
    /// When the next pull is due. During a pull, this is the end of its lease. `None` if the source
    /// is off or paused.
    pub due_at: Option<Timestamp>,
    /// When the last pull ended.
    pub last_pull_at: Option<Timestamp>,
    /// When the last successful pull ended.
    pub last_success_at: Option<Timestamp>,
    /// Last day of the last complete pull.
    pub pulled_until: Option<Day>,
    /// Number of failed pulls since the last successful one.
    pub failures: u32,
    /// Why the last pull failed.
    pub problem: Option<PullProblem>,
}

/// How a pull ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullOutcome {
    /// All days until this one are stored.
    Done {
        /// The last day.
        until: Day,
    },
    /// Failed, but may succeed later.
    Retry {
        /// Code.
        code: String,
        /// Message.
        message: String,
        /// Wait that the network asked for.
        wait: Option<Duration>,
    },
    /// The network refused the credentials, the account or the request. A retry does not help.
    Refused {
        /// Code.
        code: String,
        /// Message.
        message: String,
    },
}

impl PullState {
    /// Returns the state after a pull.
    #[must_use]
    pub fn after(&self, outcome: PullOutcome, now: Timestamp) -> Self {
        let mut after = self.clone();
        after.last_pull_at = Some(now);
        match outcome {
            PullOutcome::Done { until } => {
                after.last_success_at = Some(now);
                after.pulled_until = Some(until);
                after.due_at = Some(now.plus(PULL_INTERVAL));
                (after.failures, after.problem) = (0, None);
            }
            PullOutcome::Retry {
                code,
                message,
                wait,
            } => {
                let asked = wait.unwrap_or_default().min(ASKED_WAIT_MAX);
                after.due_at = Some(now.plus(retry_wait(self.failures).max(asked)));
                after.failures = self.failures.saturating_add(1);
                after.problem = Some(PullProblem {
                    code,
                    message,
                    is_refusal: false,
                });
            }
            PullOutcome::Refused { code, message } => {
                after.due_at = None;
                after.failures = self.failures.saturating_add(1);
                after.problem = Some(PullProblem {
                    code,
                    message,
                    is_refusal: true,
                });
            }
        }
        after
    }

    /// Returns the state after someone asked for a pull now. Nothing changes in the five minutes after
    /// a pull, while a pull runs, while a wait lasts that the network asked for and that is longer than
    /// our own, and if a pull is due already.
    #[must_use]
    pub fn requested(&self, now: Timestamp) -> Self {
        let is_recent = self
            .last_pull_at
            .is_some_and(|at| now < at.plus(REQUEST_INTERVAL));
        // Any other time in the future is the end of a lease or of a wait that the network asked for.
        let is_movable = self
            .due_at
            .is_none_or(|due| due > now && self.planned_at() == Some(due));
        let mut after = self.clone();
        if is_movable && !is_recent {
            after.due_at = Some(now);
        }
        after
    }

    /// Returns when the next pull is due according to our own intervals.
    fn planned_at(&self) -> Option<Timestamp> {
        let wait = match self.problem {
            None => PULL_INTERVAL,
            Some(_) => retry_wait(self.failures.saturating_sub(1)),
        };
        Some(self.last_pull_at?.plus(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    #[rstest]
    #[case::first(Network::A, None, &[(-29, 0), (-59, -30), (-89, -60), (-90, -90)])]
    #[case::an_hour_ago(Network::A, Some(0), &[(-28, 0)])]
    #[case::yesterday(Network::A, Some(-1), &[(-29, 0)])]
    #[case::google(Network::B, Some(0), &[(-29, 0), (-30, -30)])]
    #[case::tiktok_needs_one_request(Network::C, Some(0), &[(-29, 0)])]
    #[case::after_two_weeks(Network::C, Some(-14), &[(-29, 0), (-43, -30)])]
    #[case::the_clock_went_back(Network::C, Some(3), &[(-29, 0)])]
    fn pulls_restated_days_again(
        #[case] network: Network,
        #[case] until: Option<i32>,
        #[case] expected: &[(i32, i32)],
    ) {
        let day = |offset: i32| Day::from_days(20_000 + offset);
        let spans = days_to_pull(network, day(0), until.map(day));
        let expected: Vec<DaySpan> = expected
            .iter()
            .map(|(from, to)| DaySpan {
                from: day(*from),
                to: day(*to),
            })
            .collect();
        assert_eq!(spans, expected);
    }

    proptest! {
        #[test]
        fn spans_cover_every_restated_day_once(today in 0..40_000_i32, ago in 0..600_i32) {
            let spans = days_to_pull(Network::B, Day::from_days(today), Some(Day::from_days(today - ago)));
            let days: i32 = spans.iter().map(|one| one.to.as_days() - one.from.as_days() + 1).sum();
            prop_assert_eq!(days, (ago + 30).min(HISTORY_DAYS_MAX) + 1);
            for pair in spans.windows(2) {
                prop_assert_eq!(pair[0].from.as_days(), pair[1].to.as_days() + 1);
            }
        }
    }

    fn retry(wait: Option<u64>) -> PullOutcome {
        PullOutcome::Retry {
            code: "17".to_owned(),
            message: "Slow down.".to_owned(),
            wait: wait.map(Duration::from_mins),
        }
    }

    #[rstest]
    #[case::first(0, None, 5)]
    #[case::second(1, None, 10)]
    #[case::seventh(6, None, 240)]
    #[case::hundredth(100, None, 240)]
    #[case::asked_for_more(0, Some(60), 60)]
    #[case::asked_for_less(2, Some(1), 20)]
    #[case::asked_for_too_much(0, Some(1_000_000), 1_440)]
    fn waits_longer_after_each_failure(
        #[case] failures: u32,
        #[case] asked: Option<u64>,
        #[case] minutes: u64,
    ) {
        let state = PullState {
            failures,
            ..PullState::default()
        };
        let after = state.after(retry(asked), NOW);
        assert_eq!(after.due_at, Some(NOW.plus(Duration::from_mins(minutes))));
        assert_eq!(after.failures, failures + 1);
        assert!(after.problem.is_some_and(|problem| !problem.is_refusal));
    }

    /// All times are minutes after the end of the last pull. `refused` tells whether the network
    /// refused it; `None` if it succeeded.
    #[rstest]
    #[case::after_a_success(None, 0, Some(240), 60, Some(60))]
    #[case::after_five_minutes(None, 0, Some(240), 5, Some(5))]
    #[case::within_five_minutes(None, 0, Some(240), 4, Some(240))]
    #[case::paused(Some(true), 1, None, 60, Some(60))]
    #[case::paused_just_now(Some(true), 1, None, 4, None)]
    #[case::our_own_wait(Some(false), 2, Some(10), 6, Some(6))]
    #[case::our_longest_wait(Some(false), 100, Some(240), 6, Some(6))]
    #[case::a_wait_that_the_network_asked_for(Some(false), 1, Some(60), 6, Some(60))]
    #[case::running(None, 0, Some(250), 245, Some(250))]
    #[case::running_after_a_request(None, 0, Some(70), 61, Some(70))]
    #[case::running_after_a_failure(Some(false), 1, Some(16), 7, Some(16))]
    #[case::running_after_a_refusal(Some(true), 1, Some(70), 61, Some(70))]
    #[case::due_already(None, 0, Some(240), 241, Some(240))]
    fn a_request_changes_only_our_own_plan(
        #[case] refused: Option<bool>,
        #[case] failures: u32,
        #[case] due: Option<u64>,
        #[case] asked: u64,
        #[case] expected: Option<u64>,
    ) {
        let minute = |minute: u64| NOW.plus(Duration::from_mins(minute));
        let problem = |is_refusal| PullProblem {
            code: "17".to_owned(),
            message: "Slow down.".to_owned(),
            is_refusal,
        };
        let state = PullState {
            due_at: due.map(minute),
            last_pull_at: Some(NOW),
            failures,
            problem: refused.map(problem),
            ..PullState::default()
        };
        let after = state.requested(minute(asked));
        let due_at = expected.map(minute);
        assert_eq!(after, PullState { due_at, ..state });
    }

    #[test]
    fn a_request_leaves_the_first_pull_alone() {
        let lease = PullState {
            due_at: Some(NOW.plus(Duration::from_mins(10))),
            ..PullState::default()
        };
        assert_eq!(lease.requested(NOW), lease);
    }

    #[test]
    fn a_refusal_pauses_and_a_success_clears_the_problem() {
        let refused = PullOutcome::Refused {
            code: "190".to_owned(),
            message: "Expired.".to_owned(),
        };
        let paused = PullState::default().after(refused, NOW);
        assert_eq!(paused.due_at, None);
        assert!(paused.problem.as_ref().is_some_and(|one| one.is_refusal));
        let until = Day::from_days(7);
        let done = paused.after(PullOutcome::Done { until }, NOW);
        assert_eq!(done.problem, None);
        assert_eq!((done.failures, done.pulled_until), (0, Some(until)));
        assert_eq!(done.due_at, Some(NOW.plus(PULL_INTERVAL)));
    }
}
