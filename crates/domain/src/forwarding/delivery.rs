//! A delivery: one event sent to one network.

use super::lifecycle::INTERRUPTED;
use super::queue::QueueState;
use crate::integration::Network;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, DeliveryId, EventId};
use crate::vocabulary::time::Timestamp;

/// Maximum number of attempts stored per delivery: the first one and the most recent others. The
/// attempt count still includes all of them.
pub const ATTEMPTS_KEPT_MAX: usize = 20;
/// Maximum length of a stored network response.
pub const ANSWER_CHARS_MAX: usize = 512;

/// Result of one attempt for one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptVerdict {
    /// The network accepted the event.
    Delivered,
    /// The network did not accept the event, but a retry may succeed.
    Retry,
    /// The network will never accept the event.
    Terminal,
    /// Credentials, permissions or configuration are wrong, so the integration is paused.
    Pause,
    /// The network may have accepted the event.
    Unknown,
}

crate::keywords! {
    AttemptVerdict {
        Delivered => "delivered",
        Retry => "retry",
        Terminal => "terminal_event",
        Pause => "pause_integration",
        Unknown => "unknown",
    }
}

/// Status of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliveryStatus {
    /// Waiting to be sent.
    Pending,
    /// The network accepted the event.
    Delivered,
    /// The network validated the event without storing it, as requested.
    Validated,
    /// It is unknown whether the network has the event. After a retry the network might count it
    /// twice.
    Unconfirmed,
    /// The network rejected the event for good.
    Failed,
    /// The event became too old before it could be sent.
    Expired,
    /// The event was withdrawn, or is now credited to another network.
    Cancelled,
}

crate::keywords! {
    DeliveryStatus {
        Pending => "pending",
        Delivered => "delivered",
        Validated => "validated",
        Unconfirmed => "unconfirmed",
        Failed => "failed",
        Expired => "expired",
        Cancelled => "cancelled",
    }
}

impl DeliveryStatus {
    /// Returns whether an operator may retry the delivery. `Unconfirmed` may be retried, because
    /// the operator can check with the network first. `Cancelled` may not.
    pub const fn can_be_retried(self) -> bool {
        matches!(self, Self::Failed | Self::Expired | Self::Unconfirmed)
    }

    /// Returns whether the delivery counts as failed in the integration's health: it is finished,
    /// but nothing shows that the network has the event. `Cancelled` does not count as failed.
    pub const fn counts_as_failed(self) -> bool {
        matches!(self, Self::Failed | Self::Expired | Self::Unconfirmed)
    }
}

/// A stored attempt, without secrets or personal data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryAttempt {
    /// When the request was sent.
    pub at: Timestamp,
    /// HTTP status of the response, if there was one.
    pub status: Option<u16>,
    /// Duration in milliseconds.
    pub duration_ms: u32,
    /// Verdict for this delivery.
    pub verdict: AttemptVerdict,
    /// The network's message, truncated and without secrets.
    pub answer: Option<String>,
    /// The network's code, if it rejected the request without naming an event.
    pub refusal: Option<String>,
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Delivery id.
    pub id: DeliveryId,
    /// App id.
    pub app: AppId,
    /// The event to deliver.
    pub event: EventId,
    /// The destination network.
    pub network: Network,
    /// Event name at the network.
    pub network_event: String,
    /// Deduplication id sent to the network.
    pub dedup_id: String,
    /// Status.
    pub status: DeliveryStatus,
    /// Reason for the status.
    pub reason: Option<String>,
    /// When the delivery was planned.
    pub planned_at: Timestamp,
    /// When the delivery reached a final status.
    pub settled_at: Option<Timestamp>,
    /// Time of the next attempt.
    pub next_attempt_at: Option<Timestamp>,
    /// Number of attempts.
    pub attempts_made: u32,
    /// Stored attempts, in order.
    pub attempts: Vec<DeliveryAttempt>,
}

/// A delivery to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDelivery {
    /// Delivery id.
    pub id: DeliveryId,
    /// The event to deliver.
    pub event: EventId,
    /// Event name at the network.
    pub network_event: String,
    /// Deduplication id sent to the network.
    pub dedup_id: String,
    /// When the delivery was planned.
    pub planned_at: Timestamp,
    /// Number of attempts so far.
    pub attempts_made: u32,
    /// Stored attempts.
    pub attempts: Vec<DeliveryAttempt>,
    /// Time of the first attempt with an unknown outcome.
    pub ambiguous_since: Option<Timestamp>,
    /// When an earlier lease holder started sending the delivery without recording an outcome.
    pub interrupted_at: Option<Timestamp>,
}

impl PendingDelivery {
    /// Records an attempt with an unknown outcome if an earlier process stopped while it was
    /// sending the delivery. The network may have received the event.
    pub fn note_interruption(&mut self, network: Network) {
        let Some(at) = self.interrupted_at.take() else {
            return;
        };
        if network.dedup_window().is_some() {
            self.ambiguous_since = self.ambiguous_since.or(Some(at));
        }
        self.attempts_made = self.attempts_made.saturating_add(1);
        let attempt = DeliveryAttempt {
            at,
            status: None,
            duration_ms: 0,
            verdict: AttemptVerdict::Unknown,
            answer: Some(INTERRUPTED.to_owned()),
            refusal: None,
        };
        self.attempts = append_attempts(std::mem::take(&mut self.attempts), [attempt]);
    }
}

/// Returns the id of an event's delivery to a network. The id is derived from the event id and the
/// network, so that the deliveries of an event can be looked up by id. It starts with the event's
/// time.
pub fn delivery_id(event: EventId, network: Network) -> DeliveryId {
    let mut named = event.as_bytes().to_vec();
    named.extend_from_slice(network.as_str().as_bytes());
    let digest = Digest::of(&named);
    let mut random = [0; 10];
    random.copy_from_slice(&digest.as_bytes()[..10]);
    DeliveryId::new(event.at(), random)
}

/// Returns the ids of an event's possible deliveries, one per network, in network order.
pub fn delivery_ids(event: EventId) -> [DeliveryId; 4] {
    Network::ALL.map(|network| delivery_id(event, network))
}

impl Delivery {
    /// Delays the next attempt until the queue allows one.
    pub fn apply_queue_delay(&mut self, queue: &QueueState) {
        let due_at = self.next_attempt_at;
        self.next_attempt_at = due_at.and_then(|due_at| queue.next_attempt(due_at));
    }
}

/// Appends attempts. Beyond [`ATTEMPTS_KEPT_MAX`], keeps the first attempt and the most recent
/// others.
#[must_use]
pub fn append_attempts(
    mut attempts: Vec<DeliveryAttempt>,
    more: impl IntoIterator<Item = DeliveryAttempt>,
) -> Vec<DeliveryAttempt> {
    for attempt in more {
        if attempts.len() >= ATTEMPTS_KEPT_MAX {
            attempts.remove(1);
        }
        attempts.push(attempt);
    }
    attempts
}

/// Filter for the delivery log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryFilter {
    /// Status.
    pub status: Option<DeliveryStatus>,
    /// Destination network.
    pub network: Option<Network>,
    /// Event name in the app.
    pub event_name: Option<String>,
    /// Reason for the final status. Pending deliveries have none.
    pub reason: Option<String>,
    /// The sender's event id.
    pub external_id: Option<String>,
    /// Start of the range of event times, inclusive.
    pub from: Option<Timestamp>,
    /// End of the range of event times, exclusive.
    pub until: Option<Timestamp>,
}

impl DeliveryFilter {
    /// Returns one copy of this filter per status whose deliveries can be retried. If the filter
    /// already has a status, only that status is used.
    pub fn retryable(&self) -> impl Iterator<Item = Self> + '_ {
        let all = DeliveryStatus::ALL.iter().copied();
        let wanted = all
            .filter(|status| status.can_be_retried())
            .filter(|status| self.status.is_none_or(|wanted| wanted == *status));
        wanted.map(|status| Self {
            status: Some(status),
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn delivery_ids_are_unique_and_ordered_by_time() {
        let event = |at| EventId::new(Timestamp::from_millis(at), [7; 10]);
        let ids = Network::ALL.map(|network| delivery_id(event(1_000), network));
        assert_eq!(
            ids,
            Network::ALL.map(|network| delivery_id(event(1_000), network))
        );
        for later in Network::ALL.map(|network| delivery_id(event(1_001), network)) {
            assert!(ids.iter().all(|id| *id < later));
        }
        assert!(
            ids.iter()
                .all(|id| ids.iter().filter(|one| *one == id).count() == 1)
        );
    }

    #[test]
    fn only_retryable_statuses_are_queried() {
        let statuses = |status| {
            let filter = DeliveryFilter {
                status,
                ..DeliveryFilter::default()
            };
            let retryable: Vec<_> = filter.retryable().filter_map(|one| one.status).collect();
            retryable
        };
        let (unconfirmed, failed) = (DeliveryStatus::Unconfirmed, DeliveryStatus::Failed);
        let all = [unconfirmed, failed, DeliveryStatus::Expired];
        assert_eq!(statuses(None), all);
        assert_eq!(statuses(Some(failed)), [failed]);
        assert_eq!(statuses(Some(DeliveryStatus::Delivered)), []);
    }

    #[rstest]
    #[case(DeliveryStatus::Pending, false)]
    #[case(DeliveryStatus::Delivered, false)]
    #[case(DeliveryStatus::Validated, false)]
    #[case(DeliveryStatus::Unconfirmed, true)]
    #[case(DeliveryStatus::Failed, true)]
    #[case(DeliveryStatus::Expired, true)]
    #[case(DeliveryStatus::Cancelled, false)]
    fn what_counts_as_failed(#[case] status: DeliveryStatus, #[case] expected: bool) {
        assert_eq!(status.counts_as_failed(), expected);
    }

    #[test]
    fn statuses_and_verdicts_round_trip() {
        for status in DeliveryStatus::ALL {
            assert_eq!(DeliveryStatus::parse(status.as_str()), Some(*status));
        }
        for verdict in AttemptVerdict::ALL {
            assert_eq!(AttemptVerdict::parse(verdict.as_str()), Some(*verdict));
        }
    }

    #[test]
    fn the_first_attempt_and_the_latest_are_kept() {
        let attempt = |at| DeliveryAttempt {
            at: Timestamp::from_millis(at),
            status: None,
            duration_ms: 0,
            verdict: AttemptVerdict::Retry,
            answer: None,
            refusal: None,
        };
        let attempts = append_attempts(Vec::new(), (0..100).map(attempt));
        assert_eq!(attempts.len(), ATTEMPTS_KEPT_MAX);
        let times: Vec<i64> = attempts.iter().map(|one| one.at.as_millis()).collect();
        assert_eq!((times[0], times[1], times[19]), (0, 81, 99));
    }

    #[test]
    fn an_interrupted_attempt_counts_and_may_have_arrived() {
        let at = Timestamp::from_millis(5);
        for network in Network::ALL {
            let mut pending = crate::forwarding::samples::pending(1);
            pending.note_interruption(network);
            assert_eq!(pending.attempts_made, 0, "there was no interruption");
            pending.interrupted_at = Some(at);
            pending.note_interruption(network);
            let last = pending.attempts.last().map(|one| one.verdict);
            assert_eq!(
                (pending.attempts_made, last),
                (1, Some(AttemptVerdict::Unknown))
            );
            let remembers_for_ever = network == Network::B;
            assert_eq!(pending.ambiguous_since.is_none(), remembers_for_ever);
        }
    }
}
