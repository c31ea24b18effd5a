//! API keys.

use super::EngineTransaction;
use tributary_domain::access::key::ApiKey;
use tributary_domain::vocabulary::id::{AppId, KeyId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::NewKey;

/// API keys. Changes to an organization's keys lock its members first, except the revocation of a
/// single key.
pub trait KeyTable: EngineTransaction {
    /// Stores a key.
    async fn insert_key(&self, new: &NewKey) -> Result<(), Self::Failure>;

    /// Locks and returns a key.
    async fn lock_key(&self, key: KeyId) -> Result<Option<ApiKey>, Self::Failure>;

    /// Writes what changes about a key: owner, expiry, revocation and successor.
    async fn write_key(&self, key: &ApiKey) -> Result<(), Self::Failure>;

    /// Returns at most `limit` keys of an organization before an id, newest first. With `valid_at`,
    /// only keys that are neither revoked nor expired then.
    async fn organization_keys(
        &self,
        organization: OrganizationId,
        valid_at: Option<Timestamp>,
        before: Option<[u8; 16]>,
        limit: i64,
    ) -> Result<Vec<ApiKey>, Self::Failure>;

    /// Returns whether an organization has an app.
    async fn has_app(
        &self,
        organization: OrganizationId,
        app: AppId,
    ) -> Result<bool, Self::Failure>;
}
