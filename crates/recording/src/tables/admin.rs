//! Tables that the API and the dashboard manage: apps, links, integrations, members.

use super::EngineTransaction;
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::access::person::{Role, SetupLink, User};
use tributary_domain::app::{App, AppSecret, SdkKey, SdkKeyEnd};
use tributary_domain::cost_source::{CostSource, DaySpan};
use tributary_domain::device::DeviceRef;
use tributary_domain::forwarding::alert::Alert;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::settlement::IntegrationVersion;
use tributary_domain::integration::{Integration, Network};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::link::Link;
use tributary_domain::notice::Notice;
use tributary_domain::report::cost::{CostKey, StoredCost};
use tributary_domain::report::view::SavedView;
use tributary_domain::skan::Configuration;
use tributary_domain::skan::device::EventSum;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, LinkId, OrganizationId, ShareId, UserId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::TerminalCounts;
use tributary_store::{Invitation, NewSetupLink, NewShareLink, Organization, QueueRef};

/// Apps, as seen by the organizations that manage them.
pub trait ManagedAppTable: EngineTransaction {
    /// Locks and returns an organization's app. Refused when the organization has no such app.
    async fn lock_managed_app(
        &self,
        organization: OrganizationId,
        app: AppId,
    ) -> Result<App, Self::Failure>;

    /// Locks an organization's app. Refused when the organization has no such app.
    async fn require_app(
        &self,
        organization: OrganizationId,
        app: AppId,
    ) -> Result<(), Self::Failure>;

    /// Stores a new app and its SDK keys.
    async fn insert_app(&self, app: &App) -> Result<(), Self::Failure>;

    /// Returns an app's SDK keys.
    async fn sdk_keys_of(&self, app: AppId) -> Result<Vec<SdkKey>, Self::Failure>;

    /// Stores a new SDK key.
    async fn insert_sdk_key(
        &self,
        app: AppId,
        key: &str,
        environment: Environment,
    ) -> Result<(), Self::Failure>;

    /// Writes the end of a replaced SDK key.
    async fn end_sdk_key(&self, app: AppId, end: &SdkKeyEnd) -> Result<(), Self::Failure>;

    /// Removes an SDK key that has ended.
    async fn remove_sdk_key(&self, app: AppId, key: &str) -> Result<(), Self::Failure>;

    /// Writes an app.
    async fn write_app(&self, app: &App) -> Result<(), Self::Failure>;

    /// Stores the owner of a verified link domain. Returns false when another app owns it. Waits for
    /// a concurrent transaction that stores the same domain.
    async fn claim_link_domain(&self, app: AppId, host: &str) -> Result<bool, Self::Failure>;

    /// Releases all link domains of an app except `current`.
    async fn release_link_domains(
        &self,
        app: AppId,
        current: Option<&str>,
    ) -> Result<(), Self::Failure>;

    /// Assigns at most `limit` postbacks that wait for an App Store id to the app with this id.
    async fn claim_postbacks(
        &self,
        app: AppId,
        app_store_id: &str,
        limit: u32,
    ) -> Result<(), Self::Failure>;

    /// Stores a secret, replacing the previous one.
    async fn write_secret(
        &self,
        app: AppId,
        secret: AppSecret,
        sealed: &SealedSecret,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Copies a stored secret to another name. Does nothing when the secret is not stored.
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
    /// Returns a link unless it is archived.
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

    /// Claims a link's slug. Returns false when another link has the slug.
    async fn claim_slug(&self, link: &Link) -> Result<bool, Self::Failure>;
}

/// Integrations and their queues.
pub trait IntegrationTable: EngineTransaction {
    /// Writes an integration.
    async fn write_integration(&self, integration: &Integration) -> Result<(), Self::Failure>;

    /// Returns the version of a queue's integration. When deliveries are settled, the queue is
    /// locked first. A change to the integration also resumes the queue in the same transaction, so
    /// the settlement either sees the change or precedes it.
    async fn integration_version(
        &self,
        queue: QueueRef,
    ) -> Result<Option<IntegrationVersion>, Self::Failure>;

    /// Returns an app's stored queue states.
    async fn queue_states(
        &self,
        app: AppId,
    ) -> Result<BTreeMap<Network, QueueState>, Self::Failure>;

    /// Locks a queue and returns its state, if one is stored.
    async fn lock_queue(&self, queue: QueueRef) -> Result<Option<QueueState>, Self::Failure>;

    /// Postpones a queue that no process has leased.
    async fn postpone_queue(
        &self,
        queue: QueueRef,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Writes the state of a queue that is locked or new. Does not change the lease.
    async fn write_queue(
        &self,
        queue: QueueRef,
        state: &QueueState,
        is_stored: bool,
    ) -> Result<(), Self::Failure>;

    /// Locks a quota and returns the time from which its turns are free, if one is stored.
    async fn lock_quota(&self, quota: Digest) -> Result<Option<Timestamp>, Self::Failure>;

    /// Writes the time from which the turns of a locked quota are free.
    async fn write_quota(&self, quota: Digest, free_from: Timestamp) -> Result<(), Self::Failure>;

    /// Counts an app's pending deliveries.
    async fn pending_delivery_counts(
        &self,
        app: AppId,
    ) -> Result<BTreeMap<Network, u64>, Self::Failure>;

    /// Counts an app's deliveries that finished since the start of an hour.
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
    /// Returns the configuration of an app.
    async fn skan_configuration(&self, app: &App) -> Result<Configuration, Self::Failure>;

    /// Writes the configuration of an app.
    async fn write_skan(
        &self,
        app: AppId,
        configuration: &Configuration,
    ) -> Result<(), Self::Failure>;

    /// Writes a version of a configuration. A version that exists already gets the current names.
    async fn write_skan_version(
        &self,
        app: AppId,
        configuration: &Configuration,
        applies_from: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Returns when a device was first seen.
    async fn first_seen(&self, device: DeviceRef<'_>) -> Result<Option<Timestamp>, Self::Failure>;

    /// Sums a device's events per window, starting at `from`.
    async fn event_sums(
        &self,
        device: DeviceRef<'_>,
        from: Timestamp,
        ends: [Timestamp; 3],
    ) -> Result<Vec<EventSum>, Self::Failure>;
}

/// The members of organizations.
pub trait MemberTable: EngineTransaction {
    /// Locks and returns an organization's members.
    async fn lock_members(&self, organization: OrganizationId) -> Result<Vec<User>, Self::Failure>;

    /// Writes a member's role.
    async fn write_role(&self, member: UserId, role: Role) -> Result<(), Self::Failure>;

    /// Removes a member and their sessions.
    async fn remove_user(&self, member: UserId) -> Result<(), Self::Failure>;

    /// Ends all sessions of a member. Returns how many it ended.
    async fn remove_sessions(&self, member: UserId) -> Result<u64, Self::Failure>;

    /// Returns an organization's unused setup links, including expired ones, latest expiry first.
    async fn unused_setup_links(
        &self,
        organization: OrganizationId,
    ) -> Result<Vec<Invitation>, Self::Failure>;

    /// Returns the notices of an organization that send messages and whose owner is this member, or
    /// unknown, by app and age.
    async fn active_notices(
        &self,
        organization: OrganizationId,
        owner: Option<UserId>,
    ) -> Result<Vec<Notice>, Self::Failure>;

    /// Withdraws an unused invitation. Returns false when there is none.
    async fn withdraw_setup_link(
        &self,
        organization: OrganizationId,
        invitation: Digest,
        at: Timestamp,
    ) -> Result<bool, Self::Failure>;
}

/// Organizations, accounts and setup links.
pub trait TenantTable: EngineTransaction {
    /// Records that an organization exists. Returns false when an organization existed before.
    /// Waits for a concurrent transaction that creates the first organization.
    async fn mark_first_organization(
        &self,
        organization: &Organization,
    ) -> Result<bool, Self::Failure>;

    /// Stores an organization.
    async fn insert_organization(&self, organization: &Organization) -> Result<(), Self::Failure>;

    /// Stores an account. Refused when another account of the organization has the same email
    /// address.
    async fn insert_user(&self, user: &User, password_hash: &str) -> Result<(), Self::Failure>;

    /// Returns a setup link.
    async fn setup_link(&self, digest: Digest) -> Result<Option<SetupLink>, Self::Failure>;

    /// Locks an organization's setup links. Locking individual links could deadlock.
    async fn lock_setup_links(&self, organization: OrganizationId) -> Result<(), Self::Failure>;

    /// Stores a setup link.
    async fn insert_setup_link(&self, new: &NewSetupLink) -> Result<(), Self::Failure>;

    /// Marks a setup link as used.
    async fn mark_setup_link_used(
        &self,
        digest: Digest,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Marks all of an organization's first-owner setup links as used. These have no email address.
    async fn mark_first_owner_links_used(
        &self,
        organization: OrganizationId,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;
}

/// Ad costs.
pub trait CostTable: EngineTransaction {
    /// Removes costs.
    async fn remove_costs(&self, app: AppId, costs: &[CostKey]) -> Result<(), Self::Failure>;

    /// Writes costs, replacing stored costs with the same keys.
    async fn write_costs(
        &self,
        app: AppId,
        costs: &[StoredCost],
        at: Timestamp,
    ) -> Result<(), Self::Failure>;
}

/// Saved views of reports, and links that share one.
pub trait ViewTable: EngineTransaction {
    /// Removes the user's view with this view's name.
    async fn remove_view_named(&self, view: &SavedView) -> Result<(), Self::Failure>;

    /// Counts a user's views of an app.
    async fn count_views(&self, app: AppId, user: UserId) -> Result<u64, Self::Failure>;

    /// Stores a new view.
    async fn insert_view(&self, view: &SavedView) -> Result<(), Self::Failure>;

    /// Counts an app's links that are open at this time.
    async fn count_open_shares(&self, app: AppId, at: Timestamp) -> Result<u64, Self::Failure>;

    /// Stores a new link.
    async fn insert_share(&self, new: &NewShareLink) -> Result<(), Self::Failure>;

    /// Closes a link. Returns false if it does not exist or is closed already.
    async fn close_share(
        &self,
        app: AppId,
        share: ShareId,
        at: Timestamp,
    ) -> Result<bool, Self::Failure>;
}

/// Cost sources, and the costs that are imported from them.
pub trait CostSourceTable: EngineTransaction {
    /// Returns a stored cost source, and locks it until the end of the transaction.
    async fn lock_cost_source(
        &self,
        app: AppId,
        network: Network,
    ) -> Result<Option<CostSource>, Self::Failure>;

    /// Writes a cost source.
    async fn write_cost_source(&self, source: &CostSource) -> Result<(), Self::Failure>;

    /// Deletes a cost source.
    async fn delete_cost_source(&self, app: AppId, network: Network) -> Result<(), Self::Failure>;

    /// Finds the cost source that has been due longest, without locking it. Archived apps are left
    /// out.
    async fn due_cost_source(
        &self,
        now: Timestamp,
    ) -> Result<Option<(OrganizationId, AppId, Network)>, Self::Failure>;

    /// Removes the imported costs of a network, in a span of days or all.
    async fn remove_imported_costs(
        &self,
        app: AppId,
        network: Network,
        span: Option<DaySpan>,
    ) -> Result<(), Self::Failure>;
}
