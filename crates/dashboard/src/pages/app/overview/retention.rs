//! How many of the range's installs were active again.

use crate::analysis::AnalysisBar;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use crate::text;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::cohort::{CohortReportQuery, ReturnStage, return_stages};
use tributary_domain::vocabulary::id::AppId;

/// Days since the install. A later day would read too many rows for a page that opens first.
const AGES: [u8; 4] = [0, 1, 3, 7];
/// Maximum number of rows to read: one per day and age.
const ROWS_MAX: u32 = 100_000;

/// A stage of the funnel.
pub(super) struct Stage {
    pub(super) label: String,
    pub(super) value: String,
    /// Width in thousandths of the installs.
    pub(super) width: i64,
    pub(super) share: String,
}

/// Loads the stages; empty if cohorts cannot be filtered as the bar says.
pub(super) async fn retention(
    handles: &DashboardHandles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    bar: &AnalysisBar,
) -> Result<Vec<Stage>, Failure> {
    let periods = bar.range.days();
    let mut query = CohortReportQuery::new(periods.clone(), &[], AGES[AGES.len() - 1], ROWS_MAX);
    query.report.filters = bar.filters();
    if query.table().is_none() {
        return Ok(Vec::new());
    }
    let rows = handles.store.cohorts(caller, app, query).await?;
    let stages = return_stages(&periods, &rows, &AGES, handles.runtime.now());
    let stages: Vec<Stage> = stages
        .iter()
        .filter(|stage| stage.installs > 0)
        .map(stage)
        .collect();
    // The first stage alone says no more than the card of installs.
    Ok(if stages.len() > 1 { stages } else { Vec::new() })
}

fn stage(one: &ReturnStage) -> Stage {
    let share = i128::from(one.devices) * 1_000 / i128::from(one.installs.max(1));
    let is_first = one.age == 0;
    Stage {
        label: if is_first {
            "Installed".to_owned()
        } else {
            format!("Active on day {}", one.age)
        },
        value: text::count(one.devices),
        width: i64::try_from(share).unwrap_or(0),
        share: if is_first {
            String::new()
        } else {
            let (share, of) = (
                text::percent(one.devices, one.installs),
                text::count(one.installs),
            );
            format!("{share} of {of} installs")
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_a_share_of_the_installs_that_are_old_enough() {
        let stage = stage(&ReturnStage {
            age: 7,
            installs: 40,
            devices: 10,
        });
        assert_eq!((stage.width, &*stage.label), (250, "Active on day 7"));
        assert_eq!(stage.share, "25.0 % of 40 installs");
    }
}
