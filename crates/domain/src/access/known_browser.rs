//! Browsers that a user has signed in with.
//!
//! Anybody can use up the guesses for an email address. Guesses from a browser with a signed cookie are
//! therefore counted separately, and strangers cannot lock the user out there.

use super::sign_in::GuessCounter;
use crate::keyring::{Keyring, Purpose, Signer};
use crate::vocabulary::id::{UserId, decode, encode};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How long a browser stays known after a sign-in.
pub const KNOWN_BROWSER_LIFETIME: Duration = Duration::from_hours(180 * 24);
/// Number of random bytes that identify a browser.
pub const BROWSER_RANDOM_BYTES: usize = 16;

const PREFIX: &str = "browser_";
const ID_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
const TIME_BYTES: usize = 8;
const TOKEN_BYTES: usize = ID_BYTES + TIME_BYTES + BROWSER_RANDOM_BYTES + TAG_BYTES;

/// A browser that a user has signed in with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownBrowser {
    /// The user.
    pub user: UserId,
    /// Time of the last sign-in with the browser. A password reset forgets all browsers that signed in
    /// before it.
    pub since: Timestamp,
    /// Identifies the browser.
    pub random: [u8; BROWSER_RANDOM_BYTES],
}

impl KnownBrowser {
    /// Returns the counter of this browser's guesses.
    pub fn counter(&self) -> GuessCounter {
        GuessCounter::of_browser(self.user, &self.random)
    }

    /// Returns the browser after a sign-in.
    #[must_use]
    pub const fn renewed(self, now: Timestamp) -> Self {
        Self { since: now, ..self }
    }

    /// Returns whether the browser has become a stranger's. `forgotten_at` is the time of the user's
    /// last password reset.
    pub fn is_forgotten(&self, forgotten_at: Option<Timestamp>) -> bool {
        forgotten_at.is_some_and(|at| self.since < at)
    }
}

/// Signer and verifier of known browsers.
#[derive(Clone)]
pub struct KnownBrowsers(Signer);

impl std::fmt::Debug for KnownBrowsers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("KnownBrowsers(***)")
    }
}

impl KnownBrowsers {
    /// Creates a signer with the instance's secret.
    pub fn new(keyring: &Keyring) -> Self {
        Self(Signer::new(keyring, Purpose::KnownBrowser))
    }

    /// Returns the signed text for a cookie.
    pub fn sign(&self, browser: &KnownBrowser) -> String {
        let (user, since) = (browser.user.as_bytes(), browser.since.as_millis());
        let since = since.to_be_bytes();
        let signed = self.0.sign(&[user, &since, &browser.random]);
        let tag = &signed[..TAG_BYTES];
        let parts = [user.as_slice(), &since, &browser.random, tag].concat();
        let bytes: [u8; TOKEN_BYTES] = parts.try_into().expect("the parts have these lengths");
        encode(PREFIX, &bytes)
    }

    /// Verifies the text of a cookie. Returns `None` if its tag is wrong or its time is over: a browser
    /// need not drop the cookie.
    pub fn verify(&self, text: &str, now: Timestamp) -> Option<KnownBrowser> {
        let bytes: [u8; TOKEN_BYTES] = decode(PREFIX, text).ok()?;
        let (user, rest) = bytes.split_first_chunk::<ID_BYTES>()?;
        let (since, rest) = rest.split_first_chunk::<TIME_BYTES>()?;
        let (random, tag) = rest.split_first_chunk::<BROWSER_RANDOM_BYTES>()?;
        let is_signed = tag.len() == TAG_BYTES && self.0.verifies(&[user, since, random], tag);
        let since = Timestamp::from_millis(i64::from_be_bytes(*since));
        let is_current = now.since(since) < KNOWN_BROWSER_LIFETIME;
        (is_signed && is_current).then(|| KnownBrowser {
            user: UserId::from_bytes(*user),
            since,
            random: *random,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROWSER: KnownBrowser = KnownBrowser {
        user: UserId::from_bytes([1; 16]),
        since: Timestamp::from_millis(1_790_000_000_000),
        random: [2; BROWSER_RANDOM_BYTES],
    };

    #[test]
    fn a_reset_forgets_earlier_browsers() {
        let at = |millis| Some(BROWSER.since.plus(Duration::from_millis(millis)));
        assert!(!BROWSER.is_forgotten(None));
        assert!(!BROWSER.is_forgotten(at(0)));
        assert!(BROWSER.is_forgotten(at(1)));
    }

    #[test]
    fn a_signed_browser_is_verified() {
        let browsers = KnownBrowsers::new(&Keyring::new([3; 32]));
        let verified = browsers.verify(&browsers.sign(&BROWSER), BROWSER.since);
        assert_eq!(verified, Some(BROWSER));
    }

    #[test]
    fn a_browser_expires_unless_it_signs_in_again() {
        let browsers = KnownBrowsers::new(&Keyring::new([3; 32]));
        let end = BROWSER.since.plus(KNOWN_BROWSER_LIFETIME);
        let before = end.minus(Duration::from_millis(1));
        let signed = browsers.sign(&BROWSER);
        assert_eq!(browsers.verify(&signed, before), Some(BROWSER));
        assert_eq!(browsers.verify(&signed, end), None);
        let renewed = BROWSER.renewed(before);
        assert_eq!(renewed.counter(), BROWSER.counter());
        assert_eq!(
            browsers.verify(&browsers.sign(&renewed), end),
            Some(renewed)
        );
    }

    #[test]
    fn other_texts_and_secrets_are_rejected() {
        let browsers = KnownBrowsers::new(&Keyring::new([3; 32]));
        let signed = browsers.sign(&BROWSER);
        let other = KnownBrowsers::new(&Keyring::new([4; 32]));
        let now = BROWSER.since;
        assert_eq!(other.verify(&signed, now), None);
        for index in 0..signed.len() {
            let mut changed = signed.clone().into_bytes();
            changed[index] = if changed[index] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(browsers.verify(&changed, now), None, "{changed}");
        }
        assert_eq!(browsers.verify("", now), None);
    }
}
