//! Cohort reports.

use super::stats::{PIECES, PeriodPieces, join_rollup};
use crate::Failure;
use crate::params::Param;
use crate::rows::{PostgresRow, uuid};
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::report::Dimension;
use tributary_domain::report::cohort::{CohortFigures, CohortReportQuery, CohortRow};
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::unmerged_cohorts;
use tributary_store::records::{
    cohort_column, has_figures, read_cohort_figures, read_dimension, read_period, sum_columns,
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
    Ok(unmerged.add_to_cohorts((app, environment), question, merged))
}

async fn find_merged(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    question: &CohortReportQuery,
) -> Result<Vec<CohortRow>, Failure> {
    let (table, column) = cohort_column(question.group_by);
    let value = column.unwrap_or("''");
    let parts = PeriodPieces::of(&question.periods);
    let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
    let (age_max, rows_max) = (i64::from(question.age_max), i64::from(question.rows_max));
    let mut params = parts.params();
    params.extend([&app as &dyn Param, &environment, &age_max, &rows_max]);
    let sql = format!(
        "select pieces.n, {value}, age::bigint, {} from {PIECES} {}
         group by 1, 2, 3 having {} limit $8",
        sum_columns(&CohortFigures::COLUMNS),
        join_rollup(table, " and age <= $7"),
        has_figures(&CohortFigures::COLUMNS)
    );
    let mut found = Vec::new();
    for row in &tx.query(&sql, &params).await? {
        let value = if column == Some("link_id") {
            read_dimension(&PostgresRow(row), Dimension::Link, 1)?
        } else {
            row.try_get(1)?
        };
        let age: i64 = row.try_get(2)?;
        found.push(CohortRow {
            period: read_period(&PostgresRow(row))?,
            value,
            age: u8::try_from(age).unwrap_or(u8::MAX),
            figures: read_cohort_figures(&PostgresRow(row), 3)?,
        });
    }
    Ok(found)
}
