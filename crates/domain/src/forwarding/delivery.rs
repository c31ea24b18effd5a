//! A delivery: one event's way to one network.

use super::lifecycle::INTERRUPTED;
use super::queue::QueueState;
use crate::integration::Network;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, DeliveryId, EventId};
use crate::vocabulary::time::Timestamp;

/// Attempts that are kept with a delivery: the first, and the latest. How many there were is counted.
pub const ATTEMPTS_KEPT_MAX: usize = 20;
/// Characters of a network's answer that are kept.
pub const ANSWER_CHARS_MAX: usize = 512;

/// What one attempt came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptVerdict {
    /// The network has it.
    Delivered,
    /// Certainly not taken; it may be later.
    Retry,
    /// It will never be taken.
    Terminal,
    /// The integration cannot go on: credentials, permissions or configuration are wrong.
    Pause,
    /// It may have been taken.
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
    /// To be sent.
    Pending,
    /// The network has it.
    Delivered,
    /// The network looked at it and kept nothing, as it was asked to.
    Validated,
    /// Whether the network has it will never be known, and sending it again might count it twice.
    Unconfirmed,
    /// The network will never take it.
    Failed,
    /// It grew too old before it could be sent.
    Expired,
    /// Its event was withdrawn, or belongs to somebody else now.
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
    /// Whether an operator may ask for another try. What the network has is not sent again; what it may have is, since
    /// somebody who asks for it has looked. What was cancelled was taken back, and stays so.
    pub const fn can_be_retried(self) -> bool {
        matches!(self, Self::Failed | Self::Expired | Self::Unconfirmed)
    }

    /// Whether it counts as failed in the health of an integration: nothing says that the network has the event. What was
    /// cancelled was taken back, and failed at nothing.
    pub const fn counts_as_failed(self) -> bool {
        matches!(self, Self::Failed | Self::Expired | Self::Unconfirmed)
    }
}

/// One attempt, as it is kept: no secret, no personal data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryAttempt {
    /// When the request left.
    pub at: Timestamp,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// How long it took.
    pub duration_ms: u32,
    /// What it came to for this delivery.
    pub verdict: AttemptVerdict,
    /// The network's own words, cut and cleaned of secrets.
    pub answer: Option<String>,
    /// The network's code, where it refused the request without naming an event.
    pub refusal: Option<String>,
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// Of which app.
    pub app: AppId,
    /// Of which event.
    pub event: EventId,
    /// To which network.
    pub network: Network,
    /// What the network calls it.
    pub network_event: String,
    /// The id that the network knows it by.
    pub dedup_id: String,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// Why it stands there.
    pub reason: Option<String>,
    /// When it was planned.
    pub planned_at: Timestamp,
    /// When it came to its end.
    pub settled_at: Option<Timestamp>,
    /// When it is tried next.
    pub next_attempt_at: Option<Timestamp>,
    /// How many attempts there were.
    pub attempts_made: u32,
    /// The attempts that are kept, in order.
    pub attempts: Vec<DeliveryAttempt>,
}

/// A delivery that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDelivery {
    /// Its id.
    pub id: DeliveryId,
    /// Of which event.
    pub event: EventId,
    /// What the network calls it.
    pub network_event: String,
    /// The id that the network knows it by.
    pub dedup_id: String,
    /// When it was planned.
    pub planned_at: Timestamp,
    /// Attempts so far.
    pub attempts_made: u32,
    /// Those that are kept.
    pub attempts: Vec<DeliveryAttempt>,
    /// Time of the first attempt whose outcome is unknown.
    pub ambiguous_since: Option<Timestamp>,
    /// When an earlier lease took it and ended without an outcome.
    pub interrupted_at: Option<Timestamp>,
}

impl PendingDelivery {
    /// Notes the attempt of a process that took the delivery and never recorded an outcome: the network may have it.
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

/// The id of an event's delivery to a network. There is one, so its id is made of theirs: it begins with the event's
/// time, and whoever has the event finds its deliveries without a search.
pub fn delivery_id(event: EventId, network: Network) -> DeliveryId {
    let mut named = event.as_bytes().to_vec();
    named.extend_from_slice(network.as_str().as_bytes());
    let digest = Digest::of(&named);
    let mut random = [0; 10];
    random.copy_from_slice(&digest.as_bytes()[..10]);
    DeliveryId::new(event.at(), random)
}

/// Returns the ids that the deliveries of an event have, if it has any, in the order of the networks.
pub fn delivery_ids(event: EventId) -> [DeliveryId; 4] {
    Network::ALL.map(|network| delivery_id(event, network))
}

impl Delivery {
    /// Moves the next attempt to when its queue allows one.
    pub fn apply_queue_delay(&mut self, queue: &QueueState) {
        let due_at = self.next_attempt_at;
        self.next_attempt_at = due_at.and_then(|due_at| queue.next_attempt(due_at));
    }
}

/// The attempts that are kept after one more: the first one says how it began, the latest how it stands.
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

/// Which deliveries are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryFilter {
    /// That stand here.
    pub status: Option<DeliveryStatus>,
    /// To this network.
    pub network: Option<Network>,
    /// Of the events that senders gave this id.
    pub external_id: Option<String>,
    /// Of events not before.
    pub from: Option<Timestamp>,
    /// Of events before.
    pub until: Option<Timestamp>,
}

impl DeliveryFilter {
    /// Returns this filter for each status that it asks for and that an operator may retry.
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
    fn every_event_has_one_delivery_a_network_and_time_orders_them() {
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
    fn only_what_may_be_retried_is_asked_for() {
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
    fn words_are_read_as_they_were_written() {
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
            assert_eq!(pending.attempts_made, 0, "nothing happened");
            pending.interrupted_at = Some(at);
            pending.note_interruption(network);
            let last = pending.attempts.last().map(|one| one.verdict);
            assert_eq!(
                (pending.attempts_made, last),
                (1, Some(AttemptVerdict::Unknown))
            );
            let knows_for_ever = network == Network::B;
            assert_eq!(pending.ambiguous_since.is_none(), knows_for_ever);
        }
    }
}
