//! An organization's members.

use crate::StoreResult;
use async_trait::async_trait;
use std::collections::BTreeSet;
use tributary_domain::access::person::{Role, SetupLink, User};
use tributary_domain::access::{AppsRead, Authorized, MembersWrite};
use tributary_domain::audit::AuditContext;
use tributary_domain::notice::Notice;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{KeyId, NoticeId, UserId};

/// An unused setup link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Digest of the link's token. The link itself is not stored.
    pub digest: Digest,
    /// Recipient, role and expiry.
    pub link: SetupLink,
}

/// What the acting member takes over from a removed one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TakeOver {
    /// Keys that keep working.
    pub keys: BTreeSet<KeyId>,
    /// Notices that go on sending.
    pub notices: BTreeSet<NoticeId>,
}

/// Members. Members of other organizations are not found.
#[async_trait]
pub trait Members: Send + Sync {
    /// Lists all members, oldest account first.
    async fn members(&self, caller: &Authorized<AppsRead>) -> StoreResult<Vec<User>>;

    /// Changes a member's role (`domain::access::person::change_member`), and revokes the keys whose
    /// permission exceeds it, except those in `take_over`: the acting member becomes their owner. The
    /// invitations of a member who may no longer invite are withdrawn.
    async fn change_member_role(
        &self,
        caller: &Authorized<MembersWrite>,
        member: UserId,
        role: Role,
        take_over: BTreeSet<KeyId>,
        origin: AuditContext,
    ) -> StoreResult<User>;

    /// Removes a member with their account, sessions and invitations, revokes their keys and pauses
    /// their notices, except those in `take_over`: the acting member becomes their owner. The audit log
    /// keeps their actions.
    async fn remove_member(
        &self,
        caller: &Authorized<MembersWrite>,
        member: UserId,
        take_over: TakeOver,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Ends all sessions of a member. Returns how many it ended.
    async fn end_member_sessions(
        &self,
        caller: &Authorized<MembersWrite>,
        member: UserId,
        origin: AuditContext,
    ) -> StoreResult<u64>;

    /// Lists the notices that send messages and whose owner is this member, or unknown, by app and age.
    async fn active_notices(
        &self,
        caller: &Authorized<MembersWrite>,
        owner: Option<UserId>,
    ) -> StoreResult<Vec<Notice>>;

    /// Lists unused setup links, including expired ones, latest expiry first.
    async fn invitations(&self, caller: &Authorized<MembersWrite>) -> StoreResult<Vec<Invitation>>;

    /// Withdraws an unused setup link. Does nothing if the link was used.
    async fn withdraw_invitation(
        &self,
        caller: &Authorized<MembersWrite>,
        invitation: Digest,
        origin: AuditContext,
    ) -> StoreResult<()>;
}
