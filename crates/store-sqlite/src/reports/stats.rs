//! An app's statistics by dimension.

use crate::Failure;
use crate::rows::SqliteRow;
use crate::tables::{SqliteTables, run};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};
use std::collections::HashMap;
use std::fmt::Write as _;
use tributary_domain::access::Environment;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::{
    Dimension, Figures, Period, ReportQuery, Rollup, StatsRow, split_by_grain,
};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_recording::unmerged_figures;
use tributary_store::records::{
    dimension_column, read_dimension, read_figures, read_period, rollup_table,
};

/// The periods, split into quarter-hours, hours and days as the roll-ups store them, as a table to
/// join.
pub(super) const PIECES: &str = "with pieces (n, grain, begins, ends) as (
     select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
            json_extract(value, '$[3]') from json_each(?))";

pub(super) fn pieces_json(periods: &[Period]) -> String {
    let parts: Vec<String> = split_by_grain(periods)
        .iter()
        .map(|piece| {
            let (from, until) = (piece.from.as_millis(), piece.until.as_millis());
            let minutes = piece.grain.minutes();
            format!("[{},{minutes},{from},{until}]", piece.period)
        })
        .collect();
    format!("[{}]", parts.join(","))
}

/// The SQL value of a filter. An invalid link matches nothing; no text matches rows without a link.
pub(super) fn filter_value(dimension: Dimension, text: &str) -> Value {
    if dimension != Dimension::Link {
        return Value::Text(text.to_owned());
    }
    if text.is_empty() {
        return Value::Blob(Vec::new());
    }
    let link = LinkId::parse(text).map(|link| Value::Blob(link.as_bytes().to_vec()));
    link.unwrap_or(Value::Null)
}

/// Positions of groups by the values of their first columns. Rows are grouped in memory, because
/// `SQLite` would first sort them with all their columns.
#[derive(Default)]
pub(super) struct Groups {
    positions: HashMap<Vec<u8>, usize>,
    key: Vec<u8>,
}

impl Groups {
    /// Returns the position of the row's group, or `None` if it is new and `next` is its position.
    pub(super) fn find(
        &mut self,
        row: &Row<'_>,
        columns: usize,
        next: usize,
    ) -> Result<Option<usize>, Failure> {
        self.key.clear();
        for index in 0..columns {
            self.write_key(row, index)?;
        }
        if let Some(position) = self.positions.get(&self.key) {
            return Ok(Some(*position));
        }
        self.positions.insert(self.key.clone(), next);
        Ok(None)
    }

    /// Appends a column to the key. The length prefix ensures that different rows have different keys.
    fn write_key(&mut self, row: &Row<'_>, index: usize) -> Result<(), Failure> {
        let mut write = |bytes: &[u8]| {
            self.key.extend(bytes.len().to_le_bytes());
            self.key.extend(bytes);
        };
        match row.get_ref(index)? {
            ValueRef::Integer(number) => write(&number.to_le_bytes()),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => write(bytes),
            ValueRef::Null | ValueRef::Real(_) => write(&[]),
        }
        Ok(())
    }
}

/// Reads the merged roll-ups and adds the pending increments.
pub(crate) fn find_stats(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    question: &ReportQuery,
) -> Result<Vec<StatsRow>, Failure> {
    let merged = find_merged(connection, app, environment, question)?;
    let unmerged = run(unmerged_figures(&SqliteTables(connection), app))?;
    Ok(unmerged.add_to_stats((app, environment), question, merged)?)
}

fn find_merged(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    question: &ReportQuery,
) -> Result<Vec<StatsRow>, Failure> {
    let table = Rollup::for_dimensions(&question.dimensions()).ok_or_else(Refusal::no_rollup)?;
    let mut values = vec![
        Value::Text(pieces_json(&question.periods)),
        Value::Blob(app.as_bytes().to_vec()),
        Value::Text(environment.as_str().to_owned()),
    ];
    let mut further = String::new();
    for (dimension, wanted) in &question.filters {
        let matched = dimension.filter_values(wanted).into_iter();
        let matched: Vec<Value> = matched.map(|one| filter_value(*dimension, one)).collect();
        let (column, marks) = (dimension_column(*dimension), vec!["?"; matched.len()]);
        // Writing to a String cannot fail.
        let _infallible = write!(further, " and {column} in ({})", marks.join(", "));
        values.extend(matched);
    }
    let mut columns = vec!["pieces.n"];
    columns.extend(question.group_by.iter().map(|one| dimension_column(*one)));
    columns.extend(Figures::COLUMNS);
    let sql = format!(
        "{PIECES} select {} from pieces cross join {} as rollup
         where app_id = ? and environment = ? and rollup.grain = pieces.grain
           and bucket >= pieces.begins and bucket < pieces.ends{further}",
        columns.join(", "),
        rollup_table(table)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let rows_max = usize::try_from(question.rows_max).unwrap_or(usize::MAX);
    let (mut found, mut groups) = (Vec::<StatsRow>::new(), Groups::default());
    while let Some(row) = rows.next()? {
        let figures = read_figures(&SqliteRow(row), question.group_by.len() + 1)?;
        // Values that moved to `(other)` leave rows of zeros, which must not use up the rows of a
        // report.
        if figures.is_zero() {
            continue;
        }
        match groups.find(row, question.group_by.len() + 1, found.len())? {
            Some(position) if position < rows_max => found[position].figures.add(&figures, 1),
            None if found.len() < rows_max => found.push(stats_row(row, question, figures)?),
            // The report is full.
            Some(_) | None => {}
        }
    }
    Ok(found)
}

fn stats_row(row: &Row<'_>, question: &ReportQuery, figures: Figures) -> Result<StatsRow, Failure> {
    let value =
        |(index, one): (usize, &Dimension)| read_dimension(&SqliteRow(row), *one, index + 1);
    let values = question.group_by.iter().enumerate().map(value);
    Ok(StatsRow {
        period: read_period(&SqliteRow(row))?,
        values: values.collect::<Result<_, _>>()?,
        figures,
    })
}
