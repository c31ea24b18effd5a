//! The figures of the range that a report is compared with.

use crate::access::PageContext;
use crate::analysis::AnalysisBar;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use std::collections::BTreeMap;
use tributary_domain::access::AnalyticsRead;
use tributary_domain::report::{Dimension, ReportFigures, ReportQuery, Spend, report_rows};

/// Maximum number of rows. If the compared range has more, nothing is compared.
const ROWS_MAX: u32 = 50_000;

/// The rows of the compared range, by the values of the dimensions, and their total.
pub(super) struct ComparedRows {
    pub(super) rows: BTreeMap<Vec<String>, ReportFigures>,
    pub(super) total: ReportFigures,
}

/// Loads the rows with the same filters; `None` if nothing is compared, or if the figures of that
/// time are not complete. Costs are known by whole days, so a part of a day has none.
pub(super) async fn compared_rows(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
    bar: &AnalysisBar,
    by: &[Dimension],
    has_costs: bool,
) -> Result<Option<ComparedRows>, Failure> {
    let Some(compared) = bar
        .range
        .compared
        .as_ref()
        .filter(|_| bar.data_begin.is_none())
    else {
        return Ok(None);
    };
    let (app, caller) = (context.app()?.id, &context.authorized);
    let question = ReportQuery {
        periods: vec![compared.period],
        group_by: by.to_vec(),
        filters: bar.filters(),
        rows_max: ROWS_MAX + 1,
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
    if rows.len() > ROWS_MAX as usize {
        return Ok(None);
    }
    let mut total = ReportFigures {
        cost: spend.map(|_| 0),
        ..ReportFigures::zero()
    };
    for row in rows.values() {
        total.add(row);
    }
    let rows = rows.into_iter().map(|((_, values), row)| (values, row));
    Ok(Some(ComparedRows {
        rows: rows.collect(),
        total,
    }))
}
