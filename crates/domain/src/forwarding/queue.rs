//! State of an integration's queue: running, backing off or paused.

use super::retry::{backoff, clamp_requested_wait};
use super::round::BATCHES_IN_FLIGHT;
use crate::integration::Integration;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Number of consecutive rejections with the same code after which the queue is paused. The likely
/// cause is a wrong configuration or a change in the network's API.
pub const SYSTEMATIC_REJECTIONS: u32 = 10;
/// Number of consecutive failed requests after which the integration is shown as failing.
const OUTAGE_FAILURES: u32 = 5;
/// Code for a pause because the integration cannot be used as configured.
pub const NOT_USABLE: &str = "not_usable";
/// Code for a pause after [`SYSTEMATIC_REJECTIONS`].
pub const SYSTEMATIC_REJECTION: &str = "systematic_rejection";

/// How long to wait before trying to lease the queue of an incomplete integration again.
const INCOMPLETE_WAIT: Duration = Duration::from_mins(1);

/// Decision about leasing a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseDecision {
    /// Lease the queue, unless it is paused or another process holds the lease.
    Take,
    /// Try again at this time: the integration is enabled but incomplete.
    Postpone(Timestamp),
    /// The integration is disabled or deleted.
    Refuse,
}

/// Decides whether a process may lease the queue of an integration.
pub fn decide_lease(integration: Option<&Integration>, now: Timestamp) -> LeaseDecision {
    match integration {
        Some(integration) if integration.is_active() => LeaseDecision::Take,
        Some(integration) if integration.enabled => {
            LeaseDecision::Postpone(now.plus(INCOMPLETE_WAIT))
        }
        _ => LeaseDecision::Refuse,
    }
}

/// A pause until an operator acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Start of the pause.
    pub at: Timestamp,
    /// The network's code, or one of Tributary's own.
    pub code: String,
    /// The network's message, without secrets.
    pub message: Option<String>,
}

/// State of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueState {
    /// The current pause, if any.
    pub pause: Option<Pause>,
    /// Number of consecutive failed requests.
    pub failures: u32,
    /// End of the current back-off.
    pub not_before: Option<Timestamp>,
    /// Whether the next request contains a single event, to test whether the network recovered.
    pub is_probing: bool,
    /// Code and number of consecutive rejections with that code since the network last accepted a
    /// request. Counts held requests and events that failed alone.
    pub rejections: Option<(String, u32)>,
    /// When the network last accepted a request.
    pub last_delivered_at: Option<Timestamp>,
    /// When the queue was last resumed.
    pub resumed_at: Option<Timestamp>,
}

impl QueueState {
    /// Records an accepted request. Does not end a back-off, because a concurrent request may have
    /// started it.
    pub fn record_success(&mut self, at: Timestamp) {
        self.failures = 0;
        self.is_probing = false;
        self.rejections = None;
        self.last_delivered_at = self.last_delivered_at.max(Some(at));
    }

    /// Records a failed request and backs off the queue exponentially.
    pub fn record_failure(&mut self, now: Timestamp, wait: Option<Duration>, random: u64) {
        let backoff = backoff(self.failures, random);
        self.failures = self.failures.saturating_add(1);
        self.is_probing = true;
        let wait = wait.map_or(backoff, |wait| clamp_requested_wait(wait).max(backoff));
        self.not_before = self.not_before.max(Some(now.plus(wait)));
    }

    /// Records that the events in a rejected request are held, because nothing shows which event is
    /// at fault. Returns whether to pause the queue. If the queue already backs off, nothing is
    /// recorded, so that concurrent requests count once. `earlier_rejections` is set if the request
    /// has a single event: the number of earlier attempts to send it. Repeated rejections of the
    /// same event say nothing about other events, so they do not pause the queue.
    pub fn record_held(
        &mut self,
        now: Timestamp,
        code: &str,
        earlier_rejections: Option<u32>,
        random: u64,
    ) -> bool {
        if self.not_before.is_some() {
            return false;
        }
        self.record_failure(now, None, random);
        let is_systematic = self.record_rejection(code);
        let count = self.rejections.as_ref().map_or(0, |(_, count)| *count);
        let is_same_event =
            earlier_rejections.is_some_and(|rejections| rejections.saturating_add(1) >= count);
        is_systematic && !is_same_event
    }

    /// Records a rejected request. Returns whether there were too many rejections in a row.
    pub fn record_rejection(&mut self, code: &str) -> bool {
        let before = match self.rejections.take() {
            Some((same, count)) if same == code => count,
            _ => 0,
        };
        let count = before.saturating_add(1);
        self.rejections = Some((code.to_owned(), count));
        count >= SYSTEMATIC_REJECTIONS
    }

    /// Pauses the queue, unless it is paused already.
    pub fn pause(&mut self, at: Timestamp, code: &str, message: Option<String>) {
        self.pause.get_or_insert_with(|| Pause {
            at,
            code: code.to_owned(),
            message,
        });
    }

    /// Resumes the queue with a single event, after an operator fixed the cause or asked to resume.
    pub fn resume(&mut self, at: Timestamp) {
        *self = Self {
            is_probing: true,
            last_delivered_at: self.last_delivered_at,
            resumed_at: self.resumed_at.max(Some(at)),
            ..Self::default()
        };
    }

    /// Resumes the queue after its integration was changed, if the queue is paused. Otherwise
    /// nothing changes, so a current back-off stays.
    pub fn resume_if_paused(&mut self, at: Timestamp) {
        if self.pause.is_some() {
            self.resume(at);
        }
    }

    /// Returns when a delivery due at `due_at` is attempted; `None` while the queue is paused.
    pub fn next_attempt(&self, due_at: Timestamp) -> Option<Timestamp> {
        let by_queue = self
            .not_before
            .map_or(due_at, |not_before| due_at.max(not_before));
        self.pause.is_none().then_some(by_queue)
    }

    /// Returns whether the network has failed repeatedly.
    pub const fn is_failing(&self) -> bool {
        self.failures >= OUTAGE_FAILURES
    }

    /// Returns whether a pause or back-off stops the queue.
    pub const fn has_to_wait(&self) -> bool {
        self.pause.is_some() || self.not_before.is_some()
    }

    /// Returns the number of events in the next request.
    pub const fn batch_size(&self, max: usize) -> usize {
        if self.is_probing { 1 } else { max }
    }

    /// Returns the number of deliveries in a round: enough for all concurrent batches.
    pub const fn deliveries_per_round(&self, max: usize) -> usize {
        if self.is_probing {
            1
        } else {
            max * BATCHES_IN_FLIGHT
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

    fn disabled(integration: &mut Integration) {
        integration.enabled = false;
    }

    #[rstest]
    #[case::complete(|_: &mut Integration| (), LeaseDecision::Take)]
    #[case::incomplete(incomplete, LeaseDecision::Postpone(Timestamp::from_millis(61_000)))]
    #[case::disabled(disabled, LeaseDecision::Refuse)]
    fn lease_decisions(#[case] change: impl Fn(&mut Integration), #[case] expected: LeaseDecision) {
        let mut integration = active(Network::A);
        change(&mut integration);
        assert_eq!(decide_lease(Some(&integration), NOW), expected);
        assert_eq!(decide_lease(None, NOW), LeaseDecision::Refuse);
    }

    #[test]
    fn failures_back_off_and_then_probe() {
        let mut queue = QueueState::default();
        queue.record_failure(NOW, None, 4_000);
        assert_eq!(queue.not_before, Some(Timestamp::from_millis(5_000)));
        assert_eq!((queue.batch_size(100), queue.is_failing()), (1, false));
        queue.record_failure(NOW, Some(Duration::from_secs(99_999)), 0);
        let hour = Timestamp::from_millis(1_000 + 3_600_000);
        assert_eq!(queue.not_before, Some(hour), "requested waits are limited");
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
            "a success keeps a concurrent back-off"
        );
    }

    #[test]
    fn ten_equal_rejections_are_systematic() {
        let mut queue = QueueState::default();
        for _ in 0..9 {
            assert!(!queue.record_rejection("100/1"));
        }
        assert!(
            !queue.record_rejection("100/2"),
            "another code restarts the count"
        );
        for _ in 0..8 {
            assert!(!queue.record_rejection("100/2"));
        }
        assert!(queue.record_rejection("100/2"));
        queue.record_success(NOW);
        assert!(
            !queue.record_rejection("100/2"),
            "a success restarts the count"
        );
    }

    #[test]
    fn held_requests_back_off_and_pause_after_ten() {
        let mut queue = QueueState::default();
        for rejections in 1..10 {
            assert!(!queue.record_held(NOW, "100", None, 0));
            assert!(
                !queue.record_held(NOW, "100", None, 0),
                "concurrent requests count once"
            );
            assert_eq!((queue.failures, queue.batch_size(100)), (rejections, 1));
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
    fn one_event_rejected_repeatedly_does_not_pause_the_queue() {
        let mut queue = QueueState::default();
        for rejections in 0..20 {
            assert!(!queue.record_held(NOW, "100", Some(rejections), 0));
            queue.not_before = None;
        }
        assert!(
            queue.record_held(NOW, "100", Some(0), 0),
            "another event is rejected, too"
        );
    }

    #[test]
    fn a_change_ends_a_pause_but_not_a_back_off() {
        let mut queue = QueueState::default();
        queue.record_failure(NOW, Some(Duration::from_mins(5)), 0);
        let waiting = queue.clone();
        queue.resume_if_paused(NOW);
        assert_eq!(queue, waiting);
        let due = Timestamp::from_millis(2_000);
        assert_eq!(queue.next_attempt(due), waiting.not_before);
        queue.pause(NOW, "190", None);
        assert_eq!(queue.next_attempt(due), None);
        queue.resume_if_paused(NOW);
        assert_eq!(
            (queue.pause.is_none(), queue.next_attempt(due)),
            (true, Some(due))
        );
    }

    #[test]
    fn a_resumed_queue_starts_with_one_event() {
        let mut queue = QueueState::default();
        queue.record_success(NOW);
        queue.pause(NOW, "190", None);
        queue.resume(NOW);
        assert_eq!((queue.pause.is_none(), queue.batch_size(50)), (true, 1));
        assert_eq!(queue.deliveries_per_round(50), 1);
        assert_eq!(queue.last_delivered_at, Some(NOW));
    }
}
