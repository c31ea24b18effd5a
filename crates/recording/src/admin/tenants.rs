//! Organizations, their API keys and their setup links.

use crate::tables::Tables;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::person::User;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::KeyId;
use tributary_store::records::audit_row;
use tributary_store::{NewKey, NewSetupLink, Organization, Redemption};

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

/// Stores a key.
pub async fn create_key<T: Tables>(
    tables: &T,
    new: &NewKey,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.insert_key(new).await?;
    let (key, action) = (&new.key, Action::KeyCreated);
    let row = audit_row(
        key.organization,
        origin,
        action,
        None,
        key.id,
        &key.creation_changes(),
    );
    tables.insert_audit(&row).await
}

/// Revokes a key. Returns the updated key.
pub async fn revoke_key<T: Tables>(
    tables: &T,
    key: KeyId,
    origin: &AuditContext,
) -> Result<ApiKey, T::Failure> {
    let found = tables.lock_key(key).await?;
    let mut found = found.ok_or(Refusal::KeyNotFound)?;
    if found.revoke(origin.at) {
        tables.write_revoked(key, origin.at).await?;
        let action = Action::KeyRevoked;
        let row = audit_row(found.organization, origin, action, None, key, &[]);
        tables.insert_audit(&row).await?;
    }
    Ok(found)
}

/// Stores a setup link. A new link for the first owner invalidates earlier ones.
pub async fn create_setup_link<T: Tables>(
    tables: &T,
    new: &NewSetupLink,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let (link, action) = (&new.link, Action::SetupLinkCreated);
    if link.email.is_none() {
        tables.lock_setup_links(link.organization).await?;
        tables
            .mark_first_owner_links_used(link.organization, origin.at)
            .await?;
    }
    tables.insert_setup_link(new).await?;
    let (target, changes) = (link.role.as_str(), link.creation_changes());
    let row = audit_row(link.organization, origin, action, None, target, &changes);
    tables.insert_audit(&row).await
}

/// Redeems a setup link: creates the account and its first key, and marks the link as used.
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
    tables.mark_setup_link_used(digest, origin.at).await?;
    tables
        .mark_first_owner_links_used(organization, origin.at)
        .await?;
    let (action, changes) = (Action::UserCreated, user.creation_changes());
    let row = audit_row(organization, origin, action, None, user.id, &changes);
    tables.insert_audit(&row).await?;
    let mut first_key = redemption.first_key.clone();
    first_key.key.organization = organization;
    let origin = AuditContext {
        audit_id: redemption.first_key_audit_id,
        ..origin.clone()
    };
    create_key(tables, &first_key, &origin).await?;
    Ok(user)
}
