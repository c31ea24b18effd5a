//! Daily counts of billing notifications and their outcomes.

use crate::Failure;
use crate::tables::SqliteTables;
use rusqlite::params;
use tributary_recording::{BillingDay, BillingDayCounts, BillingDayTable};

impl BillingDayTable for SqliteTables<'_> {
    async fn add_to_billing_day(
        &self,
        day: &BillingDay,
        count: &BillingDayCounts,
    ) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "insert into billing_days (app_id, provider, environment, day, notifications, events,
                                           matched, unauthorized, reused)
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                 on conflict do update set notifications = notifications + excluded.notifications,
                     events = events + excluded.events, matched = matched + excluded.matched,
                     unauthorized = unauthorized + excluded.unauthorized,
                     reused = reused + excluded.reused",
            )?
            .execute(params![
                day.app.as_bytes(),
                day.provider.as_str(),
                day.environment.as_str(),
                day.day.as_days(),
                count.notifications,
                count.events,
                count.matched,
                count.unauthorized,
                count.reused
            ])?;
        Ok(())
    }
}
