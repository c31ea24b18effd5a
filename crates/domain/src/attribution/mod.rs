//! Attribution: which click gets the credit for an install, and why.
//!
//! [`decide`] takes the evidence from the device and the candidates from the store. It returns a
//! decision that lists every candidate. The order of evidence, the windows, the fraud rules and the
//! explanations are defined only here.
//!
//! A decision is made once per device. [`improves`] decides whether a later decision replaces it:
//! the later one must be better, and a certain decision is never replaced.

pub mod ad_services;
pub mod evidence;
pub mod referrer;

mod candidate;
mod decide;
mod decision;
mod hold;
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
pub use hold::{HoldDecision, HoldFilter, HoldReview, HoldState, InstallHold, counts_as_flagged};
pub use improve::{AttributionSummary, PENDING_CLICK_TIMEOUT, effective_state, improves};
pub use probabilistic::ADDRESS_CANDIDATES_MAX;
