//! The state between the password and the second factor: a sealed cookie that only continues this
//! sign-in. It is not a session.

use crate::keyring::Keyring;
use crate::keyring::seal::{NONCE_BYTES, SealedSecret};
use crate::vocabulary::digest::{Digest, from_hex, hex};
use crate::vocabulary::id::UserId;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How long the second step may take.
pub const PENDING_SIGN_IN_LIFETIME: Duration = Duration::from_mins(5);

/// Scope of the sealed text.
const SCOPE: &[&str] = &["pending-sign-in"];
/// Length of the sealed bytes: user, expiry and password.
const BYTES: usize = 16 + 8 + 32;

/// A sign-in whose password was right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingSignIn {
    /// The user.
    pub user: UserId,
    /// When it expires.
    pub expires_at: Timestamp,
    /// Digest of the hash of the password that was right. A changed password ends the sign-in.
    password: Digest,
}

impl PendingSignIn {
    /// Begins the second step.
    pub fn begin(user: UserId, password_hash: &str, now: Timestamp) -> Self {
        Self {
            user,
            expires_at: now.plus(PENDING_SIGN_IN_LIFETIME),
            password: Digest::of(password_hash.as_bytes()),
        }
    }

    /// Returns whether the sign-in may continue: it has not expired, and the password is the same.
    pub fn continues(&self, password_hash: &str, now: Timestamp) -> bool {
        now < self.expires_at && self.password == Digest::of(password_hash.as_bytes())
    }

    /// Returns the sealed text for a cookie.
    pub fn seal(&self, keyring: &Keyring, nonce: [u8; NONCE_BYTES]) -> String {
        let bytes = [
            self.user.as_bytes().as_slice(),
            &self.expires_at.as_millis().to_be_bytes(),
            self.password.as_bytes(),
        ]
        .concat();
        hex(keyring.seal(SCOPE, nonce, &bytes).as_bytes())
    }

    /// Opens the text of a cookie.
    pub fn open(keyring: &Keyring, text: &str) -> Option<Self> {
        let sealed = SealedSecret::from_bytes(from_hex(text)?);
        let bytes: [u8; BYTES] = keyring.open(SCOPE, &sealed).ok()?.try_into().ok()?;
        let (user, rest) = bytes.split_first_chunk::<16>()?;
        let (expires_at, password) = rest.split_first_chunk::<8>()?;
        Some(Self {
            user: UserId::from_bytes(*user),
            expires_at: Timestamp::from_millis(i64::from_be_bytes(*expires_at)),
            password: Digest::from_bytes(password.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_sign_in_continues_for_five_minutes_with_the_same_password() {
        let keyring = Keyring::new([1; 32]);
        let now = Timestamp::from_millis(1_000);
        let begun = PendingSignIn::begin(UserId::from_bytes([1; 16]), "hash", now);
        let text = begun.seal(&keyring, [2; NONCE_BYTES]);
        let opened = PendingSignIn::open(&keyring, &text).unwrap();
        assert_eq!(opened, begun);
        assert!(opened.continues("hash", now));
        assert!(!opened.continues("another", now));
        assert!(!opened.continues("hash", now.plus(PENDING_SIGN_IN_LIFETIME)));
    }

    #[test]
    fn other_texts_are_rejected() {
        let keyring = Keyring::new([1; 32]);
        let now = Timestamp::from_millis(0);
        let text = PendingSignIn::begin(UserId::from_bytes([1; 16]), "hash", now);
        let text = text.seal(&keyring, [2; NONCE_BYTES]);
        assert_eq!(PendingSignIn::open(&Keyring::new([2; 32]), &text), None);
        for wrong in ["", "x", &text[2..]] {
            assert_eq!(PendingSignIn::open(&keyring, wrong), None, "{wrong}");
        }
        let other = keyring.seal(&["x"], [2; NONCE_BYTES], &[0; BYTES]);
        assert_eq!(PendingSignIn::open(&keyring, &hex(other.as_bytes())), None);
    }
}
