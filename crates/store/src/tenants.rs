//! Organizations, people and keys.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::person::{Email, SetupLink, User};
use tributary_domain::audit::{AuditContext, Changes, FieldChange};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AuditId, KeyId, OrganizationId, UserId};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;

/// The tenant that everything else belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Organization {
    /// Its id.
    pub id: OrganizationId,
    /// What people call it.
    pub name: Name,
    /// Since when.
    pub created_at: Timestamp,
}

impl Organization {
    /// What the audit log says of a new one.
    pub fn creation_changes(&self) -> Vec<FieldChange> {
        let mut changes = Changes::new();
        changes.initial("name", Some(self.name.as_str().to_owned()));
        changes.into_vec()
    }
}

/// A key to be stored.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The record.
    pub key: ApiKey,
    /// What it will be found by.
    pub digest: Digest,
}

/// A one-time link to be stored.
#[derive(Debug, Clone)]
pub struct NewSetupLink {
    /// The record.
    pub link: SetupLink,
    /// What it will be found by.
    pub digest: Digest,
}

/// What a person makes of a set-up link: an account, and a first key to begin with.
#[derive(Debug, Clone)]
pub struct Redemption {
    /// The new account.
    pub user: UserId,
    /// The address, checked.
    pub email: Email,
    /// The password, hashed.
    pub password_hash: String,
    /// A first key for the REST interface. Its organization is the link's, whatever it says.
    pub first_key: NewKey,
    /// The line of the audit log that the key leaves, beside that of the account.
    pub first_key_audit_id: AuditId,
}

/// Organizations, people and keys.
#[async_trait]
pub trait Tenants: Send + Sync {
    /// Makes an organization.
    async fn create_organization(
        &self,
        organization: Organization,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Makes the very first organization; false when there is one already, however many nodes ask at once.
    async fn create_first_organization(
        &self,
        organization: Organization,
        origin: AuditContext,
    ) -> StoreResult<bool>;

    /// Every organization, oldest first.
    async fn organizations(&self) -> StoreResult<Vec<Organization>>;

    /// The oldest organization, as long as nobody on the instance has an account.
    async fn organization_awaiting_its_owner(&self) -> StoreResult<Option<Organization>>;

    /// Stores a key.
    async fn create_key(&self, key: NewKey, origin: AuditContext) -> StoreResult<()>;

    /// An organization's keys, oldest first, revoked ones included.
    async fn keys(&self, organization: OrganizationId) -> StoreResult<Vec<ApiKey>>;

    /// Revokes a key; a revoked one stays as it was.
    async fn revoke_key(&self, key: KeyId, origin: AuditContext) -> StoreResult<ApiKey>;

    /// The key with this digest, valid or not.
    async fn key_by_digest(&self, digest: Digest) -> StoreResult<Option<ApiKey>>;

    /// Writes a key's last use down.
    async fn note_key_use(&self, key: KeyId, at: Timestamp) -> StoreResult<()>;

    /// Stores a one-time link. One without an address is for the first owner: it uses up those without an
    /// address that the organization was given before.
    async fn create_setup_link(&self, link: NewSetupLink, origin: AuditContext) -> StoreResult<()>;

    /// The link with this digest, valid or not.
    async fn setup_link(&self, digest: Digest) -> StoreResult<Option<SetupLink>>;

    /// Uses a link up: the account and its first key are made, or nothing is. The account belongs to the
    /// link's organization, whose other links without an address are used up as well.
    async fn redeem_setup_link(
        &self,
        digest: Digest,
        redemption: Redemption,
        origin: AuditContext,
    ) -> StoreResult<User>;

    /// The person with this address and the hash of the password.
    async fn user_by_email(&self, email: &Email) -> StoreResult<Option<(User, String)>>;
}
