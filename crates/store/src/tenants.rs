//! Organizations, users and API keys.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::factor::Factor;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::person::{Email, SetupLink, User};
use tributary_domain::audit::{AuditContext, Changes, FieldChange};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{KeyId, OrganizationId, UserId};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;

/// Accounts of one email address that can sign in. Only the operator creates organizations, so more
/// than a few accounts per person are not expected.
pub const ACCOUNTS_PER_EMAIL_MAX: u32 = 16;

/// A tenant. Every app, user and API key belongs to an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Organization {
    /// Organization id.
    pub id: OrganizationId,
    /// Display name.
    pub name: Name,
    /// Time of creation.
    pub created_at: Timestamp,
}

impl Organization {
    /// Returns the audit log changes for a new organization.
    pub fn creation_changes(&self) -> Vec<FieldChange> {
        let mut changes = Changes::new();
        changes.initial("name", Some(self.name.as_str().to_owned()));
        changes.into_vec()
    }
}

/// A new API key.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Key.
    pub key: ApiKey,
    /// Digest of the key's text.
    pub digest: Digest,
}

/// A new setup link.
#[derive(Debug, Clone)]
pub struct NewSetupLink {
    /// Setup link.
    pub link: SetupLink,
    /// Digest of the link's token.
    pub digest: Digest,
}

/// Data for redeeming a setup link: the account, and the API key of a first owner.
#[derive(Debug, Clone)]
pub struct Redemption {
    /// Id of the new account.
    pub user: UserId,
    /// Validated email address.
    pub email: Email,
    /// Hashed password, or `no_password_hash` with a passkey.
    pub password_hash: String,
    /// Passkey of an account that is set up without a password.
    pub passkey: Option<Factor>,
    /// Recovery codes that come with the passkey.
    pub recovery_codes: Vec<Digest>,
    /// API key of a first owner, who has no other way in until the dashboard is set up. Its
    /// organization is replaced with the setup link's. Stored only if the link is for a first owner;
    /// invited members create their keys themselves.
    pub first_key: Option<NewKey>,
}

/// Organizations, users and API keys.
#[async_trait]
pub trait Tenants: Send + Sync {
    /// Creates an organization.
    async fn create_organization(
        &self,
        organization: Organization,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Creates the first organization. Returns false when one exists already, even under concurrent
    /// calls.
    async fn create_first_organization(
        &self,
        organization: Organization,
        origin: AuditContext,
    ) -> StoreResult<bool>;

    /// Lists all organizations, oldest first.
    async fn organizations(&self) -> StoreResult<Vec<Organization>>;

    /// Returns the oldest organization if the instance has no account yet.
    async fn organization_awaiting_its_owner(&self) -> StoreResult<Option<Organization>>;

    /// Stores a key. The actor of `origin` becomes its creator and decides about its owner; refused
    /// if the key could do more than the actor (`domain::access::key_management`), if it is limited
    /// to an app that the organization does not have, and if the organization has as many valid keys
    /// as it may have.
    async fn create_key(&self, key: NewKey, origin: AuditContext) -> StoreResult<ApiKey>;

    /// Lists an organization's keys, oldest first, including revoked ones.
    async fn keys(&self, organization: OrganizationId) -> StoreResult<Vec<ApiKey>>;

    /// Revokes a key of any organization, for the operator. Revoking it again changes nothing.
    async fn revoke_key(&self, key: KeyId, origin: AuditContext) -> StoreResult<ApiKey>;

    /// Returns the key with this digest, even if the key is not valid.
    async fn key_by_digest(&self, digest: Digest) -> StoreResult<Option<ApiKey>>;

    /// Records the last use of a key, and the range of the address that used it.
    async fn note_key_use(&self, key: KeyId, at: Timestamp, range: String) -> StoreResult<()>;

    /// Stores a setup link. A link without an email address is for the first owner, and
    /// invalidates the organization's earlier links without an email address.
    async fn create_setup_link(&self, link: NewSetupLink, origin: AuditContext) -> StoreResult<()>;

    /// Returns the link with this digest, even if the link is not valid.
    async fn setup_link(&self, digest: Digest) -> StoreResult<Option<SetupLink>>;

    /// Redeems a link: creates the account, and the key of a first owner, in the link's organization.
    /// If either cannot be created, neither is. Invalidates the organization's other links without an email
    /// address.
    async fn redeem_setup_link(
        &self,
        digest: Digest,
        redemption: Redemption,
        origin: AuditContext,
    ) -> StoreResult<User>;

    /// Returns the users with this email address and their password hashes, oldest first, at most
    /// [`ACCOUNTS_PER_EMAIL_MAX`]. An address has at most one account per organization.
    async fn users_by_email(&self, email: &Email) -> StoreResult<Vec<(User, String)>>;
}
