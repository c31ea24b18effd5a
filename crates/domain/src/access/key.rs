//! API keys: their text, their checksum, their record.
//!
//! `ak_live_` + 33 base62 characters (192 random bits) + 6 base62 characters of CRC-32 over everything
//! before them. The checksum lets a scanner recognise a leaked key and costs a mistyped one no look-up.
//! It is no protection: that is what the random part is for. A key of so many random bits needs no slow
//! hash, so SHA-256 is what is stored.

use super::{Environment, Permission};
use crate::audit::{Changes, FieldChange};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{KeyId, OrganizationId};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Random bytes in a key: 192 bits.
pub const KEY_RANDOM_BYTES: usize = 24;
/// 62^33 > 2^192.
const RANDOM_CHARS: usize = 33;
/// 62^6 > 2^32.
const CHECKSUM_CHARS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// How often a key's last use is written down. More often would make every read a write.
pub const LAST_USE_INTERVAL: Duration = Duration::from_mins(1);

/// What a key opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// The REST interface; secret.
    Private,
    /// The SDK doors of one app; public, since it ships inside the app.
    Sdk,
    /// A one-time link by which a person sets up an account.
    Setup,
    /// The cookie of a person who is signed in.
    Session,
}

impl KeyKind {
    const fn prefix(self, environment: Environment) -> &'static str {
        match (self, environment) {
            (Self::Private, Environment::Live) => "ak_live_",
            (Self::Private, Environment::Test) => "ak_test_",
            (Self::Sdk, Environment::Live) => "pk_live_",
            (Self::Sdk, Environment::Test) => "pk_test_",
            (Self::Setup, _) => "setup_",
            (Self::Session, _) => "session_",
        }
    }

    /// Every beginning a key can have.
    const PREFIXES: [(Self, Environment); 6] = [
        (Self::Private, Environment::Live),
        (Self::Private, Environment::Test),
        (Self::Sdk, Environment::Live),
        (Self::Sdk, Environment::Test),
        (Self::Setup, Environment::Live),
        (Self::Session, Environment::Live),
    ];
}

/// A key in clear text: known at the moment it is made or presented, and then forgotten.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText {
    /// What it opens.
    pub kind: KeyKind,
    /// In which world.
    pub environment: Environment,
    text: String,
}

impl std::fmt::Debug for KeyText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}***", self.kind.prefix(self.environment))
    }
}

/// Not a key: wrong form or wrong checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a key")]
pub struct InvalidKey;

impl KeyText {
    /// Makes a key out of random bytes.
    pub fn generate(
        kind: KeyKind,
        environment: Environment,
        random: [u8; KEY_RANDOM_BYTES],
    ) -> Self {
        let mut text = kind.prefix(environment).to_owned();
        text.push_str(&base62(&random, RANDOM_CHARS));
        text.push_str(&checksum(&text));
        Self {
            kind,
            environment,
            text,
        }
    }

    /// Reads a key; a wrong checksum is refused without any look-up.
    pub fn parse(text: &str) -> Result<Self, InvalidKey> {
        let (kind, environment) = KeyKind::PREFIXES
            .into_iter()
            .find(|(kind, environment)| text.starts_with(kind.prefix(*environment)))
            .ok_or(InvalidKey)?;
        let prefix_chars = kind.prefix(environment).len();
        let is_base62 = text
            .bytes()
            .skip(prefix_chars)
            .all(|byte| byte.is_ascii_alphanumeric());
        if text.len() != prefix_chars + RANDOM_CHARS + CHECKSUM_CHARS || !is_base62 {
            return Err(InvalidKey);
        }
        let (body, sum) = text.split_at(text.len() - CHECKSUM_CHARS);
        if checksum(body) != sum {
            return Err(InvalidKey);
        }
        Ok(Self {
            kind,
            environment,
            text: text.to_owned(),
        })
    }

    /// What is stored and looked up.
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// The last four characters, by which people tell their keys apart.
    pub fn hint(&self) -> &str {
        &self.text[self.text.len() - 4..]
    }

    /// The clear text. To be shown once.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

/// Big-endian bytes as a number in base 62, of fixed width.
fn base62(bytes: &[u8], width: usize) -> String {
    let mut number = bytes.to_vec();
    let mut digits = vec![b'0'; width];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = remainder * 256 + u32::from(*byte);
            // The quotient of a remainder below 62 and one byte is below 256.
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            remainder = value % 62;
        }
        *digit = BASE62[remainder as usize];
    }
    digits.into_iter().map(char::from).collect()
}

fn checksum(text: &str) -> String {
    base62(
        &crc32fast::hash(text.as_bytes()).to_be_bytes(),
        CHECKSUM_CHARS,
    )
}

/// A private key as it is known to the service: everything but the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id.
    pub id: KeyId,
    /// Whose key.
    pub organization: OrganizationId,
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub permission: Permission,
    /// In which world.
    pub environment: Environment,
    /// Its last four characters.
    pub hint: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when it is refused.
    pub expires_at: Option<Timestamp>,
    /// Since when it is refused.
    pub revoked_at: Option<Timestamp>,
    /// When it was last seen, give or take [`LAST_USE_INTERVAL`].
    pub last_used_at: Option<Timestamp>,
}

impl ApiKey {
    /// Neither revoked nor expired.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    /// Revokes it; false when it was revoked before, and stays revoked since then.
    pub fn revoke(&mut self, at: Timestamp) -> bool {
        let is_new = self.revoked_at.is_none();
        self.revoked_at.get_or_insert(at);
        is_new
    }

    /// What the audit log says of a new one. Its end is in milliseconds since 1970.
    pub fn creation_changes(&self) -> Vec<FieldChange> {
        let mut changes = Changes::new();
        changes.initial("name", Some(self.name.clone()));
        changes.initial("permission", Some(self.permission.as_str().to_owned()));
        changes.initial("environment", Some(self.environment.as_str().to_owned()));
        let end = self.expires_at.map(|end| end.as_millis().to_string());
        changes.initial("expiresAt", end);
        changes.into_vec()
    }

    /// Whether this use is worth writing down.
    pub fn should_record_use(&self, now: Timestamp) -> bool {
        self.last_used_at
            .is_none_or(|last| now.since(last) >= LAST_USE_INTERVAL)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    pub(crate) fn any_key() -> ApiKey {
        ApiKey {
            id: KeyId::from_bytes([1; 16]),
            organization: OrganizationId::from_bytes([2; 16]),
            name: "CI".to_owned(),
            permission: Permission::Full,
            environment: Environment::Live,
            hint: "abcd".to_owned(),
            created_at: Timestamp::from_millis(0),
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        }
    }

    proptest! {
        #[test]
        fn a_key_survives_its_text(random: [u8; KEY_RANDOM_BYTES]) {
            let key = KeyText::generate(KeyKind::Private, Environment::Live, random);
            prop_assert_eq!(KeyText::parse(key.reveal()), Ok(key));
        }

        #[test]
        fn one_changed_character_is_noticed(random: [u8; KEY_RANDOM_BYTES], at in 8_usize..47, by in 1_u8..62) {
            let key = KeyText::generate(KeyKind::Private, Environment::Live, random);
            let mut text = key.reveal().as_bytes().to_vec();
            let place = BASE62.iter().position(|letter| *letter == text[at]).unwrap();
            text[at] = BASE62[(place + usize::from(by)) % 62];
            prop_assert_eq!(KeyText::parse(std::str::from_utf8(&text).unwrap()), Err(InvalidKey));
        }
    }

    #[test]
    fn a_key_stays_revoked_since_the_first_time() {
        let mut key = any_key();
        let at = Timestamp::from_millis;
        assert!(key.revoke(at(5)));
        assert!(!key.revoke(at(9)));
        assert_eq!(key.revoked_at, Some(at(5)));
    }

    #[test]
    fn a_key_has_a_form_that_scanners_know() {
        let key = KeyText::generate(KeyKind::Sdk, Environment::Test, [0; KEY_RANDOM_BYTES]);
        assert!(
            key.reveal()
                .starts_with("pk_test_000000000000000000000000000000000")
        );
        assert_eq!(key.reveal().len(), 8 + 33 + 6);
        let largest = KeyText::generate(KeyKind::Private, Environment::Live, [255; 24]);
        assert_eq!(largest.reveal().len(), 8 + 33 + 6);
    }

    #[rstest]
    #[case::empty("")]
    #[case::prefix_alone("ak_live_")]
    #[case::another_prefix("sk_live_0000000000000000000000000000000000000000")]
    #[case::too_long(&"ak_live_".repeat(100))]
    #[case::not_ascii("ak_live_äääääääääääääääääää")]
    fn anything_else_is_no_key(#[case] text: &str) {
        assert_eq!(KeyText::parse(text), Err(InvalidKey));
    }

    #[test]
    fn a_key_does_not_print() {
        let key = KeyText::generate(KeyKind::Private, Environment::Live, [9; KEY_RANDOM_BYTES]);
        assert_eq!(format!("{key:?}"), "ak_live_***");
    }

    #[rstest]
    #[case::fresh(None, None, true)]
    #[case::revoked(None, Some(50), false)]
    #[case::before_its_end(Some(101), None, true)]
    #[case::at_its_end(Some(100), None, false)]
    fn a_key_is_valid_until_revoked_or_expired(
        #[case] expires: Option<i64>,
        #[case] revoked: Option<i64>,
        #[case] valid: bool,
    ) {
        let key = ApiKey {
            expires_at: expires.map(Timestamp::from_millis),
            revoked_at: revoked.map(Timestamp::from_millis),
            ..any_key()
        };
        assert_eq!(key.is_valid(Timestamp::from_millis(100)), valid);
    }

    #[rstest]
    #[case::never_used(None, true)]
    #[case::just_now(Some(59_999), false)]
    #[case::a_minute_ago(Some(0), true)]
    fn last_use_is_written_once_a_minute(#[case] last: Option<i64>, #[case] news: bool) {
        let key = ApiKey {
            last_used_at: last.map(Timestamp::from_millis),
            ..any_key()
        };
        assert_eq!(key.should_record_use(Timestamp::from_millis(60_000)), news);
    }
}
