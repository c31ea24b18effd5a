//! `GET /apps/{app}/explore.csv` — the Explore report as CSV: the same columns, filters and order as
//! on the page, with all rows. The figures of the compared range follow in columns of their own.

use super::report::load_report;
use crate::access::ReportContext;
use crate::analysis::AnalysisBar;
use crate::failure::Failure;
use crate::metric::Metric;
use crate::response::csv_file;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::AnalyticsRead;
use tributary_domain::report::{ReportFigures, report_file_name};

/// Returns the file.
pub(crate) async fn csv(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let bar = AnalysisBar::load(&handles, &context).await?;
    let found = load_report(&handles, &context, &bar)
        .await?
        .map_err(|_| Failure::NotFound)?;
    let mut heads: Vec<String> = found.heads().into_iter().map(str::to_owned).collect();
    heads.extend(found.columns.iter().map(|column| column.word.to_owned()));
    if found.has_rows_before() {
        let before = found.columns.iter();
        heads.extend(before.map(|column| format!("{}.previous", column.word)));
    }
    let rows = found.rows.iter().map(|(key, row)| {
        let before = found.row_before(key);
        let ranges = std::iter::once(row).chain(&before);
        let figures = ranges.flat_map(|row| found.columns.iter().map(move |one| (one, row)));
        let figure = |(column, row): (&&'static Metric, &ReportFigures)| {
            if found.has_value(column, key) {
                column.plain(row)
            } else {
                String::new()
            }
        };
        let mut line = found.plain_values(key);
        line.extend(figures.map(figure));
        line
    });
    let name = report_file_name(context.app()?.name.as_str(), "explore", &bar.range.days);
    Ok(csv_file(&name, heads, rows))
}
