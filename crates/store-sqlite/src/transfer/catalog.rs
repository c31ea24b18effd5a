//! The tables of the database.

use rusqlite::Connection;
use tributary_store::transfer::{CatalogTable, MOVE_PREFIX};

/// Lists the tables, without SQLite's own and without those of a move.
pub(super) fn read_catalog(connection: &Connection) -> Result<Vec<CatalogTable>, rusqlite::Error> {
    let mut find = connection.prepare(
        "select name from sqlite_schema
         where type = 'table' and name not like 'sqlite\\_%' escape '\\' and name not like ?1
         order by name",
    )?;
    let others = format!("{MOVE_PREFIX}%");
    let names = find.query_map([others], |row| row.get::<_, String>(0))?;
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    let mut tables = Vec::with_capacity(names.len());
    for name in names {
        tables.push(describe(connection, name)?);
    }
    Ok(tables)
}

fn describe(connection: &Connection, name: String) -> Result<CatalogTable, rusqlite::Error> {
    let mut find =
        connection.prepare("select name, type, pk from pragma_table_info(?1) order by cid")?;
    let rows = find.query_map([&name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let rows: Vec<(String, String, i64)> = rows.collect::<Result<_, _>>()?;
    let mut key: Vec<(i64, String)> = rows
        .iter()
        .filter(|(_, _, position)| *position > 0)
        .map(|(name, _, position)| (*position, name.clone()))
        .collect();
    key.sort();
    Ok(CatalogTable {
        name,
        columns: rows
            .into_iter()
            .map(|(name, kind, _)| (name, kind))
            .collect(),
        key: key.into_iter().map(|(_, name)| name).collect(),
    })
}
