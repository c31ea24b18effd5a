//! How many of the range's installs were active again, and how many paid.

use crate::analysis::AnalysisBar;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use crate::text;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::cohort::{
    CohortReportQuery, InstallStage, STAGE_AGE_MAX, StageStep, install_stages,
};
use tributary_domain::vocabulary::id::AppId;

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
    let mut query = CohortReportQuery::new(periods.clone(), &[], STAGE_AGE_MAX, ROWS_MAX);
    query.report.filters = bar.filters();
    if query.table().is_none() {
        return Ok(Vec::new());
    }
    let payers_from = handles.store.payers_complete_from(caller, app).await?;
    let rows = handles.store.cohorts(caller, app, query).await?;
    let stages = install_stages(&periods, &rows, payers_from, handles.runtime.now());
    let stages: Vec<Stage> = stages
        .iter()
        .filter(|stage| stage.installs > 0)
        .map(stage)
        .collect();
    // The first stage alone says no more than the card of installs.
    Ok(if stages.len() > 1 { stages } else { Vec::new() })
}

fn stage(one: &InstallStage) -> Stage {
    let share = i128::from(one.devices) * 1_000 / i128::from(one.installs.max(1));
    Stage {
        label: match one.step {
            StageStep::Installed => "Installed".to_owned(),
            StageStep::Active => format!("Active on day {}", one.age),
            StageStep::Paid => format!("Paid by day {}", one.age),
        },
        value: text::count(one.devices),
        width: i64::try_from(share).unwrap_or(0),
        share: if one.step == StageStep::Installed {
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
        let of = |step| InstallStage {
            step,
            age: 7,
            installs: 40,
            devices: 10,
        };
        let active = stage(&of(StageStep::Active));
        assert_eq!((active.width, &*active.label), (250, "Active on day 7"));
        assert_eq!(active.share, "25.0 % of 40 installs");
        assert_eq!(stage(&of(StageStep::Paid)).label, "Paid by day 7");
    }
}
