//! Values from outside whose number is bounded: which count under their own name.

use crate::Failure;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::report::cap::{Fates, Quota, Value};

/// What becomes of these values, and apart from that what is decided about new ones.
pub(super) fn fates(
    connection: &Connection,
    values: BTreeSet<Value>,
) -> Result<(Fates, Fates), Failure> {
    let mut fates = Fates::default();
    let mut new = Vec::new();
    let mut find = connection.prepare_cached(
        "select is_other from rollup_values
         where app_id = ?1 and environment = ?2 and day = ?3 and kind = ?4 and digest = ?5",
    )?;
    for value in values {
        let Value { quota, digest } = &value;
        let known: Option<bool> = find
            .query_row(
                params![
                    quota.app.as_bytes(),
                    quota.environment.as_str(),
                    quota.day.as_days(),
                    quota.kind.as_str(),
                    digest.as_bytes()
                ],
                |row| row.get(0),
            )
            .optional()?;
        match known {
            Some(is_other) => {
                fates.0.insert(value, is_other);
            }
            None => new.push(value),
        }
    }
    let mut taken = BTreeMap::new();
    for value in &new {
        taken.insert(value.quota, count(connection, &value.quota)?);
    }
    let decided = Fates::decide(&new, &taken);
    fates.0.extend(decided.0.clone());
    Ok((fates, decided))
}

fn count(connection: &Connection, quota: &Quota) -> Result<usize, Failure> {
    let count: i64 = connection
        .prepare_cached(
            "select count(*) from rollup_values
             where app_id = ?1 and environment = ?2 and day = ?3 and kind = ?4 and is_other = 0",
        )?
        .query_row(
            params![
                quota.app.as_bytes(),
                quota.environment.as_str(),
                quota.day.as_days(),
                quota.kind.as_str()
            ],
            |row| row.get(0),
        )?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Remembers what was decided about new values.
pub(super) fn insert(connection: &Connection, decided: &Fates) -> Result<(), Failure> {
    let mut insert = connection.prepare_cached(
        "insert into rollup_values (app_id, environment, day, kind, digest, is_other)
         values (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (Value { quota, digest }, is_other) in &decided.0 {
        insert.execute(params![
            quota.app.as_bytes(),
            quota.environment.as_str(),
            quota.day.as_days(),
            quota.kind.as_str(),
            digest.as_bytes(),
            is_other
        ])?;
    }
    Ok(())
}
