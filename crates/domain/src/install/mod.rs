//! An install: the first `configure` of a device, and what later evidence makes of it.
//!
//! [`looks_for`] says which facts the store has to find, [`configure`] what it has to write. Both are pure: a
//! store that lost a race gathers the facts again and asks again.

mod configure;
mod late;
mod standing;

pub use configure::{
    ADVERTISING_CANDIDATES_MAX, Claim, ClaimedClick, Configure, Found, LookFor, Opening, configure,
    looks_for,
};
pub use late::{AdServicesAnswer, Late, ad_services_answered};
pub use standing::{Attribution, Known};

#[cfg(test)]
mod tests;
