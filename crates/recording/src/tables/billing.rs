//! Subscriptions and their notifications.

use super::EngineTransaction;
use crate::tally::{BillingDay, BillingDayCounts};
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::connected::{SearchQuery, SearchResult};
use tributary_domain::billing::hold::Trial;
use tributary_domain::billing::{Chain, Notification};
use tributary_domain::device::{DeviceRef, UserKey};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Notifications of billing providers.
pub trait NotificationTable: EngineTransaction {
    /// The digest of the body that a provider's id was used for.
    async fn notification_digest(
        &self,
        app: AppId,
        provider: BillingProvider,
        given_id: &str,
    ) -> Result<Option<Vec<u8>>, Self::Failure>;

    /// Stores a notification, unless one of its id is stored.
    async fn insert_notification(
        &self,
        one: &Notification,
        digest: Digest,
        body: Option<&str>,
    ) -> Result<(), Self::Failure>;

    /// Writes what a stored notification comes to.
    async fn update_notification(&self, one: &Notification) -> Result<(), Self::Failure>;

    /// Removes a notification.
    async fn remove_notification(&self, one: &Notification) -> Result<(), Self::Failure>;

    /// The notifications of subscriptions, as far as they are settled together.
    async fn notifications(
        &self,
        chains: &BTreeSet<Chain>,
    ) -> Result<Vec<Notification>, Self::Failure>;

    /// Those subscriptions of which a part goes on under the pseudonym of an erased device.
    async fn chains_with_pseudonyms(
        &self,
        chains: &BTreeSet<Chain>,
    ) -> Result<BTreeSet<Chain>, Self::Failure>;

    /// What a search for connected subscriptions has to know.
    async fn find_connected(
        &self,
        of: (AppId, Environment),
        need: &SearchQuery,
    ) -> Result<SearchResult, Self::Failure>;

    /// All notifications of a subscription.
    async fn all_notifications(&self, chain: &Chain) -> Result<Vec<Notification>, Self::Failure>;

    /// The subscriptions of notifications with some of their providers' ids.
    async fn chains_by_external_id(
        &self,
        of: (AppId, Environment),
        given_ids: &BTreeSet<&str>,
    ) -> Result<BTreeSet<Chain>, Self::Failure>;

    /// The notifications without a subscription that contain one of some texts, each as a chain.
    async fn single_notification_chains(
        &self,
        of: (AppId, Environment),
        texts: &[String],
    ) -> Result<BTreeSet<Chain>, Self::Failure>;

    /// Writes what remains of a subscription's notifications, and removes their bodies.
    async fn erase_notifications(
        &self,
        chain: &Chain,
        remaining: &[Notification],
    ) -> Result<(), Self::Failure>;
}

/// The keys that lead to subscriptions.
pub trait BillingKeyTable: EngineTransaction {
    /// Lets a subscription be found by keys.
    async fn insert_keys(
        &self,
        chain: &Chain,
        keys: &BTreeSet<String>,
    ) -> Result<(), Self::Failure>;

    /// The subscriptions of keys, for each at most so many in a fixed order.
    async fn chains_by_key(
        &self,
        of: (AppId, Environment),
        keys: &[String],
        limit: usize,
    ) -> Result<Vec<(String, Chain)>, Self::Failure>;

    /// Removes keys of a subscription.
    async fn remove_keys(
        &self,
        chain: &Chain,
        keys: &BTreeSet<String>,
    ) -> Result<(), Self::Failure>;
}

/// Which devices go by which people's ids.
pub trait UserLinkTable: EngineTransaction {
    /// Remembers that a device goes by a person's id.
    async fn link_user(
        &self,
        device: DeviceRef<'_>,
        user: &UserKey,
        at: Timestamp,
    ) -> Result<(), Self::Failure>;

    /// The ids of people that a device is linked to.
    async fn linked_people(
        &self,
        device: DeviceRef<'_>,
    ) -> Result<BTreeSet<UserKey>, Self::Failure>;

    /// Those people that another device than this one is linked to.
    async fn shared_people(
        &self,
        device: DeviceRef<'_>,
        people: &BTreeSet<UserKey>,
    ) -> Result<BTreeSet<UserKey>, Self::Failure>;

    /// Removes the links of a device to people.
    async fn unlink_device(&self, device: DeviceRef<'_>) -> Result<(), Self::Failure>;
}

/// Trials on hold.
pub trait TrialTable: EngineTransaction {
    /// The trial of a subscription that is, or was, on hold.
    async fn trial(&self, chain: &Chain) -> Result<Option<Trial>, Self::Failure>;

    /// Puts a trial on hold. Of several starts of one subscription the earliest says when it is due.
    async fn hold_trial(&self, chain: &Chain, due_at: Timestamp) -> Result<(), Self::Failure>;

    /// Writes the state of a trial.
    async fn write_trial(&self, chain: &Chain, trial: Trial) -> Result<(), Self::Failure>;

    /// Trials on hold that are due, the longest ones first.
    async fn due_trials(&self, now: Timestamp, limit: u32) -> Result<Vec<Chain>, Self::Failure>;
}

/// How many notifications came, and what became of them.
pub trait BillingDayTable: EngineTransaction {
    /// Adds to the count of a day.
    async fn add_to_billing_day(
        &self,
        day: &BillingDay,
        count: &BillingDayCounts,
    ) -> Result<(), Self::Failure>;
}
