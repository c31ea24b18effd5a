//! An app's statistics by dimension.

use crate::Failure;
use crate::params::{Param, column};
use crate::rows::{PostgresRow, uuid};
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::{
    Dimension, Figures, GrainSpan, Period, ReportQuery, Rollup, StatsRow, split_by_grain,
};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_recording::unmerged_figures;
use tributary_store::records::{
    dimension_column, has_figures, read_dimension, read_figures, read_period, rollup_table,
    sum_columns,
};
use uuid::Uuid;

/// The periods, split into quarter-hours, hours and days as the roll-ups store them, as a table to
/// join.
pub(super) const PIECES: &str = "unnest($1, $2, $3, $4) as pieces (n, grain, begins, ends)";

/// Joins the roll-up rows of each piece, with one index lookup per piece (see `devices::bulk`).
/// Otherwise the planner may read all of the app's rows and compare them with every piece.
pub(super) fn join_rollup(table: &str, further: &str) -> String {
    format!(
        "cross join lateral
              (select * from {table}
               where app_id = $5 and environment = $6 and {table}.grain = pieces.grain
                 and bucket >= pieces.begins and bucket < pieces.ends{further}
               offset 0) as rollup"
    )
}

/// The split periods (see [`PIECES`]) as SQL columns.
pub(super) struct PeriodPieces {
    numbers: Vec<i64>,
    grains: Vec<i64>,
    begins: Vec<i64>,
    ends: Vec<i64>,
}

impl PeriodPieces {
    pub(super) fn of(periods: &[Period]) -> Self {
        let all: Vec<GrainSpan> = split_by_grain(periods);
        Self {
            numbers: column(&all, |piece| {
                i64::try_from(piece.period).unwrap_or(i64::MAX)
            }),
            grains: column(&all, |piece| piece.grain.minutes()),
            begins: column(&all, |piece| piece.from.as_millis()),
            ends: column(&all, |piece| piece.until.as_millis()),
        }
    }

    pub(super) fn params(&self) -> Vec<&dyn Param> {
        vec![&self.numbers, &self.grains, &self.begins, &self.ends]
    }
}

/// The SQL value of a filter. An invalid link matches nothing; no text matches rows without a link.
pub(super) fn filter_value(dimension: Dimension, text: &str) -> Box<dyn Param + Send> {
    if dimension != Dimension::Link {
        return Box::new(text.to_owned());
    }
    if text.is_empty() {
        return Box::new(Some(Uuid::nil()));
    }
    let link = LinkId::parse(text).map(|link| uuid(link.as_bytes()));
    Box::new(link.ok())
}

/// Reads the merged roll-ups and adds the pending increments.
pub(super) async fn find_stats(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    question: &ReportQuery,
) -> Result<Vec<StatsRow>, Failure> {
    let merged = find_merged(tx, app, environment, question).await?;
    let unmerged = unmerged_figures(tx, app).await?;
    Ok(unmerged.add_to_stats((app, environment), question, merged)?)
}

/// The values of a filter, as parameters.
type FilterValues = Vec<Box<dyn Param + Send>>;

async fn find_merged(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    question: &ReportQuery,
) -> Result<Vec<StatsRow>, Failure> {
    let table = Rollup::for_dimensions(&question.dimensions()).ok_or_else(Refusal::no_rollup)?;
    let parts = PeriodPieces::of(&question.periods);
    let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
    let rows_max = i64::from(question.rows_max);
    let mut params = parts.params();
    params.extend([&app as &dyn Param, &environment, &rows_max]);
    let filters: Vec<(Dimension, FilterValues)> = question
        .filters
        .iter()
        .map(|(dimension, wanted)| {
            let matched = dimension.filter_values(wanted).into_iter();
            let matched = matched.map(|one| filter_value(*dimension, one));
            (*dimension, matched.collect())
        })
        .collect();
    let mut further = String::new();
    for (dimension, matched) in &filters {
        let first = params.len() + 1;
        params.extend(matched.iter().map(|one| &**one as &dyn Param));
        let marks: Vec<String> = (first..=params.len())
            .map(|one| format!("${one}"))
            .collect();
        let column = dimension_column(*dimension);
        further = format!("{further} and {column} in ({})", marks.join(", "));
    }
    let mut grouped = vec!["pieces.n"];
    grouped.extend(question.group_by.iter().map(|one| dimension_column(*one)));
    let grouped = grouped.join(", ");
    let sql = format!(
        "select {grouped}, {} from {PIECES} {}
         group by {grouped} having {} limit $7",
        sum_columns(&Figures::COLUMNS),
        join_rollup(rollup_table(table), &further),
        has_figures(&Figures::COLUMNS)
    );
    let mut found = Vec::new();
    for row in &tx.query(&sql, &params).await? {
        let row = PostgresRow(row);
        let mut index = 1;
        let mut values = Vec::with_capacity(question.group_by.len());
        for dimension in &question.group_by {
            values.push(read_dimension(&row, *dimension, index)?);
            index += 1;
        }
        let figures = read_figures(&row, index)?;
        found.push(StatsRow {
            period: read_period(&row)?,
            values,
            figures,
        });
    }
    Ok(found)
}
