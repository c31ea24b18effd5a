//! The totals of the range that a report is compared with.

use crate::access::PageContext;
use crate::analysis::AnalysisBar;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use tributary_domain::access::AnalyticsRead;
use tributary_domain::report::{ReportFigures, ReportQuery, Spend, report_rows};

/// Loads the totals with the same filters; `None` if nothing is compared, or if the figures of that
/// time are not complete. Costs are known by whole
/// days, so a part of a day has none.
pub(super) async fn compared_total(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
    bar: &AnalysisBar,
    has_costs: bool,
) -> Result<Option<ReportFigures>, Failure> {
    let Some(compared) = &bar.range.compared else {
        return Ok(None);
    };
    let (app, caller) = (context.app()?.id, &context.authorized);
    let question = ReportQuery {
        periods: vec![compared.period],
        group_by: Vec::new(),
        filters: bar.filters(),
        rows_max: 1,
    };
    let complete_from = handles.store.complete_from(caller, app, &question).await?;
    if complete_from.is_some() {
        return Ok(None);
    }
    let read = if has_costs {
        question.split_by_network()
    } else {
        question.clone()
    };
    let found = handles.store.stats(caller, app, read).await?;
    let days = &compared.days;
    let spend: Option<Spend> = if has_costs && !compared.is_partial() {
        let sums = handles
            .store
            .cost_sums(caller, vec![app], days.from, days.to);
        Some(sums.await?.into_iter().map(|(_, sum)| sum).collect())
    } else {
        None
    };
    let rows = report_rows(found, &question, &days.split(None), spend.as_ref());
    Ok(rows.into_values().next())
}
