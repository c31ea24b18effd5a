//! Cohort reports.

use super::stats::{Groups, PIECES, filter_value, pieces_json};
use crate::Failure;
use crate::rows::SqliteRow;
use crate::tables::{SqliteTables, run};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use std::fmt::Write as _;
use tributary_domain::access::Environment;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::ReportQuery;
use tributary_domain::report::cohort::{CohortFigures, CohortReportQuery, CohortRow};
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::unmerged_cohorts;
use tributary_store::records::{
    cohort_table, dimension_column, read_cohort_figures, read_dimension, read_period,
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
    let mut columns = vec!["pieces.n", "age"];
    columns.extend(report.group_by.iter().map(|one| dimension_column(*one)));
    let grouped = columns.len();
    columns.extend(CohortFigures::COLUMNS);
    let sql = format!(
        "{PIECES} select {} from pieces cross join {} as rollup
         where app_id = ? and environment = ? and rollup.grain = pieces.grain
           and bucket >= pieces.begins and bucket < pieces.ends and age <= ?{further}",
        columns.join(", "),
        cohort_table(table)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(params))?;
    let (mut found, mut groups) = (Vec::<CohortRow>::new(), Groups::default());
    while let Some(row) = rows.next()? {
        let figures = read_cohort_figures(&SqliteRow(row), grouped)?;
        match groups.find(row, grouped, found.len())? {
            Some(position) => found[position].figures.add(&figures, 1),
            None => found.push(cohort_row(row, report, figures)?),
        }
    }
    found.retain(|row| !row.figures.is_zero());
    found.truncate(usize::try_from(report.rows_max).unwrap_or(usize::MAX));
    Ok(found)
}

fn cohort_row(
    row: &Row<'_>,
    report: &ReportQuery,
    figures: CohortFigures,
) -> Result<CohortRow, Failure> {
    let age = row.get(1)?;
    let row = SqliteRow(row);
    let values = (2..).zip(&report.group_by);
    let values = values.map(|(index, dimension)| read_dimension(&row, *dimension, index));
    Ok(CohortRow {
        period: read_period(&row)?,
        age,
        values: values.collect::<Result<_, _>>()?,
        figures,
    })
}
