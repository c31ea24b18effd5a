//! Installs: a device's first `configure` call, and later evidence about the install.
//!
//! [`candidate_query`] returns which clicks the store must load, [`configure`] the changes to
//! write. Both are pure functions. If a concurrent change makes the write fail, the store loads the
//! clicks again and calls both again.

mod ad_services_update;
mod attestation;
mod batch;
mod configure;
mod device_state;
mod imported;
mod install_event;

pub mod what_if;

pub use ad_services_update::{AdServicesOutcome, AttributionUpdate, apply_ad_services};
pub use batch::{BatchChanges, independent_calls};
pub use configure::{
    ADVERTISING_CANDIDATES_MAX, CandidateClicks, CandidateQuery, ClaimedClick, ClickClaim,
    ConfigureCommand, ConfigureDecision, candidate_query, configure,
};
pub use device_state::{Attribution, DeviceState};
pub use imported::imported_device;

#[cfg(test)]
mod tests;
