//! The lifecycle of a delivery: decisions before and after each attempt.

use super::delivery::{
    AttemptVerdict, DeliveryAttempt, DeliveryStatus, PendingDelivery, append_attempts,
};
use super::limits::{LEAD_TERMINAL, sendable_from};
use super::retry::backoff;
use super::round::{OutgoingEvent, RoundResult};
use crate::integration::Network;
use crate::vocabulary::id::DeliveryId;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// The delivery became too old to send. This reason and the following ones are Tributary's own; all
/// others are codes from the networks.
pub const EXPIRED: &str = "expired";
/// The event's time is more than a day in the future.
pub const FUTURE_TIMESTAMP: &str = "future_timestamp";
/// It is unknown whether the network received the event.
pub const OUTCOME_UNKNOWN: &str = "outcome_unknown";
/// The process stopped during the request.
pub const INTERRUPTED: &str = "interrupted";
/// The event was deleted.
pub const EVENT_GONE: &str = "event_gone";
/// The event is credited to another network now.
pub const ATTRIBUTION_CHANGED: &str = "attribution_changed";
/// The event is no longer the device's first payment.
pub const NOT_FIRST_PAYMENT: &str = "not_first_payment";
/// A website or a billing provider reports the same event.
pub const DUPLICATE_OF_VERIFIED: &str = "duplicate_of_verified";
/// Reasons for cancelling a delivery because its event changed. A delivery that was cancelled
/// before its first attempt may be planned again.
pub const EVENT_CHANGED: [&str; 3] = [
    ATTRIBUTION_CHANGED,
    NOT_FIRST_PAYMENT,
    DUPLICATE_OF_VERIFIED,
];
/// Consent was withdrawn.
pub const CONSENT_WITHDRAWN: &str = "consent_withdrawn";
/// The device and its user were erased.
pub const ERASED: &str = "erased";

/// Progress of a pending delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryProgress {
    /// The destination network.
    pub network: Network,
    /// Time of the event.
    pub occurred_at: Timestamp,
    /// Time from which the event is too old to send.
    pub expires_at: Timestamp,
    /// Number of attempts so far.
    pub attempts_made: u32,
    /// Time of the first attempt with an unknown outcome.
    pub ambiguous_since: Option<Timestamp>,
}

/// What happens to a pending delivery next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// The delivery ends.
    End {
        /// Final status.
        status: DeliveryStatus,
        /// Reason, if the event was not delivered.
        reason: Option<String>,
    },
    /// The delivery waits.
    Wait {
        /// When the next attempt is due.
        due_at: Timestamp,
        /// Time of the first attempt with an unknown outcome.
        ambiguous_since: Option<Timestamp>,
    },
}

pub(super) fn end_with(status: DeliveryStatus, reason: &str) -> NextStep {
    NextStep::End {
        status,
        reason: Some(reason.to_owned()),
    }
}

/// Decides whether a delivery may be sent now; `None` if it may.
pub fn before_attempt(progress: &DeliveryProgress, now: Timestamp) -> Option<NextStep> {
    if now >= progress.expires_at {
        let (status, reason) = expired_status(progress.network, progress.ambiguous_since, None);
        return Some(end_with(status, reason));
    }
    if let (Some(since), Some(window)) = (progress.ambiguous_since, progress.network.dedup_window())
        && now.since(since) >= window
    {
        return Some(end_with(DeliveryStatus::Unconfirmed, OUTCOME_UNKNOWN));
    }
    if progress.occurred_at.since(now) > LEAD_TERMINAL {
        return Some(end_with(DeliveryStatus::Failed, FUTURE_TIMESTAMP));
    }
    let from = sendable_from(progress.network, progress.occurred_at);
    (from > now).then_some(NextStep::Wait {
        due_at: from,
        ambiguous_since: progress.ambiguous_since,
    })
}

/// Returns the final status and reason of a delivery that became too old to send. If a process
/// started sending it at `sending_at` without recording an outcome, the network may have received
/// the event.
pub fn expired_status(
    network: Network,
    ambiguous_since: Option<Timestamp>,
    sending_at: Option<Timestamp>,
) -> (DeliveryStatus, &'static str) {
    match (ambiguous_since.or(sending_at), network.dedup_window()) {
        (Some(_), Some(_)) => (DeliveryStatus::Unconfirmed, OUTCOME_UNKNOWN),
        _ => (DeliveryStatus::Expired, EXPIRED),
    }
}

/// Result of an attempt for one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    /// When the request was sent.
    pub sent_at: Timestamp,
    /// Verdict for the delivery.
    pub verdict: AttemptVerdict,
    /// The network's error code.
    pub code: Option<String>,
    /// Whether the network may have processed the event despite the error, because a gateway
    /// responded.
    pub may_be_processed: bool,
    /// Minimum wait before the next attempt.
    pub at_least: Option<Duration>,
    /// Whether the request only asked for validation.
    pub validated_only: bool,
}

/// Decides what happens to a delivery after an attempt.
pub fn after_attempt(
    progress: &DeliveryProgress,
    result: &AttemptResult,
    now: Timestamp,
    random: u64,
) -> NextStep {
    let has_dedup_window = progress.network.dedup_window().is_some();
    let is_ambiguous =
        has_dedup_window && (result.verdict == AttemptVerdict::Unknown || result.may_be_processed);
    let ambiguous_since = match progress.ambiguous_since {
        None if is_ambiguous => Some(result.sent_at),
        since => since,
    };
    match result.verdict {
        AttemptVerdict::Delivered => NextStep::End {
            status: if result.validated_only {
                DeliveryStatus::Validated
            } else {
                DeliveryStatus::Delivered
            },
            reason: None,
        },
        AttemptVerdict::Terminal => NextStep::End {
            status: DeliveryStatus::Failed,
            reason: result.code.clone(),
        },
        // The whole integration is paused; its deliveries stay due.
        AttemptVerdict::Pause => NextStep::Wait {
            due_at: now,
            ambiguous_since,
        },
        AttemptVerdict::Retry | AttemptVerdict::Unknown => {
            let wait = backoff(progress.attempts_made, random);
            NextStep::Wait {
                due_at: now.plus(result.at_least.map_or(wait, |least| wait.max(least))),
                ambiguous_since,
            }
        }
    }
}

/// Result of processing one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledDelivery {
    /// The delivery.
    pub id: DeliveryId,
    /// Number of attempts so far.
    pub attempts_made: u32,
    /// Stored attempts.
    pub attempts: Vec<DeliveryAttempt>,
    /// What happens next.
    pub next: NextStep,
}

impl SettledDelivery {
    /// Settles a delivery that was not sent.
    pub fn unsent(pending: PendingDelivery, next: NextStep) -> Self {
        Self {
            id: pending.id,
            attempts_made: pending.attempts_made,
            attempts: pending.attempts,
            next,
        }
    }

    /// Settles a delivery after a round. A delivery without a result was not sent, because the
    /// queue stopped before; the delivery stays due.
    pub fn after_round(round_result: RoundResult, now: Timestamp, random: u64) -> Self {
        let OutgoingEvent {
            conversion,
            progress,
            earlier_attempts: before,
            attempts,
        } = round_result.event;
        let sent = u32::from(round_result.result.is_some());
        let next = match &round_result.result {
            Some(result) => after_attempt(&progress, result, now, random),
            None => NextStep::Wait {
                due_at: now,
                ambiguous_since: progress.ambiguous_since,
            },
        };
        Self {
            id: conversion.delivery,
            attempts_made: progress.attempts_made.saturating_add(sent),
            attempts: append_attempts(before, attempts),
            next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const HOUR: i64 = 3_600_000;
    const NOW: Timestamp = Timestamp::from_millis(1_000 * HOUR);

    fn hours_ago(hours: i64) -> Timestamp {
        Timestamp::from_millis(NOW.as_millis() - hours * HOUR)
    }

    fn progress(network: Network) -> DeliveryProgress {
        DeliveryProgress {
            network,
            occurred_at: hours_ago(1),
            expires_at: hours_ago(-100),
            attempts_made: 0,
            ambiguous_since: None,
        }
    }

    fn status(next: Option<NextStep>) -> Option<DeliveryStatus> {
        match next {
            Some(NextStep::End { status, .. }) => Some(status),
            _ => None,
        }
    }

    #[rstest]
    #[case::fresh(Network::A, 100, None, None)]
    #[case::too_old(Network::A, 0, None, Some(DeliveryStatus::Expired))]
    #[case::ambiguous_within_the_window(Network::A, 100, Some(47), None)]
    #[case::ambiguous_past_the_window(Network::A, 100, Some(48), Some(DeliveryStatus::Unconfirmed))]
    #[case::ambiguous_and_too_old(Network::D, 0, Some(1), Some(DeliveryStatus::Unconfirmed))]
    #[case::b_remembers_ids_for_ever(Network::B, 100, Some(1_000), None)]
    #[case::b_too_old(Network::B, 0, Some(1), Some(DeliveryStatus::Expired))]
    fn before_an_attempt(
        #[case] network: Network,
        #[case] hours_left: i64,
        #[case] ambiguous_hours: Option<i64>,
        #[case] expected: Option<DeliveryStatus>,
    ) {
        let progress = DeliveryProgress {
            expires_at: hours_ago(-hours_left),
            ambiguous_since: ambiguous_hours.map(hours_ago),
            ..progress(network)
        };
        assert_eq!(status(before_attempt(&progress, NOW)), expected);
    }

    #[rstest]
    #[case::never_sent(Network::A, None, None, DeliveryStatus::Expired)]
    #[case::ambiguous(Network::A, Some(NOW), None, DeliveryStatus::Unconfirmed)]
    #[case::started_and_never_settled(Network::A, None, Some(NOW), DeliveryStatus::Unconfirmed)]
    #[case::b_remembers_ids_for_ever(Network::B, Some(NOW), Some(NOW), DeliveryStatus::Expired)]
    fn statuses_of_expired_deliveries(
        #[case] network: Network,
        #[case] ambiguous_since: Option<Timestamp>,
        #[case] sending_at: Option<Timestamp>,
        #[case] expected: DeliveryStatus,
    ) {
        assert_eq!(
            expired_status(network, ambiguous_since, sending_at).0,
            expected
        );
    }

    #[rstest]
    #[case::a_little_early(5, Some(NextStep::Wait { due_at: Timestamp::from_millis(NOW.as_millis() + 4 * 60_000), ambiguous_since: None }))]
    #[case::within_the_lead(1, None)]
    #[case::days_ahead(2 * 24 * 60, Some(end_with(DeliveryStatus::Failed, FUTURE_TIMESTAMP)))]
    fn future_events_wait_or_fail(#[case] minutes: i64, #[case] expected: Option<NextStep>) {
        let progress = DeliveryProgress {
            occurred_at: Timestamp::from_millis(NOW.as_millis() + minutes * 60_000),
            ..progress(Network::A)
        };
        assert_eq!(before_attempt(&progress, NOW), expected);
    }

    fn result(verdict: AttemptVerdict) -> AttemptResult {
        AttemptResult {
            sent_at: NOW,
            verdict,
            code: Some("100".to_owned()),
            may_be_processed: false,
            at_least: None,
            validated_only: false,
        }
    }

    #[rstest]
    #[case(AttemptVerdict::Delivered, Some(DeliveryStatus::Delivered))]
    #[case(AttemptVerdict::Terminal, Some(DeliveryStatus::Failed))]
    #[case(AttemptVerdict::Retry, None)]
    #[case(AttemptVerdict::Unknown, None)]
    #[case(AttemptVerdict::Pause, None)]
    fn statuses_after_an_attempt(
        #[case] verdict: AttemptVerdict,
        #[case] expected: Option<DeliveryStatus>,
    ) {
        let next = after_attempt(&progress(Network::A), &result(verdict), NOW, 0);
        assert_eq!(status(Some(next)), expected);
    }

    fn ambiguous(next: NextStep) -> Option<Timestamp> {
        match next {
            NextStep::Wait {
                ambiguous_since, ..
            } => ambiguous_since,
            NextStep::End { .. } => None,
        }
    }

    #[test]
    fn the_first_ambiguous_attempt_starts_the_clock_and_no_later_one_restarts_it() {
        let sent = hours_ago(2);
        let unknown = AttemptResult {
            sent_at: sent,
            ..result(AttemptVerdict::Unknown)
        };
        let first = after_attempt(&progress(Network::A), &unknown, NOW, 0);
        assert_eq!(ambiguous(first), Some(sent));
        let ambiguous_progress = DeliveryProgress {
            ambiguous_since: Some(sent),
            ..progress(Network::A)
        };
        for verdict in [AttemptVerdict::Unknown, AttemptVerdict::Retry] {
            let again = after_attempt(&ambiguous_progress, &result(verdict), NOW, 0);
            assert_eq!(ambiguous(again), Some(sent));
        }
        let gateway = AttemptResult {
            may_be_processed: true,
            sent_at: sent,
            ..result(AttemptVerdict::Retry)
        };
        let next = after_attempt(&progress(Network::C), &gateway, NOW, 0);
        assert_eq!(
            ambiguous(next),
            Some(sent),
            "gateway errors are ambiguous, too"
        );
        let next = after_attempt(&progress(Network::B), &gateway, NOW, 0);
        assert_eq!(ambiguous(next), None, "network_b remembers ids for ever");
    }

    #[test]
    fn the_longer_of_backoff_and_requested_wait_applies() {
        let requested = AttemptResult {
            at_least: Some(Duration::from_mins(1)),
            ..result(AttemptVerdict::Retry)
        };
        let due = |result: &AttemptResult, random| match after_attempt(
            &progress(Network::A),
            result,
            NOW,
            random,
        ) {
            NextStep::Wait { due_at, .. } => due_at.since(NOW),
            NextStep::End { .. } => Duration::ZERO,
        };
        assert_eq!(due(&requested, 4_000), Duration::from_mins(1));
        assert_eq!(
            due(&result(AttemptVerdict::Retry), 4_000),
            Duration::from_secs(4)
        );
    }

    #[test]
    fn validated_is_not_delivered() {
        let result = AttemptResult {
            validated_only: true,
            ..result(AttemptVerdict::Delivered)
        };
        let next = after_attempt(&progress(Network::D), &result, NOW, 0);
        assert_eq!(status(Some(next)), Some(DeliveryStatus::Validated));
    }
}
