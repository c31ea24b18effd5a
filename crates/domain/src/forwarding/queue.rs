//! The queue of an integration: whether it runs, how fast, and why not.

use super::retry::{backoff, clamp_requested_wait};
use super::round::BATCHES_IN_FLIGHT;
use crate::integration::Integration;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Consecutive refusals for one reason after which the queue is paused: the cause is the configuration, or the network
/// changed its interface.
pub const SYSTEMATIC_REJECTIONS: u32 = 10;
/// So many failed requests one after the other are an outage that people should see.
const OUTAGE_FAILURES: u32 = 5;
/// The reason of a pause that no network asked for: the integration cannot be used as it is.
pub const NOT_USABLE: &str = "not_usable";
/// The reason of a pause after [`SYSTEMATIC_REJECTIONS`].
pub const SYSTEMATIC_REJECTION: &str = "systematic_rejection";

/// A queue that cannot be worked on, because its integration lacks something, is looked at again after this.
const INCOMPLETE_WAIT: Duration = Duration::from_mins(1);

/// What to do with a queue that a process wants to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseDecision {
    /// Take it, unless it is paused or another process holds it.
    Take,
    /// Leave it alone until then: its integration is on and lacks something.
    Postpone(Timestamp),
    /// Its integration is off, or gone.
    Refuse,
}

/// Decides whether a process may hold the queue of an integration.
pub fn decide_lease(integration: Option<&Integration>, now: Timestamp) -> LeaseDecision {
    match integration {
        Some(integration) if integration.is_active() => LeaseDecision::Take,
        Some(integration) if integration.enabled => {
            LeaseDecision::Postpone(now.plus(INCOMPLETE_WAIT))
        }
        _ => LeaseDecision::Refuse,
    }
}

/// Why a queue stands still until somebody does something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Since when.
    pub at: Timestamp,
    /// The network's code, or ours.
    pub code: String,
    /// The network's words, cleaned.
    pub message: Option<String>,
}

/// How a queue stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueState {
    /// Stopped until somebody does something.
    pub pause: Option<Pause>,
    /// Requests that failed as a whole, one after the other.
    pub failures: u32,
    /// Nothing is sent before.
    pub not_before: Option<Timestamp>,
    /// Whether the next request carries one event only, to see whether things are well again.
    pub is_probing: bool,
    /// Refusals since the network last accepted something, and their code: requests that were held, and single events
    /// that failed.
    pub rejections: Option<(String, u32)>,
    /// When the network last took something.
    pub last_delivered_at: Option<Timestamp>,
}

impl QueueState {
    /// The network took something. What it asked to wait for, it may have asked of another request at the same time.
    pub fn record_success(&mut self, at: Timestamp) {
        self.failures = 0;
        self.is_probing = false;
        self.rejections = None;
        self.last_delivered_at = Some(at);
    }

    /// A request failed as a whole. The whole queue waits: the longer, the more failed before it.
    pub fn record_failure(&mut self, now: Timestamp, wait: Option<Duration>, random: u64) {
        let backoff = backoff(self.failures, random);
        self.failures = self.failures.saturating_add(1);
        self.is_probing = true;
        let wait = wait.map_or(backoff, |wait| clamp_requested_wait(wait).max(backoff));
        self.not_before = self.not_before.max(Some(now.plus(wait)));
    }

    /// Events are held because the network refused them and none is known to be to blame. Returns whether the queue
    /// has to be paused. Requests that are sent at the same time count once. `own_refusals` is how often a single event
    /// was refused before, if the request had one event only: one that is refused over and over says nothing about
    /// the others, so it does not pause them.
    pub fn record_held(
        &mut self,
        now: Timestamp,
        code: &str,
        own_refusals: Option<u32>,
        random: u64,
    ) -> bool {
        if self.not_before.is_some() {
            return false;
        }
        self.record_failure(now, None, random);
        let is_systematic = self.record_rejection(code);
        let count = self.rejections.as_ref().map_or(0, |(_, count)| *count);
        let is_own = own_refusals.is_some_and(|refusals| refusals.saturating_add(1) >= count);
        is_systematic && !is_own
    }

    /// A request was refused. Returns whether it is one too many in a row.
    pub fn record_rejection(&mut self, code: &str) -> bool {
        let before = match self.rejections.take() {
            Some((same, count)) if same == code => count,
            _ => 0,
        };
        let count = before.saturating_add(1);
        self.rejections = Some((code.to_owned(), count));
        count >= SYSTEMATIC_REJECTIONS
    }

    /// It stops.
    pub fn pause(&mut self, at: Timestamp, code: &str, words: Option<String>) {
        self.pause = Some(Pause {
            at,
            code: code.to_owned(),
            message: words,
        });
    }

    /// It goes on, carefully: somebody mended something, or asked for it.
    pub fn resume(&mut self) {
        *self = Self {
            is_probing: true,
            last_delivered_at: self.last_delivered_at,
            ..Self::default()
        };
    }

    /// Somebody changed the integration, or asks that it goes on: what stopped it may be mended by that. What the
    /// network asked to wait for is not up to them.
    pub fn resume_if_paused(&mut self) {
        if self.pause.is_some() {
            self.resume();
        }
    }

    /// When a delivery that is due then is tried; nothing while nothing is.
    pub fn next_attempt(&self, due_at: Timestamp) -> Option<Timestamp> {
        let by_queue = self
            .not_before
            .map_or(due_at, |not_before| due_at.max(not_before));
        self.pause.is_none().then_some(by_queue)
    }

    /// Whether the network has not answered as it should for a while.
    pub const fn is_failing(&self) -> bool {
        self.failures >= OUTAGE_FAILURES
    }

    /// Whether something stops the whole queue: a pause, or a wait.
    pub const fn has_to_wait(&self) -> bool {
        self.pause.is_some() || self.not_before.is_some()
    }

    /// Events of the next request.
    pub const fn batch_size(&self, most: usize) -> usize {
        if self.is_probing { 1 } else { most }
    }

    /// Deliveries that a round takes: enough for all the batches that go out at the same time.
    pub const fn deliveries_per_round(&self, most: usize) -> usize {
        if self.is_probing {
            1
        } else {
            most * BATCHES_IN_FLIGHT
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::forwarding::plan::samples::active;
    use crate::integration::Network;
    use rstest::rstest;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn incomplete(integration: &mut Integration) {
        integration.credentials.clear();
    }

    fn off(integration: &mut Integration) {
        integration.enabled = false;
    }

    #[rstest]
    #[case::complete(|_: &mut Integration| (), LeaseDecision::Take)]
    #[case::incomplete(incomplete, LeaseDecision::Postpone(Timestamp::from_millis(61_000)))]
    #[case::off(off, LeaseDecision::Refuse)]
    fn leases(#[case] change: impl Fn(&mut Integration), #[case] expected: LeaseDecision) {
        let mut integration = active(Network::A);
        change(&mut integration);
        assert_eq!(decide_lease(Some(&integration), NOW), expected);
        assert_eq!(decide_lease(None, NOW), LeaseDecision::Refuse);
    }

    #[test]
    fn a_failing_network_is_asked_less_and_less_and_then_carefully() {
        let mut queue = QueueState::default();
        queue.record_failure(NOW, None, 4_000);
        assert_eq!(queue.not_before, Some(Timestamp::from_millis(5_000)));
        assert_eq!((queue.batch_size(100), queue.is_failing()), (1, false));
        queue.record_failure(NOW, Some(Duration::from_secs(99_999)), 0);
        let hour = Timestamp::from_millis(1_000 + 3_600_000);
        assert_eq!(queue.not_before, Some(hour), "what is asked has bounds");
        for _ in 0..3 {
            queue.record_failure(NOW, None, 0);
        }
        assert!(queue.is_failing());
        queue.record_success(NOW);
        assert_eq!((queue.batch_size(100), queue.failures), (100, 0));
        assert_eq!(queue.deliveries_per_round(100), 400);
        assert_eq!(
            queue.not_before,
            Some(hour),
            "one answer does not undo another's"
        );
    }

    #[test]
    fn ten_refusals_of_one_kind_are_nobodys_event() {
        let mut queue = QueueState::default();
        for _ in 0..9 {
            assert!(!queue.record_rejection("100/1"));
        }
        assert!(
            !queue.record_rejection("100/2"),
            "another reason begins anew"
        );
        for _ in 0..8 {
            assert!(!queue.record_rejection("100/2"));
        }
        assert!(queue.record_rejection("100/2"));
        queue.record_success(NOW);
        assert!(!queue.record_rejection("100/2"), "a success begins anew");
    }

    #[test]
    fn held_requests_back_off_and_pause_after_ten() {
        let mut queue = QueueState::default();
        for refusals in 1..10 {
            assert!(!queue.record_held(NOW, "100", None, 0));
            assert!(
                !queue.record_held(NOW, "100", None, 0),
                "sent at the same time"
            );
            assert_eq!((queue.failures, queue.batch_size(100)), (refusals, 1));
            queue.not_before = None;
        }
        assert!(queue.record_held(NOW, "100", None, 0));
        queue.not_before = None;
        assert!(
            !queue.record_held(NOW, "101", None, 0),
            "another code starts again"
        );
    }

    #[test]
    fn one_event_that_is_refused_over_and_over_does_not_pause_the_others() {
        let mut queue = QueueState::default();
        for refusals in 0..20 {
            assert!(!queue.record_held(NOW, "100", Some(refusals), 0));
            queue.not_before = None;
        }
        assert!(
            queue.record_held(NOW, "100", Some(0), 0),
            "another event is refused, too"
        );
    }

    #[test]
    fn a_change_mends_a_pause_and_no_throttle() {
        let mut queue = QueueState::default();
        queue.record_failure(NOW, Some(Duration::from_mins(5)), 0);
        let waiting = queue.clone();
        queue.resume_if_paused();
        assert_eq!(queue, waiting);
        let due = Timestamp::from_millis(2_000);
        assert_eq!(queue.next_attempt(due), waiting.not_before);
        queue.pause(NOW, "190", None);
        assert_eq!(queue.next_attempt(due), None);
        queue.resume_if_paused();
        assert_eq!(
            (queue.pause.is_none(), queue.next_attempt(due)),
            (true, Some(due))
        );
    }

    #[test]
    fn after_a_pause_it_begins_with_one() {
        let mut queue = QueueState::default();
        queue.record_success(NOW);
        queue.pause(NOW, "190", None);
        queue.resume();
        assert_eq!((queue.pause.is_none(), queue.batch_size(50)), (true, 1));
        assert_eq!(queue.deliveries_per_round(50), 1);
        assert_eq!(queue.last_delivered_at, Some(NOW));
    }
}
