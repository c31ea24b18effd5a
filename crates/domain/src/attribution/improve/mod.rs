//! When a later decision replaces the one that stands.
//!
//! Decided once per device, and made better, never worse: a referrer that the first call lacked, Apple's
//! answer, a click that is stored late. What is certain is never replaced, so that nobody who comes later
//! can take an install from somebody who has it.

use super::decision::{Decision, MatchState, MatchType};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How long a click that is not stored yet is waited for. Storing is delayed by minutes, not by days.
pub const PENDING_CLICK_TIMEOUT: Duration = Duration::from_hours(24);

const HOUR: Duration = Duration::from_hours(1);
/// How sure a tap is.
const CERTAIN: u8 = 100;

/// The decision that stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributionSummary {
    /// What became of the install.
    pub state: MatchState,
    /// By what it was matched.
    pub match_type: MatchType,
    /// How sure it is, in hundredths.
    pub confidence: Option<u8>,
    /// When it was made.
    pub decided_at: Timestamp,
    /// When the device was first seen.
    pub first_open_at: Timestamp,
}

/// Whether a later decision replaces the one that stands.
pub fn improves(
    standing: &AttributionSummary,
    fresh: &Decision,
    click_window_hours: i64,
    now: Timestamp,
) -> bool {
    let pending = standing.state == MatchState::PendingClick;
    let waited_for = pending && now <= standing.decided_at.plus(PENDING_CLICK_TIMEOUT);
    if !waited_for && now > standing.first_open_at.plus(window(click_window_hours)) {
        return false;
    }
    match (is_credited(standing.state), is_credited(fresh.state)) {
        (false, true) => true,
        (true, true) => match standing.match_type {
            MatchType::Probabilistic => fresh.match_type != MatchType::Probabilistic,
            // An ad that was only seen gives way to a tap, whichever became known first.
            MatchType::AdServices => {
                standing.confidence < Some(CERTAIN) && fresh.confidence == Some(CERTAIN)
            }
            _ => false,
        },
        // The click has appeared, and what it is worth is known: nobody needs to wait for it any more.
        (false, false) => pending && is_verdict_on_a_stored_click(fresh.state),
        (true, false) => false,
    }
}

/// What a state has become by now: a click that nobody stored within a day was never made.
pub fn effective_state(state: MatchState, decided_at: Timestamp, now: Timestamp) -> MatchState {
    let given_up = now > decided_at.plus(PENDING_CLICK_TIMEOUT);
    match state {
        MatchState::PendingClick if given_up => MatchState::BadToken,
        _ => state,
    }
}

fn window(hours: i64) -> Duration {
    HOUR.saturating_mul(u32::try_from(hours).unwrap_or(0))
}

const fn is_credited(state: MatchState) -> bool {
    matches!(state, MatchState::Attributed | MatchState::ThirdParty)
}

const fn is_verdict_on_a_stored_click(state: MatchState) -> bool {
    matches!(
        state,
        MatchState::Implausible | MatchState::OutsideWindow | MatchState::DuplicateClick
    )
}

#[cfg(test)]
mod tests;
