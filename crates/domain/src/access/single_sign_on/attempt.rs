//! A sign-in that is under way at the provider. It is sealed in a cookie, which binds it to the
//! browser; the server stores nothing until the provider has identified the person.

use crate::keyring::seal::{NONCE_BYTES, SealedSecret};
use crate::keyring::{Keyring, constant_time_eq};
use crate::vocabulary::digest::{Digest, from_hex, hex};
use crate::vocabulary::id::{OrganizationId, UserId};
use crate::vocabulary::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::time::Duration;

/// How long a person may take to sign in at the provider: time for a second factor, too short for a
/// cookie to be worth stealing.
pub const ATTEMPT_LIFETIME: Duration = Duration::from_mins(10);

/// Number of random bytes from which state, nonce and verifier are derived.
const SECRET_BYTES: usize = 32;
/// Scope that the cookie is sealed for.
const SCOPE: &[&str] = &["single-sign-on-attempt/2"];
/// Bytes before `next`: organization, connecting user, whether the sign-in is repeated, time and secret.
const FIXED_BYTES: usize = 16 + 16 + 1 + 8 + SECRET_BYTES;
/// In place of a connecting user.
const NO_USER: [u8; 16] = [0; 16];

/// A sign-in that is under way.
#[derive(Clone, PartialEq, Eq)]
pub struct SignOnAttempt {
    /// Organization whose provider was asked.
    pub organization: OrganizationId,
    /// Signed-in user who connects the own account; `None` for a sign-in.
    pub connecting: Option<UserId>,
    /// Whether the provider was asked to let the person sign in again, even if it knows the browser.
    pub is_repeated: bool,
    /// When it began.
    pub started_at: Timestamp,
    /// Page to show afterwards.
    pub next: String,
    /// Random bytes.
    pub secret: [u8; SECRET_BYTES],
}

impl std::fmt::Debug for SignOnAttempt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SignOnAttempt(***)")
    }
}

impl SignOnAttempt {
    /// Seals the attempt for a cookie.
    pub fn seal(&self, keyring: &Keyring, nonce: [u8; NONCE_BYTES]) -> String {
        let connecting = self.connecting.map_or(NO_USER, |user| *user.as_bytes());
        let bytes = [
            self.organization.as_bytes().as_slice(),
            &connecting,
            &[u8::from(self.is_repeated)],
            &self.started_at.as_millis().to_be_bytes(),
            &self.secret,
            self.next.as_bytes(),
        ]
        .concat();
        hex(keyring.seal(SCOPE, nonce, &bytes).as_bytes())
    }

    /// Opens a cookie. Returns `None` if it was not sealed here or is too old.
    pub fn open(keyring: &Keyring, text: &str, now: Timestamp) -> Option<Self> {
        let sealed = SealedSecret::from_bytes(from_hex(text)?);
        let bytes = keyring.open(SCOPE, &sealed).ok()?;
        let (fixed, next) = bytes.split_first_chunk::<FIXED_BYTES>()?;
        let (organization, rest) = fixed.split_first_chunk::<16>()?;
        let (connecting, rest) = rest.split_first_chunk::<16>()?;
        let ([is_repeated], rest) = rest.split_first_chunk::<1>()?;
        let (started_at, secret) = rest.split_first_chunk::<8>()?;
        let attempt = Self {
            organization: OrganizationId::from_bytes(*organization),
            connecting: (*connecting != NO_USER).then(|| UserId::from_bytes(*connecting)),
            is_repeated: *is_repeated == 1,
            started_at: Timestamp::from_millis(i64::from_be_bytes(*started_at)),
            next: String::from_utf8(next.to_vec()).ok()?,
            secret: secret.try_into().ok()?,
        };
        (now.since(attempt.started_at) < ATTEMPT_LIFETIME).then_some(attempt)
    }

    /// Returns a value that the provider sends back, which shows that the answer belongs to this
    /// browser.
    pub fn state(&self) -> String {
        hex(self.derived("state").as_bytes())
    }

    /// Returns whether the provider sent back this attempt's state.
    pub fn is_state(&self, text: &str) -> bool {
        let expected = self.derived("state");
        from_hex(text).is_some_and(|bytes| constant_time_eq(&bytes, expected.as_bytes()))
    }

    /// Returns a value that the ID token must contain.
    pub fn nonce(&self) -> String {
        hex(self.derived("nonce").as_bytes())
    }

    /// Returns the secret of PKCE, which redeems the code.
    pub fn verifier(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.derived("verifier").as_bytes())
    }

    /// Returns the challenge of PKCE, by the method S256.
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Digest::of(self.verifier().as_bytes()).as_bytes())
    }

    /// Identifies the attempt, so that it is used once.
    pub fn digest(&self) -> Digest {
        self.derived("use")
    }

    fn derived(&self, purpose: &str) -> Digest {
        Digest::of(&[purpose.as_bytes(), b" ", &self.secret].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::digest::Digest;

    fn attempt() -> SignOnAttempt {
        SignOnAttempt {
            organization: OrganizationId::from_bytes([1; 16]),
            connecting: None,
            is_repeated: false,
            started_at: Timestamp::from_millis(1_000),
            next: "/apps".to_owned(),
            secret: [9; SECRET_BYTES],
        }
    }

    #[test]
    fn a_sealed_attempt_opens_until_it_is_too_old() {
        let keyring = Keyring::new([3; 32]);
        let connecting = SignOnAttempt {
            connecting: Some(UserId::from_bytes([5; 16])),
            ..attempt()
        };
        let repeated = SignOnAttempt {
            is_repeated: true,
            ..attempt()
        };
        let at = Timestamp::from_millis;
        for one in [attempt(), connecting, repeated] {
            let text = one.seal(&keyring, [4; NONCE_BYTES]);
            assert_eq!(
                SignOnAttempt::open(&keyring, &text, at(600_999)),
                Some(one.clone())
            );
            assert_eq!(SignOnAttempt::open(&keyring, &text, at(601_000)), None);
            let other = Keyring::new([4; 32]);
            assert_eq!(SignOnAttempt::open(&other, &text, at(1_000)), None);
            assert_eq!(SignOnAttempt::open(&keyring, &text[2..], at(1_000)), None);
        }
        assert_eq!(SignOnAttempt::open(&keyring, "", at(1_000)), None);
    }

    #[test]
    fn values_for_the_provider_differ() {
        let (one, other) = (
            attempt(),
            SignOnAttempt {
                secret: [8; SECRET_BYTES],
                ..attempt()
            },
        );
        assert!(one.is_state(&one.state()));
        for wrong in [&other.state(), &one.nonce(), "", "x"] {
            assert!(!one.is_state(wrong), "{wrong}");
        }
        assert_ne!(one.state(), one.nonce());
        assert_ne!(one.nonce(), other.nonce());
        let expected = Digest::of(one.verifier().as_bytes());
        assert_eq!(one.challenge(), URL_SAFE_NO_PAD.encode(expected.as_bytes()));
        assert_eq!(one.verifier().len(), 43);
    }
}
