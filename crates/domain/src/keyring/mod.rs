//! One secret, many keys: everything that is signed or encrypted uses a key of its own, derived from the
//! instance's `secret_key` by purpose.

mod alert;
mod cursor;
pub mod seal;
pub mod secret_scope;
mod session;

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The instance's secret. It prints as stars and is never compared, stored or sent.
#[derive(Clone)]
pub struct Keyring([u8; 32]);

impl std::fmt::Debug for Keyring {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Keyring(***)")
    }
}

impl Keyring {
    /// From the bytes of `secret_key`.
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// The key for one purpose. A purpose names its version (`cursor/1`), so that a change of layout is a
    /// change of key.
    pub(crate) fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut key = [0; 32];
        Hkdf::<Sha256>::new(None, &self.0)
            .expand(purpose.as_bytes(), &mut key)
            .expect("32 bytes are within what HKDF-SHA256 can give");
        key
    }

    /// An authentication tag over these parts. Each part is preceded by its length, so that moving a byte
    /// from one part to the next changes the tag.
    pub(crate) fn tag(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.derive(purpose))
            .expect("HMAC takes keys of any length");
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// What the database keeps to recognise this secret by, without knowing it.
    pub fn check_value(&self) -> [u8; 32] {
        self.tag("check/1", &[])
    }
}

/// Compares in constant time.
pub fn constant_time_eq(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_purpose_has_a_key_of_its_own() {
        let keyring = Keyring::new([1; 32]);
        assert_ne!(keyring.derive("cursor/1"), keyring.derive("click-id/1"));
        assert_ne!(
            keyring.derive("cursor/1"),
            Keyring::new([2; 32]).derive("cursor/1")
        );
    }

    #[test]
    fn parts_cannot_run_into_each_other() {
        let keyring = Keyring::new([1; 32]);
        assert_ne!(
            keyring.tag("x", &[b"ab", b"c"]),
            keyring.tag("x", &[b"a", b"bc"])
        );
    }

    #[test]
    fn the_secret_does_not_print() {
        assert_eq!(format!("{:?}", Keyring::new([1; 32])), "Keyring(***)");
    }
}
