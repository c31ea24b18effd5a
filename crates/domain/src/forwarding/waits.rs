//! The longest waits of queues and deliveries.
//!
//! Waits are stored as the time at which they end, by the clock of the node that stores them. If that
//! clock was ahead, a wait may end hours or days after it should. A wait that ends later than any wait
//! can is the mistake of such a clock, and ends at once.

use super::limits::LEASE_MARGIN;
use super::retry::REQUESTED_WAIT_MAX;
use crate::event::FUTURE_SKEW_MAX;
use crate::integration::Network;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How far the clocks of two nodes may differ. Without it, a wait that another node has just stored
/// might end.
const NODE_SKEW_MAX: Duration = Duration::from_mins(1);
/// Longest wait that a network's adapter gives a delivery: until Google knows a new click or a new
/// conversion action.
pub const DELIVERY_WAIT_MAX: Duration = Duration::from_hours(6);

/// The latest ends that waits can have. Later ones are mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatestEnds {
    /// End of the lease of a queue or of a part of it.
    pub lease: Timestamp,
    /// End of a queue's back-off.
    pub back_off: Timestamp,
    /// Next attempt of a delivery.
    pub delivery: Timestamp,
}

impl LatestEnds {
    /// Returns the latest ends of waits that began at this time.
    pub fn at(now: Timestamp) -> Self {
        let requests = Network::ALL.into_iter().map(Network::request_timeout);
        let lease = requests.max().unwrap_or_default() + LEASE_MARGIN;
        let end = |wait: Duration| now.plus(NODE_SKEW_MAX).plus(wait);
        Self {
            lease: end(lease),
            back_off: end(REQUESTED_WAIT_MAX),
            // A delivery waits for the time of its event as well, which may be in the future.
            delivery: end(DELIVERY_WAIT_MAX.max(FUTURE_SKEW_MAX)),
        }
    }
}

/// How far the wall clock may fall behind between two comparisons: more than a smeared second.
const STEP_BACK_MIN: Duration = Duration::from_secs(5);
/// When a node looks for mistaken waits once more after its clock was set back. A request to a network
/// that began before may store a wait when it ends, after its timeout at the latest.
const SECOND_LOOK: Duration = Duration::from_mins(1);
/// How often it looks without such a reason: the clock may have been ahead only between two
/// comparisons. Rare, because a look reads all queues.
const LOOK_INTERVAL: Duration = Duration::from_hours(1);

/// Decides when a node looks for mistaken waits.
///
/// It compares the wall clock with one that is never set.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockWatch {
    /// The wall clock and the time since the start of the process, when last compared.
    last: Option<(Timestamp, Duration)>,
    /// Whether the clock was set back since the last look.
    was_set_back: bool,
    /// Time from the start of the process to the next look without a reason.
    next_look: Duration,
}

impl ClockWatch {
    /// Compares the clocks. Returns whether to look now: the first time, because the clock may have been
    /// ahead before the start, when the wall clock was set back, and now and then.
    pub fn is_look_due(&mut self, now: Timestamp, since_start: Duration) -> bool {
        self.was_set_back |= match self.last.replace((now, since_start)) {
            None => true,
            Some((wall, monotonic)) => {
                let expected = wall.plus(since_start.saturating_sub(monotonic));
                expected.since(now) >= STEP_BACK_MIN
            }
        };
        self.was_set_back || since_start >= self.next_look
    }

    /// Notes a look that succeeded. Until then, one stays due.
    pub fn looked(&mut self, since_start: Duration) {
        let pause = if self.was_set_back {
            SECOND_LOOK
        } else {
            LOOK_INTERVAL
        };
        self.was_set_back = false;
        self.next_look = since_start + pause;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::retry::clamp_requested_wait;

    const HOUR: i64 = 60 * 60 * 1_000;

    #[test]
    fn no_wait_of_a_right_clock_is_a_mistake() {
        let now = Timestamp::from_millis(HOUR);
        let latest = LatestEnds::at(now);
        for network in Network::ALL {
            assert!(now.plus(network.request_timeout() + LEASE_MARGIN) < latest.lease);
        }
        assert!(now.plus(clamp_requested_wait(Duration::MAX)) < latest.back_off);
        assert!(now.plus(DELIVERY_WAIT_MAX) < latest.delivery);
        assert!(now.plus(FUTURE_SKEW_MAX) < latest.delivery);
        let day_ahead = now.plus(Duration::from_hours(24));
        assert!(latest.lease < day_ahead && latest.back_off < day_ahead);
        assert!(latest.delivery < day_ahead);
    }

    #[test]
    fn looks_after_a_start_a_step_back_and_an_hour() {
        let second = Duration::from_secs;
        let (minute, hour) = (SECOND_LOOK.as_secs(), LOOK_INTERVAL.as_secs());
        let (right, ahead) = (0, 25 * 60 * 60);
        let cases = [
            ("the start", 0, right, true),
            ("nothing happened", 1, right, false),
            ("the clock was set ahead", 2, ahead, false),
            ("it was set back", 3, right, true),
            ("nothing happened since", 2 + minute, right, false),
            ("requests have ended", 3 + minute, right, true),
            ("a smeared second", 4 + minute, -1, false),
            ("just before an hour", 2 + minute + hour, right, false),
            ("ahead unnoticed", 3 + minute + hour, right, true),
            ("an hour begins again", 4 + minute + hour, right, false),
            ("it stood still", 10 + minute + hour, -6, true),
        ];
        let mut watch = ClockWatch::default();
        for (what, seconds, off, expected) in cases {
            let now = Timestamp::from_millis(HOUR + (seconds.cast_signed() + off) * 1_000);
            let is_due = watch.is_look_due(now, second(seconds));
            assert_eq!(is_due, expected, "{what}");
            if is_due {
                watch.looked(second(seconds));
            }
        }
    }

    #[test]
    fn a_look_that_fails_stays_due() {
        let mut watch = ClockWatch::default();
        for seconds in 0..3 {
            let since_start = Duration::from_secs(seconds);
            let now = Timestamp::from_millis(HOUR).plus(since_start);
            assert!(watch.is_look_due(now, since_start));
        }
    }
}
