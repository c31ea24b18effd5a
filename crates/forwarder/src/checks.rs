//! Asking `network_b` what became of requests that it took for the time being.

use crate::attempt::Line;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_networks::Secret;
use tributary_networks::network_b::{Problems, StatusRuling, judge_status, status_request};
use tributary_store::{CheckOutcome, LeaseId, StatusCheck, StoreResult};

/// When a request is asked about, since it was sent. After the last time it is taken as it is.
const SCHEDULE: [Duration; 5] = [
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(6),
    Duration::from_hours(24),
];
/// When it could not be asked.
const AGAIN: Duration = Duration::from_mins(5);
/// Requests that are asked about at a time.
const CHECKS_PER_LOOK: u32 = 20;
/// The network never said.
const OUTCOME_UNCONFIRMED: &str = "outcome_unconfirmed";

/// Asks about what is due.
pub(crate) async fn ask(
    line: &Line<'_>,
    lease: LeaseId,
    stopping: &CancellationToken,
) -> StoreResult<()> {
    let store = &line.shared.parts.store;
    let now = line.shared.parts.source.now();
    let due = store
        .due_status_checks(line.queue, now, CHECKS_PER_LOOK)
        .await?;
    for check in due {
        if stopping.is_cancelled() {
            return Ok(());
        }
        let ruling = ask_one(line, &check.request).await;
        let now = line.shared.parts.source.now();
        let outcome = outcome(&check, ruling, now);
        let settled = store.settle_status_check(line.queue, lease, check.request, outcome, now);
        if !settled.await? {
            return Ok(());
        }
    }
    Ok(())
}

async fn ask_one(line: &Line<'_>, request: &str) -> StatusRuling {
    let mut stale: Option<Secret> = None;
    loop {
        let Ok(Some(token)) = line.token(stale.as_ref()).await else {
            return StatusRuling::Retry;
        };
        let sent = line.transmit(status_request(request, token.expose())).await;
        match judge_status(&sent.outcome) {
            StatusRuling::TokenRefused if stale.is_none() => stale = Some(token),
            StatusRuling::TokenRefused => return StatusRuling::Retry,
            ruling => return ruling,
        }
    }
}

fn outcome(check: &StatusCheck, ruling: StatusRuling, now: Timestamp) -> CheckOutcome {
    match ruling {
        StatusRuling::Success => CheckOutcome::Over { note: None },
        StatusRuling::Unavailable => unconfirmed(),
        StatusRuling::Processing => later(check),
        StatusRuling::Retry | StatusRuling::TokenRefused => CheckOutcome::Later {
            step: check.step,
            due_at: now.plus(AGAIN),
        },
        StatusRuling::Problems(problems) => with_problems(check, &problems, now),
    }
}

fn unconfirmed() -> CheckOutcome {
    CheckOutcome::Over {
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

fn with_problems(check: &StatusCheck, problems: &Problems, now: Timestamp) -> CheckOutcome {
    let reasons: Vec<String> = problems
        .failed
        .iter()
        .map(|(reason, count)| format!("{reason} ×{count}"))
        .collect();
    let reasons = reasons.join(", ");
    if !problems.alert.is_empty() {
        tracing::warn!(
            "network_b says that a conversion action or account must be changed: {}",
            problems.alert.join(", ")
        );
    }
    if let Some(wait) = problems.requeue_after {
        return CheckOutcome::Again {
            due_at: now.plus(wait),
            reason: reasons,
        };
    }
    match (problems.delivered, check.deliveries.len()) {
        (true, _) => CheckOutcome::Over { note: None },
        (false, 1) => CheckOutcome::Failed { reason: reasons },
        // Nobody says which of them: the operator sees how many, and why.
        (false, _) => CheckOutcome::Over {
            note: Some(reasons),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::vocabulary::id::DeliveryId;

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
    fn a_question_that_failed_is_asked_again_without_losing_a_turn() {
        let again = outcome(&check(2, 1), StatusRuling::Retry, NOW);
        let due_at = NOW.plus(AGAIN);
        assert_eq!(again, CheckOutcome::Later { step: 2, due_at });
    }

    #[test]
    fn problems_concern_one_event_or_the_operator() {
        let failed = |requeue_after| {
            StatusRuling::Problems(Problems {
                requeue_after,
                delivered: false,
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
            CheckOutcome::Over {
                note: Some(reason.clone())
            }
        );
        let again = outcome(&check(0, 2), failed(Some(Duration::from_hours(6))), NOW);
        let due_at = NOW.plus(Duration::from_hours(6));
        assert_eq!(again, CheckOutcome::Again { due_at, reason });
    }
}
