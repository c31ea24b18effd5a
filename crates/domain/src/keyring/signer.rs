//! Signs and verifies values of one purpose, with keys that are derived in advance.

use super::{Keyring, Purpose, constant_time_eq};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Signer and verifier for one purpose. During and after a rotation of the secret key, it also
/// verifies what the old key signed.
#[derive(Clone)]
pub(crate) struct Signer {
    /// Of all keys that verify.
    macs: Vec<Hmac<Sha256>>,
    /// Knows which of them signs.
    keyring: Keyring,
}

impl Signer {
    /// Derives the keys.
    pub(crate) fn new(keyring: &Keyring, purpose: Purpose) -> Self {
        let keys = keyring.verifying(purpose).into_iter();
        let mac =
            |key: [u8; 32]| Hmac::new_from_slice(&key).expect("HMAC accepts keys of any length");
        Self {
            macs: keys.map(mac).collect(),
            keyring: keyring.clone(),
        }
    }

    /// Signs the parts, whose lengths are fixed.
    pub(crate) fn sign(&self, parts: &[&[u8]]) -> [u8; 32] {
        finish(&self.macs[self.keyring.signing_position()], parts)
    }

    /// Returns whether a signature, or the start of one, was made over these parts.
    pub(crate) fn verifies(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        let matches = |mac: &Hmac<Sha256>| {
            let expected = finish(mac, parts);
            let expected = expected.get(..tag.len()).unwrap_or_default();
            !tag.is_empty() && constant_time_eq(expected, tag)
        };
        self.macs.iter().any(matches)
    }
}

fn finish(mac: &Hmac<Sha256>, parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = mac.clone();
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}
