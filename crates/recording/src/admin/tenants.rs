//! Organizations and their setup links.

use super::factors::store_factor;
use super::keys::insert_key;
use super::members::lock_answering_member;
use crate::tables::Tables;
use tributary_domain::access::person::User;
use tributary_domain::access::single_sign_on::removed_member;
use tributary_domain::access::{Actor, ScopeName};
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_store::records::audit_row;
use tributary_store::{NewSetupLink, Organization, Redemption};

/// Creates an organization.
pub async fn create_organization<T: Tables>(
    tables: &T,
    organization: &Organization,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.mark_first_organization(organization).await?;
    insert_organization(tables, organization, origin).await
}

/// Creates the first organization. Returns false when one exists already.
pub async fn create_first_organization<T: Tables>(
    tables: &T,
    organization: &Organization,
    origin: &AuditContext,
) -> Result<bool, T::Failure> {
    if !tables.mark_first_organization(organization).await? {
        return Ok(false);
    }
    insert_organization(tables, organization, origin).await?;
    Ok(true)
}

async fn insert_organization<T: Tables>(
    tables: &T,
    organization: &Organization,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.insert_organization(organization).await?;
    let (id, action) = (organization.id, Action::OrganizationCreated);
    let row = audit_row(
        id,
        origin,
        action,
        None,
        id,
        &organization.creation_changes(),
    );
    tables.insert_audit(&row).await
}

/// Stores a setup link. A new link for the first owner invalidates earlier ones.
pub async fn create_setup_link<T: Tables>(
    tables: &T,
    new: &NewSetupLink,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let (scope, action) = (ScopeName::MembersWrite, Action::SetupLinkCreated);
    let mut new = new.clone();
    let link = &mut new.link;
    link.created_by = lock_answering_member(tables, link.organization, scope, origin).await?;
    let link = &new.link;
    if link.email.is_none() {
        tables.lock_setup_links(link.organization).await?;
        tables
            .mark_first_owner_links_used(link.organization, origin.at)
            .await?;
    }
    tables.insert_setup_link(&new).await?;
    let (target, changes) = (link.role.as_str(), link.creation_changes());
    let row = audit_row(link.organization, origin, action, None, target, &changes);
    tables.insert_audit(&row).await
}

/// Redeems a setup link: creates the account, and the key of a first owner, and marks the link as
/// used.
pub async fn redeem_setup_link<T: Tables>(
    tables: &T,
    digest: Digest,
    redemption: &Redemption,
    origin: &AuditContext,
) -> Result<User, T::Failure> {
    let link = tables.setup_link(digest).await?;
    let organization = link.ok_or(Refusal::SetupLinkInvalid)?.organization;
    tables.lock_setup_links(organization).await?;
    // Read again after the lock: another transaction may have used the link.
    let link = tables.setup_link(digest).await?;
    let link = link
        .filter(|link| link.is_valid(origin.at))
        .ok_or(Refusal::SetupLinkInvalid)?;
    let user = User {
        id: redemption.user,
        organization,
        email: redemption.email.clone(),
        role: link.role,
        created_at: origin.at,
    };
    tables.insert_user(&user, &redemption.password_hash).await?;
    let removed = removed_member(organization, &user.email);
    tables.unmark_removed(removed).await?;
    tables.mark_setup_link_used(digest, origin.at).await?;
    tables
        .mark_first_owner_links_used(organization, origin.at)
        .await?;
    let (action, changes) = (Action::UserCreated, user.creation_changes());
    let row = audit_row(organization, origin, action, None, user.id, &changes);
    tables.insert_audit(&row).await?;
    let mut origin = origin.clone();
    if let Some(passkey) = &redemption.passkey {
        origin = origin.following();
        // The codes are the way back for a person who loses the passkey and sets a first password.
        let codes = &redemption.recovery_codes;
        store_factor(tables, passkey, codes, &origin).await?;
    }
    // An invited member creates keys in the dashboard, and gets no key without asking.
    let is_first_owner = link.email.is_none();
    if let Some(mut first_key) = redemption.first_key.clone().filter(|_| is_first_owner) {
        first_key.key.organization = organization;
        first_key.key.created_by = Some(Actor::User(user.id));
        first_key.key.owner = Some(user.id);
        insert_key(tables, &first_key, &origin.following()).await?;
    }
    Ok(user)
}
