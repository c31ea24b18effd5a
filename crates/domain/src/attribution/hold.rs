//! Holds: flagged installs that neither count nor are forwarded until they are reviewed.
//!
//! The hold belongs to the install. Every event that is credited to the install carries the state
//! of the hold in its [`Credit`](crate::event::Credit), so that each stored event says by itself
//! how it counts.

use super::Flag;
use crate::access::Actor;
use crate::app::FraudPolicy;
use crate::refusal::Refusal;
use crate::vocabulary::id::LinkId;
use crate::vocabulary::time::Timestamp;

/// State of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldState {
    /// Waiting for a review. Counts in the figures for held installs only; is not forwarded.
    Held,
    /// Released. Counts and is forwarded like any other install.
    Released,
    /// Rejected. Counts nowhere and is not forwarded.
    Rejected,
}

crate::keywords! {
    HoldState {
        Held => "held",
        Released => "released",
        Rejected => "rejected",
    }
}

impl HoldState {
    /// Returns whether events in this state are kept from networks.
    pub const fn withholds(self) -> bool {
        matches!(self, Self::Held | Self::Rejected)
    }
}

/// Returns whether an install counts as flagged. Its flags stay visible after a release, but the
/// reviewer decided that the install is genuine.
pub fn counts_as_flagged(has_flags: bool, hold: Option<HoldState>) -> bool {
    has_flags && hold != Some(HoldState::Released)
}

/// Decision about a held install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldDecision {
    /// Count and forward the install.
    Release,
    /// Exclude the install for good.
    Reject,
}

crate::keywords! {
    HoldDecision {
        Release => "release",
        Reject => "reject",
    }
}

impl HoldDecision {
    /// Returns the state that the decision leads to.
    pub const fn state(self) -> HoldState {
        match self {
            Self::Release => HoldState::Released,
            Self::Reject => HoldState::Rejected,
        }
    }
}

/// Who decided about a held install, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldReview {
    /// Actor, as in the audit log.
    pub decided_by: Actor,
    /// Time of the decision.
    pub decided_at: Timestamp,
}

/// Hold on an install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallHold {
    /// Current state.
    pub state: HoldState,
    /// When the install was first held.
    pub held_at: Timestamp,
    /// The latest review; `None` while the install waits for one.
    pub review: Option<HoldReview>,
}

impl InstallHold {
    /// Returns the hold after an attribution decision. A review outlasts later decisions. An
    /// install that is no longer flagged is no longer held. A policy applies to installs that are
    /// flagged while the policy is set: changing it neither holds nor releases earlier installs.
    pub fn after_decision(
        before: Option<&Self>,
        policy: FraudPolicy,
        is_flagged: bool,
        at: Timestamp,
    ) -> Option<Self> {
        match before {
            Some(hold) if hold.review.is_some() || is_flagged => Some(hold.clone()),
            None if is_flagged && policy == FraudPolicy::Hold => Some(Self {
                state: HoldState::Held,
                held_at: at,
                review: None,
            }),
            Some(_) | None => None,
        }
    }

    /// Returns the hold after a review; `None` if the review changes nothing. A released install
    /// can be rejected only as long as nothing was sent, because networks do not take events back.
    pub fn reviewed(
        &self,
        decision: HoldDecision,
        was_sent: bool,
        review: HoldReview,
    ) -> Result<Option<Self>, Refusal> {
        let state = decision.state();
        if self.state == state {
            return Ok(None);
        }
        if decision == HoldDecision::Reject && was_sent {
            return Err(Refusal::InstallForwarded);
        }
        Ok(Some(Self {
            state,
            held_at: self.held_at,
            review: Some(review),
        }))
    }
}

/// Filter for the list of held installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldFilter {
    /// State of the hold.
    pub state: HoldState,
    /// Flag of the install.
    pub flag: Option<Flag>,
    /// Credited link.
    pub link: Option<LinkId>,
    /// Start of the time range of the first open, inclusive.
    pub from: Option<Timestamp>,
    /// End of the time range, exclusive.
    pub until: Option<Timestamp>,
}

impl HoldFilter {
    /// Returns the filter for all installs in a state.
    pub const fn of(state: HoldState) -> Self {
        Self {
            state,
            flag: None,
            link: None,
            from: None,
            until: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const AT: Timestamp = Timestamp::from_millis(1_000);
    const LATER: Timestamp = Timestamp::from_millis(2_000);

    fn hold(state: HoldState) -> InstallHold {
        InstallHold {
            state,
            held_at: AT,
            review: (state != HoldState::Held).then(|| review(AT)),
        }
    }

    fn review(at: Timestamp) -> HoldReview {
        HoldReview {
            decided_by: Actor::Operator,
            decided_at: at,
        }
    }

    #[rstest]
    #[case::flagged(None, FraudPolicy::Hold, true, Some(HoldState::Held))]
    #[case::not_flagged(None, FraudPolicy::Hold, false, None)]
    #[case::only_flags(None, FraudPolicy::Flag, true, None)]
    #[case::refuses(None, FraudPolicy::Refuse, true, None)]
    #[case::still_flagged(Some(HoldState::Held), FraudPolicy::Hold, true, Some(HoldState::Held))]
    #[case::no_longer_flagged(Some(HoldState::Held), FraudPolicy::Hold, false, None)]
    #[case::policy_changed(Some(HoldState::Held), FraudPolicy::Flag, true, Some(HoldState::Held))]
    #[case::released(
        Some(HoldState::Released),
        FraudPolicy::Hold,
        true,
        Some(HoldState::Released)
    )]
    #[case::rejected(
        Some(HoldState::Rejected),
        FraudPolicy::Hold,
        false,
        Some(HoldState::Rejected)
    )]
    fn holds_follow_flags_until_they_are_reviewed(
        #[case] before: Option<HoldState>,
        #[case] policy: FraudPolicy,
        #[case] is_flagged: bool,
        #[case] expected: Option<HoldState>,
    ) {
        let before = before.map(hold);
        let after = InstallHold::after_decision(before.as_ref(), policy, is_flagged, LATER);
        assert_eq!(after.as_ref().map(|hold| hold.state), expected);
        if let (Some(before), Some(after)) = (before, after) {
            assert_eq!(before, after);
        }
    }

    #[rstest]
    #[case::release(HoldState::Held, HoldDecision::Release, false, Ok(true))]
    #[case::reject(HoldState::Held, HoldDecision::Reject, false, Ok(true))]
    #[case::released_twice(HoldState::Released, HoldDecision::Release, true, Ok(false))]
    #[case::rejected_twice(HoldState::Rejected, HoldDecision::Reject, false, Ok(false))]
    #[case::unsent_release_is_rejected(HoldState::Released, HoldDecision::Reject, false, Ok(true))]
    #[case::sent_release_stays(
        HoldState::Released,
        HoldDecision::Reject,
        true,
        Err(Refusal::InstallForwarded)
    )]
    #[case::rejection_is_released(HoldState::Rejected, HoldDecision::Release, false, Ok(true))]
    fn a_review_may_change_as_long_as_nothing_was_sent(
        #[case] before: HoldState,
        #[case] decision: HoldDecision,
        #[case] was_sent: bool,
        #[case] expected: Result<bool, Refusal>,
    ) {
        let after = hold(before).reviewed(decision, was_sent, review(LATER));
        assert_eq!(after.clone().map(|after| after.is_some()), expected);
        if let Ok(Some(after)) = after {
            assert_eq!((after.state, after.held_at), (decision.state(), AT));
            assert_eq!(after.review, Some(review(LATER)));
        }
    }

    #[rstest]
    #[case::no_flags(false, None, false)]
    #[case::flagged(true, None, true)]
    #[case::held(true, Some(HoldState::Held), true)]
    #[case::rejected(true, Some(HoldState::Rejected), true)]
    #[case::released(true, Some(HoldState::Released), false)]
    fn a_release_outweighs_flags(
        #[case] has_flags: bool,
        #[case] hold: Option<HoldState>,
        #[case] expected: bool,
    ) {
        assert_eq!(counts_as_flagged(has_flags, hold), expected);
    }

    #[test]
    fn only_released_installs_are_forwarded() {
        let withheld = |state: &&HoldState| state.withholds();
        let withheld: Vec<&HoldState> = HoldState::ALL.iter().filter(withheld).collect();
        assert_eq!(withheld, [&HoldState::Held, &HoldState::Rejected]);
    }
}
