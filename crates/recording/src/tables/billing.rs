//! Subscriptions and their notifications.

use super::EngineTransaction;
use crate::tally::{BillingDay, BillingDayCounts};
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::connected::{SearchQuery, SearchResult};
use tributary_domain::billing::hold::Trial;
use tributary_domain::billing::{Chain, Notification};
use tributary_domain::device::{ClaimFacts, DeviceKey, DeviceRef, UserClaim, UserKey};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Notifications from billing providers.
pub trait NotificationTable: EngineTransaction {
    /// Returns the digest of the body that first used a provider's notification id.
    async fn notification_digest(
        &self,
        app: AppId,
        provider: BillingProvider,
        external_id: &str,
    ) -> Result<Option<Vec<u8>>, Self::Failure>;

    /// Stores a notification unless one with the same id exists.
    async fn insert_notification(
        &self,
        notification: &Notification,
        digest: Digest,
        body: Option<&str>,
    ) -> Result<(), Self::Failure>;

    /// Writes the settled state of a stored notification.
    async fn update_notification(&self, notification: &Notification) -> Result<(), Self::Failure>;

    /// Removes a notification.
    async fn remove_notification(&self, notification: &Notification) -> Result<(), Self::Failure>;

    /// Returns the notifications of subscriptions that are settled together.
    async fn notifications(
        &self,
        chains: &BTreeSet<Chain>,
    ) -> Result<Vec<Notification>, Self::Failure>;

    /// Returns the given subscriptions that continue, at least in part, under the pseudonym of an
    /// erased device.
    async fn chains_with_pseudonyms(
        &self,
        chains: &BTreeSet<Chain>,
    ) -> Result<BTreeSet<Chain>, Self::Failure>;

    /// Returns the data that the search for connected subscriptions needs next.
    async fn find_connected(
        &self,
        scope: (AppId, Environment),
        query: &SearchQuery,
    ) -> Result<SearchResult, Self::Failure>;

    /// Returns all notifications of a subscription.
    async fn all_notifications(&self, chain: &Chain) -> Result<Vec<Notification>, Self::Failure>;

    /// Finds the subscriptions of notifications by the providers' notification ids.
    async fn chains_by_external_id(
        &self,
        scope: (AppId, Environment),
        external_ids: &BTreeSet<&str>,
    ) -> Result<BTreeSet<Chain>, Self::Failure>;

    /// Finds notifications without a subscription that contain one of these texts. Each of them is
    /// returned as a subscription with this notification only.
    async fn single_notification_chains(
        &self,
        scope: (AppId, Environment),
        texts: &[String],
    ) -> Result<BTreeSet<Chain>, Self::Failure>;

    /// Writes a subscription's erased notifications, and removes their bodies.
    async fn erase_notifications(
        &self,
        chain: &Chain,
        remaining: &[Notification],
    ) -> Result<(), Self::Failure>;
}

/// Lookup keys of subscriptions.
pub trait BillingKeyTable: EngineTransaction {
    /// Adds lookup keys for a subscription.
    async fn insert_keys(
        &self,
        chain: &Chain,
        keys: &BTreeSet<String>,
    ) -> Result<(), Self::Failure>;

    /// Finds the subscriptions with these lookup keys, at most `limit` per key in a fixed order.
    async fn chains_by_key(
        &self,
        scope: (AppId, Environment),
        keys: &[String],
        limit: usize,
    ) -> Result<Vec<(String, Chain)>, Self::Failure>;

    /// Removes a subscription's lookup keys.
    async fn remove_keys(
        &self,
        chain: &Chain,
        keys: &BTreeSet<String>,
    ) -> Result<(), Self::Failure>;
}

/// Links between devices and users.
pub trait UserLinkTable: EngineTransaction {
    /// Links a device to a user. A link keeps the time of its first claim. A later claim can make
    /// the link used or signed, not the reverse.
    async fn link_user(
        &self,
        device: DeviceRef<'_>,
        claim: &UserClaim,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// Marks a device's unsigned links as not used.
    async fn revoke_unsigned(&self, device: DeviceRef<'_>) -> Result<(), Self::Failure>;

    /// Returns the users that a device has claimed, without the other facts.
    async fn claimed_users(&self, device: DeviceRef<'_>) -> Result<ClaimFacts, Self::Failure>;

    /// Counts the links that were first claimed from an address at or after `since`, at most
    /// [`tributary_domain::device::ADDRESS_CLAIMS_MAX`].
    async fn claims_from_address(
        &self,
        device: DeviceRef<'_>,
        address: Digest,
        since: Timestamp,
    ) -> Result<usize, Self::Failure>;

    /// Counts the links of a user of the device's app, at most
    /// [`tributary_domain::device::SIGNED_USER_LINKS_MAX`].
    async fn count_links(
        &self,
        device: DeviceRef<'_>,
        user: &UserKey,
    ) -> Result<usize, Self::Failure>;

    /// Returns the users of a device's used links.
    async fn linked_people(
        &self,
        device: DeviceRef<'_>,
    ) -> Result<BTreeSet<UserKey>, Self::Failure>;

    /// Returns the users of a device's used links whose claims are signed.
    async fn signed_people(
        &self,
        device: DeviceRef<'_>,
    ) -> Result<BTreeSet<UserKey>, Self::Failure>;

    /// Returns the given users that a device other than these has a used link to.
    async fn shared_people(
        &self,
        scope: (AppId, Environment),
        devices: &BTreeSet<DeviceKey>,
        people: &BTreeSet<UserKey>,
    ) -> Result<BTreeSet<UserKey>, Self::Failure>;

    /// Removes all links between a device and users.
    async fn unlink_device(&self, device: DeviceRef<'_>) -> Result<(), Self::Failure>;

    /// Removes the ids of a device's erased users from other devices: from links that are not used,
    /// and from the identities and events of devices whose claim is no longer used.
    async fn forget_users_elsewhere(
        &self,
        device: DeviceRef<'_>,
        users: &[UserKey],
    ) -> Result<(), Self::Failure>;
}

/// Trials on hold.
pub trait TrialTable: EngineTransaction {
    /// Returns a subscription's trial, if it is or was on hold.
    async fn trial(&self, chain: &Chain) -> Result<Option<Trial>, Self::Failure>;

    /// Puts a trial on hold. If a subscription starts several times, the earliest start determines
    /// the due time.
    async fn hold_trial(&self, chain: &Chain, due_at: Timestamp) -> Result<(), Self::Failure>;

    /// Writes the state of a trial.
    async fn write_trial(&self, chain: &Chain, trial: Trial) -> Result<(), Self::Failure>;
}

/// Daily notification counts.
pub trait BillingDayTable: EngineTransaction {
    /// Adds to a day's counts.
    async fn add_to_billing_day(
        &self,
        day: &BillingDay,
        counts: &BillingDayCounts,
    ) -> Result<(), Self::Failure>;
}
