//! API keys, as members and other keys of the organization see and manage them.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::key_management::KeyRotation;
use tributary_domain::access::{AnalyticsRead, AppsRead, Authorized, KeysWrite};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{KeyId, UserId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;

/// Which keys a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyFilter {
    /// Only keys that are valid at this time.
    pub valid_at: Option<Timestamp>,
    /// Only keys of this owner.
    pub owner: Option<UserId>,
}

/// API keys. Keys of other organizations, and keys that the caller does not see
/// ([`Authorized::sees_key`]), are not found.
#[async_trait]
pub trait ApiKeys: Send + Sync {
    /// Lists the organization's keys, newest first.
    async fn key_page(
        &self,
        caller: &Authorized<AppsRead>,
        filter: KeyFilter,
        page: PageRequest,
    ) -> StoreResult<Page<ApiKey>>;

    /// Lists the valid keys that the caller owns, newest first. Keys and the command line own none.
    async fn own_keys(
        &self,
        caller: &Authorized<AnalyticsRead>,
        now: Timestamp,
    ) -> StoreResult<Vec<ApiKey>>;

    /// Returns a key.
    async fn key(&self, caller: &Authorized<AppsRead>, key: KeyId) -> StoreResult<ApiKey>;

    /// Revokes a key that the actor of `origin` may manage. Revoking it again changes nothing.
    async fn revoke_managed_key(
        &self,
        caller: &Authorized<KeysWrite>,
        key: KeyId,
        origin: AuditContext,
    ) -> StoreResult<ApiKey>;

    /// Replaces a valid key by a successor with the digest `digest`, and lets it expire after the
    /// overlap. Returns the successor.
    async fn rotate_key(
        &self,
        caller: &Authorized<KeysWrite>,
        key: KeyId,
        rotation: KeyRotation,
        digest: Digest,
        origin: AuditContext,
    ) -> StoreResult<ApiKey>;

    /// Makes the acting member the owner of a valid key. Refused if the actor is no member.
    async fn take_over_key(
        &self,
        caller: &Authorized<KeysWrite>,
        key: KeyId,
        origin: AuditContext,
    ) -> StoreResult<ApiKey>;
}
