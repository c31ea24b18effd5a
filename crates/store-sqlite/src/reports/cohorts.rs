//! Cohort reports.

use super::stats::{PIECES, pieces_json};
use crate::Failure;
use crate::rows::SqliteRow;
use crate::tables::{SqliteTables, run};
use rusqlite::{Connection, params};
use tributary_domain::access::Environment;
use tributary_domain::report::Dimension;
use tributary_domain::report::cohort::{CohortFigures, CohortReportQuery, CohortRow};
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::unmerged_cohorts;
use tributary_store::records::{
    cohort_column, has_figures, read_cohort_figures, read_dimension, read_period, sum_columns,
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
    Ok(unmerged.add_to_cohorts((app, environment), question, merged))
}

fn find_merged(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    question: &CohortReportQuery,
) -> Result<Vec<CohortRow>, Failure> {
    let (table, column) = cohort_column(question.group_by);
    let value = column.unwrap_or("''");
    let sql = format!(
        "{PIECES} select pieces.n, {value}, age, {} from pieces cross join {table} as rollup
         where app_id = ? and environment = ? and rollup.grain = pieces.grain
           and bucket >= pieces.begins and bucket < pieces.ends and age <= ?
         group by 1, 2, 3 having {} limit ?",
        sum_columns(&CohortFigures::COLUMNS),
        has_figures(&CohortFigures::COLUMNS)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![
        pieces_json(&question.periods),
        app.as_bytes(),
        environment.as_str(),
        question.age_max,
        question.rows_max
    ])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let value = if column == Some("link_id") {
            read_dimension(&SqliteRow(row), Dimension::Link, 1)?
        } else {
            row.get(1)?
        };
        found.push(CohortRow {
            period: read_period(&SqliteRow(row))?,
            value,
            age: row.get(2)?,
            figures: read_cohort_figures(&SqliteRow(row), 3)?,
        });
    }
    Ok(found)
}
