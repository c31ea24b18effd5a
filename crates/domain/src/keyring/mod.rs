//! Derives a separate key per purpose from the instance's `secret_key`, for everything that is
//! signed or encrypted.
//!
//! During a rotation, two secret keys are known. The database says which one is in use: that one
//! signs and encrypts, and both verify and decrypt (`rotation`).

pub mod alert;
mod continued_form;
mod cursor;
mod kept;
mod purpose;
pub mod rotation;
pub mod seal;
pub mod secret_scope;
mod session;
mod signer;

pub use purpose::{Purpose, RotationEffect};
pub use rotation::ReencryptedValue;
pub(crate) use signer::Signer;

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use kept::KeptKeys;
use sha2::Sha256;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use subtle::ConstantTimeEq;

/// The bytes of a secret key, or of a key that is derived from it.
pub type SecretKeyBytes = [u8; 32];

/// The instance's secret keys. Redacted in debug output and never compared, stored or sent.
#[derive(Clone)]
pub struct Keyring {
    keys: KnownKeys,
    /// Key that was in use when the process started. Keys that a rotation does not change are derived
    /// from it unless others are kept.
    base: SecretKeyBytes,
    kept: Option<Arc<KeptKeys>>,
    /// Which key is in use, shared by all clones; `None` if there can be only one.
    in_use: Option<Arc<AtomicU8>>,
}

/// The secret keys that a node knows.
#[derive(Clone, Copy)]
pub struct KnownKeys {
    /// `secret_key`.
    pub current: SecretKeyBytes,
    /// `next_secret_key`, for a rotation.
    pub next: Option<SecretKeyBytes>,
}

/// Bit that is set if the next key is in use.
const NEXT: u8 = 1;
/// Bit that is set if encrypted values name their key.
const NAMED: u8 = 2;

/// The key in use.
struct KeyInUse<'a> {
    key: &'a SecretKeyBytes,
    /// Whether encrypted values name it.
    is_named: bool,
}

/// Names a secret key without revealing it: the start of its check value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretKeyId([u8; SecretKeyId::BYTES]);

impl SecretKeyId {
    /// Length in bytes. Ids only tell apart the few keys that an instance ever had.
    pub const BYTES: usize = 8;

    /// Wraps stored bytes.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes to store.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Returns the id of the key with this check value.
    pub fn of_check(check: &[u8; 32]) -> Self {
        let mut id = [0; Self::BYTES];
        id.copy_from_slice(&check[..Self::BYTES]);
        Self(id)
    }

    /// Returns the id of a secret key.
    pub fn of(key: &SecretKeyBytes) -> Self {
        Self::of_check(&check_value(key))
    }
}

impl std::fmt::Debug for KnownKeys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("KnownKeys(***)")
    }
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Keyring(***)")
    }
}

impl KnownKeys {
    /// Returns the keys, the current one first.
    pub fn iter(&self) -> impl Iterator<Item = &SecretKeyBytes> {
        std::iter::once(&self.current).chain(&self.next)
    }

    /// Returns the ids of the keys.
    pub fn ids(&self) -> Vec<SecretKeyId> {
        self.iter().map(SecretKeyId::of).collect()
    }
}

impl Keyring {
    /// Creates a keyring from the bytes of `secret_key`, for a database whose key was never rotated.
    pub const fn new(secret: SecretKeyBytes) -> Self {
        Self {
            keys: KnownKeys {
                current: secret,
                next: None,
            },
            base: secret,
            kept: None,
            in_use: None,
        }
    }

    /// Returns the keys that the node knows.
    pub const fn known(&self) -> &KnownKeys {
        &self.keys
    }

    fn in_use(&self) -> KeyInUse<'_> {
        let state = self
            .in_use
            .as_ref()
            .map_or(0, |it| it.load(Ordering::SeqCst));
        let next = self.keys.next.as_ref().filter(|_| state & NEXT != 0);
        KeyInUse {
            key: next.unwrap_or(&self.keys.current),
            is_named: state & NAMED != 0,
        }
    }

    /// Returns the key for a purpose: the one that signs from now on.
    pub(crate) fn derive(&self, purpose: Purpose) -> SecretKeyBytes {
        if purpose.rotation_effect() == RotationEffect::Unchanged {
            let kept = self.kept.as_ref().and_then(|kept| kept.unchanged(purpose));
            return kept.unwrap_or_else(|| derive(&self.base, purpose.as_str()));
        }
        derive(self.in_use().key, purpose.as_str())
    }

    /// Returns all keys that verify what was signed for a purpose: of each known secret key, and the
    /// kept ones. The known ones come first, in a fixed order.
    pub(crate) fn verifying(&self, purpose: Purpose) -> Vec<SecretKeyBytes> {
        let known = self.keys.iter().map(|key| derive(key, purpose.as_str()));
        let kept = self.kept.iter().flat_map(|kept| kept.earlier(purpose));
        known.chain(kept).collect()
    }

    /// Returns the position of the signing key among [`Self::verifying`].
    pub(crate) fn signing_position(&self) -> usize {
        let state = self
            .in_use
            .as_ref()
            .map_or(0, |it| it.load(Ordering::SeqCst));
        usize::from(state & NEXT != 0)
    }

    /// Returns an authentication tag over these parts. Each part is prefixed with its length, so
    /// that bytes cannot move between parts.
    pub(crate) fn tag(&self, purpose: Purpose, parts: &[&[u8]]) -> [u8; 32] {
        self.tagger(purpose).tag(parts)
    }

    /// Returns whether a tag, or the start of one, was made over these parts with a key that
    /// verifies.
    pub(crate) fn is_tag(&self, purpose: Purpose, parts: &[&[u8]], tag: &[u8]) -> bool {
        let matches = |key: SecretKeyBytes| {
            let expected = Tagger::new(&key).tag(parts);
            let expected = expected.get(..tag.len()).unwrap_or_default();
            !tag.is_empty() && constant_time_eq(expected, tag)
        };
        self.verifying(purpose).into_iter().any(matches)
    }

    /// Returns the means to compute many tags for one purpose. Deriving the key takes longer than
    /// computing a tag.
    pub(crate) fn tagger(&self, purpose: Purpose) -> Tagger {
        Tagger::new(&self.derive(purpose))
    }
}

/// Derives the key for a purpose.
fn derive(secret: &SecretKeyBytes, purpose: &str) -> SecretKeyBytes {
    let mut key = [0; 32];
    Hkdf::<Sha256>::new(None, secret)
        .expand(purpose.as_bytes(), &mut key)
        .expect("HKDF-SHA256 can output 32 bytes");
    key
}

/// Returns a value that the database stores to detect another secret key without revealing it.
pub fn check_value(key: &SecretKeyBytes) -> [u8; 32] {
    Tagger::new(&derive(key, Purpose::Check.as_str())).tag(&[])
}

/// Computes the authentication tags of one purpose.
#[derive(Clone)]
pub(crate) struct Tagger(Hmac<Sha256>);

impl Tagger {
    fn new(key: &SecretKeyBytes) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC accepts keys of any length"))
    }

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
        assert_ne!(
            keyring.derive(Purpose::Cursor),
            keyring.derive(Purpose::ClickId)
        );
        assert_ne!(
            keyring.derive(Purpose::Cursor),
            Keyring::new([2; 32]).derive(Purpose::Cursor)
        );
    }

    #[test]
    fn bytes_cannot_move_between_parts() {
        let keyring = Keyring::new([1; 32]);
        assert_ne!(
            keyring.tag(Purpose::Cursor, &[b"ab", b"c"]),
            keyring.tag(Purpose::Cursor, &[b"a", b"bc"])
        );
    }

    #[test]
    fn the_secret_is_redacted_in_debug_output() {
        assert_eq!(format!("{:?}", Keyring::new([1; 32])), "Keyring(***)");
    }
}
