//! An organization's members.

use crate::tables::Tables;
use tributary_domain::access::person::{Role, User, change_member};
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
use tributary_store::records::audit_row;

/// Changes a member's role. Locks all members, because the last owner must stay an owner.
pub async fn change_member_role<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    member: UserId,
    role: Role,
    origin: &AuditContext,
) -> Result<User, T::Failure> {
    let members = tables.lock_members(organization).await?;
    let (user, changes) = change_member(&members, member, Some(role))?;
    if !changes.is_empty() {
        tables.write_role(member, role).await?;
        let action = Action::UserUpdated;
        let row = audit_row(organization, origin, action, None, member, &changes);
        tables.insert_audit(&row).await?;
    }
    Ok(user)
}

/// Removes a member.
pub async fn remove_member<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    member: UserId,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let members = tables.lock_members(organization).await?;
    let (_, changes) = change_member(&members, member, None)?;
    tables.remove_user(member).await?;
    let action = Action::UserRemoved;
    let row = audit_row(organization, origin, action, None, member, &changes);
    tables.insert_audit(&row).await
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
