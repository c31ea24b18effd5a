//! API keys.

use crate::tables::Tables;
use std::collections::BTreeSet;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::key_management::{
    KEYS_MAX, KeyManager, KeyRotation, OwnedKeys, check_expiry, keys_of_changed_member,
};
use tributary_domain::access::person::{Role, User};
use tributary_domain::access::{Actor, AnalyticsRead, AppsRead, Authorized};
use tributary_domain::audit::{Action, AuditContext, FieldChange};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::id::{KeyId, OrganizationId, UserId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::audit_row;
use tributary_store::{KeyFilter, NewKey};

/// Number of keys as a limit of rows.
const KEYS_ROWS_MAX: i64 = KEYS_MAX.cast_signed() as i64;

/// Locks the organization's members, so that no key of a member appears while the member is removed,
/// and returns what the actor may do.
async fn key_manager<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    origin: &AuditContext,
) -> Result<KeyManager, T::Failure> {
    let members = tables.lock_members(organization).await?;
    let own = match &origin.actor {
        Actor::Key(key) => tables.lock_key(*key).await?,
        _ => None,
    };
    let own = own.filter(|key| key.organization == organization);
    Ok(KeyManager::of(&origin.actor, &members, own, origin.at)?)
}

/// Rejects a further key of an organization that has as many valid keys as it may have.
async fn require_room<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    now: Timestamp,
) -> Result<(), T::Failure> {
    let valid = tables.organization_keys(organization, Some(now), None, KEYS_ROWS_MAX);
    if valid.await?.len() >= KEYS_MAX {
        return Err(Refusal::TooManyKeys.into());
    }
    Ok(())
}

/// Stores a key. Returns it with its creator and owner.
pub async fn create_key<T: Tables>(
    tables: &T,
    new: &NewKey,
    origin: &AuditContext,
) -> Result<ApiKey, T::Failure> {
    let organization = new.key.organization;
    let manager = key_manager(tables, organization, origin).await?;
    manager.check_created(&new.key)?;
    require_valid(tables, &new.key, origin.at).await?;
    require_room(tables, organization, origin.at).await?;
    let mut new = new.clone();
    new.key.created_by = Some(origin.actor.clone());
    new.key.owner = manager.owner();
    insert_key(tables, &new, origin).await?;
    Ok(new.key)
}

/// Rejects a key with an expiry out of range or with apps that the organization does not have.
async fn require_valid<T: Tables>(
    tables: &T,
    key: &ApiKey,
    now: Timestamp,
) -> Result<(), T::Failure> {
    let mut faults = Faults::new();
    faults.check("expiresAt", check_expiry(key.expires_at, now));
    for app in key.limits.apps.apps().into_iter().flatten() {
        if !tables.has_app(key.organization, app).await? {
            let message = "Must be apps of the organization; see GET /api/v1/apps.";
            faults.add("apps", Problem::new(FaultCode::UnknownValue, message));
            break;
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Refusal::Invalid(faults).into())
    }
}

/// Stores a key and its audit entry.
pub(super) async fn insert_key<T: Tables>(
    tables: &T,
    new: &NewKey,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.insert_key(new).await?;
    let changes = new.key.creation_changes();
    audit(tables, &new.key, Action::KeyCreated, &changes, origin).await
}

async fn audit<T: Tables>(
    tables: &T,
    key: &ApiKey,
    action: Action,
    changes: &[FieldChange],
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let row = audit_row(key.organization, origin, action, None, key.id, changes);
    tables.insert_audit(&row).await
}

/// Revokes a key. Returns the updated key.
pub async fn revoke_key<T: Tables>(
    tables: &T,
    key: KeyId,
    origin: &AuditContext,
) -> Result<ApiKey, T::Failure> {
    let found = tables.lock_key(key).await?;
    revoke(tables, found.ok_or(Refusal::KeyNotFound)?, origin).await
}

async fn revoke<T: Tables>(
    tables: &T,
    mut key: ApiKey,
    origin: &AuditContext,
) -> Result<ApiKey, T::Failure> {
    if key.revoke(origin.at) {
        tables.write_key(&key).await?;
        audit(tables, &key, Action::KeyRevoked, &[], origin).await?;
    }
    Ok(key)
}

/// Locks a key of the organization that the actor may manage.
async fn lock_managed<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    key: KeyId,
    manager: &KeyManager,
) -> Result<ApiKey, T::Failure> {
    let found = tables.lock_key(key).await?;
    let found = found.filter(|found| found.organization == organization);
    let found = found.ok_or(Refusal::KeyNotFound)?;
    manager.check_managed(&found)?;
    Ok(found)
}

/// Revokes a key that the actor may manage. Returns the updated key.
pub async fn revoke_managed_key<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    key: KeyId,
    origin: &AuditContext,
) -> Result<ApiKey, T::Failure> {
    let manager = key_manager(tables, organization, origin).await?;
    let found = lock_managed(tables, organization, key, &manager).await?;
    revoke(tables, found, origin).await
}

/// Replaces a key by a successor. Returns the successor.
pub async fn rotate_key<T: Tables>(
    tables: &T,
    (organization, key): (OrganizationId, KeyId),
    rotation: &KeyRotation,
    digest: Digest,
    origin: &AuditContext,
) -> Result<ApiKey, T::Failure> {
    let manager = key_manager(tables, organization, origin).await?;
    let mut old = lock_managed(tables, organization, key, &manager).await?;
    let before = old.expires_at;
    let new = old.rotate(rotation, &origin.actor, manager.owner(), origin.at)?;
    manager.check_created(&new)?;
    require_valid(tables, &new, origin.at).await?;
    require_room(tables, organization, origin.at).await?;
    tables.write_key(&old).await?;
    let successor = NewKey { key: new, digest };
    tables.insert_key(&successor).await?;
    let changes = old.rotation_changes(before);
    audit(tables, &old, Action::KeyRotated, &changes, origin).await?;
    let created = successor.key.creation_changes();
    let following = origin.following();
    let action = Action::KeyCreated;
    audit(tables, &successor.key, action, &created, &following).await?;
    Ok(successor.key)
}

/// Makes the acting member the owner of a key.
pub async fn take_over_key<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    key: KeyId,
    origin: &AuditContext,
) -> Result<ApiKey, T::Failure> {
    let manager = key_manager(tables, organization, origin).await?;
    let KeyManager::Member(member) = &manager else {
        return Err(Refusal::KeyManagerInvalid.into());
    };
    let mut found = lock_managed(tables, organization, key, &manager).await?;
    let changes = found.take_over(member.id, origin.at)?;
    if !changes.is_empty() {
        tables.write_key(&found).await?;
        audit(tables, &found, Action::KeyTakenOver, &changes, origin).await?;
    }
    Ok(found)
}

/// Changes the keys of a member whose role changes or who is removed (`role` is `None`). The members
/// are locked. Returns the keys, whose audit entries [`audit_owned_keys`] writes last.
pub(super) async fn change_owned_keys<T: Tables>(
    tables: &T,
    members: &[User],
    (member, role): (UserId, Option<Role>),
    wanted: &BTreeSet<KeyId>,
    (organization, origin): (OrganizationId, &AuditContext),
) -> Result<OwnedKeys, T::Failure> {
    let valid = tables.organization_keys(organization, Some(origin.at), None, KEYS_ROWS_MAX);
    let mut keys = Vec::new();
    // Newest first, so always in the same order.
    for key in valid.await? {
        if key.owner == Some(member) {
            // Read again after the lock: another transaction may have revoked the key.
            keys.extend(tables.lock_key(key.id).await?);
        }
    }
    let by = members
        .iter()
        .find(|one| Actor::User(one.id) == origin.actor);
    let mut owned = keys_of_changed_member(keys, (member, role), (by, wanted), origin.at);
    for key in &mut owned.revoked {
        key.revoke(origin.at);
        tables.write_key(key).await?;
    }
    for (key, _) in &owned.taken_over {
        tables.write_key(key).await?;
    }
    Ok(owned)
}

/// Writes the audit entries of a member's keys, after the entry of the member's change. Returns the
/// context of the next entry about the same change.
pub(super) async fn audit_owned_keys<T: Tables>(
    tables: &T,
    owned: &OwnedKeys,
    origin: &AuditContext,
) -> Result<AuditContext, T::Failure> {
    let mut origin = origin.following();
    for key in &owned.revoked {
        audit(tables, key, Action::KeyRevoked, &[], &origin).await?;
        origin = origin.following();
    }
    for (key, changes) in &owned.taken_over {
        audit(tables, key, Action::KeyTakenOver, changes, &origin).await?;
        origin = origin.following();
    }
    Ok(origin)
}

/// Lists the keys that a caller sees.
pub async fn key_page<T: Tables>(
    tables: &T,
    caller: &Authorized<AppsRead>,
    filter: KeyFilter,
    page: PageRequest,
) -> Result<Page<ApiKey>, T::Failure> {
    let organization = caller.organization_and_apps().0;
    let (mut found, mut before) = (Vec::new(), page.before);
    while found.len() <= page.limit.items() {
        let keys = tables
            .organization_keys(organization, filter.valid_at, before, page.limit.rows())
            .await?;
        let Some(last) = keys.last() else {
            break;
        };
        before = Some(*last.id.as_bytes());
        let is_shown = |key: &ApiKey| {
            caller.sees_key(key) && filter.owner.is_none_or(|owner| key.owner == Some(owner))
        };
        found.extend(keys.into_iter().filter(is_shown));
    }
    Ok(Page::from_rows(found, page.limit))
}

/// Lists the valid keys that a member owns.
pub async fn own_keys<T: Tables>(
    tables: &T,
    caller: &Authorized<AnalyticsRead>,
    now: Timestamp,
) -> Result<Vec<ApiKey>, T::Failure> {
    let Actor::User(owner) = *caller.actor() else {
        return Ok(Vec::new());
    };
    let organization = caller.organization_and_apps().0;
    let valid = tables.organization_keys(organization, Some(now), None, KEYS_ROWS_MAX);
    let mut keys = valid.await?;
    keys.retain(|key| key.owner == Some(owner));
    Ok(keys)
}

/// Returns a key that a caller sees.
pub async fn find_key<T: Tables>(
    tables: &T,
    caller: &Authorized<AppsRead>,
    key: KeyId,
) -> Result<ApiKey, T::Failure> {
    // The keys before the following id start with this key.
    let organization = caller.organization_and_apps().0;
    let before = Some(*key.following().as_bytes());
    let found = tables.organization_keys(organization, None, before, 1);
    let mut found = found.await?.into_iter();
    let found = found.find(|found| found.id == key && caller.sees_key(found));
    Ok(found.ok_or(Refusal::KeyNotFound)?)
}
