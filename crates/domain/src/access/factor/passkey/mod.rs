//! Passkeys (Web Authentication Level 3): the private key stays on the user's device, which signs a
//! challenge for this server's host name only.
//!
//! A passkey is two factors at once: the device, and the PIN, fingerprint or face with which the device
//! verifies its user. Each use must therefore be verified. Attestation statements are not looked at: the
//! maker of a device does not matter here.

mod authenticator_data;
mod challenge;
mod client_data;
mod public_key;
mod relying_party;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
#[cfg(test)]
mod tests;

pub use challenge::{CHALLENGE_LIFETIME, CHALLENGE_RANDOM_BYTES, PasskeyChallenge};
pub use client_data::{CLIENT_DATA_BYTES_MAX, Ceremony, ClientData};
pub use public_key::{PasskeyKey, SUPPORTED_ALGORITHMS};
pub use relying_party::RelyingParty;

use crate::keyring::constant_time_eq;
use crate::vocabulary::cbor::CborValue;
use crate::vocabulary::id::UserId;
use crate::vocabulary::time::Timestamp;
use authenticator_data::AuthenticatorData;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::time::Duration;

/// Longest credential id, from the specification.
pub const CREDENTIAL_BYTES_MAX: usize = 1_023;
/// Longest attestation object. With a chain of certificates, it has about 5,000 bytes.
pub const ATTESTATION_BYTES_MAX: usize = 16 * 1_024;
/// Longest authenticator data of a sign-in. Without extensions, it has 37 bytes.
pub const AUTHENTICATOR_DATA_BYTES_MAX: usize = 4 * 1_024;
/// Longest signature: that of the largest RSA key.
pub const SIGNATURE_BYTES_MAX: usize = 512;

/// How far in the future a passkey's last challenge may be and still count: as long as challenges work,
/// so that none is accepted twice by nodes whose clocks differ by less.
const LAST_CHALLENGE_AHEAD_MAX: Duration = CHALLENGE_LIFETIME;

/// Identifies a passkey. The device chooses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialId(Vec<u8>);

impl CredentialId {
    /// Reads an id. Returns `None` if it is empty or too long.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        (1..=CREDENTIAL_BYTES_MAX)
            .contains(&bytes.len())
            .then_some(Self(bytes))
    }

    /// Returns the bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text for a page.
    pub fn text(&self) -> String {
        encode_field(&self.0)
    }
}

/// What the proofs of a passkey are checked with. None of it is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passkey {
    /// The id.
    pub credential: CredentialId,
    /// The public key.
    pub key: PasskeyKey,
    /// Number of uses that the device counted; 0 if it does not count.
    pub counter: u32,
    /// Whether the device may copy the passkey to others. It never changes.
    pub can_sync: bool,
    /// Whether the device has copied it.
    pub is_synced: bool,
    /// Challenges of this time and earlier ones are refused.
    pub last_challenge_at: Option<Timestamp>,
}

/// A use of a passkey, whose signature is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PasskeyUse {
    /// Number of uses that the device counted.
    pub counter: u32,
    /// Whether the device has copied the passkey.
    pub is_synced: bool,
    /// When the challenge was issued.
    pub challenged_at: Timestamp,
}

impl Passkey {
    /// Returns the passkey after a use at `now`. Returns `None` if the challenge is not newer than the
    /// last one, because each works once, or if the counter did not increase, because then there is a
    /// copy of the private key that the device does not know of.
    ///
    /// A last challenge far in the future is ignored: a clock was ahead, and the passkey would not work
    /// until then.
    pub fn after_use(&self, used: PasskeyUse, now: Timestamp) -> Option<Self> {
        let last = self
            .last_challenge_at
            .filter(|last| last.since(now) <= LAST_CHALLENGE_AHEAD_MAX);
        let is_new = last.is_none_or(|last| used.challenged_at > last);
        let counts = self.counter > 0 || used.counter > 0;
        if !is_new || (counts && used.counter <= self.counter) {
            return None;
        }
        Some(Self {
            counter: used.counter,
            is_synced: used.is_synced,
            last_challenge_at: Some(used.challenged_at),
            ..self.clone()
        })
    }
}

/// Why a passkey was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasskeyFault {
    /// Not what browsers send.
    #[error("The browser did not send a valid passkey. Try again, or use another browser.")]
    Malformed,
    /// A registration instead of a sign-in, or the reverse.
    #[error("The passkey was made for another purpose. Try again.")]
    Ceremony,
    /// Another challenge.
    #[error("The passkey was made for another page. Try again.")]
    Challenge,
    /// Another origin, or a page of another site around ours.
    #[error("The passkey was made at another address. Open the dashboard at its own address.")]
    Origin,
    /// Another host name.
    #[error("The passkey belongs to another host name. Open the dashboard at its own address.")]
    RelyingParty,
    /// The device did not verify the user.
    #[error(
        "The device did not check who uses it. Choose a passkey with a PIN, a fingerprint or a face."
    )]
    NotVerified,
    /// Flags that contradict each other, or earlier ones.
    #[error("The device contradicts itself about copies of the passkey. Choose another passkey.")]
    BackupFlags,
    /// A key that is not supported.
    #[error("This kind of passkey is not supported. Choose another device or password manager.")]
    Key,
    /// Wrong signature.
    #[error("The passkey's signature is wrong.")]
    Signature,
    /// The passkey of another user.
    #[error("The passkey belongs to another account.")]
    Owner,
}

/// A new passkey as a browser sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// What the browser signed for.
    pub client_data: ClientData,
    /// The attestation object: CBOR with the authenticator data.
    pub attestation_object: Vec<u8>,
}

/// A use of a passkey as a browser sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// The passkey.
    pub credential: CredentialId,
    /// What the browser signed for.
    pub client_data: ClientData,
    /// What the device says.
    pub authenticator_data: Vec<u8>,
    /// The device's signature of both.
    pub signature: Vec<u8>,
    /// The user whom the device stored with the passkey.
    pub user_handle: Option<Vec<u8>>,
}

/// What a passkey must match.
#[derive(Debug, Clone, Copy)]
pub struct PasskeyExpectation<'a> {
    /// The challenge of this browser.
    pub challenge: &'a PasskeyChallenge,
    /// This server.
    pub relying_party: &'a RelyingParty,
}

impl PasskeyExpectation<'_> {
    fn check(
        &self,
        client: &ClientData,
        ceremony: Ceremony,
        data: &AuthenticatorData<'_>,
    ) -> Result<(), PasskeyFault> {
        client.check(ceremony, self.challenge, self.relying_party)?;
        if !constant_time_eq(data.relying_party, &self.relying_party.hash()) {
            return Err(PasskeyFault::RelyingParty);
        }
        if !data.is_user_present() || !data.is_user_verified() {
            return Err(PasskeyFault::NotVerified);
        }
        if data.is_synced() && !data.can_sync() {
            return Err(PasskeyFault::BackupFlags);
        }
        Ok(())
    }
}

/// Checks a new passkey. The device proves nothing about itself, so nothing but the key follows from it.
pub fn check_registration(
    registration: &Registration,
    expected: &PasskeyExpectation<'_>,
) -> Result<Passkey, PasskeyFault> {
    if registration.attestation_object.len() > ATTESTATION_BYTES_MAX {
        return Err(PasskeyFault::Malformed);
    }
    let object = CborValue::parse(&registration.attestation_object);
    let data = object.as_ref().and_then(|object| {
        let data = object.get("authData")?.bytes()?;
        AuthenticatorData::parse(data)
    });
    let data = data.ok_or(PasskeyFault::Malformed)?;
    let client = &registration.client_data;
    expected.check(client, Ceremony::Registration, &data)?;
    let attested = data.credential.as_ref().ok_or(PasskeyFault::Malformed)?;
    let credential = CredentialId::from_bytes(attested.id.to_vec());
    Ok(Passkey {
        credential: credential.ok_or(PasskeyFault::Malformed)?,
        key: PasskeyKey::parse(attested.key).ok_or(PasskeyFault::Key)?,
        counter: data.counter,
        can_sync: data.can_sync(),
        is_synced: data.is_synced(),
        last_challenge_at: Some(expected.challenge.issued_at),
    })
}

/// Checks the use of `owner`'s passkey. `asked` is the user who proves to be there; `None` at a sign-in,
/// where the device names the user. The caller applies [`Passkey::after_use`] where uses at the same time
/// exclude each other.
pub fn check_assertion(
    assertion: &Assertion,
    (owner, passkey): (UserId, &Passkey),
    asked: Option<UserId>,
    expected: &PasskeyExpectation<'_>,
) -> Result<PasskeyUse, PasskeyFault> {
    let data = &assertion.authenticator_data;
    if data.len() > AUTHENTICATOR_DATA_BYTES_MAX || assertion.signature.len() > SIGNATURE_BYTES_MAX
    {
        return Err(PasskeyFault::Malformed);
    }
    let handle = assertion.user_handle.as_deref();
    let is_named = handle.map(|handle| handle == owner.as_bytes());
    let is_owner = match asked {
        Some(asked) => asked == owner && is_named != Some(false),
        None => is_named == Some(true),
    };
    if !is_owner || assertion.credential != passkey.credential {
        return Err(PasskeyFault::Owner);
    }
    let parsed = AuthenticatorData::parse(data).ok_or(PasskeyFault::Malformed)?;
    let client = &assertion.client_data;
    expected.check(client, Ceremony::SignIn, &parsed)?;
    if parsed.can_sync() != passkey.can_sync {
        return Err(PasskeyFault::BackupFlags);
    }
    let signed = [data, client.hash().as_bytes().as_slice()].concat();
    if !passkey.key.verifies(&signed, &assertion.signature) {
        return Err(PasskeyFault::Signature);
    }
    Ok(PasskeyUse {
        counter: parsed.counter,
        is_synced: parsed.is_synced(),
        challenged_at: expected.challenge.issued_at,
    })
}

/// Writes bytes for a page: base64url without padding.
pub fn encode_field(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a field of a form: base64url without padding.
pub fn decode_field(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
