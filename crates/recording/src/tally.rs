//! What a transaction counts. It is written last, because every transaction of an app counts in the same few rows, and
//! holds them until it ends.

use crate::tables::Tables;
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::settlement::NotificationChange;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::TerminalCounts;

/// A provider's day of an app, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BillingDay {
    /// Of which app.
    pub app: AppId,
    /// Of which provider.
    pub provider: BillingProvider,
    /// Live or test.
    pub environment: Environment,
    /// The day.
    pub day: Day,
}

/// What the notifications of a day add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BillingDayCounts {
    /// Notifications that were kept.
    pub notifications: i64,
    /// Events that they make.
    pub events: i64,
    /// Events with a device.
    pub matched: i64,
    /// Posts that could not prove who they are from.
    pub unauthorized: i64,
    /// Ids that were used for a second body.
    pub reused: i64,
}

/// What a transaction counts.
#[derive(Debug, Default)]
pub struct TransactionTally {
    /// What it adds to the reports.
    pub increments: Increments,
    /// Deliveries that it cancels, by their moment and queue.
    pub(crate) cancelled: BTreeMap<Timestamp, BTreeMap<QueueRef, TerminalCounts>>,
    /// What it adds to the days of billing providers.
    pub(crate) days: BTreeMap<BillingDay, BillingDayCounts>,
}

impl TransactionTally {
    /// The count of a day.
    pub(crate) fn billing_day(&mut self, day: BillingDay) -> &mut BillingDayCounts {
        self.days.entry(day).or_default()
    }

    /// Counts what a settled notification changes.
    pub(crate) fn count_changed(&mut self, changed: &NotificationChange) {
        let (events, matched) = changed.event_count_change();
        let one = changed.now.as_ref().or(changed.before.as_ref());
        if let Some(one) = one.filter(|_| events != 0 || matched != 0) {
            let count = self.billing_day(BillingDay {
                app: one.app,
                provider: one.provider,
                environment: one.content.environment,
                day: Day::of(one.received_at),
            });
            count.events += events;
            count.matched += matched;
        }
    }

    /// Writes it. Returns what is to be added to the reports.
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
