//! Deliveries of the history: sends the events of past days to imagined networks, of which each
//! accepts most, rejects some and fails now and then.
//!
//! The results are written through the outbox, as the forwarder writes them. The deliveries of the
//! last hours stay pending, so that the forwarder sends them to the simulated networks.

use crate::networks::queues;
use crate::organization::Sample;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tributary_domain::forwarding::delivery::PendingDelivery;
use tributary_domain::forwarding::lifecycle::{
    ATTRIBUTION_CHANGED, CONSENT_WITHDRAWN, EXPIRED, NextStep, OUTCOME_UNKNOWN, SettledDelivery,
};
use tributary_domain::forwarding::queue_change::QueueChange;
use tributary_domain::forwarding::settlement::DeliverySettlement;
use tributary_domain::forwarding::{AttemptVerdict, DeliveryAttempt, DeliveryStatus};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{LeaseId, QueueRef, Store, StoreError, StoreResult};

/// Time before the end of the history from which the forwarder sends the deliveries.
const LEFT_TO_FORWARDER: Duration = Duration::from_hours(2);
/// Deliveries that one settlement writes: more than a queue has on a day.
const SETTLED_MAX: u32 = 5_000;
/// Time after which a network that never answered is given up.
const GIVEN_UP_AFTER: Duration = Duration::from_hours(7 * 24);
/// Shortest time to the next attempt of a delivery that is pending at the end of the history, and how
/// much longer it may be, in minutes.
const NEXT_ATTEMPT_MINUTES: (u64, u64) = (40, 200);
/// Times of the attempts after the event, if the first ones fail.
const ATTEMPTS_AFTER: [Duration; 4] = [
    Duration::from_secs(2),
    Duration::from_secs(40),
    Duration::from_mins(9),
    Duration::from_hours(3),
];
/// A response that is worth a retry: the status and the network's message.
const BUSY: [(u16, &str); 3] = [
    (503, "Service temporarily unavailable"),
    (429, "Too many requests"),
    (500, "An unknown error occurred"),
];

/// How a delivery went, in thousandths of all deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// The first attempt was accepted.
    Accepted,
    /// The second attempt was accepted.
    AcceptedLater,
    /// The network rejected the event.
    Rejected,
    /// The network did not answer for days.
    Unanswered,
    /// A connection broke, so nothing shows whether the network has the event.
    Broken,
    /// The event was withdrawn before it was sent.
    Withdrawn,
}

impl Course {
    fn of(pending: &PendingDelivery, network: Network) -> Self {
        match number(pending) % 1_000 {
            0..=39 => Self::AcceptedLater,
            40..=64 => Self::Rejected,
            65..=76 => Self::Unanswered,
            77..=84 if network.dedup_window().is_some() => Self::Broken,
            85..=96 => Self::Withdrawn,
            _ => Self::Accepted,
        }
    }
}

/// Returns a number that belongs to the delivery and is spread evenly.
fn number(pending: &PendingDelivery) -> u64 {
    // The last bytes of an id are random.
    let bytes = pending.id.as_bytes();
    bytes[8..]
        .iter()
        .fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Returns a network's rejection: the HTTP status, the code and the message.
const fn rejection(network: Network, is_first: bool) -> (u16, &'static str, &'static str) {
    match (network, is_first) {
        (Network::A, true) => (
            400,
            "100/2804050",
            "You haven't added sufficient customer information parameter data for this event.",
        ),
        (Network::A, false) => (
            400,
            "100/2804003",
            "The timestamp for this event is too far in the past.",
        ),
        (Network::B, true) => (400, "CLICK_NOT_FOUND", "The click could not be found."),
        (Network::B, false) => (
            400,
            "INVALID_CONVERSION_ACTION_TYPE",
            "The conversion action does not accept this kind of event.",
        ),
        (Network::C, true) => (
            200,
            "40002",
            "Batch.0.properties.value: Not a valid number.",
        ),
        (Network::C, false) => (200, "40002", "Batch.0.context.ad.callback: Invalid value."),
        (Network::D, true) => (400, "invalid_timestamp", "The event is too old."),
        (Network::D, false) => (
            400,
            "invalid_value",
            "The value of `amount` is not supported.",
        ),
    }
}

fn attempt(
    pending: &PendingDelivery,
    index: usize,
    verdict: AttemptVerdict,
    (status, answer): (Option<u16>, Option<&str>),
) -> DeliveryAttempt {
    let slow = status.map_or(10_000, |_| 80 + number(pending) % 400);
    DeliveryAttempt {
        at: pending.event.at().plus(ATTEMPTS_AFTER[index]),
        status,
        duration_ms: u32::try_from(slow).unwrap_or(u32::MAX),
        verdict,
        answer: answer.map(str::to_owned),
        refusal: None,
    }
}

/// Decides what happened to a delivery by `now`, in a history that ends at `until`.
fn settle(
    pending: PendingDelivery,
    network: Network,
    (now, until): (Timestamp, Timestamp),
) -> SettledDelivery {
    let end = |status, reason: Option<&str>| NextStep::End {
        status,
        reason: reason.map(str::to_owned),
    };
    let chosen = usize::try_from(number(&pending) / 1_000 % 6).unwrap_or(0);
    let (busy, answer) = BUSY[chosen % BUSY.len()];
    let is_first = chosen.is_multiple_of(2);
    let retried = |index| {
        let answer = (Some(busy), Some(answer));
        attempt(&pending, index, AttemptVerdict::Retry, answer)
    };
    let accepted = |index| {
        let answer = (Some(200), None);
        attempt(&pending, index, AttemptVerdict::Delivered, answer)
    };
    let delivered = end(DeliveryStatus::Delivered, None);
    let (attempts, next) = match Course::of(&pending, network) {
        Course::Accepted => (vec![accepted(0)], delivered),
        Course::AcceptedLater => (vec![retried(0), accepted(1)], delivered),
        Course::Rejected => {
            let (status, code, message) = rejection(network, is_first);
            let answer = (Some(status), Some(message));
            let attempt = attempt(&pending, 0, AttemptVerdict::Terminal, answer);
            (vec![attempt], end(DeliveryStatus::Failed, Some(code)))
        }
        Course::Broken => {
            let attempt = attempt(&pending, 0, AttemptVerdict::Unknown, (None, None));
            let unconfirmed = end(DeliveryStatus::Unconfirmed, Some(OUTCOME_UNKNOWN));
            (vec![attempt], unconfirmed)
        }
        Course::Withdrawn => {
            let reason = if is_first {
                CONSENT_WITHDRAWN
            } else {
                ATTRIBUTION_CHANGED
            };
            (Vec::new(), end(DeliveryStatus::Cancelled, Some(reason)))
        }
        Course::Unanswered => {
            let attempts = (0..ATTEMPTS_AFTER.len()).map(retried).collect();
            let given_up_at = pending.event.at().plus(GIVEN_UP_AFTER);
            let next = if given_up_at <= now {
                end(DeliveryStatus::Expired, Some(EXPIRED))
            } else if given_up_at <= until {
                wait_until(given_up_at)
            } else {
                let (least, more) = NEXT_ATTEMPT_MINUTES;
                let minutes = least + number(&pending) % more;
                wait_until(until.plus(Duration::from_mins(minutes)))
            };
            (attempts, next)
        }
    };
    SettledDelivery {
        id: pending.id,
        attempts_made: u32::try_from(attempts.len()).unwrap_or(u32::MAX),
        attempts,
        next,
    }
}

const fn wait_until(due_at: Timestamp) -> NextStep {
    NextStep::Wait {
        due_at,
        ambiguous_since: None,
    }
}

impl Sample {
    /// Delivers the events that happened by `now`, in a history that ends at `until`. The deliveries
    /// of the last hours before that end stay pending.
    pub(crate) async fn deliver_past(
        &self,
        store: &Arc<dyn Store>,
        (now, until): (Timestamp, Timestamp),
    ) -> StoreResult<()> {
        let last = i64::try_from(LEFT_TO_FORWARDER.as_millis()).unwrap_or(0);
        let now = now.min(Timestamp::from_millis(until.as_millis() - last));
        // At the same time, so that the store commits them together.
        let mut tasks: JoinSet<StoreResult<()>> = JoinSet::new();
        for queue in queues(self) {
            let store = store.clone();
            tasks.spawn(async move { deliver_queue(&*store, queue, (now, until)).await });
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(|error| StoreError::unavailable("deliver_past", error))??;
        }
        Ok(())
    }
}

async fn deliver_queue(
    store: &dyn Store,
    queue: QueueRef,
    (now, until): (Timestamp, Timestamp),
) -> StoreResult<()> {
    // No other process works on the queues of the history.
    let lease = LeaseId(*queue.app.as_bytes());
    let lease_end = now.plus(Duration::from_mins(1));
    let request = queue.lease_request(lease, now, lease_end);
    let Some(leased) = store.lease_queue(queue, request).await? else {
        return Ok(());
    };
    let revision = leased.integration.revision.number();
    let due = store
        .due_deliveries(queue, lease, revision, now, SETTLED_MAX)
        .await?;
    let due = due.unwrap_or_default().into_iter();
    let settled: Vec<SettledDelivery> = due
        .map(|pending| settle(pending, queue.network, (now, until)))
        .collect();
    if !settled.is_empty() {
        let settlement = DeliverySettlement {
            at: now,
            begun_at: now,
            changes: vec![QueueChange::Accepted { at: now }],
            revision,
            settled,
            is_test: false,
            checks: Vec::new(),
            pause_alert: None,
            failure_alert: None,
        };
        store.settle_deliveries(queue, lease, settlement).await?;
    }
    store.release_queue(queue, lease, now).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::vocabulary::id::{DeliveryId, EventId};

    const DAY: Duration = Duration::from_hours(24);
    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn pending(number: u64, attempts_made: u32) -> PendingDelivery {
        let random = (u128::from(number) + 1) * 0x9e37_79b9_7f4a_7c15_f39c;
        let mut bytes = [0; 10];
        bytes.copy_from_slice(&random.to_be_bytes()[6..]);
        PendingDelivery {
            id: DeliveryId::new(START, bytes),
            event: EventId::new(START, bytes),
            network_event: "Purchase".to_owned(),
            dedup_id: "d".to_owned(),
            planned_at: START,
            attempts_made,
            attempts: Vec::new(),
            ambiguous_since: None,
            interrupted_at: None,
        }
    }

    #[test]
    fn most_deliveries_arrive_and_every_other_end_occurs() {
        let times = (START.plus(DAY), START.plus(30 * DAY));
        let mut delivered = 0;
        let mut seen = Vec::new();
        for number in 0..4_000 {
            let settled = settle(pending(number, 0), Network::C, times);
            match settled.next {
                NextStep::End { status, reason } => {
                    delivered += u32::from(status == DeliveryStatus::Delivered);
                    let has_reason = reason.is_some();
                    assert_eq!(
                        has_reason,
                        status != DeliveryStatus::Delivered,
                        "{status:?}"
                    );
                    if !seen.contains(&status) {
                        seen.push(status);
                    }
                }
                NextStep::Wait { due_at, .. } => {
                    assert_eq!(due_at, START.plus(GIVEN_UP_AFTER));
                    let later = settle(pending(number, 4), Network::C, (due_at, times.1));
                    let expired = NextStep::End {
                        status: DeliveryStatus::Expired,
                        reason: Some(EXPIRED.to_owned()),
                    };
                    assert_eq!(later.next, expired);
                    seen.push(DeliveryStatus::Expired);
                }
            }
        }
        assert!((3_600..3_900).contains(&delivered), "{delivered} of 4000");
        for status in [
            DeliveryStatus::Failed,
            DeliveryStatus::Expired,
            DeliveryStatus::Unconfirmed,
            DeliveryStatus::Cancelled,
        ] {
            assert!(seen.contains(&status), "{status:?}");
        }
    }

    #[test]
    fn a_delivery_without_an_answer_is_pending_at_the_end_of_the_history() {
        let until = START.plus(2 * DAY);
        let waits = (0..4_000).filter_map(|number| {
            match settle(pending(number, 0), Network::A, (START.plus(DAY), until)).next {
                NextStep::Wait { due_at, .. } => Some(due_at),
                NextStep::End { .. } => None,
            }
        });
        let waits: Vec<Timestamp> = waits.collect();
        assert!(!waits.is_empty());
        assert!(waits.iter().all(|due_at| *due_at > until));
    }
}
