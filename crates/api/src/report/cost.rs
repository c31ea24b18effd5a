//! Ad cost in reports.

use crate::error::ApiError;
use crate::state::ApiState;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::Spend;
use tributary_domain::report::range::DayRange;
use tributary_domain::vocabulary::id::AppId;

/// Loads an app's ad cost in a range of days.
pub(crate) async fn load_spend(
    state: &ApiState,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    range: &DayRange,
) -> Result<Spend, ApiError> {
    let found = state
        .store
        .cost_sums(caller, vec![app], range.from, range.to);
    Ok(found.await?.into_iter().map(|(_, sum)| sum).collect())
}
