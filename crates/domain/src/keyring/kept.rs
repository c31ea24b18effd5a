//! Derived keys that outlive the secret key that they were derived from. They are stored, encrypted
//! with the present secret key.

use super::purpose::{Purpose, RotationEffect};
use super::seal::SealedSecret;
use super::{Keyring, SecretKeyBytes, derive};
use crate::vocabulary::digest::{from_hex, hex};
use crate::vocabulary::time::Timestamp;
use std::fmt::Write as _;

/// Scope that the stored keys are encrypted for. No organization's id equals its first part.
const SCOPE: &[&str] = &["instance", "kept-keys"];
/// How many earlier keys of one purpose are kept at most. Each makes a rejected click id slower.
const EARLIER_KEYS_MAX: usize = 8;

/// A derived key that is kept.
#[derive(Clone, PartialEq, Eq)]
struct KeptKey {
    purpose: Purpose,
    key: SecretKeyBytes,
    /// When it is forgotten; `None` if it stays the key of its purpose.
    until: Option<Timestamp>,
}

/// Derived keys that outlive their secret key.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct KeptKeys(Vec<KeptKey>);

impl std::fmt::Debug for KeptKeys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("KeptKeys(***)")
    }
}

impl KeptKeys {
    /// Returns the unchanged key of a purpose.
    pub(super) fn unchanged(&self, purpose: Purpose) -> Option<SecretKeyBytes> {
        let mut keys = self.0.iter();
        let found = keys.find(|kept| kept.purpose == purpose && kept.until.is_none());
        found.map(|kept| kept.key)
    }

    /// Returns the earlier keys of a purpose.
    pub(super) fn earlier(&self, purpose: Purpose) -> impl Iterator<Item = SecretKeyBytes> {
        let keys = self.0.iter();
        let found = keys.filter(move |kept| kept.purpose == purpose && kept.until.is_some());
        found.map(|kept| kept.key)
    }

    /// Returns the keys to keep when `old` is replaced.
    pub(super) fn after(&self, old: &SecretKeyBytes, now: Timestamp) -> Self {
        let mut kept = self.clone().without_expired(now).0;
        for &purpose in Purpose::ALL {
            let key = derive(old, purpose.as_str());
            match purpose.rotation_effect() {
                RotationEffect::Replaced => {}
                RotationEffect::Unchanged if self.unchanged(purpose).is_some() => {}
                RotationEffect::Unchanged => kept.push(KeptKey {
                    purpose,
                    key,
                    until: None,
                }),
                RotationEffect::AcceptedFor(lifetime) => {
                    let until = Some(now.plus(lifetime));
                    kept.push(KeptKey {
                        purpose,
                        key,
                        until,
                    });
                    forget_oldest(&mut kept, purpose);
                }
            }
        }
        Self(kept)
    }

    /// Removes the keys whose time is over.
    pub(super) fn without_expired(mut self, now: Timestamp) -> Self {
        self.0
            .retain(|kept| kept.until.is_none_or(|until| until > now));
        self
    }

    /// Encrypts the keys.
    pub(super) fn seal(&self, keyring: &Keyring, nonce: [u8; 24]) -> SealedSecret {
        let mut text = String::new();
        for kept in &self.0 {
            let (purpose, key) = (kept.purpose.as_str(), hex(&kept.key));
            let until = kept.until.map_or(-1, Timestamp::as_millis);
            // Writing to a String cannot fail.
            let _infallible = writeln!(text, "{purpose} {key} {until}");
        }
        keyring.seal(SCOPE, nonce, text.as_bytes())
    }

    /// Decrypts the keys. Purposes that this version does not know are left out.
    pub(super) fn open(keyring: &Keyring, sealed: &SealedSecret) -> Option<Self> {
        let bytes = keyring.open(SCOPE, sealed).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let mut keys = Vec::new();
        for line in text.lines() {
            let mut words = line.split(' ');
            let (purpose, key, until) = (words.next()?, words.next()?, words.next()?);
            let until: i64 = until.parse().ok()?;
            let key = from_hex(key)?.try_into().ok()?;
            keys.extend(Purpose::parse(purpose).map(|purpose| KeptKey {
                purpose,
                key,
                until: (until >= 0).then(|| Timestamp::from_millis(until)),
            }));
        }
        Some(Self(keys))
    }
}

/// Forgets the oldest of too many earlier keys of a purpose.
fn forget_oldest(kept: &mut Vec<KeptKey>, purpose: Purpose) {
    let is_earlier = |one: &KeptKey| one.purpose == purpose && one.until.is_some();
    if kept.iter().filter(|one| is_earlier(one)).count() > EARLIER_KEYS_MAX
        && let Some(oldest) = kept.iter().position(is_earlier)
    {
        kept.remove(oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    fn later(days: u64) -> Timestamp {
        NOW.plus(std::time::Duration::from_hours(days * 24))
    }

    #[test]
    fn unchanged_keys_stay_those_of_the_first_secret_key() {
        let first = KeptKeys::default().after(&[1; 32], NOW);
        let second = first.after(&[2; 32], NOW);
        for purpose in [
            Purpose::Address,
            Purpose::AdvertisingId,
            Purpose::OpenedClick,
            Purpose::DomainVerification,
        ] {
            let expected = Some(derive(&[1; 32], purpose.as_str()));
            assert_eq!(first.unchanged(purpose), expected, "{purpose:?}");
            assert_eq!(second.unchanged(purpose), expected, "{purpose:?}");
        }
        for purpose in [Purpose::Seal, Purpose::Check, Purpose::Cursor] {
            assert_eq!(second.unchanged(purpose), None);
            assert_eq!(second.earlier(purpose).count(), 0);
        }
    }

    #[test]
    fn earlier_keys_are_kept_for_the_life_of_what_they_signed() {
        let kept = KeptKeys::default()
            .after(&[1; 32], NOW)
            .after(&[2; 32], later(200));
        let counts = |days| {
            let kept = kept.clone().without_expired(later(days));
            let count = |purpose| kept.earlier(purpose).count();
            (count(Purpose::ClickId), count(Purpose::KnownBrowser))
        };
        assert_eq!(
            counts(0),
            (2, 1),
            "the first browsers were forgotten on day 200"
        );
        assert_eq!(counts(379), (2, 1));
        assert_eq!(counts(381), (2, 0));
        assert_eq!(counts(401), (1, 0));
        assert_eq!(counts(601), (0, 0));
    }

    #[test]
    fn many_rotations_keep_a_limited_number_of_keys() {
        let mut kept = KeptKeys::default();
        for number in 0..20 {
            kept = kept.after(&[number; 32], NOW);
        }
        let keys: Vec<_> = kept.earlier(Purpose::ClickId).collect();
        assert_eq!(keys.len(), EARLIER_KEYS_MAX);
        assert_eq!(keys.last(), Some(&derive(&[19; 32], "click-id/1")));
    }

    #[test]
    fn kept_keys_are_stored_encrypted() {
        let kept = KeptKeys::default().after(&[1; 32], NOW);
        let keyring = Keyring::new([2; 32]);
        let sealed = kept.seal(&keyring, [3; 24]);
        assert_eq!(KeptKeys::open(&keyring, &sealed), Some(kept));
        assert_eq!(KeptKeys::open(&Keyring::new([1; 32]), &sealed), None);
    }
}
