//! Derives a separate key per purpose from the instance's `secret_key`, for everything that is
//! signed or encrypted.

mod alert;
mod continued_form;
mod cursor;
pub mod seal;
pub mod secret_scope;
mod session;

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The instance's secret. It is redacted in debug output and never compared, stored or sent.
#[derive(Clone)]
pub struct Keyring([u8; 32]);

impl std::fmt::Debug for Keyring {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Keyring(***)")
    }
}

impl Keyring {
    /// Creates a keyring from the bytes of `secret_key`.
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// Returns the key for a purpose. The purpose includes a version (`cursor/1`), so that a new
    /// layout gets a new key.
    pub(crate) fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut key = [0; 32];
        Hkdf::<Sha256>::new(None, &self.0)
            .expand(purpose.as_bytes(), &mut key)
            .expect("HKDF-SHA256 can output 32 bytes");
        key
    }

    /// Returns an authentication tag over these parts. Each part is prefixed with its length, so
    /// that bytes cannot move between parts.
    pub(crate) fn tag(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        self.tagger(purpose).tag(parts)
    }

    /// Returns the means to compute many tags for one purpose. Deriving the key takes longer than
    /// computing a tag.
    pub(crate) fn tagger(&self, purpose: &str) -> Tagger {
        let key = self.derive(purpose);
        Tagger(Hmac::new_from_slice(&key).expect("HMAC accepts keys of any length"))
    }

    /// Returns a value that the database stores to detect a changed secret without revealing it.
    pub fn check_value(&self) -> [u8; 32] {
        self.tag("check/1", &[])
    }
}

/// Computes the authentication tags of one purpose.
#[derive(Clone)]
pub(crate) struct Tagger(Hmac<Sha256>);

impl Tagger {
    /// Returns a tag over these parts, as [`Keyring::tag`] does.
    pub(crate) fn tag(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

/// Compares two byte strings in constant time.
pub fn constant_time_eq(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_purpose_has_its_own_key() {
        let keyring = Keyring::new([1; 32]);
        assert_ne!(keyring.derive("cursor/1"), keyring.derive("click-id/1"));
        assert_ne!(
            keyring.derive("cursor/1"),
            Keyring::new([2; 32]).derive("cursor/1")
        );
    }

    #[test]
    fn bytes_cannot_move_between_parts() {
        let keyring = Keyring::new([1; 32]);
        assert_ne!(
            keyring.tag("x", &[b"ab", b"c"]),
            keyring.tag("x", &[b"a", b"bc"])
        );
    }

    #[test]
    fn the_secret_is_redacted_in_debug_output() {
        assert_eq!(format!("{:?}", Keyring::new([1; 32])), "Keyring(***)");
    }
}
