//! Installs: a device's first `configure`, and later evidence about it.
//!
//! [`candidate_query`] returns the facts that the store must load, [`configure`] the changes to
//! write. Both are pure, so a store that lost a race loads the facts and decides again.

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
