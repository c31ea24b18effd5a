//! `GET /apps/{app}/explore.csv` — the Explore report as CSV: the same columns, filters and order as
//! on the page, with all rows.

use super::report::load_report;
use crate::access::ReportContext;
use crate::analysis::AnalysisBar;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use ::csv::{Terminator, WriterBuilder};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use tributary_domain::access::AnalyticsRead;
use tributary_domain::report::spreadsheet_field;

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
    let mut file = WriterBuilder::new()
        .terminator(Terminator::CRLF)
        .from_writer(Vec::new());
    // Writing to memory cannot fail.
    let _infallible = file.write_record(heads);
    for (key, row) in &found.rows {
        let values = found.plain_values(key).into_iter();
        let values = values.map(|text| spreadsheet_field(&text).into_owned());
        let figures = found.columns.iter().map(|column| column.plain(row));
        let _infallible = file.write_record(values.chain(figures));
    }
    let file = file.into_inner().unwrap_or_default();
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"explore.csv\"",
        ),
        (header::CACHE_CONTROL, "no-store"),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)));
    Ok((headers, file).into_response())
}
