//! Cohort reports.

use super::stats::{PIECES, PeriodPieces, filter_value, join_rollup};
use crate::Failure;
use crate::params::Param;
use crate::rows::{PostgresRow, uuid};
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Dimension;
use tributary_domain::report::cohort::{CohortFigures, CohortReportQuery, CohortRow};
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::unmerged_cohorts;
use tributary_store::records::{
    cohort_table, dimension_column, has_figures, read_cohort_figures, read_dimension, read_period,
    sum_columns,
};

/// Reads the merged roll-ups and adds the pending increments.
pub(super) async fn find_cohorts(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    question: &CohortReportQuery,
) -> Result<Vec<CohortRow>, Failure> {
    let merged = find_merged(tx, app, environment, question).await?;
    let unmerged = unmerged_cohorts(tx, app).await?;
    Ok(unmerged.add_to_cohorts((app, environment), question, merged)?)
}

async fn find_merged(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    question: &CohortReportQuery,
) -> Result<Vec<CohortRow>, Failure> {
    let table = question.table().ok_or_else(Refusal::no_rollup)?;
    let report = &question.report;
    let parts = PeriodPieces::of(&report.periods);
    let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
    let (age_max, rows_max) = (i64::from(question.age_max), i64::from(report.rows_max));
    let mut params = parts.params();
    params.extend([&app as &dyn Param, &environment, &age_max, &rows_max]);
    let filters: Vec<(Dimension, Box<dyn Param + Send>)> = report
        .filters
        .iter()
        .map(|(dimension, wanted)| (*dimension, filter_value(*dimension, wanted)))
        .collect();
    let mut further = " and age <= $7".to_owned();
    for (dimension, wanted) in &filters {
        params.push(&**wanted);
        let column = dimension_column(*dimension);
        further = format!("{further} and {column} = ${}", params.len());
    }
    let mut grouped = vec!["pieces.n", "age::bigint"];
    grouped.extend(report.group_by.iter().map(|one| dimension_column(*one)));
    let grouped = grouped.join(", ");
    let sql = format!(
        "select {grouped}, {} from {PIECES} {}
         group by {grouped} having {} limit $8",
        sum_columns(&CohortFigures::COLUMNS),
        join_rollup(cohort_table(table), &further),
        has_figures(&CohortFigures::COLUMNS)
    );
    let mut found = Vec::new();
    for row in &tx.query(&sql, &params).await? {
        let age: i64 = row.try_get(1)?;
        let row = PostgresRow(row);
        let mut values = Vec::with_capacity(report.group_by.len());
        for (index, dimension) in (2..).zip(&report.group_by) {
            values.push(read_dimension(&row, *dimension, index)?);
        }
        found.push(CohortRow {
            period: read_period(&row)?,
            age: u8::try_from(age).unwrap_or(u8::MAX),
            figures: read_cohort_figures(&row, 2 + values.len())?,
            values,
        });
    }
    Ok(found)
}
