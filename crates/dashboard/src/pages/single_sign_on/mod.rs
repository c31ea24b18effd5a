//! Single sign-on: `/sign-in/sso/{organization}` begins and completes a sign-in at the
//! organization's provider, and `/team/single-sign-on` shows and changes the settings.
//!
//! Nothing leads from an email address to a provider: the answer would show which companies use this
//! server, and an organization could claim the domain of another one. People open their
//! organization's link, whose id cannot be guessed.

mod begin;
mod complete;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use begin::{begin, connect, show};
pub(crate) use complete::complete;
pub(crate) use settings::{remove, save, show_settings, test};

use crate::failure::Failure;
use crate::state::DashboardHandles;
use tributary_domain::access::password_reset::ResettableAccount;
use tributary_domain::access::person::{Email, Role, User};
use tributary_domain::access::single_sign_on::{SingleSignOn, allows_password};
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_store::StoreResult;

/// Returns the page where people of an organization sign in.
pub(crate) fn sign_in_path(organization: OrganizationId) -> String {
    format!("/sign-in/sso/{organization}")
}

/// Returns the URL that the provider sends browsers to. Each organization has its own, so that one
/// provider's answer cannot be passed off as another's.
fn redirect_url(handles: &DashboardHandles, organization: OrganizationId) -> String {
    let path = sign_in_path(organization);
    format!("{}{path}/callback", handles.base_url)
}

/// Returns the settings of the organization in a path. Whether the organization exists is not
/// visible if it has none.
async fn find(handles: &DashboardHandles, text: &str) -> Result<SingleSignOn, Failure> {
    let organization = OrganizationId::parse(text).map_err(|_| Failure::NotFound)?;
    let found = handles.store.single_sign_on(organization).await?;
    found.ok_or(Failure::NotFound)
}

/// Returns the sign-in page of the organization if a new member of it may not use a password.
pub(crate) async fn provider_instead_of_password(
    handles: &DashboardHandles,
    organization: OrganizationId,
    role: Role,
) -> StoreResult<Option<String>> {
    let settings = handles.store.single_sign_on(organization).await?;
    let is_allowed = allows_password(role, settings.as_ref());
    Ok((!is_allowed).then(|| sign_in_path(organization)))
}

/// Returns the accounts that may sign in with a password, and the sign-in page of an organization
/// that does not allow it.
pub(crate) async fn password_accounts(
    handles: &DashboardHandles,
    accounts: Vec<(User, String)>,
) -> StoreResult<(Vec<(User, String)>, Option<String>)> {
    let (mut allowed, mut provider) = (Vec::new(), None);
    for (user, hash) in accounts {
        match provider_instead_of_password(handles, user.organization, user.role).await? {
            None => allowed.push((user, hash)),
            path => provider = path,
        }
    }
    Ok((allowed, provider))
}

/// Returns what decides whether the accounts of an email address can get a new password.
pub(crate) async fn resettable_accounts(
    handles: &DashboardHandles,
    email: &Email,
) -> StoreResult<Vec<ResettableAccount>> {
    let mut accounts = Vec::new();
    for (user, hash) in handles.store.users_by_email(email).await? {
        let settings = handles.store.single_sign_on(user.organization).await?;
        accounts.push(ResettableAccount::of(user.role, &hash, settings.as_ref()));
    }
    Ok(accounts)
}
