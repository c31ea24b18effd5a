//! Client data: what the browser says about the page. Pages cannot change it, except for the challenge.

use super::{PasskeyChallenge, PasskeyFault, RelyingParty};
use crate::keyring::constant_time_eq;
use crate::vocabulary::digest::Digest;

/// Longest client data. It contains an origin, a challenge, and fields that browsers may add.
pub const CLIENT_DATA_BYTES_MAX: usize = 4 * 1_024;

/// What a browser asks a device for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ceremony {
    /// A new passkey.
    Registration,
    /// The use of a passkey.
    SignIn,
}

crate::keywords! {
    Ceremony {
        Registration => "webauthn.create",
        SignIn => "webauthn.get",
    }
}

/// The client data with the values that are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientData {
    /// The JSON as the browser sent it, which is signed.
    pub json: Vec<u8>,
    /// `type`.
    pub ceremony: String,
    /// `challenge`.
    pub challenge: String,
    /// `origin`.
    pub origin: String,
    /// `crossOrigin`: the page was in a frame of another site.
    pub is_cross_origin: bool,
}

impl ClientData {
    /// Returns the hash that is signed.
    pub fn hash(&self) -> Digest {
        Digest::of(&self.json)
    }

    /// Checks the values.
    pub(super) fn check(
        &self,
        ceremony: Ceremony,
        challenge: &PasskeyChallenge,
        relying_party: &RelyingParty,
    ) -> Result<(), PasskeyFault> {
        if self.json.len() > CLIENT_DATA_BYTES_MAX {
            return Err(PasskeyFault::Malformed);
        }
        if self.ceremony != ceremony.as_str() {
            return Err(PasskeyFault::Ceremony);
        }
        if !constant_time_eq(self.challenge.as_bytes(), challenge.text().as_bytes()) {
            return Err(PasskeyFault::Challenge);
        }
        if self.origin != relying_party.origin() || self.is_cross_origin {
            return Err(PasskeyFault::Origin);
        }
        Ok(())
    }
}
