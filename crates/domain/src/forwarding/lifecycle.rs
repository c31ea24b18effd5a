//! What becomes of a delivery: before an attempt, and after it.

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

/// Reasons that are ours; the others are the networks' codes.
pub const EXPIRED: &str = "expired";
/// Its time is more than a day ahead.
pub const FUTURE_TIMESTAMP: &str = "future_timestamp";
/// Nobody can say whether the network has it.
pub const OUTCOME_UNKNOWN: &str = "outcome_unknown";
/// The process ended while the request was under way.
pub const INTERRUPTED: &str = "interrupted";
/// The event was deleted.
pub const EVENT_GONE: &str = "event_gone";
/// Its event belongs to another network now.
pub const ATTRIBUTION_CHANGED: &str = "attribution_changed";
/// It proved not to be the first payment.
pub const NOT_FIRST_PAYMENT: &str = "not_first_payment";
/// A website or a billing provider reports the same event.
pub const DUPLICATE_OF_VERIFIED: &str = "duplicate_of_verified";
/// Why a delivery is cancelled when its event changes. One that was cancelled for such a reason before its first attempt
/// may be planned again.
pub const EVENT_CHANGED: [&str; 3] = [
    ATTRIBUTION_CHANGED,
    NOT_FIRST_PAYMENT,
    DUPLICATE_OF_VERIFIED,
];
/// The device's owner takes part no longer.
pub const CONSENT_WITHDRAWN: &str = "consent_withdrawn";
/// The device, and with it whoever it belonged to, was erased.
pub const ERASED: &str = "erased";

/// Where a pending delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryProgress {
    /// To which network.
    pub network: Network,
    /// When its event happened.
    pub occurred_at: Timestamp,
    /// When it is too late.
    pub expires_at: Timestamp,
    /// Attempts so far.
    pub attempts_made: u32,
    /// Time of the first attempt whose outcome is unknown.
    pub ambiguous_since: Option<Timestamp>,
}

/// What is to be done with a pending delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// It is over.
    End {
        /// How.
        status: DeliveryStatus,
        /// Why.
        reason: Option<String>,
    },
    /// It waits.
    Wait {
        /// Until then.
        due_at: Timestamp,
        /// Time of the first attempt whose outcome is unknown.
        ambiguous_since: Option<Timestamp>,
    },
}

pub(super) fn end_with(status: DeliveryStatus, reason: &str) -> NextStep {
    NextStep::End {
        status,
        reason: Some(reason.to_owned()),
    }
}

/// Whether a delivery may be sent now; nothing: it may.
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

/// Decides how a delivery ends that grew too old in a queue that no process works on. One that a process took and never
/// settled, at `sending_at`, may have arrived.
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

/// What one attempt came to for one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    /// When the request left.
    pub sent_at: Timestamp,
    /// In a word.
    pub verdict: AttemptVerdict,
    /// The network's code.
    pub code: Option<String>,
    /// Whether the network may have it although it says it does not: a gateway answered in its place.
    pub may_be_processed: bool,
    /// The shortest wait before the next attempt.
    pub at_least: Option<Duration>,
    /// Whether the network was asked to look and keep nothing.
    pub validated_only: bool,
}

/// What becomes of a delivery after an attempt.
pub fn after_attempt(
    progress: &DeliveryProgress,
    result: &AttemptResult,
    now: Timestamp,
    random: u64,
) -> NextStep {
    let known_again = progress.network.dedup_window().is_some();
    let is_ambiguous =
        known_again && (result.verdict == AttemptVerdict::Unknown || result.may_be_processed);
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
        // The integration waits as a whole; its deliveries are as due as they were.
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

/// What came of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledDelivery {
    /// Which.
    pub id: DeliveryId,
    /// Attempts so far.
    pub attempts_made: u32,
    /// Those that are kept.
    pub attempts: Vec<DeliveryAttempt>,
    /// Where it goes.
    pub next: NextStep,
}

impl SettledDelivery {
    /// A delivery that was not sent.
    pub fn unsent(pending: PendingDelivery, next: NextStep) -> Self {
        Self {
            id: pending.id,
            attempts_made: pending.attempts_made,
            attempts: pending.attempts,
            next,
        }
    }

    /// A delivery that went through a round. Without a result it never left, because something stopped the queue
    /// first: it stays due.
    pub fn after_round(tried: RoundResult, now: Timestamp, random: u64) -> Self {
        let OutgoingEvent {
            conversion,
            progress,
            earlier_attempts: before,
            attempts,
        } = tried.event;
        let sent = u32::from(tried.result.is_some());
        let next = match &tried.result {
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
    #[case::b_knows_ids_for_ever(Network::B, 100, Some(1_000), None)]
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
    #[case::taken_and_never_settled(Network::A, None, Some(NOW), DeliveryStatus::Unconfirmed)]
    #[case::b_knows_ids_for_ever(Network::B, Some(NOW), Some(NOW), DeliveryStatus::Expired)]
    fn deliveries_that_grew_too_old(
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
    fn events_ahead_of_their_time(#[case] minutes: i64, #[case] expected: Option<NextStep>) {
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
    fn ends_of_a_delivery(
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
        let known = DeliveryProgress {
            ambiguous_since: Some(sent),
            ..progress(Network::A)
        };
        for verdict in [AttemptVerdict::Unknown, AttemptVerdict::Retry] {
            let again = after_attempt(&known, &result(verdict), NOW, 0);
            assert_eq!(ambiguous(again), Some(sent));
        }
        let gateway = AttemptResult {
            may_be_processed: true,
            sent_at: sent,
            ..result(AttemptVerdict::Retry)
        };
        let next = after_attempt(&progress(Network::C), &gateway, NOW, 0);
        assert_eq!(ambiguous(next), Some(sent), "502 and 504 start it, too");
        let next = after_attempt(&progress(Network::B), &gateway, NOW, 0);
        assert_eq!(ambiguous(next), None, "b knows ids for ever");
    }

    #[test]
    fn the_larger_of_backoff_and_what_was_asked_wins() {
        let asked = AttemptResult {
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
        assert_eq!(due(&asked, 4_000), Duration::from_mins(1));
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
