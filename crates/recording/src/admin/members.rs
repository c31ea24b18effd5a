//! An organization's members.

use super::accounts::audit_withdrawn;
use super::keys::{audit_owned_keys, change_owned_keys};
use super::notices::{audit_notices, change_owned_notices};
use super::single_sign_on::end_password_sessions;
use crate::tables::Tables;
use std::collections::BTreeSet;
use tributary_domain::access::key_management::OwnedKeys;
use tributary_domain::access::person::{Role, User, answering_member, change_member};
use tributary_domain::access::single_sign_on::{allows_password, removed_member};
use tributary_domain::access::{Actor, ScopeName};
use tributary_domain::app::AuditedChange;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::notice::Notice;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{KeyId, OrganizationId, UserId};
use tributary_store::TakeOver;
use tributary_store::records::audit_row;

/// Changes a member's role, revokes the keys that exceed it, and withdraws invitations of a member who
/// may no longer invite. Locks all members, because the last owner
/// must stay an owner.
pub async fn change_member_role<T: Tables>(
    tables: &T,
    (organization, member): (OrganizationId, UserId),
    role: Role,
    take_over: &BTreeSet<KeyId>,
    origin: &AuditContext,
) -> Result<User, T::Failure> {
    let members = tables.lock_members(organization).await?;
    let (user, changes) = change_member(&members, member, Some(role))?;
    if !changes.is_empty() {
        tables.write_role(member, role).await?;
        // A former owner may have signed in with a password that only owners may use.
        let settings = tables.single_sign_on(organization).await?;
        if !allows_password(role, settings.as_ref()) {
            end_password_sessions(tables, organization).await?;
        }
        let (of, role) = ((organization, origin), Some(role));
        let keys = change_owned_keys(tables, &members, (member, role), take_over, of).await?;
        let withdrawn = withdraw_lost_links(tables, &user, role, origin).await?;
        let action = Action::UserUpdated;
        let row = audit_row(organization, origin, action, None, member, &changes);
        tables.insert_audit(&row).await?;
        let origin = audit_owned_keys(tables, &keys, origin).await?;
        audit_withdrawn(tables, &withdrawn, &origin).await?;
    }
    Ok(user)
}

/// Removes a member with their keys and notices, and withdraws the invitations with which they could
/// come back.
pub async fn remove_member<T: Tables>(
    tables: &T,
    (organization, member): (OrganizationId, UserId),
    take_over: &TakeOver,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let members = tables.lock_members(organization).await?;
    let (user, changes) = change_member(&members, member, None)?;
    let lost = remove_for_good(tables, &members, &user, take_over, origin).await?;
    let action = Action::UserRemoved;
    let row = audit_row(organization, origin, action, None, member, &changes);
    tables.insert_audit(&row).await?;
    let origin = audit_lost(tables, organization, &lost, origin).await?;
    audit_withdrawn(tables, &lost.withdrawn, &origin).await?;
    Ok(())
}

/// Locks the organization's members, so that nothing of a member appears while the member is removed,
/// and returns the member who answers for what the actor creates.
pub(super) async fn lock_answering_member<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    scope: ScopeName,
    origin: &AuditContext,
) -> Result<Option<UserId>, T::Failure> {
    let members = tables.lock_members(organization).await?;
    let key = match &origin.actor {
        Actor::Key(key) => tables.lock_key(*key).await?,
        _ => None,
    };
    let granted = (scope, origin.at);
    Ok(answering_member(
        &origin.actor,
        &members,
        key.as_ref(),
        granted,
    )?)
}

/// Withdraws the setup links that a member loses who is removed (`role` is `None`) or gets another
/// role. Returns the organization of each, for the audit log.
async fn withdraw_lost_links<T: Tables>(
    tables: &T,
    user: &User,
    role: Option<Role>,
    origin: &AuditContext,
) -> Result<Vec<OrganizationId>, T::Failure> {
    let organization = user.organization;
    tables.lock_setup_links(organization).await?;
    let mut withdrawn = Vec::new();
    for invitation in tables.unused_setup_links(organization).await? {
        let is_lost = invitation.link.is_lost(user, role);
        let digest = invitation.digest;
        if is_lost
            && tables
                .withdraw_setup_link(organization, digest, origin.at)
                .await?
        {
            withdrawn.push(organization);
        }
    }
    Ok(withdrawn)
}

/// Ends all sessions of a member. Returns how many it ended.
pub async fn end_member_sessions<T: Tables>(
    tables: &T,
    (organization, member): (OrganizationId, UserId),
    origin: &AuditContext,
) -> Result<u64, T::Failure> {
    let members = tables.lock_members(organization).await?;
    if !members.iter().any(|one| one.id == member) {
        return Err(Refusal::MemberNotFound.into());
    }
    let ended = tables.remove_sessions(member).await?;
    if ended > 0 {
        let action = Action::UserSessionsEnded;
        let row = audit_row(organization, origin, action, None, member, &[]);
        tables.insert_audit(&row).await?;
    }
    Ok(ended)
}

/// What a removed member lost.
pub(super) struct LostAccess {
    keys: OwnedKeys,
    notices: Vec<AuditedChange<Notice>>,
    /// Organization of each withdrawn setup link.
    pub(super) withdrawn: Vec<OrganizationId>,
}

/// Removes a member with everything that gives access or sends data. The members are locked. The
/// organization's provider does not let the member in again, until another member invites them.
pub(super) async fn remove_for_good<T: Tables>(
    tables: &T,
    members: &[User],
    user: &User,
    take_over: &TakeOver,
    origin: &AuditContext,
) -> Result<LostAccess, T::Failure> {
    let (of, id) = ((user.organization, origin), user.id);
    let lost = LostAccess {
        keys: change_owned_keys(tables, members, (id, None), &take_over.keys, of).await?,
        notices: change_owned_notices(tables, members, id, &take_over.notices, of).await?,
        withdrawn: withdraw_lost_links(tables, user, None, origin).await?,
    };
    let digest = removed_member(user.organization, &user.email);
    tables.mark_removed(digest, origin.at).await?;
    tables.release_identities(user.id).await?;
    tables.remove_user(user.id).await?;
    Ok(lost)
}

/// Writes the audit entries of a removed member's keys and notices, after the entry of the removal.
/// Returns the context of the next entry.
pub(super) async fn audit_lost<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    lost: &LostAccess,
    origin: &AuditContext,
) -> Result<AuditContext, T::Failure> {
    let origin = audit_owned_keys(tables, &lost.keys, origin).await?;
    audit_notices(tables, organization, &lost.notices, &origin).await
}

/// Withdraws an unused invitation.
pub async fn withdraw_invitation<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    invitation: Digest,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let withdrawn = tables
        .withdraw_setup_link(organization, invitation, origin.at)
        .await?;
    if withdrawn {
        let action = Action::SetupLinkRevoked;
        let row = audit_row(organization, origin, action, None, organization, &[]);
        tables.insert_audit(&row).await?;
    }
    Ok(())
}
