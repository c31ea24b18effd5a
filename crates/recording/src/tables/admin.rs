//! What the interface and the dashboard manage: apps, links, integrations, members.

use super::EngineTransaction;
use std::collections::BTreeMap;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::person::{Role, SetupLink, User};
use tributary_domain::app::{App, AppSecret};
use tributary_domain::device::DeviceRef;
use tributary_domain::forwarding::alert::Alert;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::settlement::IntegrationVersion;
use tributary_domain::integration::{Integration, Network};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::link::Link;
use tributary_domain::report::cost::{CostKey, StoredCost};
use tributary_domain::skan::Configuration;
use tributary_domain::skan::device::EventSum;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, KeyId, LinkId, OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{AuditRow, TerminalCounts};
use tributary_store::{LeaseId, NewKey, NewSetupLink, Organization, QueueRef};

/// The audit log.
pub trait AuditTable: EngineTransaction {
    /// Adds an entry.
    async fn insert_audit(&self, row: &AuditRow) -> Result<(), Self::Failure>;
}

/// A name that only one app on the instance has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UniqueName {
    /// The id of the app in the App Store.
    AppStoreId,
    /// The domain of its links.
    LinkDomain,
}

impl UniqueName {
    /// Its table and its column.
    pub const fn columns(self) -> (&'static str, &'static str) {
        match self {
            Self::AppStoreId => ("app_store_ids", "app_store_id"),
            Self::LinkDomain => ("link_domains", "link_domain"),
        }
    }
}

/// Apps as their organizations manage them.
pub trait ManagedAppTable: EngineTransaction {
    /// An app of an organization, locked until the transaction ends; refused when it has no such app.
    async fn lock_managed_app(
        &self,
        organization: OrganizationId,
        app: AppId,
    ) -> Result<App, Self::Failure>;

    /// Locks an app of an organization until the transaction ends; refused when it has no such app.
    async fn require_app(
        &self,
        organization: OrganizationId,
        app: AppId,
    ) -> Result<(), Self::Failure>;

    /// Stores a new app and its SDK keys.
    async fn insert_app(&self, app: &App) -> Result<(), Self::Failure>;

    /// Writes an app.
    async fn write_app(&self, app: &App) -> Result<(), Self::Failure>;

    /// Takes a name; false when another app has it. A transaction that is just taking it is waited for.
    async fn claim_name(
        &self,
        kind: UniqueName,
        app: AppId,
        name: &str,
    ) -> Result<bool, Self::Failure>;

    /// Gives up the names of an app but for one.
    async fn release_names(
        &self,
        kind: UniqueName,
        app: AppId,
        kept: Option<&str>,
    ) -> Result<(), Self::Failure>;

    /// Gives an app the postbacks that wait for its App Store id, at most so many.
    async fn claim_postbacks(
        &self,
        app: AppId,
        app_store_id: &str,
        limit: u32,
    ) -> Result<(), Self::Failure>;

    /// Stores a secret in the place of the one before.
    async fn write_secret(
        &self,
        app: AppId,
        secret: AppSecret,
        sealed: &SealedSecret,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Stores a secret under another name as well, if it is stored.
    async fn copy_secret(
        &self,
        app: AppId,
        from: AppSecret,
        to: AppSecret,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Removes a secret.
    async fn remove_secret(&self, app: AppId, secret: AppSecret) -> Result<(), Self::Failure>;
}

/// Tracking links.
pub trait TrackingLinkTable: EngineTransaction {
    /// A link that is not archived.
    async fn tracking_link(&self, app: AppId, link: LinkId) -> Result<Option<Link>, Self::Failure>;

    /// Stores a new link.
    async fn insert_link(&self, link: &Link) -> Result<(), Self::Failure>;

    /// Writes a link.
    async fn write_link(&self, link: &Link) -> Result<(), Self::Failure>;

    /// Archives a link.
    async fn archive_link(
        &self,
        app: AppId,
        link: LinkId,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Takes the slug of a link; false when another link has it.
    async fn claim_slug(&self, link: &Link) -> Result<bool, Self::Failure>;
}

/// Integrations and their queues.
pub trait IntegrationTable: EngineTransaction {
    /// Writes an integration.
    async fn write_integration(&self, integration: &Integration) -> Result<(), Self::Failure>;

    /// The version of the integration that a queue belongs to. When it settles, the queue is locked first: a change of
    /// an integration lets its queue go on in the same transaction, so either the change is seen, or it comes later.
    async fn integration_version(
        &self,
        queue: QueueRef,
    ) -> Result<Option<IntegrationVersion>, Self::Failure>;

    /// The states of the queues of an app that are stored.
    async fn queue_states(
        &self,
        app: AppId,
    ) -> Result<BTreeMap<Network, QueueState>, Self::Failure>;

    /// Locks a queue and reads its state, if it is stored.
    async fn lock_queue(&self, queue: QueueRef) -> Result<Option<QueueState>, Self::Failure>;

    /// Whether a queue is held by a lease. If it is, no other process takes it until the transaction ends.
    async fn lock_lease(&self, queue: QueueRef, lease: LeaseId) -> Result<bool, Self::Failure>;

    /// Takes a queue that no process holds and that is not paused. Returns its state.
    async fn take_queue(
        &self,
        queue: QueueRef,
        lease: LeaseId,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<QueueState>, Self::Failure>;

    /// Lets a queue that no process holds rest until then.
    async fn postpone_queue(
        &self,
        queue: QueueRef,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Writes the state of a queue that is locked, or that was not stored. Who holds it stays as it is.
    async fn write_queue(
        &self,
        queue: QueueRef,
        state: &QueueState,
        is_stored: bool,
    ) -> Result<(), Self::Failure>;

    /// How many deliveries of an app wait.
    async fn pending_delivery_counts(
        &self,
        app: AppId,
    ) -> Result<BTreeMap<Network, u64>, Self::Failure>;

    /// How deliveries of an app ended since an hour.
    async fn terminal_counts_since(
        &self,
        app: AppId,
        hour: i64,
    ) -> Result<BTreeMap<Network, TerminalCounts>, Self::Failure>;

    /// Stores an alert.
    async fn insert_alert(&self, alert: &Alert) -> Result<(), Self::Failure>;
}

/// Conversion-value configurations.
pub trait SkanTable: EngineTransaction {
    /// The configuration of an app.
    async fn skan_configuration(&self, app: &App) -> Result<Configuration, Self::Failure>;

    /// Writes the configuration of an app.
    async fn write_skan(
        &self,
        app: AppId,
        configuration: &Configuration,
    ) -> Result<(), Self::Failure>;

    /// Writes a version of a configuration; one that is stored gets its present names.
    async fn write_skan_version(
        &self,
        app: AppId,
        configuration: &Configuration,
        applies_from: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// When a device was first seen.
    async fn first_seen(&self, device: DeviceRef<'_>) -> Result<Option<Timestamp>, Self::Failure>;

    /// What happened on a device in the windows from a moment on that end then.
    async fn event_sums(
        &self,
        device: DeviceRef<'_>,
        from: Timestamp,
        ends: [Timestamp; 3],
    ) -> Result<Vec<EventSum>, Self::Failure>;
}

/// The members of organizations.
pub trait MemberTable: EngineTransaction {
    /// The members of an organization. No other transaction changes them until this one ends.
    async fn lock_members(&self, organization: OrganizationId) -> Result<Vec<User>, Self::Failure>;

    /// Writes the role of a member.
    async fn write_role(&self, member: UserId, role: Role) -> Result<(), Self::Failure>;

    /// Removes a member and their sessions.
    async fn remove_user(&self, member: UserId) -> Result<(), Self::Failure>;

    /// Withdraws an invitation; false when there is none that was not used.
    async fn withdraw_setup_link(
        &self,
        organization: OrganizationId,
        invitation: Digest,
        at: Timestamp,
    ) -> Result<bool, Self::Failure>;
}

/// Organizations, keys, accounts and set-up links.
pub trait TenantTable: EngineTransaction {
    /// Notes that there is an organization; false when there was one before. A transaction that is just founding one is
    /// waited for.
    async fn mark_first_organization(
        &self,
        organization: &Organization,
    ) -> Result<bool, Self::Failure>;

    /// Stores an organization.
    async fn insert_organization(&self, organization: &Organization) -> Result<(), Self::Failure>;

    /// Stores a key.
    async fn insert_key(&self, new: &NewKey) -> Result<(), Self::Failure>;

    /// Locks a key, and reads it.
    async fn lock_key(&self, key: KeyId) -> Result<Option<ApiKey>, Self::Failure>;

    /// Writes when a key was revoked.
    async fn write_revoked(&self, key: KeyId, at: Timestamp) -> Result<(), Self::Failure>;

    /// Stores an account; refused when another one has its address.
    async fn insert_user(&self, user: &User, password_hash: &str) -> Result<(), Self::Failure>;

    /// A set-up link.
    async fn setup_link(&self, digest: Digest) -> Result<Option<SetupLink>, Self::Failure>;

    /// Lets no other transaction change the set-up links of an organization until this one ends. If each locked single
    /// links, two of them could wait for each other.
    async fn lock_setup_links(&self, organization: OrganizationId) -> Result<(), Self::Failure>;

    /// Stores a set-up link.
    async fn insert_setup_link(&self, new: &NewSetupLink) -> Result<(), Self::Failure>;

    /// Uses up a set-up link.
    async fn mark_setup_link_used(
        &self,
        digest: Digest,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Uses up the links for the first owner of an organization: those that name no address.
    async fn mark_first_owner_links_used(
        &self,
        organization: OrganizationId,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;
}

/// What ads cost.
pub trait CostTable: EngineTransaction {
    /// Removes costs.
    async fn remove_costs(&self, app: AppId, costs: &[CostKey]) -> Result<(), Self::Failure>;

    /// Writes costs in the place of those of the same keys.
    async fn write_costs(
        &self,
        app: AppId,
        costs: &[StoredCost],
        at: Timestamp,
    ) -> Result<(), Self::Failure>;
}
