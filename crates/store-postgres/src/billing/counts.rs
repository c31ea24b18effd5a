//! Daily counts of billing notifications and their outcomes.

use crate::Failure;
use crate::rows::uuid;
use crate::tx::Tx;
use tributary_recording::{BillingDay, BillingDayCounts, BillingDayTable};

impl BillingDayTable for Tx {
    async fn add_to_billing_day(
        &self,
        day: &BillingDay,
        count: &BillingDayCounts,
    ) -> Result<(), Failure> {
        self.execute(
            "insert into billing_days as stored (app_id, provider, environment, day, notifications,
                                                 events, matched, unauthorized, reused)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             on conflict (app_id, provider, environment, day) do update
             set notifications = stored.notifications + excluded.notifications,
                 events = stored.events + excluded.events,
                 matched = stored.matched + excluded.matched,
                 unauthorized = stored.unauthorized + excluded.unauthorized,
                 reused = stored.reused + excluded.reused",
            &[
                &uuid(day.app.as_bytes()),
                &day.provider.as_str(),
                &day.environment.as_str(),
                &i64::from(day.day.as_days()),
                &count.notifications,
                &count.events,
                &count.matched,
                &count.unauthorized,
                &count.reused,
            ],
        )
        .await?;
        Ok(())
    }
}
