//! Requests whose outcome a network tells later: when to ask, and what the reply means.

use crate::vocabulary::id::DeliveryId;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// When a request is asked about, since it was sent. After the last time it is taken as it is.
const SCHEDULE: [Duration; 5] = [
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(6),
    Duration::from_hours(24),
];
/// When it could not be asked.
const RETRY_WAIT: Duration = Duration::from_mins(5);
/// The network never said.
const OUTCOME_UNCONFIRMED: &str = "outcome_unconfirmed";

/// A request whose outcome a network tells later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusCheck {
    /// The network's id of the request.
    pub request: String,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// How often it was asked about.
    pub step: u32,
    /// When to ask.
    pub due_at: Timestamp,
    /// The deliveries that it carried.
    pub deliveries: Vec<DeliveryId>,
}

impl StatusCheck {
    /// A request that was just sent.
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

/// What becomes of a request after it was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// Ask again.
    Later {
        /// How often it was asked about by then.
        step: u32,
        /// When.
        due_at: Timestamp,
    },
    /// It is over; what the network said about it, if that was not simply yes.
    Done {
        /// A note that its deliveries keep as their reason.
        note: Option<String>,
    },
    /// The network takes none of it, for this reason.
    Failed {
        /// The network's reason.
        reason: String,
    },
    /// All of it is to be sent again, with the same ids.
    Resend {
        /// When.
        due_at: Timestamp,
        /// The network's reason.
        reason: String,
    },
}

/// How counted deliveries change when the network changes its mind about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recount {
    /// Deliveries that count as failed now.
    pub failed: u64,
    /// Deliveries that no longer count as delivered in the hour of their request.
    pub undelivered: u64,
}

impl CheckOutcome {
    /// Decides what to recount after this outcome changed so many deliveries.
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

/// What the network says about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatusRuling {
    /// Not decided yet: ask again later.
    Processing,
    /// The network took all of it.
    Success,
    /// Something is wrong with some of it.
    Problems(StatusProblems),
    /// The network will not tell: it does not know the request, or refuses to speak of it.
    Unavailable,
    /// It could not be asked: ask again.
    Retry,
    /// The access token was refused: get a new one and ask again.
    TokenRefused,
}

/// What is wrong with a request's events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatusProblems {
    /// All events of the request are to be sent again, under the same ids, after so long.
    pub requeue_after: Option<Duration>,
    /// Whether that is all right: the network only says that it had them before.
    pub already_delivered: bool,
    /// What was not taken: reasons without their prefix, and how many events of each; 0 where it does not say.
    pub failed: Vec<(String, u64)>,
    /// Those of the reasons that only the operator can do something about.
    pub alert: Vec<String>,
}

/// Decides what becomes of a request after the network was asked about it.
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
        // The network does not say which of them: the operator sees how many, and why.
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
    fn it_is_asked_at_the_stated_times_and_then_taken_as_it_is() {
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
    fn counts_follow_the_network() {
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
    fn a_question_that_failed_is_asked_again_without_losing_a_turn() {
        let again = outcome(&check(2, 1), StatusRuling::Retry, NOW);
        let due_at = NOW.plus(RETRY_WAIT);
        assert_eq!(again, CheckOutcome::Later { step: 2, due_at });
    }

    #[test]
    fn problems_concern_one_event_or_the_operator() {
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
