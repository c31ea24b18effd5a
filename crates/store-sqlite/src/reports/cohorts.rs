//! What devices that were installed together did in the days after.

use super::stats::{PIECES, pieces_json};
use crate::Failure;
use crate::rows::Cells;
use crate::tables::{Tables, run};
use rusqlite::{Connection, params};
use tributary_domain::access::Environment;
use tributary_domain::report::Dimension;
use tributary_domain::report::cohort::{CohortFigures, CohortQuestion, CohortRow};
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::unmerged_cohorts;
use tributary_store::records::{cohort_column, cohort_figures, dimension_value, period, sums};

/// Adds what is merged and what is not.
pub(super) fn find_cohorts(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    question: &CohortQuestion,
) -> Result<Vec<CohortRow>, Failure> {
    let merged = find_merged(connection, app, environment, question)?;
    let unmerged = run(unmerged_cohorts(&Tables(connection), app))?;
    Ok(unmerged.add_to_cohorts((app, environment), question, merged))
}

fn find_merged(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    question: &CohortQuestion,
) -> Result<Vec<CohortRow>, Failure> {
    let (table, column) = cohort_column(question.by);
    let value = column.unwrap_or("''");
    let sql = format!(
        "{PIECES} select pieces.n, {value}, age, {} from pieces cross join {table} as rollup
         where app_id = ? and environment = ? and rollup.grain = pieces.grain
           and bucket >= pieces.begins and bucket < pieces.ends and age <= ?
         group by 1, 2, 3 limit ?",
        sums(&CohortFigures::COLUMNS)
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
            dimension_value(&Cells(row), Dimension::Link, 1)?
        } else {
            row.get(1)?
        };
        found.push(CohortRow {
            period: period(&Cells(row))?,
            value,
            age: row.get(2)?,
            figures: cohort_figures(&Cells(row), 3)?,
        });
    }
    Ok(found)
}
