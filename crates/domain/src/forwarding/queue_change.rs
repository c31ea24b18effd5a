//! Changes to a queue's state.
//!
//! Several nodes may work on one queue at the same time. A node therefore does not store the state
//! that it computed from its own copy. It stores what happened, and the rules are applied to the
//! state that is stored by then, so that no node overwrites a pause or a back-off of another one.

use super::queue::{QueueState, SYSTEMATIC_REJECTION};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// What a response says about the whole queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueChange {
    /// The network accepted a request.
    Accepted {
        /// Time of the response.
        at: Timestamp,
    },
    /// The network asked for a wait, although it accepted a request.
    WaitRequested {
        /// End of the wait.
        until: Timestamp,
    },
    /// A request failed.
    Failed {
        /// Time of the response.
        at: Timestamp,
        /// Wait that the network asked for.
        wait: Option<Duration>,
        /// A random number for the back-off.
        random: u64,
    },
    /// The events in a rejected request are held, because nothing shows which event is at fault.
    Held {
        /// Time of the response.
        at: Timestamp,
        /// The network's code.
        code: String,
        /// The network's message.
        message: Option<String>,
        /// Number of earlier attempts, if the request has a single event.
        earlier_rejections: Option<u32>,
        /// A random number for the back-off.
        random: u64,
    },
    /// An event was rejected alone and failed.
    FailedAlone {
        /// Time of the response.
        at: Timestamp,
        /// The network's code.
        code: String,
        /// The network's message.
        message: Option<String>,
    },
    /// The queue cannot go on until an operator acts.
    Stopped {
        /// Time of the response.
        at: Timestamp,
        /// Code of the pause.
        code: String,
        /// Reason for the pause.
        message: Option<String>,
    },
}

impl QueueChange {
    /// Returns whether the change may stop the queue because of a problem that an operator can fix.
    const fn is_problem(&self) -> bool {
        match self {
            Self::Accepted { .. } | Self::WaitRequested { .. } => false,
            Self::Failed { .. }
            | Self::Held { .. }
            | Self::FailedAlone { .. }
            | Self::Stopped { .. } => true,
        }
    }
}

impl QueueState {
    /// Returns whether a change from a round between these times has an effect. The problems of a
    /// round during which the queue was resumed have none, because they may be fixed. A resume that
    /// lies after the round was stamped by a clock that is fast, so it says nothing.
    pub fn admits(
        &self,
        change: &QueueChange,
        (begun_at, settled_at): (Timestamp, Timestamp),
    ) -> bool {
        let is_resumed_during = |resumed| begun_at < resumed && resumed <= settled_at;
        !change.is_problem() || !self.resumed_at.is_some_and(is_resumed_during)
    }

    /// Applies a change. Returns whether the change requires a pause. A queue that is paused
    /// already keeps its first pause.
    pub fn apply(&mut self, change: &QueueChange) -> bool {
        match change {
            QueueChange::Accepted { at } => {
                self.record_success(*at);
                false
            }
            QueueChange::WaitRequested { until } => {
                self.not_before = self.not_before.max(Some(*until));
                false
            }
            QueueChange::Failed { at, wait, random } => {
                self.record_failure(*at, *wait, *random);
                false
            }
            QueueChange::Held {
                at,
                code,
                message,
                earlier_rejections,
                random,
            } => {
                let is_systematic = self.record_held(*at, code, *earlier_rejections, *random);
                self.pause_if(is_systematic, *at, message.as_ref())
            }
            QueueChange::FailedAlone { at, code, message } => {
                let is_systematic = self.record_rejection(code);
                self.pause_if(is_systematic, *at, message.as_ref())
            }
            QueueChange::Stopped { at, code, message } => {
                self.pause(*at, code, message.clone());
                true
            }
        }
    }

    /// Applies a change, unless it would pause the queue.
    pub fn apply_unless_pausing(&mut self, change: &QueueChange) {
        let mut changed = self.clone();
        if !changed.apply(change) {
            *self = changed;
        }
    }

    fn pause_if(&mut self, is_systematic: bool, at: Timestamp, message: Option<&String>) -> bool {
        if is_systematic {
            self.pause(at, SYSTEMATIC_REJECTION, message.cloned());
        }
        is_systematic
    }

    /// Ends a back-off that is over at this time.
    pub fn clear_ended_backoff(&mut self, now: Timestamp) {
        self.not_before = self.not_before.filter(|end| *end > now);
    }

    /// Returns whether a pause or a back-off stops the queue at this time.
    pub fn is_stopped_at(&self, now: Timestamp) -> bool {
        self.pause.is_some() || self.not_before.is_some_and(|end| end > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::queue::SYSTEMATIC_REJECTIONS;

    const NOW: Timestamp = Timestamp::from_millis(1_000);
    const LATER: Timestamp = Timestamp::from_millis(9_000);

    const ACCEPTED: QueueChange = QueueChange::Accepted { at: LATER };
    const FAILED: QueueChange = QueueChange::Failed {
        at: NOW,
        wait: Some(Duration::from_mins(5)),
        random: 0,
    };
    const WAITS: QueueChange = QueueChange::WaitRequested { until: LATER };

    fn stopped(code: &str) -> QueueChange {
        QueueChange::Stopped {
            at: NOW,
            code: code.to_owned(),
            message: None,
        }
    }

    fn held(code: &str) -> QueueChange {
        QueueChange::Held {
            at: NOW,
            code: code.to_owned(),
            message: Some("no".to_owned()),
            earlier_rejections: None,
            random: 0,
        }
    }

    fn after(changes: &[QueueChange]) -> QueueState {
        let mut state = QueueState::default();
        for change in changes {
            state.apply(change);
        }
        state
    }

    #[test]
    fn the_order_of_changes_decides_no_pause_and_no_wait() {
        let changes = [ACCEPTED, FAILED, WAITS, stopped("190")];
        let expected = after(&changes);
        assert!(expected.pause.is_some() && expected.not_before.is_some());
        for first in 0..changes.len() {
            let mut order = changes.to_vec();
            order.rotate_left(first);
            for _ in 0..2 {
                let state = after(&order);
                assert_eq!(state.pause, expected.pause, "{order:?}");
                assert_eq!(state.not_before, expected.not_before, "{order:?}");
                assert_eq!(state.last_delivered_at, Some(LATER), "{order:?}");
                order.reverse();
            }
        }
    }

    #[test]
    fn the_first_pause_stays() {
        let mut state = QueueState::default();
        assert!(state.apply(&stopped("190")));
        assert!(state.apply(&stopped("200")), "it would pause the queue");
        assert_eq!(state.pause.map(|pause| pause.code).as_deref(), Some("190"));
    }

    #[test]
    fn an_earlier_success_does_not_replace_a_later_one() {
        let state = after(&[ACCEPTED, QueueChange::Accepted { at: NOW }]);
        assert_eq!(state.last_delivered_at, Some(LATER));
    }

    #[test]
    fn rejections_of_two_nodes_add_up_to_a_pause() {
        let mut state = QueueState::default();
        for _ in 1..SYSTEMATIC_REJECTIONS {
            assert!(!state.apply(&held("100")));
            state.clear_ended_backoff(LATER);
        }
        let alone = QueueChange::FailedAlone {
            at: LATER,
            code: "100".to_owned(),
            message: None,
        };
        assert!(state.apply(&alone), "whichever node counts the last one");
        let code = state.pause.map(|pause| pause.code);
        assert_eq!(code.as_deref(), Some(SYSTEMATIC_REJECTION));
    }

    #[test]
    fn a_back_off_ends_by_the_clock() {
        let mut state = after(&[WAITS]);
        assert!(state.is_stopped_at(NOW) && !state.is_stopped_at(LATER));
        state.clear_ended_backoff(NOW);
        assert!(state.has_to_wait());
        state.clear_ended_backoff(LATER);
        assert!(!state.has_to_wait());
        assert!(after(&[stopped("190")]).is_stopped_at(LATER));
    }
}
