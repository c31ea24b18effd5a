//! API keys: text form, checksum and stored record.
//!
//! Format: `ak_live_` + 33 base62 characters (192 random bits) + 6 base62 characters that encode a
//! CRC-32 of everything before them. The checksum lets secret scanners recognise a leaked key and
//! rejects a mistyped one without a lookup. Security comes from the random part. With that much
//! entropy a slow hash is unnecessary, so only the SHA-256 digest is stored.

use super::key_limits::KeyLimits;
use super::{Actor, Environment, Permission};
use crate::audit::{Changes, FieldChange};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{KeyId, OrganizationId, UserId};
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Number of random bytes in a key: 192 bits.
pub const KEY_RANDOM_BYTES: usize = 24;
/// Enough characters for 192 bits: 62^33 > 2^192.
const RANDOM_CHARS: usize = 33;
/// Enough characters for 32 bits: 62^6 > 2^32.
const CHECKSUM_CHARS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Minimum interval between updates of a key's last-used time. A shorter interval would turn every
/// read into a write.
pub const LAST_USE_INTERVAL: Duration = Duration::from_mins(1);

/// Kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Secret key for the REST API.
    Private,
    /// Public key for the SDK endpoints of one app. It ships inside the app.
    Sdk,
    /// Token in a one-time account setup link.
    Setup,
    /// Session cookie of a signed-in user.
    Session,
    /// Token in a link that shares a report.
    Share,
    /// Token in a one-time link for setting a new password.
    Reset,
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
            (Self::Share, _) => "share_",
            (Self::Reset, _) => "reset_",
        }
    }

    /// All pairs of kind and environment that have a prefix.
    const PREFIXES: [(Self, Environment); 8] = [
        (Self::Private, Environment::Live),
        (Self::Private, Environment::Test),
        (Self::Sdk, Environment::Live),
        (Self::Sdk, Environment::Test),
        (Self::Setup, Environment::Live),
        (Self::Session, Environment::Live),
        (Self::Share, Environment::Live),
        (Self::Reset, Environment::Live),
    ];
}

/// A key in clear text. It exists only while a key is created or presented.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText {
    /// Kind of key.
    pub kind: KeyKind,
    /// Live or test.
    pub environment: Environment,
    text: String,
}

impl std::fmt::Debug for KeyText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}***", self.kind.prefix(self.environment))
    }
}

/// Error for a malformed key or a wrong checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid key")]
pub struct InvalidKey;

impl KeyText {
    /// Creates a key from random bytes.
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

    /// Parses a key. Rejects a wrong checksum without a lookup.
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

    /// Returns the digest that is stored and looked up.
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// Returns the last four characters, which identify the key in lists.
    pub fn hint(&self) -> &str {
        &self.text[self.text.len() - 4..]
    }

    /// Returns the clear text. Show it only once.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

/// Encodes big-endian bytes as a base-62 number of fixed width.
fn base62(bytes: &[u8], width: usize) -> String {
    let mut number = bytes.to_vec();
    let mut digits = vec![b'0'; width];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = remainder * 256 + u32::from(*byte);
            // The remainder is below 62, so the quotient fits in a byte.
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

/// Stored record of a private key, without the key itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Key id.
    pub id: KeyId,
    /// Owning organization.
    pub organization: OrganizationId,
    /// Display name.
    pub name: String,
    /// Permission level.
    pub permission: Permission,
    /// Live or test.
    pub environment: Environment,
    /// Apps that the key may access, and addresses that may use it.
    pub limits: KeyLimits,
    /// Last four characters of the key.
    pub hint: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Who created the key: a member, another key or the command line. `None` for keys of earlier
    /// versions, which did not store it.
    pub created_by: Option<Actor>,
    /// The member who answers for the key. The key ends when the member is removed.
    pub owner: Option<UserId>,
    /// Expiry time. The key is rejected from then on.
    pub expires_at: Option<Timestamp>,
    /// Revocation time.
    pub revoked_at: Option<Timestamp>,
    /// Last use, accurate to [`LAST_USE_INTERVAL`].
    pub last_used_at: Option<Timestamp>,
    /// Address range of the last use (`vocabulary::subnet::address_range`). It is not an address,
    /// because the list of keys is not a record of people's movements.
    pub last_used_from: Option<String>,
    /// The key that replaced this one.
    pub successor: Option<KeyId>,
}

/// Whether a key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// The key works.
    Valid,
    /// The expiry time has passed.
    Expired,
    /// The key was revoked.
    Revoked,
}

crate::keywords! {
    KeyState { Valid => "valid", Expired => "expired", Revoked => "revoked" }
}

/// What a person chooses about a new key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDraft {
    /// Display name.
    pub name: Name,
    /// Permission level.
    pub permission: Permission,
    /// Live or test.
    pub environment: Environment,
    /// Apps and addresses.
    pub limits: KeyLimits,
    /// Expiry time.
    pub expires_at: Option<Timestamp>,
}

/// What a new key is created with.
#[derive(Debug, Clone)]
pub struct KeyCreation {
    /// Key id.
    pub id: KeyId,
    /// Owning organization.
    pub organization: OrganizationId,
    /// Last four characters of the key.
    pub hint: String,
    /// Creation time.
    pub at: Timestamp,
}

impl ApiKey {
    /// Creates a live key without limits. Its creator and owner are set when it is stored.
    pub fn new(creation: KeyCreation, name: String, permission: Permission) -> Self {
        Self {
            id: creation.id,
            organization: creation.organization,
            name,
            permission,
            environment: Environment::Live,
            limits: KeyLimits::default(),
            hint: creation.hint,
            created_at: creation.at,
            created_by: None,
            owner: None,
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
            last_used_from: None,
            successor: None,
        }
    }

    /// Returns whether the key works.
    pub fn state(&self, now: Timestamp) -> KeyState {
        if self.revoked_at.is_some() {
            KeyState::Revoked
        } else if self.is_valid(now) {
            KeyState::Valid
        } else {
            KeyState::Expired
        }
    }

    /// Returns whether the key is neither revoked nor expired.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    /// Revokes the key. Returns false if it was already revoked, and keeps the first revocation
    /// time.
    pub fn revoke(&mut self, at: Timestamp) -> bool {
        let is_new = self.revoked_at.is_none();
        self.revoked_at.get_or_insert(at);
        is_new
    }

    /// Returns the audit log fields for a new key. The expiry is in milliseconds since the epoch.
    pub fn creation_changes(&self) -> Vec<FieldChange> {
        let mut changes = Changes::new();
        changes.initial("name", Some(self.name.clone()));
        changes.initial("permission", Some(self.permission.as_str().to_owned()));
        changes.initial("environment", Some(self.environment.as_str().to_owned()));
        let end = self.expires_at.map(|end| end.as_millis().to_string());
        changes.initial("expiresAt", end);
        let apps = self.limits.apps.apps();
        let apps = apps.map(|apps| apps.iter().map(ToString::to_string).collect::<Vec<_>>());
        changes.initial("apps", apps.map(|apps| apps.join(" ")));
        let addresses = self.limits.addresses.ranges();
        changes.initial("addresses", addresses.map(|ranges| ranges.join(" ")));
        changes.initial("owner", self.owner.map(|owner| owner.to_string()));
        changes.into_vec()
    }

    /// Returns whether to record this use: no use was recorded within the last
    /// [`LAST_USE_INTERVAL`].
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
        let creation = KeyCreation {
            id: KeyId::from_bytes([1; 16]),
            organization: OrganizationId::from_bytes([2; 16]),
            hint: "abcd".to_owned(),
            at: Timestamp::from_millis(0),
        };
        ApiKey::new(creation, "CI".to_owned(), Permission::Full)
    }

    proptest! {
        #[test]
        fn a_key_round_trips_through_its_text(random: [u8; KEY_RANDOM_BYTES]) {
            let key = KeyText::generate(KeyKind::Private, Environment::Live, random);
            prop_assert_eq!(KeyText::parse(key.reveal()), Ok(key));
        }

        #[test]
        fn a_changed_character_fails_the_checksum(
            random: [u8; KEY_RANDOM_BYTES],
            at in 8_usize..47,
            by in 1_u8..62,
        ) {
            let key = KeyText::generate(KeyKind::Private, Environment::Live, random);
            let mut text = key.reveal().as_bytes().to_vec();
            let index = BASE62.iter().position(|letter| *letter == text[at]).unwrap();
            text[at] = BASE62[(index + usize::from(by)) % 62];
            prop_assert_eq!(KeyText::parse(std::str::from_utf8(&text).unwrap()), Err(InvalidKey));
        }
    }

    #[test]
    fn revoking_again_keeps_the_first_time() {
        let mut key = any_key();
        let at = Timestamp::from_millis;
        assert!(key.revoke(at(5)));
        assert!(!key.revoke(at(9)));
        assert_eq!(key.revoked_at, Some(at(5)));
    }

    #[test]
    fn keys_have_a_fixed_prefix_and_length() {
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
    fn rejects_anything_else(#[case] text: &str) {
        assert_eq!(KeyText::parse(text), Err(InvalidKey));
    }

    #[test]
    fn debug_output_hides_the_key() {
        let key = KeyText::generate(KeyKind::Private, Environment::Live, [9; KEY_RANDOM_BYTES]);
        assert_eq!(format!("{key:?}"), "ak_live_***");
    }

    #[rstest]
    #[case::fresh(None, None, KeyState::Valid)]
    #[case::revoked(None, Some(50), KeyState::Revoked)]
    #[case::before_expiry(Some(101), None, KeyState::Valid)]
    #[case::at_expiry(Some(100), None, KeyState::Expired)]
    #[case::revoked_and_expired(Some(100), Some(50), KeyState::Revoked)]
    fn a_key_is_valid_until_revoked_or_expired(
        #[case] expires: Option<i64>,
        #[case] revoked: Option<i64>,
        #[case] state: KeyState,
    ) {
        let key = ApiKey {
            expires_at: expires.map(Timestamp::from_millis),
            revoked_at: revoked.map(Timestamp::from_millis),
            ..any_key()
        };
        let now = Timestamp::from_millis(100);
        assert_eq!(key.state(now), state);
        assert_eq!(key.is_valid(now), state == KeyState::Valid);
    }

    #[rstest]
    #[case::never_used(None, true)]
    #[case::just_now(Some(59_999), false)]
    #[case::a_minute_ago(Some(0), true)]
    fn last_use_is_written_once_a_minute(#[case] last: Option<i64>, #[case] expected: bool) {
        let key = ApiKey {
            last_used_at: last.map(Timestamp::from_millis),
            ..any_key()
        };
        assert_eq!(
            key.should_record_use(Timestamp::from_millis(60_000)),
            expected
        );
    }
}
