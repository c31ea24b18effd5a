//! The rotation of the secret key, as the database records it.
//!
//! A database stores the check value of the key in use. A rotation replaces it in the transaction
//! that records the rotation: from then on, only values that are encrypted with the new key are
//! stored. Then a command encrypts the stored values again. Nodes that know both keys read both.

use super::kept::KeptKeys;
use super::seal::{NONCE_BYTES, SealedSecret, UnsealError};
use super::{Keyring, KnownKeys, NAMED, NEXT, SecretKeyBytes, SecretKeyId, check_value};
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// First byte of a stored check value whose key is named in encrypted values. Programs without
/// rotations compare the whole value, so they do not start on a rotated database, whose values they
/// could not read.
const NAMED_CHECK: u8 = 2;
/// How long a node counts as running after it was last seen. Far longer than the interval in which
/// nodes write, and than the differences between the nodes' clocks.
pub const NODE_LIFETIME: Duration = Duration::from_mins(2);

/// A stored check value of the key in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredCheck {
    value: [u8; 32],
    is_named: bool,
}

impl StoredCheck {
    /// Reads stored bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (value, is_named) = match bytes.split_first() {
            Some((&NAMED_CHECK, rest)) if rest.len() == 32 => (rest, true),
            _ => (bytes, false),
        };
        Some(Self {
            value: value.try_into().ok()?,
            is_named,
        })
    }

    /// Returns the bytes to store.
    pub fn to_bytes(self) -> Vec<u8> {
        let first = self.is_named.then_some(NAMED_CHECK);
        first.into_iter().chain(self.value).collect()
    }

    /// Returns the check value of a key that was never rotated.
    pub fn of_first_key(key: &SecretKeyBytes) -> Self {
        Self {
            value: check_value(key),
            is_named: false,
        }
    }

    /// Returns whether this is the check value of a key.
    pub fn fits(&self, key: &SecretKeyBytes) -> bool {
        super::constant_time_eq(&self.value, &check_value(key))
    }

    /// Returns the id of the key in use.
    pub fn key(&self) -> SecretKeyId {
        SecretKeyId::of_check(&self.value)
    }

    /// Returns whether a new value may be stored: only if it is encrypted with the key in use.
    pub fn admits(&self, sealed: &SealedSecret) -> bool {
        match sealed.key() {
            Some(key) => key == self.key(),
            None => !self.is_named,
        }
    }
}

/// An unfinished rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretKeyRotation {
    /// The old key.
    pub from: SecretKeyId,
    /// When it began.
    pub started_at: Timestamp,
    /// Number of values that were encrypted again.
    pub reencrypted: u64,
}

impl SecretKeyRotation {
    /// Reads stored bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (from, rest) = bytes.split_first_chunk::<{ SecretKeyId::BYTES }>()?;
        let (started_at, rest) = rest.split_first_chunk::<8>()?;
        Some(Self {
            from: SecretKeyId(*from),
            started_at: Timestamp::from_millis(i64::from_be_bytes(*started_at)),
            reencrypted: u64::from_be_bytes(rest.try_into().ok()?),
        })
    }

    /// Returns the bytes to store.
    pub fn to_bytes(self) -> Vec<u8> {
        let started_at = self.started_at.as_millis().to_be_bytes();
        let reencrypted = self.reencrypted.to_be_bytes();
        [&self.from.0[..], &started_at, &reencrypted].concat()
    }
}

/// What a database stores about its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredKeys {
    /// Check value of the key in use; `None` before the first start.
    pub check: Option<StoredCheck>,
    /// The unfinished rotation, if any.
    pub rotation: Option<SecretKeyRotation>,
    /// Derived keys that outlive their secret key, since the first rotation.
    pub kept: Option<SealedSecret>,
}

/// Why the known keys cannot be used with a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyMismatch {
    /// The key in use is not known.
    #[error(
        "secret_key does not match the database; use the key that it was set up with (all nodes of a \
         database share it), or restore the key file. If the key was rotated, set secret_key to the \
         new one, or add it as next_secret_key"
    )]
    Unknown,
    /// A rotation is unfinished, and the old key is not known.
    #[error(
        "a rotation of the secret key is unfinished, and some stored credentials need the old key; \
         set secret_key to the old key and next_secret_key to the new one until `tributary \
         secret-key rotate` is finished"
    )]
    OldKeyMissing,
    /// The kept keys cannot be decrypted.
    #[error(
        "the keys in the database that were kept at a rotation of the secret key are damaged; \
         restore a backup"
    )]
    KeptDamaged,
}

/// Why a rotation cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RotationRefusal {
    /// There is no next key.
    #[error(
        "next_secret_key is not set; run `tributary secret-key generate` for a new key, and give it \
         to all nodes first (docs/OPERATIONS.md, Rotating the secret key)"
    )]
    NoNextKey,
    /// A node does not know the next key.
    #[error(
        "these nodes do not know next_secret_key: {}; set it there and restart them. A node that was \
         stopped counts for 2 minutes",
        .0.join(", ")
    )]
    UninformedNodes(Vec<String>),
}

/// What to do for a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotationStep {
    /// Begin to use the next key.
    Begin,
    /// Encrypt stored values again.
    Continue,
    /// The next key is in use, and nothing is left to do.
    Finished,
}

/// What begins a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotationStart {
    /// Check value that must be stored, so that two commands do not begin.
    pub expected: StoredCheck,
    /// Check value of the new key.
    pub check: StoredCheck,
    /// The rotation.
    pub rotation: SecretKeyRotation,
    /// Keys to keep, encrypted with the new key.
    pub kept: SealedSecret,
}

/// A stored value after an attempt to encrypt it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReencryptedValue {
    /// It is encrypted with the key in use already.
    Current,
    /// The new value.
    Changed(SealedSecret),
    /// No known key decrypts it.
    Unreadable,
}

/// A running node and the keys that it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHolder {
    /// Random id of the process.
    pub id: [u8; 16],
    /// Host name and port, for messages.
    pub name: String,
    /// The keys.
    pub keys: Vec<SecretKeyId>,
    /// When the node last wrote this.
    pub seen_at: Timestamp,
}

impl Keyring {
    /// Creates the keyring for a database from the known keys.
    pub fn for_database(
        known: KnownKeys,
        stored: &StoredKeys,
        now: Timestamp,
    ) -> Result<Self, KeyMismatch> {
        let state = state_for(&known, stored)?;
        let base = known.next.filter(|_| state & NEXT != 0);
        let mut keyring = Self {
            keys: known,
            base: base.unwrap_or(known.current),
            kept: None,
            in_use: Some(Arc::new(AtomicU8::new(state))),
        };
        if let Some(sealed) = &stored.kept {
            let kept = KeptKeys::open(&keyring, sealed).ok_or(KeyMismatch::KeptDamaged)?;
            keyring.kept = Some(Arc::new(kept.without_expired(now)));
        }
        Ok(keyring)
    }

    /// Uses the key that the database names from now on. Returns whether it is another one.
    pub fn follow(&self, stored: &StoredKeys) -> Result<bool, KeyMismatch> {
        let state = state_for(&self.keys, stored)?;
        let in_use = self.in_use.as_ref();
        Ok(in_use.is_some_and(|it| it.swap(state, Ordering::SeqCst) != state))
    }

    /// Returns what to do for a rotation to the next key.
    pub fn rotation_step(
        &self,
        stored: &StoredKeys,
        nodes: &[KeyHolder],
        now: Timestamp,
    ) -> Result<RotationStep, RotationRefusal> {
        let next = self
            .keys
            .next
            .as_ref()
            .filter(|next| **next != self.keys.current);
        let next = next.ok_or(RotationRefusal::NoNextKey)?;
        if stored.rotation.is_some() {
            return Ok(RotationStep::Continue);
        }
        if stored.check.is_some_and(|check| check.fits(next)) {
            return Ok(RotationStep::Finished);
        }
        let next = SecretKeyId::of(next);
        let is_running = |node: &&KeyHolder| node.seen_at.plus(NODE_LIFETIME) > now;
        let nodes = nodes.iter().filter(is_running);
        let uninformed = nodes.filter(|node| !node.keys.contains(&next));
        let names: BTreeSet<String> = uninformed.map(|node| node.name.clone()).collect();
        if names.is_empty() {
            Ok(RotationStep::Begin)
        } else {
            Err(RotationRefusal::UninformedNodes(
                names.into_iter().collect(),
            ))
        }
    }

    /// Returns what begins a rotation from the current key to the next one; `None` without a next
    /// one.
    pub fn begin_rotation(
        &self,
        now: Timestamp,
        nonce: [u8; NONCE_BYTES],
    ) -> Option<RotationStart> {
        let (old, new) = (&self.keys.current, self.keys.next.as_ref()?);
        let named = |key: &SecretKeyBytes, is_named| StoredCheck {
            value: check_value(key),
            is_named,
        };
        let check = named(new, true);
        let before = self.kept.as_deref().cloned().unwrap_or_default();
        let stored = StoredKeys {
            check: Some(check),
            ..StoredKeys::default()
        };
        let renewed = Self::for_database(self.keys, &stored, now).ok()?;
        Some(RotationStart {
            expected: named(old, self.in_use().is_named),
            check,
            rotation: SecretKeyRotation {
                from: SecretKeyId::of(old),
                started_at: now,
                reencrypted: 0,
            },
            kept: before.after(old, now).seal(&renewed, nonce),
        })
    }

    /// Encrypts a stored value again with the key in use.
    pub fn reencrypt(
        &self,
        scope: &[&str],
        nonce: [u8; NONCE_BYTES],
        sealed: &SealedSecret,
    ) -> ReencryptedValue {
        if sealed.key() == Some(SecretKeyId::of(self.in_use().key)) {
            return ReencryptedValue::Current;
        }
        match self.open(scope, sealed) {
            Ok(secret) => ReencryptedValue::Changed(self.seal(scope, nonce, &secret)),
            Err(UnsealError) => ReencryptedValue::Unreadable,
        }
    }
}

/// Returns the state of a keyring that follows the database.
fn state_for(known: &KnownKeys, stored: &StoredKeys) -> Result<u8, KeyMismatch> {
    let Some(check) = &stored.check else {
        return Ok(0);
    };
    let next = known.next.as_ref().is_some_and(|next| check.fits(next));
    if !next && !check.fits(&known.current) {
        return Err(KeyMismatch::Unknown);
    }
    let is_known = |id: SecretKeyId| known.ids().contains(&id);
    if stored
        .rotation
        .is_some_and(|rotation| !is_known(rotation.from))
    {
        return Err(KeyMismatch::OldKeyMissing);
    }
    let named = if check.is_named { NAMED } else { 0 };
    Ok(named | if next { NEXT } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const OLD: SecretKeyBytes = [1; 32];
    const NEW: SecretKeyBytes = [2; 32];
    const BOTH: KnownKeys = KnownKeys {
        current: OLD,
        next: Some(NEW),
    };
    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
    const SCOPE: &[&str] = &["org_1", "app_1", "network_a", "accessToken"];

    const fn only(current: SecretKeyBytes) -> KnownKeys {
        KnownKeys {
            current,
            next: None,
        }
    }

    /// A database before, during and after its first rotation.
    fn databases() -> [StoredKeys; 3] {
        let before = StoredKeys {
            check: Some(StoredCheck::of_first_key(&OLD)),
            ..StoredKeys::default()
        };
        let keyring = Keyring::for_database(BOTH, &before, NOW).unwrap();
        let start = keyring.begin_rotation(NOW, [9; NONCE_BYTES]).unwrap();
        assert_eq!(Some(start.expected), before.check);
        let during = StoredKeys {
            check: Some(start.check),
            rotation: Some(start.rotation),
            kept: Some(start.kept),
        };
        let after = StoredKeys {
            rotation: None,
            ..during.clone()
        };
        [before, during, after]
    }

    #[rstest]
    #[case::old_only(only(OLD), [Ok(()), Err(KeyMismatch::Unknown), Err(KeyMismatch::Unknown)])]
    #[case::new_only(only(NEW), [Err(KeyMismatch::Unknown), Err(KeyMismatch::OldKeyMissing), Ok(())])]
    #[case::both(BOTH, [Ok(()), Ok(()), Ok(())])]
    #[case::neither(only([3; 32]), [Err(KeyMismatch::Unknown); 3])]
    fn a_node_starts_only_with_the_keys_that_it_needs(
        #[case] known: KnownKeys,
        #[case] expected: [Result<(), KeyMismatch>; 3],
    ) {
        for (database, expected) in databases().iter().zip(expected) {
            let opened = Keyring::for_database(known, database, NOW);
            assert_eq!(opened.map(drop), expected, "{database:?}");
        }
    }

    #[test]
    fn a_node_with_both_keys_writes_with_the_new_one_from_the_recorded_point_on() {
        let [before, during, after] = databases();
        let check = |stored: &StoredKeys| stored.check.unwrap();
        let node = Keyring::for_database(BOTH, &before, NOW).unwrap();
        let clone = node.clone();
        let old = node.seal(SCOPE, [5; NONCE_BYTES], b"token");
        assert!(check(&before).admits(&old) && !check(&during).admits(&old));
        assert_eq!(node.follow(&before), Ok(false));
        assert_eq!(node.follow(&during), Ok(true));
        assert_eq!(node.follow(&after), Ok(false));
        let new = clone.seal(SCOPE, [6; NONCE_BYTES], b"token");
        assert!(check(&during).admits(&new) && !check(&before).admits(&new));
        for sealed in [&old, &new] {
            assert_eq!(
                clone.open(SCOPE, sealed).as_deref(),
                Ok(b"token".as_slice())
            );
        }
        let again = |sealed| clone.reencrypt(SCOPE, [7; NONCE_BYTES], sealed);
        let ReencryptedValue::Changed(resealed) = again(&old) else {
            panic!("the old value is readable")
        };
        assert_eq!(again(&resealed), ReencryptedValue::Current);
        let foreign = Keyring::new([3; 32]).seal(SCOPE, [5; NONCE_BYTES], b"token");
        assert_eq!(again(&foreign), ReencryptedValue::Unreadable);
        let renewed = Keyring::for_database(only(NEW), &after, NOW).unwrap();
        for (sealed, readable) in [(&old, false), (&new, true), (&resealed, true)] {
            assert_eq!(renewed.open(SCOPE, sealed).is_ok(), readable);
            assert_eq!(Keyring::new(OLD).open(SCOPE, sealed).is_ok(), !readable);
        }
        let uninformed = Keyring::for_database(only(OLD), &before, NOW).unwrap();
        assert_eq!(uninformed.follow(&during), Err(KeyMismatch::Unknown));
    }

    #[test]
    fn signed_values_survive_a_rotation() {
        use crate::click::token::ClickTokens;
        use crate::vocabulary::digest::Digest;
        use crate::vocabulary::id::{AppId, ClickId};
        let [before, during, after] = databases();
        let (app, click) = (AppId::from_bytes([1; 16]), ClickId::from_bytes([2; 16]));
        let (session, node) = (Digest::of(b"s"), Keyring::for_database(BOTH, &before, NOW));
        let node = node.unwrap();
        let tokens = ClickTokens::new(&node);
        let (first_click, first_form) = (tokens.sign(app, click), node.form_token(session));
        node.follow(&during).unwrap();
        let (second_click, second_form) = (tokens.sign(app, click), node.form_token(session));
        assert_ne!(first_click, second_click);
        assert_ne!(first_form, second_form);
        let renewed = Keyring::for_database(only(NEW), &after, NOW).unwrap();
        for (keyring, accepts_old_forms) in [(&node, true), (&renewed, false)] {
            let tokens = ClickTokens::new(keyring);
            assert!(
                tokens.verify(&first_click).is_some() && tokens.verify(&second_click).is_some()
            );
            assert_eq!(
                keyring.is_form_token(session, &first_form),
                accepts_old_forms
            );
            assert!(keyring.is_form_token(session, &second_form));
            let hash = |keyring: &Keyring| keyring.tag(super::super::Purpose::Address, &[b"x"]);
            assert_eq!(hash(keyring), hash(&Keyring::new(OLD)));
        }
        let forged = ClickTokens::new(&Keyring::new([3; 32])).sign(app, click);
        assert_eq!(ClickTokens::new(&renewed).verify(&forged), None);
        let much_later = NOW.plus(Duration::from_hours(401 * 24));
        let renewed = Keyring::for_database(only(NEW), &after, much_later).unwrap();
        assert_eq!(ClickTokens::new(&renewed).verify(&first_click), None);
    }

    #[rstest]
    #[case::none_runs(&[], &[])]
    #[case::informed(&[(true, 1)], &[])]
    #[case::one_uninformed(&[(true, 1), (false, 1)], &["node-1"])]
    #[case::stopped_long_ago(&[(false, 121)], &[])]
    #[case::stopped_recently(&[(false, 119)], &["node-0"])]
    fn a_rotation_begins_when_all_nodes_know_the_next_key(
        #[case] nodes: &[(bool, u64)],
        #[case] uninformed: &[&str],
    ) {
        let holder = |(index, (is_informed, seconds)): (usize, &(bool, u64))| KeyHolder {
            id: [0; 16],
            name: format!("node-{index}"),
            keys: if *is_informed {
                BOTH.ids()
            } else {
                only(OLD).ids()
            },
            seen_at: NOW.minus(Duration::from_secs(*seconds)),
        };
        let nodes: Vec<KeyHolder> = nodes.iter().enumerate().map(holder).collect();
        let names: Vec<String> = uninformed.iter().map(|&name| name.to_owned()).collect();
        let expected = if names.is_empty() {
            Ok(RotationStep::Begin)
        } else {
            Err(RotationRefusal::UninformedNodes(names))
        };
        let [before, during, after] = databases();
        let keyring = Keyring::for_database(BOTH, &before, NOW).unwrap();
        assert_eq!(keyring.rotation_step(&before, &nodes, NOW), expected);
        let step = |stored| keyring.rotation_step(stored, &nodes, NOW);
        assert_eq!(step(&during), Ok(RotationStep::Continue));
        assert_eq!(step(&after), Ok(RotationStep::Finished));
        let alone = Keyring::new(OLD).rotation_step(&before, &[], NOW);
        assert_eq!(alone, Err(RotationRefusal::NoNextKey));
    }

    #[test]
    fn stored_records_are_read_back() {
        let [before, during, _] = databases();
        for stored in [before, during] {
            let check = stored.check.unwrap();
            assert_eq!(StoredCheck::from_bytes(&check.to_bytes()), Some(check));
        }
        let rotation = SecretKeyRotation {
            from: SecretKeyId::of(&OLD),
            started_at: NOW,
            reencrypted: 7,
        };
        assert_eq!(
            SecretKeyRotation::from_bytes(&rotation.to_bytes()),
            Some(rotation)
        );
        assert_eq!(SecretKeyRotation::from_bytes(&[0; 23]), None);
        assert_eq!(StoredCheck::from_bytes(&[1; 33]), None);
        assert_eq!(StoredCheck::from_bytes(&[]), None);
    }
}
