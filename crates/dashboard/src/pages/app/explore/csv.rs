//! `GET /apps/{app}/explore.csv` — the Explore report as CSV: the same columns, filters and order as
//! on the page, with all rows.

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
use tributary_domain::report::report_file_name;

/// Returns the file.
pub(crate) async fn csv(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let bar = AnalysisBar::load(&handles, &context).await?;
    let found = load_report(&handles, &context, &bar)
        .await?
        .map_err(|_| Failure::NotFound)?;
    let mut heads = found.heads();
    heads.extend(found.columns.iter().map(|column| column.word));
    let rows = found.rows.iter().map(|(key, row)| {
        let values = found.plain_values(key).into_iter();
        let figure = |column: &&Metric| {
            if found.has_value(column, key) {
                column.plain(row)
            } else {
                String::new()
            }
        };
        values.chain(found.columns.iter().map(figure).collect::<Vec<_>>())
    });
    let name = report_file_name(context.app()?.name.as_str(), "explore", &bar.range.days);
    Ok(csv_file(&name, heads, rows))
}
