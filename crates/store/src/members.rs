//! The people of an organization.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::person::{Role, SetupLink, User};
use tributary_domain::access::{AppsRead, Authorized, MembersWrite};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::UserId;

/// A set-up link that nobody used yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// What it is found by. The link itself nobody can show again.
    pub digest: Digest,
    /// For whom, as what, until when.
    pub link: SetupLink,
}

/// Members. A person of another organization is as good as none.
#[async_trait]
pub trait Members: Send + Sync {
    /// Everybody, oldest account first.
    async fn members(&self, caller: &Authorized<AppsRead>) -> StoreResult<Vec<User>>;

    /// Gives a member another role (`domain::access::person::change_member`).
    async fn change_member_role(
        &self,
        caller: &Authorized<MembersWrite>,
        member: UserId,
        role: Role,
        origin: AuditContext,
    ) -> StoreResult<User>;

    /// Removes a member: the account and its sessions end. What the person did stays in the audit log.
    async fn remove_member(
        &self,
        caller: &Authorized<MembersWrite>,
        member: UserId,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Set-up links that nobody used, valid or not, the one that ends last first.
    async fn invitations(&self, caller: &Authorized<MembersWrite>) -> StoreResult<Vec<Invitation>>;

    /// Withdraws a set-up link that nobody used; any other one stays as it was.
    async fn withdraw_invitation(
        &self,
        caller: &Authorized<MembersWrite>,
        invitation: Digest,
        origin: AuditContext,
    ) -> StoreResult<()>;
}
