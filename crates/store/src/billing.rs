//! Billing: notifications from subscription providers.

use crate::StoreResult;
use async_trait::async_trait;
use std::ops::RangeInclusive;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::app::{App, AppSecret, BillingProvider};
use tributary_domain::billing::IncomingNotification;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// An app and its billing secrets, for handling the app's billing notifications.
#[derive(Debug, Clone)]
pub struct BillingApp {
    /// The app.
    pub app: App,
    /// Billing secrets of the app.
    pub secrets: Vec<BillingSecret>,
}

/// A billing secret of an app.
#[derive(Debug, Clone)]
pub struct BillingSecret {
    /// Kind of the secret.
    pub secret: AppSecret,
    /// Sealed value.
    pub sealed: SealedSecret,
    /// When the secret was set. For a previous secret, when it was replaced.
    pub set_at: Timestamp,
}

/// Outcome of accepting a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationOutcome {
    /// The notification was stored, together with its event and the other resulting changes.
    Stored {
        /// Whether the notification created an event.
        has_event: bool,
        /// Whether the event was matched to a device.
        is_matched: bool,
    },
    /// The notification was already stored. Nothing changed.
    Duplicate,
    /// A notification with a different body has already used this id. The notification was counted
    /// as reused and not stored.
    IdReused,
}

/// A provider's notification counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillingFigures {
    /// Provider.
    pub provider: BillingProvider,
    /// Live or test.
    pub environment: Environment,
    /// Notifications stored.
    pub notifications: i64,
    /// Events created.
    pub events: i64,
    /// Events matched to a device.
    pub matched: i64,
    /// Requests that failed authentication. They count as live, because their environment cannot be
    /// known.
    pub unauthorized: i64,
    /// Notifications that reused an id with a different body.
    pub reused: i64,
}

/// Billing.
#[async_trait]
pub trait Billing: Send + Sync {
    /// Returns the app that a notification was posted for. The sender has not been authenticated
    /// yet.
    async fn billing_app(&self, app: AppId) -> StoreResult<Option<BillingApp>>;

    /// Stores a notification once per notification id of its provider, and settles its subscription
    /// again (`domain::billing::settlement`). Events, revenue, figures and planned deliveries do
    /// not depend on the order in which notifications arrive.
    async fn accept_notification(
        &self,
        arrival: IncomingNotification,
    ) -> StoreResult<NotificationOutcome>;

    /// Counts a request that failed authentication.
    async fn note_unauthorized(
        &self,
        app: AppId,
        provider: BillingProvider,
        at: Timestamp,
    ) -> StoreResult<()>;

    /// Returns an app's notification counts by provider and environment for a range of UTC days.
    async fn billing_figures(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        days: RangeInclusive<Day>,
    ) -> StoreResult<Vec<BillingFigures>>;

    /// Settles at most `limit` trials whose hold has ended by `now`. Returns the number of trials
    /// examined.
    async fn settle_trials(&self, now: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Deletes the bodies of at most `limit` notifications received before `before`. Returns the
    /// number of changed rows.
    async fn forget_notifications(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
