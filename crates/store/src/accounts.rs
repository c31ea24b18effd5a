//! The accounts of an email address in all organizations: what the operator manages, and links for
//! setting a new password.

use crate::{Organization, StoreResult};
use async_trait::async_trait;
use tributary_domain::access::password_reset::PasswordReset;
use tributary_domain::access::person::{Email, User};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::UserId;
use tributary_domain::vocabulary::time::Timestamp;

/// An account as the operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountSummary {
    /// The user.
    pub user: User,
    /// The user's organization.
    pub organization: Organization,
    /// Last sign-in; `None` if it was before an upgrade that stores it.
    pub last_sign_in_at: Option<Timestamp>,
}

/// A new link for setting a new password.
#[derive(Debug, Clone)]
pub struct NewPasswordReset {
    /// Link.
    pub reset: PasswordReset,
    /// Digest of the link's token.
    pub digest: Digest,
}

/// What happens to an organization whose last owner is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastOwner {
    /// The removal is refused.
    Stays,
    /// The organization has no owner until the operator invites one.
    Goes,
}

/// The accounts of email addresses.
#[async_trait]
pub trait Accounts: Send + Sync {
    /// Lists all accounts, by email address and organization.
    async fn accounts(&self) -> StoreResult<Vec<AccountSummary>>;

    /// Locks a person out until they set a new password: replaces the password of all accounts with
    /// the link's address by `locked_hash`, ends their sessions and known browsers, and stores the
    /// link, which invalidates earlier ones. Returns the accounts. Refused if there is none.
    async fn reset_accounts(
        &self,
        new: NewPasswordReset,
        locked_hash: String,
        origin: AuditContext,
    ) -> StoreResult<Vec<User>>;

    /// Stores a link that a person asked for, next to earlier ones. The password, sessions and known
    /// browsers stay until the link is used, because anybody can ask for a link. Refused if no
    /// account has the address.
    async fn create_password_reset(
        &self,
        new: NewPasswordReset,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Returns the link with this digest, even if it has expired.
    async fn password_reset(&self, digest: Digest) -> StoreResult<Option<PasswordReset>>;

    /// Uses a link: sets the password of all accounts with its address, ends their sessions and known
    /// browsers, and removes all links for the address. Each account is the actor of its audit
    /// entry. Returns the accounts.
    async fn redeem_password_reset(
        &self,
        digest: Digest,
        password_hash: String,
        origin: AuditContext,
    ) -> StoreResult<Vec<User>>;

    /// Removes all accounts with an email address as [`remove_member`](crate::Members::remove_member)
    /// does, and withdraws its invitations and links. All or none are removed. Returns the removed
    /// accounts.
    async fn remove_accounts(
        &self,
        email: Email,
        last_owner: LastOwner,
        origin: AuditContext,
    ) -> StoreResult<Vec<User>>;

    /// Returns when a user's known browsers were last forgotten.
    async fn browsers_forgotten_at(&self, user: UserId) -> StoreResult<Option<Timestamp>>;
}
