//! An organization's members.

use super::accounts::audit_withdrawn;
use super::keys::{audit_owned_keys, change_owned_keys};
use super::single_sign_on::end_password_sessions;
use crate::tables::Tables;
use std::collections::BTreeSet;
use tributary_domain::access::person::{Role, User, change_member};
use tributary_domain::access::single_sign_on::{allows_password, removed_member};
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{KeyId, OrganizationId, UserId};
use tributary_store::records::audit_row;

/// Changes a member's role, and the keys that exceed it. Locks all members, because the last owner
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
        let action = Action::UserUpdated;
        let row = audit_row(organization, origin, action, None, member, &changes);
        tables.insert_audit(&row).await?;
        audit_owned_keys(tables, &keys, origin).await?;
    }
    Ok(user)
}

/// Removes a member, revokes their keys and withdraws other invitations of theirs, with which they
/// could come back.
pub async fn remove_member<T: Tables>(
    tables: &T,
    (organization, member): (OrganizationId, UserId),
    take_over: &BTreeSet<KeyId>,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let members = tables.lock_members(organization).await?;
    let (user, changes) = change_member(&members, member, None)?;
    let of = (organization, origin);
    let keys = change_owned_keys(tables, &members, (member, None), take_over, of).await?;
    remove_for_good(tables, &user, origin).await?;
    tables.lock_setup_links(organization).await?;
    let withdrawn = tables
        .withdraw_setup_links(&user.email, Some(organization), origin.at)
        .await?;
    let action = Action::UserRemoved;
    let row = audit_row(organization, origin, action, None, member, &changes);
    tables.insert_audit(&row).await?;
    let origin = audit_owned_keys(tables, &keys, origin).await?;
    audit_withdrawn(tables, &withdrawn, &origin).await?;
    Ok(())
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

/// Removes a member. The organization's provider does not let them in again, until somebody invites
/// them.
pub(super) async fn remove_for_good<T: Tables>(
    tables: &T,
    user: &User,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let digest = removed_member(user.organization, &user.email);
    tables.mark_removed(digest, origin.at).await?;
    tables.release_identities(user.id).await?;
    tables.remove_user(user.id).await
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
