//! Roll-ups: added to in the transaction that records what is counted, last and in the order of their keys.

use crate::Failure;
use rusqlite::{Connection, ToSql, params_from_iter};
use std::fmt::Write as _;
use tributary_domain::report::{Figures, Increments};

/// Adds what a transaction counted.
pub(crate) fn add(connection: &Connection, increments: &Increments) -> Result<(), Failure> {
    let nothing: &[u8] = &[];
    for (key, figures) in &increments.credits {
        let link = key.link.as_ref().map_or(nothing, |link| link.as_bytes());
        let columns: [(&str, &dyn ToSql); 8] = [
            ("app_id", key.app.as_bytes()),
            ("environment", &key.environment.as_str()),
            ("bucket", &key.bucket.begins_at().as_millis()),
            ("network", &key.network),
            ("link_id", &link),
            ("campaign_id", &key.campaign),
            ("adset_id", &key.adset),
            ("ad_id", &key.ad),
        ];
        upsert(connection, "rollup_credits", &columns, figures)?;
    }
    for (key, figures) in &increments.names {
        let columns: [(&str, &dyn ToSql); 5] = [
            ("app_id", key.app.as_bytes()),
            ("environment", &key.environment.as_str()),
            ("bucket", &key.bucket.begins_at().as_millis()),
            ("source", &key.source.as_str()),
            ("name", &key.name),
        ];
        upsert(connection, "rollup_names", &columns, figures)?;
    }
    for (key, figures) in &increments.places {
        let columns: [(&str, &dyn ToSql); 5] = [
            ("app_id", key.app.as_bytes()),
            ("environment", &key.environment.as_str()),
            ("bucket", &key.bucket.begins_at().as_millis()),
            ("country", &key.country),
            ("platform", &key.platform),
        ];
        upsert(connection, "rollup_places", &columns, figures)?;
    }
    Ok(())
}

fn upsert(
    connection: &Connection,
    table: &str,
    key: &[(&str, &dyn ToSql)],
    figures: &Figures,
) -> Result<(), Failure> {
    if figures.is_zero() {
        return Ok(());
    }
    let names: Vec<&str> = key.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    let mut sql = format!("insert into {table} ({names}");
    for column in Figures::COLUMNS {
        // Writing to a String cannot fail.
        let _infallible = write!(sql, ", {column}");
    }
    let marks = vec!["?"; key.len() + Figures::COUNT].join(", ");
    let _infallible = write!(
        sql,
        ") values ({marks}) on conflict ({names}) do update set "
    );
    for (number, column) in Figures::COLUMNS.iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        let _infallible = write!(sql, "{comma}{column} = {column} + excluded.{column}");
    }
    let values = figures.values();
    let keys = key.iter().map(|(_, value)| *value);
    let all = keys.chain(values.iter().map(|value| value as &dyn ToSql));
    connection
        .prepare_cached(&sql)?
        .execute(params_from_iter(all))?;
    Ok(())
}
