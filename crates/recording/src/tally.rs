//! What a transaction counts. It is written last, because every transaction of an app counts in the same few rows, and
//! holds them until it ends.

use crate::tables::Tables;
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::settlement::Changed;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::QueueRef;
use tributary_store::records::EndCounts;

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
pub struct DayCount {
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
pub struct Tally {
    /// What it adds to the reports.
    pub increments: Increments,
    /// Deliveries that it cancels, by their moment and queue.
    pub(crate) cancelled: BTreeMap<Timestamp, BTreeMap<QueueRef, EndCounts>>,
    /// What it adds to the days of billing providers.
    pub(crate) days: BTreeMap<BillingDay, DayCount>,
}

impl Tally {
    /// The count of a day.
    pub(crate) fn day(&mut self, day: BillingDay) -> &mut DayCount {
        self.days.entry(day).or_default()
    }

    /// Counts what a settled notification changes.
    pub(crate) fn count_changed(&mut self, changed: &Changed) {
        let (events, matched) = changed.counted();
        let one = changed.now.as_ref().or(changed.before.as_ref());
        if let Some(one) = one.filter(|_| events != 0 || matched != 0) {
            let count = self.day(BillingDay {
                app: one.app,
                provider: one.provider,
                environment: one.said.environment,
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
            tables.count_ends(cancelled, *at).await?;
        }
        Ok(self.increments)
    }
}
