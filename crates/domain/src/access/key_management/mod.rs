//! Who may create, rotate and revoke which API key, and which keys a member loses.
//!
//! A key never does more than its creator may: a key creates and rotates only keys that it covers,
//! and a member only keys that the member's role covers. Every key has an owner, the member who
//! answers for it. A key that another key creates belongs to the same owner, so that removing the
//! owner ends all of them.

use super::key::ApiKey;
use super::person::{Role, User};
use super::{Actor, Authorized, Environment, Permission, ScopeName};
use crate::audit::{Changes, FieldChange};
use crate::refusal::Refusal;
use crate::vocabulary::change::Change;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::id::{KeyId, UserId};
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of an organization's valid keys. More than a team can keep track of, and few
/// enough to list them all when a member leaves.
pub const KEYS_MAX: usize = 500;
/// Longest life of a key that expires. For a longer life, create a key without an expiry.
pub const KEY_DAYS_MAX: u32 = 3_650;
/// How long a rotated key stays valid if the request does not say otherwise: long enough to deploy
/// its successor.
pub const KEY_OVERLAP_HOURS_DEFAULT: u32 = 24;
/// Longest time that a rotated key stays valid. A rotation that takes more than a release cycle is
/// not finished.
pub const KEY_OVERLAP_HOURS_MAX: u32 = 30 * 24;

impl Permission {
    /// Returns whether the permission grants every scope that another one grants.
    pub fn covers(self, other: Self) -> bool {
        let mut scopes = ScopeName::ALL.iter();
        scopes.all(|scope| !other.grants(*scope) || self.grants(*scope))
    }
}

impl Role {
    /// Returns whether the role grants every scope that a key's permission grants.
    pub fn covers(self, permission: Permission) -> bool {
        let mut scopes = ScopeName::ALL.iter();
        scopes.all(|scope| !permission.grants(*scope) || self.grants(*scope))
    }
}

impl Environment {
    /// Returns whether a key of this environment may manage keys of another one. Test keys are
    /// handed out more freely than live keys.
    const fn manages(self, other: Self) -> bool {
        matches!((self, other), (Self::Live, _) | (Self::Test, Self::Test))
    }
}

impl<S> Authorized<S> {
    /// Returns whether a list of the organization's keys shows a key to this caller. A caller that
    /// is limited to apps sees the keys that are limited to some of these apps.
    pub fn sees_key(&self, key: &ApiKey) -> bool {
        self.organization == key.organization
            && self.environment.manages(key.environment)
            && self.apps.covers(&key.limits.apps)
    }
}

/// Who manages a key, with the facts of the transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyManager {
    /// The command line, which may do everything.
    Operator,
    /// A member of the organization.
    Member(User),
    /// Another key, or the key itself.
    Key(Box<ApiKey>),
}

impl KeyManager {
    /// Checks that an actor may manage keys of the organization. `members` are the organization's,
    /// `key` is the acting key.
    pub fn of(
        actor: &Actor,
        members: &[User],
        key: Option<ApiKey>,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        match actor {
            Actor::Operator => Ok(Self::Operator),
            Actor::User(id) => {
                let member = members.iter().find(|one| one.id == *id);
                let member = member.filter(|one| one.role.grants(ScopeName::KeysWrite));
                let member = member.ok_or(Refusal::KeyManagerInvalid)?;
                Ok(Self::Member(member.clone()))
            }
            Actor::Key(_) => {
                let key = key
                    .filter(|key| key.is_valid(now) && key.permission.grants(ScopeName::KeysWrite));
                let key = key.ok_or(Refusal::KeyManagerInvalid)?;
                Ok(Self::Key(Box::new(key)))
            }
            Actor::DeviceUser | Actor::Service => Err(Refusal::KeyManagerInvalid),
        }
    }

    /// Returns the owner of the keys that this manager creates.
    pub fn owner(&self) -> Option<UserId> {
        match self {
            Self::Operator => None,
            Self::Member(member) => Some(member.id),
            Self::Key(key) => key.owner,
        }
    }

    /// Checks that the manager may revoke or rotate a key. Keys that it does not see are not found.
    pub fn check_managed(&self, key: &ApiKey) -> Result<(), Refusal> {
        if let Self::Key(own) = self
            && !(own.organization == key.organization
                && own.environment.manages(key.environment)
                && own.limits.apps.covers(&key.limits.apps))
        {
            return Err(Refusal::KeyNotFound);
        }
        refuse(self.excess(key))
    }

    /// Checks that the manager may create a key: the key can do no more and lives no longer.
    pub fn check_created(&self, key: &ApiKey) -> Result<(), Refusal> {
        let mut faults = self.excess(key);
        if let Self::Key(own) = self
            && let Some(end) = own.expires_at
            && key.expires_at.is_none_or(|expiry| expiry > end)
        {
            let message = "Must not be later than the expiry of the key that makes the request.";
            faults.add("expiresAt", Problem::new(FaultCode::NotAllowed, message));
        }
        refuse(faults)
    }

    /// Returns what a key can do that its manager cannot.
    fn excess(&self, key: &ApiKey) -> Faults {
        let mut faults = Faults::new();
        let mut check = |field: &str, is_covered: bool, message: &str| {
            if !is_covered {
                faults.add(field, Problem::new(FaultCode::NotAllowed, message));
            }
        };
        match self {
            Self::Operator => {}
            Self::Member(member) => check(
                "permission",
                member.role.covers(key.permission),
                "Must not exceed your role.",
            ),
            Self::Key(own) => {
                check(
                    "permission",
                    own.permission.covers(key.permission),
                    "Must not exceed the key that makes the request.",
                );
                check(
                    "environment",
                    own.environment.manages(key.environment),
                    "Must be test, because the key that makes the request is a test key.",
                );
                check(
                    "apps",
                    own.limits.apps.covers(&key.limits.apps),
                    "Must be apps that the key that makes the request may access.",
                );
                check(
                    "addresses",
                    own.limits.addresses.covers(&key.limits.addresses),
                    "Must be within the addresses that may use the key that makes the request.",
                );
            }
        }
        faults
    }
}

fn refuse(faults: Faults) -> Result<(), Refusal> {
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Refusal::KeyExceedsManager(faults))
    }
}

/// Checks the expiry of a new key.
pub fn check_expiry(expires_at: Option<Timestamp>, now: Timestamp) -> Result<(), Problem> {
    let latest = now.plus(Duration::from_hours(24 * u64::from(KEY_DAYS_MAX)));
    if expires_at.is_some_and(|end| end <= now || end > latest) {
        let message = "Must be in the future, and at most ten years from now.";
        return Err(Problem::new(FaultCode::OutOfRange, message));
    }
    Ok(())
}

impl ApiKey {
    /// Returns the audit log fields of a rotated key, whose expiry was `before`. Times are in
    /// milliseconds since the epoch.
    pub fn rotation_changes(&self, before: Option<Timestamp>) -> Vec<FieldChange> {
        let mut changes = Changes::new();
        changes.initial("successor", self.successor.map(|key| key.to_string()));
        let text = |end: Timestamp| end.as_millis().to_string();
        changes.compare("expiresAt", before.map(text), self.expires_at.map(text));
        changes.into_vec()
    }
}

/// A request to replace a key by a successor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRotation {
    /// Id of the successor.
    pub successor: KeyId,
    /// Last four characters of the successor.
    pub hint: String,
    /// How long the old key stays valid.
    pub overlap: Duration,
    /// Expiry of the successor; by default that of the old key.
    pub expiry: Change<Timestamp>,
}

impl ApiKey {
    /// Replaces the key by a successor with the same permission and limits, and lets it expire after
    /// the overlap. A key that has ended stays ended, and an earlier expiry stays.
    pub fn rotate(
        &mut self,
        rotation: &KeyRotation,
        actor: &Actor,
        owner: Option<UserId>,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        if !self.is_valid(now) {
            return Err(Refusal::KeyEnded);
        }
        if self.successor.is_some() {
            return Err(Refusal::KeyRotated);
        }
        let mut successor = Self {
            id: rotation.successor,
            hint: rotation.hint.clone(),
            created_at: now,
            created_by: Some(actor.clone()),
            owner,
            last_used_at: None,
            last_used_from: None,
            ..self.clone()
        };
        rotation
            .expiry
            .clone()
            .apply_optional(&mut successor.expires_at);
        let end = now.plus(rotation.overlap);
        self.expires_at = Some(self.expires_at.map_or(end, |expiry| expiry.min(end)));
        self.successor = Some(successor.id);
        Ok(successor)
    }

    /// Makes a member the owner. Returns the audit log fields; none if the member is the owner
    /// already. A key that has ended keeps its owner.
    pub fn take_over(
        &mut self,
        owner: UserId,
        now: Timestamp,
    ) -> Result<Vec<FieldChange>, Refusal> {
        if !self.is_valid(now) {
            return Err(Refusal::KeyEnded);
        }
        let before = self.owner.replace(owner);
        let mut changes = Changes::new();
        let text = |owner: UserId| owner.to_string();
        changes.compare("owner", before.map(text), Some(text(owner)));
        Ok(changes.into_vec())
    }
}

/// What happens to the keys of a member who is removed or gets another role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnedKeys {
    /// Keys to revoke.
    pub revoked: Vec<ApiKey>,
    /// Keys that the acting member took over, with the audit log fields.
    pub taken_over: Vec<(ApiKey, Vec<FieldChange>)>,
}

/// Decides about the keys of a member who is removed (`role` is `None`) or gets another role.
/// Removed members lose all keys; others lose those whose permission exceeds the new role. Another
/// member, `by`, takes over the keys in `wanted`, if that member's role covers them.
pub fn keys_of_changed_member(
    keys: Vec<ApiKey>,
    (member, role): (UserId, Option<Role>),
    (by, wanted): (Option<&User>, &BTreeSet<KeyId>),
    now: Timestamp,
) -> OwnedKeys {
    let mut owned = OwnedKeys::default();
    let by = by.filter(|by| by.id != member && by.role.grants(ScopeName::KeysWrite));
    for mut key in keys {
        if !is_lost(&key, member, role, now) {
            continue;
        }
        let heir = by.filter(|by| wanted.contains(&key.id) && by.role.covers(key.permission));
        match heir.map(|by| key.take_over(by.id, now)) {
            Some(Ok(changes)) => owned.taken_over.push((key, changes)),
            Some(Err(_)) | None => owned.revoked.push(key),
        }
    }
    owned
}

/// Returns whether a member loses a key with a new role, or without one if the member is removed.
pub fn is_lost(key: &ApiKey, member: UserId, role: Option<Role>, now: Timestamp) -> bool {
    key.owner == Some(member)
        && key.is_valid(now)
        && role.is_none_or(|role| !role.covers(key.permission))
}

#[cfg(test)]
mod tests;
