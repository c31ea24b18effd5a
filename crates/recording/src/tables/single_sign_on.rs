//! Single sign-on, and removed members.

use super::EngineTransaction;
use tributary_domain::access::person::{Email, Role};
use tributary_domain::access::session::SignInMethod;
use tributary_domain::access::single_sign_on::{IdentityState, SingleSignOn};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;

/// Providers of organizations, the identities that are linked to accounts, and removed members.
pub trait SingleSignOnTable: EngineTransaction {
    /// Returns an organization's settings.
    async fn single_sign_on(
        &self,
        organization: OrganizationId,
    ) -> Result<Option<SingleSignOn>, Self::Failure>;

    /// Writes an organization's settings.
    async fn write_single_sign_on(&self, settings: &SingleSignOn) -> Result<(), Self::Failure>;

    /// Removes an organization's settings. Returns false if it has none.
    async fn delete_single_sign_on(
        &self,
        organization: OrganizationId,
    ) -> Result<bool, Self::Failure>;

    /// Returns what an organization knows of an identity.
    async fn identity(
        &self,
        organization: OrganizationId,
        identity: Digest,
    ) -> Result<IdentityState, Self::Failure>;

    /// Returns whether an identity is linked to an account.
    async fn is_linked(&self, user: UserId) -> Result<bool, Self::Failure>;

    /// Links an identity to an account.
    async fn link_identity(
        &self,
        organization: OrganizationId,
        identity: Digest,
        user: UserId,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Forgets the identities of an account.
    async fn forget_identities(&self, user: UserId) -> Result<(), Self::Failure>;

    /// Forgets all of an organization's identities.
    async fn forget_all_identities(
        &self,
        organization: OrganizationId,
    ) -> Result<(), Self::Failure>;

    /// Keeps the identities of an account that is removed, without the account.
    async fn release_identities(&self, user: UserId) -> Result<(), Self::Failure>;

    /// Records that an attempt is used, and forgets attempts that expired before `now`. Returns false
    /// if it was used before.
    async fn use_attempt(
        &self,
        attempt: Digest,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, Self::Failure>;

    /// Returns the valid invitation for an address that expires last.
    async fn invitation_for(
        &self,
        organization: OrganizationId,
        email: &Email,
        now: Timestamp,
    ) -> Result<Option<(Digest, Role)>, Self::Failure>;

    /// Returns whether a member was removed.
    async fn was_removed(&self, member: Digest) -> Result<bool, Self::Failure>;

    /// Records that a member was removed.
    async fn mark_removed(&self, member: Digest, at: Timestamp) -> Result<(), Self::Failure>;

    /// Forgets that a member was removed.
    async fn unmark_removed(&self, member: Digest) -> Result<(), Self::Failure>;

    /// Returns the password hashes of an organization's owners.
    async fn owner_password_hashes(
        &self,
        organization: OrganizationId,
    ) -> Result<Vec<String>, Self::Failure>;

    /// Ends the sessions of an organization's members, except of those with this role, that began in
    /// this way.
    async fn end_member_sessions(
        &self,
        organization: OrganizationId,
        except: Option<Role>,
        method: SignInMethod,
    ) -> Result<(), Self::Failure>;
}
