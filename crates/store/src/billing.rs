//! Billing: notifications of subscription providers.

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

/// The data of an app that handling its notifications needs.
#[derive(Debug, Clone)]
pub struct BillingApp {
    /// The app.
    pub app: App,
    /// Billing secrets of the app.
    pub secrets: Vec<BillingSecret>,
}

/// A secret of an app.
#[derive(Debug, Clone)]
pub struct BillingSecret {
    /// Kind of the secret.
    pub secret: AppSecret,
    /// Sealed value.
    pub sealed: SealedSecret,
    /// When it was set. For a previous secret, when it was replaced.
    pub set_at: Timestamp,
}

/// Outcome of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationOutcome {
    /// Stored, with everything that follows from it.
    Stored {
        /// Whether it created an event.
        has_event: bool,
        /// Whether the event has a device.
        is_matched: bool,
    },
    /// Already stored. Nothing changed.
    Duplicate,
    /// Another notification has used this id. Nothing changed.
    IdReused,
}

/// Notification counts of a provider.
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
    /// Requests that failed authentication. They count as live, because their environment is
    /// unknown.
    pub unauthorized: i64,
    /// Notifications that reused an id with a different body.
    pub reused: i64,
}

/// Billing.
#[async_trait]
pub trait Billing: Send + Sync {
    /// Returns the app that notifications are posted for. The caller has not been authenticated
    /// yet.
    async fn billing_app(&self, app: AppId) -> StoreResult<Option<BillingApp>>;

    /// Stores a notification once per provider id, and settles its subscription again
    /// (`domain::billing::settlement`). Events, revenue, figures and planned deliveries do not
    /// depend on the order of arrival.
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

    /// Returns an app's notification counts per provider and environment for some UTC days.
    async fn billing_figures(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        days: RangeInclusive<Day>,
    ) -> StoreResult<Vec<BillingFigures>>;

    /// Settles due trials that are still active, at most `limit`. Returns the number of examined
    /// trials.
    async fn settle_trials(&self, now: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Deletes the bodies of notifications received before `before`, and stops waiting for their
    /// devices. Returns the number of rows, at most about `limit`.
    async fn forget_notifications(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
