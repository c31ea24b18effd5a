//! The accounts of an email address, and links for setting a new password.

use super::EngineTransaction;
use tributary_domain::access::password_reset::PasswordReset;
use tributary_domain::access::person::{Email, User};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::NewPasswordReset;

/// The accounts of an email address, and links for setting a new password.
pub trait AccountTable: EngineTransaction {
    /// Returns the accounts with an email address, by organization.
    async fn accounts_of(&self, email: &Email) -> Result<Vec<User>, Self::Failure>;

    /// Locks and returns the accounts with an email address, in the order of their ids.
    async fn lock_accounts(&self, email: &Email) -> Result<Vec<User>, Self::Failure>;

    /// Writes the password of a locked account, and ends its sessions and known browsers.
    async fn write_password(
        &self,
        user: UserId,
        password_hash: &str,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Stores a link.
    async fn insert_password_reset(&self, new: &NewPasswordReset) -> Result<(), Self::Failure>;

    /// Returns a link.
    async fn password_reset(&self, digest: Digest) -> Result<Option<PasswordReset>, Self::Failure>;

    /// Removes a link. Returns false when there is none, because another transaction used it.
    async fn remove_password_reset(&self, digest: Digest) -> Result<bool, Self::Failure>;

    /// Removes the links that have expired, and all links for an address, if one is given.
    async fn remove_password_resets(
        &self,
        email: Option<&Email>,
        now: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Withdraws the unused setup links for an address in all organizations. Returns the organizations.
    async fn withdraw_setup_links(
        &self,
        email: &Email,
        at: Timestamp,
    ) -> Result<Vec<OrganizationId>, Self::Failure>;
}
