//! Single sign-on: an organization's provider, and the accounts that are linked to it.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::person::User;
use tributary_domain::access::single_sign_on::{
    Issuer, ProvenIdentity, SingleSignOn, SingleSignOnDraft,
};
use tributary_domain::access::{Authorized, MembersWrite};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
use tributary_domain::vocabulary::revision::Precondition;

/// A sign-in at a provider.
#[derive(Debug, Clone)]
pub struct SignOn {
    /// Organization whose provider was asked.
    pub organization: OrganizationId,
    /// The provider that was asked.
    pub issuer: Issuer,
    /// Who signed in there.
    pub identity: ProvenIdentity,
    /// Signed-in member who connects the own account.
    pub connecting: Option<UserId>,
    /// Identifies the attempt, which counts once.
    pub attempt: Digest,
    /// Id of the account, if one is created.
    pub new_user: UserId,
    /// Password hash of the account, if one is created: that of no password.
    pub no_password: String,
}

/// Single sign-on. Only the facts of one organization decide about its members.
#[async_trait]
pub trait SingleSignOns: Send + Sync {
    /// Returns an organization's settings.
    async fn single_sign_on(
        &self,
        organization: OrganizationId,
    ) -> StoreResult<Option<SingleSignOn>>;

    /// Replaces the settings. A new issuer unlinks all accounts and ends their sessions. If members
    /// may no longer use passwords, their sessions with passwords end.
    async fn replace_single_sign_on(
        &self,
        caller: &Authorized<MembersWrite>,
        draft: SingleSignOnDraft,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<SingleSignOn>;

    /// Removes the settings, unlinks all accounts and ends their sessions. Refused if no owner has a
    /// password.
    async fn remove_single_sign_on(
        &self,
        caller: &Authorized<MembersWrite>,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Decides which account a person gets (`domain::access::single_sign_on::decide`), and links or
    /// creates it. The session is begun separately.
    async fn sign_on(&self, sign_on: SignOn, origin: AuditContext) -> StoreResult<User>;

    /// Writes a sign-in that failed to the audit log of the organization.
    async fn audit_failed_sign_on(
        &self,
        organization: OrganizationId,
        reason: String,
        origin: AuditContext,
    ) -> StoreResult<()>;
}
