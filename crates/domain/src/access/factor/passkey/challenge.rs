//! The challenge that a passkey signs. It is sealed in a cookie, which binds it to the browser.

use super::encode_field;
use crate::keyring::Keyring;
use crate::keyring::seal::{NONCE_BYTES, SealedSecret};
use crate::vocabulary::digest::{from_hex, hex};
use crate::vocabulary::id::UserId;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How long a challenge works: time to find the device and to unlock it.
pub const CHALLENGE_LIFETIME: Duration = Duration::from_mins(5);
/// How far the clock of the node that issued a challenge may be ahead. A passkey accepts only later
/// challenges than the last, so one from the future would lock it until then.
const CLOCK_AHEAD_MAX: Duration = Duration::from_mins(1);
/// Random bytes of a challenge.
pub const CHALLENGE_RANDOM_BYTES: usize = 32;

/// Scope of the sealed text.
const SCOPE: &[&str] = &["passkey-challenge/1"];
/// Length of the sealed bytes: time and random bytes.
const BYTES: usize = 8 + CHALLENGE_RANDOM_BYTES;
/// Random bytes of a user id.
const USER_BYTES: usize = 10;

/// A challenge. A passkey accepts only later ones than the last, so each works once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PasskeyChallenge {
    /// When it was issued.
    pub issued_at: Timestamp,
    random: [u8; CHALLENGE_RANDOM_BYTES],
}

impl PasskeyChallenge {
    /// Issues a challenge.
    pub const fn new(random: [u8; CHALLENGE_RANDOM_BYTES], now: Timestamp) -> Self {
        Self {
            issued_at: now,
            random,
        }
    }

    /// Returns the text that browsers pass on.
    pub fn text(&self) -> String {
        encode_field(&self.random)
    }

    /// Returns the id of the account that is set up with a passkey for this challenge. The device stores
    /// the id before the account exists.
    pub fn new_user(&self) -> UserId {
        let mut random = [0; USER_BYTES];
        random.copy_from_slice(&self.random[..USER_BYTES]);
        UserId::new(self.issued_at, random)
    }

    /// Seals the challenge for a cookie.
    pub fn seal(&self, keyring: &Keyring, nonce: [u8; NONCE_BYTES]) -> String {
        let issued_at = self.issued_at.as_millis().to_be_bytes();
        let bytes = [issued_at.as_slice(), &self.random].concat();
        hex(keyring.seal(SCOPE, nonce, &bytes).as_bytes())
    }

    /// Opens a cookie. Returns `None` if it was not sealed here, is too old, or is from the future.
    pub fn open(keyring: &Keyring, text: &str, now: Timestamp) -> Option<Self> {
        let sealed = SealedSecret::from_bytes(from_hex(text)?);
        let bytes: [u8; BYTES] = keyring.open(SCOPE, &sealed).ok()?.try_into().ok()?;
        let (issued_at, random) = bytes.split_first_chunk::<8>()?;
        let challenge = Self {
            issued_at: Timestamp::from_millis(i64::from_be_bytes(*issued_at)),
            random: random.try_into().ok()?,
        };
        let is_current = now.since(challenge.issued_at) < CHALLENGE_LIFETIME
            && challenge.issued_at.since(now) <= CLOCK_AHEAD_MAX;
        is_current.then_some(challenge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    #[test]
    fn a_challenge_works_for_five_minutes() {
        let keyring = Keyring::new([1; 32]);
        let challenge = PasskeyChallenge::new([7; CHALLENGE_RANDOM_BYTES], NOW);
        let text = challenge.seal(&keyring, [2; NONCE_BYTES]);
        let open = |now| PasskeyChallenge::open(&keyring, &text, now);
        assert_eq!(open(NOW), Some(challenge));
        assert_eq!(open(NOW.plus(CHALLENGE_LIFETIME)), None);
        assert_eq!(open(NOW.minus(CLOCK_AHEAD_MAX)), Some(challenge));
        let earlier = CLOCK_AHEAD_MAX + Duration::from_millis(1);
        assert_eq!(open(NOW.minus(earlier)), None, "from the future");
        assert_eq!(challenge.text().len(), 43);
        assert_eq!(challenge.new_user(), UserId::new(NOW, [7; USER_BYTES]));
    }

    #[test]
    fn other_texts_are_rejected() {
        let keyring = Keyring::new([1; 32]);
        let challenge = PasskeyChallenge::new([7; CHALLENGE_RANDOM_BYTES], NOW);
        let text = challenge.seal(&keyring, [2; NONCE_BYTES]);
        let open = |keyring: &Keyring, text: &str| PasskeyChallenge::open(keyring, text, NOW);
        assert_eq!(open(&Keyring::new([2; 32]), &text), None);
        let other = keyring.seal(&["x"], [2; NONCE_BYTES], &[0; BYTES]);
        for wrong in ["", "x", &text[2..], &hex(other.as_bytes())] {
            assert_eq!(open(&keyring, wrong), None, "{wrong}");
        }
    }
}
