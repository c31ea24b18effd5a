//! Pages about one app.

pub(crate) mod cohorts;
pub(crate) mod costs;
pub(crate) mod explore;
pub(crate) mod new;
pub(crate) mod overview;
pub(crate) mod saved_views;
pub(crate) mod shares;
pub(crate) mod start;

use crate::failure::Failure;
use crate::range::PageDateRange;
use crate::state::DashboardHandles;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::Spend;
use tributary_domain::vocabulary::id::AppId;

/// Returns the label for a report's time unit or dimension.
pub(crate) fn group_label(word: &str) -> &str {
    match word {
        "hour" => "Hour",
        "day" => "Day",
        "week" => "Week",
        "month" => "Month",
        "network" => "Network",
        "link" => "Link",
        "campaign" => "Campaign",
        "adset" => "Ad set",
        "ad" => "Ad",
        "country" => "Country",
        "platform" => "Platform",
        "event" => "Event",
        "source" => "Source",
        other => other,
    }
}

/// Loads the ad costs for a date range.
async fn spend(
    handles: &DashboardHandles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    range: &PageDateRange,
) -> Result<Spend, Failure> {
    let (from, to) = (range.days.from, range.days.to);
    let sums = handles.store.cost_sums(caller, vec![app], from, to).await?;
    Ok(sums.into_iter().map(|(_, sum)| sum).collect())
}
