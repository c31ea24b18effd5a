//! An install: the first `configure` of a device, and what later evidence makes of it.
//!
//! [`looks_for`] says which facts the store has to find, [`configure`] what it has to write. Both are pure: a
//! store that lost a race gathers the facts again and asks again.

mod ad_services_update;
mod configure;
mod device_state;

pub use ad_services_update::{AdServicesOutcome, AttributionUpdate, apply_ad_services};
pub use configure::{
    ADVERTISING_CANDIDATES_MAX, CandidateClicks, CandidateQuery, ClaimedClick, ClickClaim,
    ConfigureCommand, ConfigureDecision, candidate_query, configure,
};
pub use device_state::{Attribution, DeviceState};

#[cfg(test)]
mod tests;
