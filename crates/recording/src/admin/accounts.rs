//! The accounts of an email address in all organizations.

use super::members::{audit_lost, remove_for_good};
use crate::tables::Tables;
use tributary_domain::access::Actor;
use tributary_domain::access::person::{Email, User, change_member, remove_any_member};
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_store::records::audit_row;
use tributary_store::{LastOwner, NewPasswordReset, TakeOver};

/// Locks a person out of all accounts, and stores a link for setting a new password.
pub async fn reset_accounts<T: Tables>(
    tables: &T,
    new: &NewPasswordReset,
    locked_hash: &str,
    origin: &AuditContext,
) -> Result<Vec<User>, T::Failure> {
    let email = &new.reset.email;
    let users = tables.lock_accounts(email).await?;
    if users.is_empty() {
        return Err(Refusal::AccountNotFound.into());
    }
    tables
        .remove_password_resets(Some(email), origin.at)
        .await?;
    tables.insert_password_reset(new).await?;
    for user in &users {
        let written = tables.write_password(user.id, locked_hash, origin.at);
        written.await?;
    }
    audit_accounts(tables, &users, Action::PasswordResetCreated, origin).await?;
    Ok(users)
}

/// Stores a link that a person asked for. Nothing else changes.
pub async fn create_password_reset<T: Tables>(
    tables: &T,
    new: &NewPasswordReset,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let users = tables.lock_accounts(&new.reset.email).await?;
    if users.is_empty() {
        return Err(Refusal::AccountNotFound.into());
    }
    tables.remove_password_resets(None, origin.at).await?;
    tables.insert_password_reset(new).await?;
    audit_accounts(tables, &users, Action::PasswordResetCreated, origin).await
}

/// Writes an audit entry about each account.
async fn audit_accounts<T: Tables>(
    tables: &T,
    users: &[User],
    action: Action,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let mut origin = origin.clone();
    for user in users {
        let row = audit_row(user.organization, &origin, action, None, user.id, &[]);
        tables.insert_audit(&row).await?;
        origin = origin.following();
    }
    Ok(())
}

/// Sets the password of all accounts with the address of a link, which works once.
pub async fn redeem_password_reset<T: Tables>(
    tables: &T,
    digest: Digest,
    password_hash: &str,
    origin: &AuditContext,
) -> Result<Vec<User>, T::Failure> {
    let found = tables.password_reset(digest).await?;
    let reset = found
        .filter(|reset| reset.is_valid(origin.at))
        .ok_or(Refusal::ResetLinkInvalid)?;
    // Everything that writes links locks the accounts first.
    let users = tables.lock_accounts(&reset.email).await?;
    if users.is_empty() || !tables.remove_password_reset(digest).await? {
        return Err(Refusal::ResetLinkInvalid.into());
    }
    let (email, at) = (&reset.email, origin.at);
    tables.remove_password_resets(Some(email), at).await?;
    for user in &users {
        tables.write_password(user.id, password_hash, at).await?;
    }
    let mut origin = origin.clone();
    for user in &users {
        origin.actor = Actor::User(user.id);
        let action = Action::UserPasswordReset;
        let row = audit_row(user.organization, &origin, action, None, user.id, &[]);
        tables.insert_audit(&row).await?;
        origin = origin.following();
    }
    Ok(users)
}

/// Writes an entry for each withdrawn setup link. Returns the context of the next entry.
pub(super) async fn audit_withdrawn<T: Tables>(
    tables: &T,
    withdrawn: &[OrganizationId],
    origin: &AuditContext,
) -> Result<AuditContext, T::Failure> {
    let mut origin = origin.clone();
    for organization in withdrawn {
        let action = Action::SetupLinkRevoked;
        let row = audit_row(*organization, &origin, action, None, organization, &[]);
        tables.insert_audit(&row).await?;
        origin = origin.following();
    }
    Ok(origin)
}

/// Removes all accounts with an email address, with their keys, invitations and links.
pub async fn remove_accounts<T: Tables>(
    tables: &T,
    email: &Email,
    last_owner: LastOwner,
    origin: &AuditContext,
) -> Result<Vec<User>, T::Failure> {
    let mut removed = Vec::new();
    // By organization, so that two removals lock organizations in the same order.
    for account in tables.accounts_of(email).await? {
        let organization = account.organization;
        let members = tables.lock_members(organization).await?;
        let (user, changes) = match last_owner {
            LastOwner::Stays => change_member(&members, account.id, None)?,
            LastOwner::Goes => remove_any_member(&members, account.id)?,
        };
        let nothing = TakeOver::default();
        let lost = remove_for_good(tables, &members, &user, &nothing, origin).await?;
        removed.push((user, changes, lost));
    }
    if removed.is_empty() {
        return Err(Refusal::AccountNotFound.into());
    }
    tables
        .remove_password_resets(Some(email), origin.at)
        .await?;
    let mut withdrawn = tables.withdraw_setup_links(email, origin.at).await?;
    withdrawn.extend(removed.iter().flat_map(|(_, _, lost)| &lost.withdrawn));
    // In the order in which all transactions write to the logs of organizations.
    withdrawn.sort_unstable();
    let mut origin = audit_withdrawn(tables, &withdrawn, origin).await?;
    for (user, changes, lost) in &removed {
        let (organization, action) = (user.organization, Action::UserRemoved);
        let row = audit_row(organization, &origin, action, None, user.id, changes);
        tables.insert_audit(&row).await?;
        origin = audit_lost(tables, organization, lost, &origin).await?;
    }
    Ok(removed.into_iter().map(|(user, ..)| user).collect())
}
