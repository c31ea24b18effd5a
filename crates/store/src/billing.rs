//! Billing: what providers of subscriptions report.

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

/// An app as its providers' notifications need it.
#[derive(Debug, Clone)]
pub struct BillingApp {
    /// The app.
    pub app: App,
    /// Its secrets for billing.
    pub secrets: Vec<BillingSecret>,
}

/// A secret of an app, and since when.
#[derive(Debug, Clone)]
pub struct BillingSecret {
    /// Which one.
    pub secret: AppSecret,
    /// Sealed.
    pub sealed: SealedSecret,
    /// When it was set; for the one before, when it was replaced.
    pub set_at: Timestamp,
}

/// What became of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationOutcome {
    /// It is kept, with everything that follows from it.
    Stored {
        /// Whether it makes an event.
        has_event: bool,
        /// Whether that has a device.
        is_matched: bool,
    },
    /// It was here before; nothing else happened.
    Duplicate,
    /// Another one was here before under this id; nothing else happened.
    IdReused,
}

/// How a provider's notifications do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillingFigures {
    /// Which provider.
    pub provider: BillingProvider,
    /// Live or test.
    pub environment: Environment,
    /// How many were kept.
    pub notifications: i64,
    /// How many of them make an event.
    pub events: i64,
    /// How many of those have a device.
    pub matched: i64,
    /// How many could not say who they are. They have no environment, and count as live.
    pub unauthorized: i64,
    /// How many used another one's id.
    pub reused: i64,
}

/// Billing.
#[async_trait]
pub trait Billing: Send + Sync {
    /// The app that notifications are posted for. Whoever posts has to prove it.
    async fn billing_app(&self, app: AppId) -> StoreResult<Option<BillingApp>>;

    /// Keeps a notification once by its provider's id, and settles its subscription anew
    /// (`domain::billing::settlement`): events, money, figures and planned deliveries come to what they come to,
    /// whatever the order of arrival was.
    async fn accept_notification(
        &self,
        arrival: IncomingNotification,
    ) -> StoreResult<NotificationOutcome>;

    /// Counts a post that could not prove who it is from.
    async fn note_unauthorized(
        &self,
        app: AppId,
        provider: BillingProvider,
        at: Timestamp,
    ) -> StoreResult<()>;

    /// How an app's notifications do, per provider and environment, in some days of UTC.
    async fn billing_figures(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        days: RangeInclusive<Day>,
    ) -> StoreResult<Vec<BillingFigures>>;

    /// Lets trials count that are due and still alive, at most so many. Gives how many were looked at.
    async fn settle_trials(&self, now: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Forgets the bodies of notifications that arrived before then, and no longer waits for their devices. Gives
    /// how many rows that were, at most about `limit`.
    async fn forget_notifications(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
