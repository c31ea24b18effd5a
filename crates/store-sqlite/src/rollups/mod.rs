//! Roll-ups: added to in the transaction that records what is counted, last and in the order of their keys.

mod cohorts;
mod rebuild;
mod values;

pub(crate) use rebuild::{days, rebuild};

use crate::Failure;
use rusqlite::{Connection, Row, ToSql, params_from_iter};
use std::fmt::Write as _;
use tributary_domain::report::cohort::CohortFigures;
use tributary_domain::report::{Figures, Increments, RollupRows, Stretch};
use tributary_domain::vocabulary::id::LinkId;

/// There is one writer, which never waits for another.
const SLOT: i64 = 0;

/// Adds what a transaction counted.
pub(crate) fn add(connection: &Connection, increments: &Increments) -> Result<(), Failure> {
    if increments.is_empty() {
        return Ok(());
    }
    let cohorts = cohorts::enroll(connection, increments.cohorts())?;
    let mut values = increments.values();
    values.extend(cohorts.values());
    let fates = values::fates(connection, values)?;
    add_rows(connection, &RollupRows::of(increments, &fates, &cohorts))
}

/// Adds rows as they are stored.
fn add_rows(connection: &Connection, rows: &RollupRows) -> Result<(), Failure> {
    for (key, figures) in &rows.networks {
        upsert(
            connection,
            "rollup_networks",
            &key.at,
            &[("network", &key.network)],
            figures,
        )?;
    }
    for (key, figures) in &rows.credits {
        let columns: [(&str, &dyn ToSql); 5] = [
            ("network", &key.network),
            ("link_id", &link(key.link.as_ref())),
            ("campaign_id", &key.campaign),
            ("adset_id", &key.adset),
            ("ad_id", &key.ad),
        ];
        upsert(connection, "rollup_credits", &key.at, &columns, figures)?;
    }
    for (key, figures) in &rows.names {
        let columns: [(&str, &dyn ToSql); 2] =
            [("source", &key.source.as_str()), ("name", &key.name)];
        upsert(connection, "rollup_names", &key.at, &columns, figures)?;
    }
    for (key, figures) in &rows.places {
        let columns: [(&str, &dyn ToSql); 2] =
            [("country", &key.country), ("platform", &key.platform)];
        upsert(connection, "rollup_places", &key.at, &columns, figures)?;
    }
    for (key, figures) in &rows.cohorts.credits {
        let columns: [(&str, &dyn ToSql); 4] = [
            ("network", &key.credit.network),
            ("link_id", &link(key.credit.link.as_ref())),
            ("campaign_id", &key.credit.campaign),
            ("age", &key.age),
        ];
        upsert(connection, "rollup_cohorts", &key.at, &columns, figures)?;
    }
    for (key, figures) in &rows.cohorts.places {
        let columns: [(&str, &dyn ToSql); 2] = [("country", &key.country), ("age", &key.age)];
        upsert(
            connection,
            "rollup_cohort_places",
            &key.at,
            &columns,
            figures,
        )?;
    }
    Ok(())
}

/// A key has no nothing: no link is no bytes.
fn link(link: Option<&LinkId>) -> &[u8] {
    link.map_or(&[], |link| link.as_bytes())
}

/// Reads the link of a key; nothing where it has none.
pub(crate) fn link_id(row: &Row<'_>, index: usize) -> Result<Option<[u8; 16]>, Failure> {
    let bytes = row.get_ref(index)?.as_blob().unwrap_or_default();
    Ok(bytes.try_into().ok())
}

/// Figures of a row: their columns and one number for each.
trait Counted {
    fn columns(&self) -> &'static [&'static str];
    fn numbers(&self) -> Vec<i64>;
}

impl Counted for Figures {
    fn columns(&self) -> &'static [&'static str] {
        &Self::COLUMNS
    }

    fn numbers(&self) -> Vec<i64> {
        self.values().to_vec()
    }
}

impl Counted for CohortFigures {
    fn columns(&self) -> &'static [&'static str] {
        &Self::COLUMNS
    }

    fn numbers(&self) -> Vec<i64> {
        self.values().to_vec()
    }
}

fn upsert(
    connection: &Connection,
    table: &str,
    at: &Stretch,
    key: &[(&str, &dyn ToSql)],
    figures: &impl Counted,
) -> Result<(), Failure> {
    let mut names = "app_id, environment, grain, bucket".to_owned();
    for (name, _) in key {
        // Writing to a String cannot fail.
        let _infallible = write!(names, ", {name}");
    }
    names.push_str(", slot");
    let columns = figures.columns();
    let marks = vec!["?"; key.len() + columns.len() + 5].join(", ");
    let sums: Vec<String> = columns
        .iter()
        .map(|column| format!("{column} = {column} + excluded.{column}"))
        .collect();
    let sql = format!(
        "insert into {table} ({names}, {}) values ({marks}) on conflict ({names}) do update set {}",
        columns.join(", "),
        sums.join(", ")
    );
    let environment = at.environment.as_str();
    let (grain, bucket) = (at.grain.minutes(), at.bucket.begins_at().as_millis());
    let head: [&dyn ToSql; 4] = [at.app.as_bytes(), &environment, &grain, &bucket];
    let numbers = figures.numbers();
    let all = head
        .into_iter()
        .chain(key.iter().map(|(_, value)| *value))
        .chain([&SLOT as &dyn ToSql])
        .chain(numbers.iter().map(|number| number as &dyn ToSql));
    connection
        .prepare_cached(&sql)?
        .execute(params_from_iter(all))?;
    Ok(())
}
