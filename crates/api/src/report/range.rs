//! Day range of a report.

use super::invalid_parameter;
use crate::days::DayFilter;
use crate::error::ApiError;
use crate::query::QueryParameters;
use crate::state::ApiState;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::range::DayRange;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

/// Requested `from`, `to` and `timezone`.
#[derive(Debug)]
pub(crate) struct RangeQuery {
    days: DayFilter,
    timezone: Option<Timezone>,
}

impl RangeQuery {
    /// Reads the three parameters.
    pub(crate) fn read(parameters: &mut QueryParameters<'_>) -> Self {
        Self {
            days: DayFilter::read(parameters),
            timezone: parameters.optional("timezone", Timezone::parse),
        }
    }

    /// Returns the range parameters as text. A cursor is valid only for the same parameters.
    pub(crate) fn cursor_values(&self) -> [Option<String>; 3] {
        let day = |day: Option<Day>| day.map(|day| day.to_string());
        let zone = self.timezone.as_ref();
        [
            day(self.days.from),
            day(self.days.to),
            zone.map(|zone| zone.as_str().to_owned()),
        ]
    }

    /// Resolves the range for an app, by default in the app's time zone.
    pub(crate) async fn for_app(
        &self,
        state: &ApiState,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> Result<DayRange, ApiError> {
        let own = state.store.app_timezone(caller, app).await?;
        self.in_zone(state.runtime.now(), own)
    }

    /// Resolves the range, by default in `zone`.
    pub(crate) fn in_zone(&self, now: Timestamp, zone: Timezone) -> Result<DayRange, ApiError> {
        let zone = self.timezone.clone().unwrap_or(zone);
        let DayFilter { from, to } = self.days;
        DayRange::resolve(from, to, zone, now).map_err(|problem| invalid_parameter("from", problem))
    }
}
