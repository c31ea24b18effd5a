//! Counts within a transaction. The counts are written last, because all transactions of an app
//! update the same few rows, which stay locked until the transaction ends.

use crate::tables::Tables;
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::settlement::NotificationChange;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::TerminalCounts;

/// A UTC day for which an app's notifications from one provider are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BillingDay {
    /// App.
    pub app: AppId,
    /// Provider.
    pub provider: BillingProvider,
    /// Live or test.
    pub environment: Environment,
    /// Day.
    pub day: Day,
}

/// Notification counts for a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BillingDayCounts {
    /// Notifications stored.
    pub notifications: i64,
    /// Events created.
    pub events: i64,
    /// Events matched to a device.
    pub matched: i64,
    /// Requests that failed authentication.
    pub unauthorized: i64,
    /// Notifications that reused an id with a different body.
    pub reused: i64,
}

/// Counts within a transaction.
#[derive(Debug, Default)]
pub struct TransactionTally {
    /// Increments for the roll-ups.
    pub increments: Increments,
    /// Cancelled deliveries by time and queue.
    pub(crate) cancelled: BTreeMap<Timestamp, BTreeMap<QueueRef, TerminalCounts>>,
    /// Notification counts by day.
    pub(crate) days: BTreeMap<BillingDay, BillingDayCounts>,
    /// Event of the notification that connected a billing provider to its app.
    pub(crate) connecting_event: Option<EventId>,
}

impl TransactionTally {
    /// Returns the counts for a day, to be updated.
    pub(crate) fn billing_day(&mut self, day: BillingDay) -> &mut BillingDayCounts {
        self.days.entry(day).or_default()
    }

    /// Counts the changes to a settled notification.
    pub(crate) fn count_changed(&mut self, change: &NotificationChange) {
        let (events, matched) = change.event_count_change();
        let notification = change.now.as_ref().or(change.before.as_ref());
        if let Some(notification) = notification.filter(|_| events != 0 || matched != 0) {
            let count = self.billing_day(BillingDay {
                app: notification.app,
                provider: notification.provider,
                environment: notification.content.environment,
                day: Day::of(notification.received_at),
            });
            count.events += events;
            count.matched += matched;
        }
    }

    /// Writes the counts. Returns the increments for the roll-ups.
    pub async fn write<T: Tables>(self, tables: &T) -> Result<Increments, T::Failure> {
        for (day, count) in &self.days {
            tables.add_to_billing_day(day, count).await?;
        }
        for (at, cancelled) in &self.cancelled {
            tables.add_terminal_counts(cancelled, *at).await?;
        }
        Ok(self.increments)
    }
}
