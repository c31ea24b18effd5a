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

pub use candidate::{Candidate, Facts, Named, NamedClick};
pub(crate) use decide::given_up;
pub use decide::{INSTALL_BURST_MAX, decide};
pub use decision::{
    CANDIDATES_KEPT_MAX, Considered, CreditedNetwork, Decision, EvidenceSummary, Flag, MatchState,
    MatchType, Method, Rejection, SettingsSummary, Signals, Supersedes,
};
pub use evidence::Evidence;
pub use improve::{PENDING_CLICK_LIFE, Standing, improves, state_at};
pub use probabilistic::ADDRESS_CANDIDATES_MAX;
