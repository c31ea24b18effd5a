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

/// Notices that a node's clock was set back.
///
/// It compares the wall clock with one that is never set.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockWatch {
    /// The wall clock and the time since the start of the process, when last compared.
    last: Option<(Timestamp, Duration)>,
}

/// How far the wall clock may fall behind between two comparisons: more than a smeared second.
const STEP_BACK_MIN: Duration = Duration::from_secs(5);

impl ClockWatch {
    /// Compares the clocks. Returns true the first time, because the clock may have been ahead before
    /// the start, and when the wall clock was set back.
    pub fn was_set_back(&mut self, now: Timestamp, since_start: Duration) -> bool {
        let Some((wall, monotonic)) = self.last.replace((now, since_start)) else {
            return true;
        };
        let expected = wall.plus(since_start.saturating_sub(monotonic));
        expected.since(now) >= STEP_BACK_MIN
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
    fn a_clock_that_is_set_back_is_noticed_once() {
        let at = |seconds: i64| Timestamp::from_millis(HOUR + seconds * 1_000);
        let second = Duration::from_secs;
        let mut watch = ClockWatch::default();
        assert!(watch.was_set_back(at(0), second(0)), "at the start");
        assert!(!watch.was_set_back(at(5), second(5)));
        assert!(!watch.was_set_back(at(10_005), second(10)), "set forward");
        assert!(watch.was_set_back(at(15), second(15)), "set back");
        assert!(!watch.was_set_back(at(20), second(20)));
        assert!(!watch.was_set_back(at(24), second(25)), "a smeared second");
        assert!(watch.was_set_back(at(24), second(30)), "it stood still");
    }
}
