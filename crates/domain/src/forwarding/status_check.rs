//! Checks of requests whose outcome a network reports later.

use crate::vocabulary::id::DeliveryId;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Times of the checks after sending. If the last check gives no result, the outcome stays
/// unconfirmed.
const SCHEDULE: [Duration; 5] = [
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(6),
    Duration::from_hours(24),
];
/// Wait before repeating a failed check.
const RETRY_WAIT: Duration = Duration::from_mins(5);
/// Note on deliveries whose outcome the network never reported.
pub const OUTCOME_UNCONFIRMED: &str = "outcome_unconfirmed";

/// A request whose outcome a network reports later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusCheck {
    /// The network's id for the request.
    pub request: String,
    /// When the request was sent.
    pub sent_at: Timestamp,
    /// Number of checks so far.
    pub step: u32,
    /// Time of the next check.
    pub due_at: Timestamp,
    /// The deliveries in the request.
    pub deliveries: Vec<DeliveryId>,
}

impl StatusCheck {
    /// Schedules the first check of a request that was just sent.
    pub fn new(request: String, sent_at: Timestamp, deliveries: Vec<DeliveryId>) -> Self {
        Self {
            request,
            sent_at,
            step: 0,
            due_at: sent_at.plus(SCHEDULE[0]),
            deliveries,
        }
    }
}

/// Result of a status check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// Check again.
    Later {
        /// Number of checks by then.
        step: u32,
        /// Time of the next check.
        due_at: Timestamp,
    },
    /// No further check is needed.
    Done {
        /// Note to store as the deliveries' reason, unless all succeeded.
        note: Option<String>,
    },
    /// The network rejected the whole request.
    Failed {
        /// The network's reason.
        reason: String,
    },
    /// Resend the whole request with the same ids.
    Resend {
        /// When to resend.
        due_at: Timestamp,
        /// The network's reason.
        reason: String,
    },
}

/// Correction of delivery counts after a late result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recount {
    /// Deliveries that now count as failed.
    pub failed: u64,
    /// Deliveries to subtract from those delivered in the hour of the request.
    pub undelivered: u64,
}

impl CheckOutcome {
    /// Returns the correction after this outcome changed `changed` deliveries.
    pub const fn recount(&self, changed: u64) -> Recount {
        let (failed, undelivered) = match self {
            Self::Later { .. } | Self::Done { .. } => (0, 0),
            Self::Failed { .. } => (changed, changed),
            Self::Resend { .. } => (0, changed),
        };
        Recount {
            failed,
            undelivered,
        }
    }
}

/// The network's report about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatusRuling {
    /// Not decided yet: check again later.
    Processing,
    /// The network accepted the whole request.
    Success,
    /// Some events have problems.
    Problems(StatusProblems),
    /// The network has no status: the request is unknown or access is denied.
    Unavailable,
    /// The check failed: repeat it.
    Retry,
    /// The access token was rejected: get a new one and check again.
    TokenRefused,
}

/// Problems with a request's events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatusProblems {
    /// If set, all events must be resent with the same ids after this wait.
    pub requeue_after: Option<Duration>,
    /// Whether the only problem is that the network already had the events.
    pub already_delivered: bool,
    /// Rejections: reason without prefix, and number of events; 0 if the network gives no number.
    pub failed: Vec<(String, u64)>,
    /// Reasons that only the operator can fix.
    pub alert: Vec<String>,
}

/// Decides what to do after a status check.
pub fn outcome(check: &StatusCheck, ruling: StatusRuling, now: Timestamp) -> CheckOutcome {
    match ruling {
        StatusRuling::Success => CheckOutcome::Done { note: None },
        StatusRuling::Unavailable => unconfirmed(),
        StatusRuling::Processing => later(check),
        StatusRuling::Retry | StatusRuling::TokenRefused => CheckOutcome::Later {
            step: check.step,
            due_at: now.plus(RETRY_WAIT),
        },
        StatusRuling::Problems(problems) => with_problems(check, &problems, now),
    }
}

fn unconfirmed() -> CheckOutcome {
    CheckOutcome::Done {
        note: Some(OUTCOME_UNCONFIRMED.to_owned()),
    }
}

fn later(check: &StatusCheck) -> CheckOutcome {
    let step = check.step.saturating_add(1);
    let wait = usize::try_from(step)
        .ok()
        .and_then(|step| SCHEDULE.get(step));
    match wait {
        Some(wait) => CheckOutcome::Later {
            step,
            due_at: check.sent_at.plus(*wait),
        },
        None => unconfirmed(),
    }
}

fn with_problems(check: &StatusCheck, problems: &StatusProblems, now: Timestamp) -> CheckOutcome {
    let reasons: Vec<String> = problems
        .failed
        .iter()
        .map(|(reason, count)| format!("{reason} ×{count}"))
        .collect();
    let reasons = reasons.join(", ");
    if let Some(wait) = problems.requeue_after {
        return CheckOutcome::Resend {
            due_at: now.plus(wait),
            reason: reasons,
        };
    }
    match (problems.already_delivered, check.deliveries.len()) {
        (true, _) => CheckOutcome::Done { note: None },
        (false, 1) => CheckOutcome::Failed { reason: reasons },
        // The network does not say which events, so the operator sees counts and reasons.
        (false, _) => CheckOutcome::Done {
            note: Some(reasons),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(10_000_000);

    fn check(step: u32, deliveries: usize) -> StatusCheck {
        StatusCheck {
            request: "r".to_owned(),
            sent_at: Timestamp::from_millis(0),
            step,
            due_at: NOW,
            deliveries: vec![DeliveryId::from_bytes([1; 16]); deliveries],
        }
    }

    #[test]
    fn checks_follow_the_schedule_and_end_unconfirmed() {
        let minutes = [30, 120, 360, 1_440].map(|minutes| minutes * 60_000);
        for (step, millis) in (0..).zip(minutes) {
            let expected = CheckOutcome::Later {
                step: step + 1,
                due_at: Timestamp::from_millis(millis),
            };
            assert_eq!(
                outcome(&check(step, 1), StatusRuling::Processing, NOW),
                expected
            );
        }
        assert_eq!(
            outcome(&check(4, 1), StatusRuling::Processing, NOW),
            unconfirmed()
        );
        assert_eq!(
            outcome(&check(0, 1), StatusRuling::Unavailable, NOW),
            unconfirmed()
        );
    }

    #[test]
    fn late_results_correct_the_counts() {
        let (due_at, reason) = (NOW, String::new());
        let outcomes = [
            (CheckOutcome::Later { step: 1, due_at }, (0, 0)),
            (CheckOutcome::Done { note: None }, (0, 0)),
            (
                CheckOutcome::Failed {
                    reason: reason.clone(),
                },
                (3, 3),
            ),
            (CheckOutcome::Resend { due_at, reason }, (0, 3)),
        ];
        for (outcome, expected) in outcomes {
            let Recount {
                failed,
                undelivered,
            } = outcome.recount(3);
            assert_eq!((failed, undelivered), expected, "{outcome:?}");
        }
    }

    #[test]
    fn a_failed_check_is_repeated_without_advancing() {
        let again = outcome(&check(2, 1), StatusRuling::Retry, NOW);
        let due_at = NOW.plus(RETRY_WAIT);
        assert_eq!(again, CheckOutcome::Later { step: 2, due_at });
    }

    #[test]
    fn problems_fail_a_single_event_or_are_noted() {
        let failed = |requeue_after| {
            StatusRuling::Problems(StatusProblems {
                requeue_after,
                already_delivered: false,
                failed: vec![("INVALID_GCLID".to_owned(), 1)],
                alert: Vec::new(),
            })
        };
        let reason = "INVALID_GCLID ×1".to_owned();
        let alone = outcome(&check(0, 1), failed(None), NOW);
        assert_eq!(
            alone,
            CheckOutcome::Failed {
                reason: reason.clone()
            }
        );
        let several = outcome(&check(0, 2), failed(None), NOW);
        assert_eq!(
            several,
            CheckOutcome::Done {
                note: Some(reason.clone())
            }
        );
        let again = outcome(&check(0, 2), failed(Some(Duration::from_hours(6))), NOW);
        let due_at = NOW.plus(Duration::from_hours(6));
        assert_eq!(again, CheckOutcome::Resend { due_at, reason });
    }
}
