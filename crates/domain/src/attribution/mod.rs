//! Attribution: which click an install belongs to, and why.
//!
//! One function, [`decide`], from what the device showed and what the store found to a decision that says
//! everything it looked at. The order of evidence, the windows, the rules against fraud and the words of the
//! explanation are here and nowhere else.
//!
//! Decided once per device. [`improves`] says when later evidence may replace the decision: it is made
//! better, never worse, and a certain one is never replaced.

pub mod ad_services;
pub mod evidence;
pub mod referrer;

mod candidate;
mod decide;
mod decision;
mod improve;
mod probabilistic;

pub use candidate::{AttributionCandidates, Candidate, ClickLookup, DeliveredClick};
pub(crate) use decide::click_never_stored;
pub use decide::{INSTALL_BURST_MAX, decide};
pub use decision::{
    ConsideredCandidate, CreditedNetwork, DECISION_CANDIDATES_MAX, Decision, EvidenceSummary, Flag,
    MatchMethod, MatchState, MatchType, Rejection, SettingsSummary, Signals, SupersededDecision,
};
pub use evidence::Evidence;
pub use improve::{AttributionSummary, PENDING_CLICK_TIMEOUT, effective_state, improves};
pub use probabilistic::ADDRESS_CANDIDATES_MAX;
