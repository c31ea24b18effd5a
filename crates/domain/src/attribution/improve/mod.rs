//! When a later decision replaces the current one.
//!
//! A decision is made once per device and can only improve: by a referrer that the first call
//! lacked, by Apple's response, or by a click that is stored late. A certain decision is never
//! replaced, so that no later claim can take over a credited install.

use super::decision::{Decision, MatchState, MatchType};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How long to wait for a click that is not stored yet. Storing may lag by minutes, not by days.
pub const PENDING_CLICK_TIMEOUT: Duration = Duration::from_hours(24);

const HOUR: Duration = Duration::from_hours(1);
/// Confidence of a certain match, such as a tap on an Apple ad, in percent.
const CERTAIN: u8 = 100;

/// Summary of the current decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributionSummary {
    /// Attribution state.
    pub state: MatchState,
    /// Kind of evidence that matched.
    pub match_type: MatchType,
    /// Confidence in percent.
    pub confidence: Option<u8>,
    /// Time of the decision.
    pub decided_at: Timestamp,
    /// Time of the first open.
    pub first_open_at: Timestamp,
}

/// Returns whether a later decision replaces the current one.
pub fn improves(
    current: &AttributionSummary,
    later: &Decision,
    click_window_hours: i64,
    now: Timestamp,
) -> bool {
    let pending = current.state == MatchState::PendingClick;
    let is_awaited = pending && now <= current.decided_at.plus(PENDING_CLICK_TIMEOUT);
    if !is_awaited && now > current.first_open_at.plus(window(click_window_hours)) {
        return false;
    }
    match (is_credited(current.state), is_credited(later.state)) {
        (false, true) => true,
        (true, true) => match current.match_type {
            MatchType::Probabilistic => later.match_type != MatchType::Probabilistic,
            // A tap replaces a view, whichever is reported first.
            MatchType::AdServices => {
                current.confidence < Some(CERTAIN) && later.confidence == Some(CERTAIN)
            }
            _ => false,
        },
        // The pending click is stored now and was rejected, so the wait is over.
        (false, false) => pending && is_stored_click_rejection(later.state),
        (true, false) => false,
    }
}

/// Returns the state at `now`. A pending click that was not stored in time counts as a bad token.
pub fn effective_state(state: MatchState, decided_at: Timestamp, now: Timestamp) -> MatchState {
    let is_timed_out = now > decided_at.plus(PENDING_CLICK_TIMEOUT);
    match state {
        MatchState::PendingClick if is_timed_out => MatchState::BadToken,
        _ => state,
    }
}

fn window(hours: i64) -> Duration {
    HOUR.saturating_mul(u32::try_from(hours).unwrap_or(0))
}

const fn is_credited(state: MatchState) -> bool {
    matches!(state, MatchState::Attributed | MatchState::ThirdParty)
}

const fn is_stored_click_rejection(state: MatchState) -> bool {
    matches!(
        state,
        MatchState::Implausible | MatchState::OutsideWindow | MatchState::DuplicateClick
    )
}

#[cfg(test)]
mod tests;
