//! The days that a report is about.

use super::out_of_range;
use crate::days::Days;
use crate::error::ApiError;
use crate::query::Parameters;
use crate::state::ApiState;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::exchange::Day;
use tributary_domain::report::range::{Range, before};
use tributary_domain::vocabulary::calendar::today;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

/// Days when none are asked for, today included.
const DAYS_DEFAULT: i32 = 30;
/// Days of one report: a year, and the month before it to compare with.
const DAYS_MAX: i64 = 400;

/// `from`, `to` and `timezone`, as they were asked for.
#[derive(Debug)]
pub(crate) struct RangeQuery {
    days: Days,
    timezone: Option<Timezone>,
}

impl RangeQuery {
    /// Reads them.
    pub(crate) fn read(parameters: &mut Parameters<'_>) -> Self {
        Self {
            days: Days::read(parameters),
            timezone: parameters.optional("timezone", Timezone::parse),
        }
    }

    /// What was asked for, for the cursor of a list.
    pub(crate) fn words(&self) -> [Option<String>; 3] {
        let day = |day: Option<Day>| day.map(|day| day.to_string());
        let zone = self.timezone.as_ref();
        [
            day(self.days.from),
            day(self.days.to),
            zone.map(|zone| zone.as_str().to_owned()),
        ]
    }

    /// The days of an app, in its own zone where no other is asked for.
    pub(crate) async fn of_app(
        &self,
        state: &ApiState,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> Result<Range, ApiError> {
        let own = state.store.app_timezone(caller, app).await?;
        self.in_zone(state.source.now(), own)
    }

    /// The days in this zone, where no other is asked for.
    pub(crate) fn in_zone(&self, now: Timestamp, zone: Timezone) -> Result<Range, ApiError> {
        let zone = self.timezone.clone().unwrap_or(zone);
        let to = self.days.to.unwrap_or_else(|| {
            let today = today(now, &zone);
            self.days.from.map_or(today, |from| from.max(today))
        });
        let from = self
            .days
            .from
            .unwrap_or_else(|| before(to, DAYS_DEFAULT - 1));
        if to.days_since(from) >= DAYS_MAX {
            let message = format!("Must be at most {DAYS_MAX} days before the last one.");
            return Err(out_of_range("from", message));
        }
        Ok(Range { from, to, zone })
    }
}
