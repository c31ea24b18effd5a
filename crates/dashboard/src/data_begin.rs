//! When an app's data begins.

use crate::failure::Failure;
use crate::range::PageDateRange;
use crate::state::DashboardHandles;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::{Period, ReportQuery};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;

/// Returns the day on which the app's data begins, if the compared range has earlier days. Most apps
/// have data on its first day, so that day is read first.
pub(crate) async fn data_begin(
    handles: &DashboardHandles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    range: &PageDateRange,
) -> Result<Option<Day>, Failure> {
    let Some(compared) = &range.compared else {
        return Ok(None);
    };
    let found = async |periods: Vec<Period>| {
        let query = ReportQuery {
            periods,
            group_by: Vec::new(),
            filters: Vec::new(),
            rows_max: u32::MAX,
        };
        let rows = handles.store.stats(caller, app, query).await?;
        let found = rows.iter().filter(|row| !row.figures.is_zero());
        Ok::<Vec<usize>, Failure>(found.map(|row| row.period).collect())
    };
    let probe = compared.probe(range.days.to);
    let first_day = probe.iter().skip(1).take(1).copied().collect();
    if !found(first_day).await?.is_empty() {
        return Ok(None);
    }
    Ok(compared.data_begin(found(probe).await?.into_iter()))
}
