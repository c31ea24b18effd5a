//! Cohort reports.

use super::stats::{PIECES, filter_value, pieces_json};
use crate::Failure;
use crate::rows::SqliteRow;
use crate::tables::{SqliteTables, run};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::fmt::Write as _;
use tributary_domain::access::Environment;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::cohort::{CohortFigures, CohortReportQuery, CohortRow};
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::unmerged_cohorts;
use tributary_store::records::{
    cohort_table, dimension_column, has_figures, read_cohort_figures, read_dimension, read_period,
    sum_columns,
};

/// Reads the merged roll-ups and adds the pending increments.
pub(super) fn find_cohorts(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    question: &CohortReportQuery,
) -> Result<Vec<CohortRow>, Failure> {
    let merged = find_merged(connection, app, environment, question)?;
    let unmerged = run(unmerged_cohorts(&SqliteTables(connection), app))?;
    Ok(unmerged.add_to_cohorts((app, environment), question, merged)?)
}

fn find_merged(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    question: &CohortReportQuery,
) -> Result<Vec<CohortRow>, Failure> {
    let table = question.table().ok_or_else(Refusal::no_rollup)?;
    let report = &question.report;
    let mut params = vec![
        Value::Text(pieces_json(&report.periods)),
        Value::Blob(app.as_bytes().to_vec()),
        Value::Text(environment.as_str().to_owned()),
        Value::Integer(question.age_max.into()),
    ];
    let mut further = String::new();
    for (dimension, wanted) in &report.filters {
        // Writing to a String cannot fail.
        let _infallible = write!(further, " and {} = ?", dimension_column(*dimension));
        params.push(filter_value(*dimension, wanted));
    }
    params.push(Value::Integer(report.rows_max.into()));
    let mut grouped = vec!["pieces.n", "age"];
    grouped.extend(report.group_by.iter().map(|one| dimension_column(*one)));
    let grouped = grouped.join(", ");
    let sql = format!(
        "{PIECES} select {grouped}, {} from pieces cross join {} as rollup
         where app_id = ? and environment = ? and rollup.grain = pieces.grain
           and bucket >= pieces.begins and bucket < pieces.ends and age <= ?{further}
         group by {grouped} having {} limit ?",
        sum_columns(&CohortFigures::COLUMNS),
        cohort_table(table),
        has_figures(&CohortFigures::COLUMNS)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(params))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (age, row) = (row.get(1)?, SqliteRow(row));
        let mut values = Vec::with_capacity(report.group_by.len());
        for (index, dimension) in (2..).zip(&report.group_by) {
            values.push(read_dimension(&row, *dimension, index)?);
        }
        found.push(CohortRow {
            period: read_period(&row)?,
            age,
            figures: read_cohort_figures(&row, 2 + values.len())?,
            values,
        });
    }
    Ok(found)
}
