//! Reads rows as tuples.

use super::SqliteMoveError;
use crate::connection;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};
use std::path::Path;
use tributary_store::transfer::{
    CellValue, ChangeChunk, RowChunk, RowSum, TransferTable, TransferType, decode_cells,
    encode_cells,
};

/// Size of a chunk. A larger one saves little, and more would be copied again after an interruption.
const CHUNK_BYTES: usize = 8 * 1024 * 1024;
/// Log entries in one chunk of changes.
const CHUNK_CHANGES: i64 = 5_000;

/// Reads the rows of a database, on a read-only connection.
#[derive(Debug)]
pub struct SqliteRowReader {
    connection: Connection,
}

impl SqliteRowReader {
    /// Opens a connection.
    pub fn open(path: &Path) -> Result<Self, SqliteMoveError> {
        let connection = connection::open_for_reading(path)?;
        Ok(Self { connection })
    }

    /// Reads the rows after a key, in the order of the key. Each chunk is read in a short
    /// transaction, so that the WAL can restart.
    pub fn read_chunk(
        &self,
        table: &TransferTable,
        after: Option<&[u8]>,
    ) -> Result<RowChunk, SqliteMoveError> {
        let (name, key, columns) = (&table.name, table.key_list(), table.stored_list());
        let (filter, values) = match after {
            None => (String::new(), Vec::new()),
            Some(tuple) => {
                let values = key_values(table, tuple)?;
                let marks = vec!["?"; values.len()].join(", ");
                (format!("where ({key}) > ({marks})"), values)
            }
        };
        let sql = format!("select {columns} from {name} {filter} order by {key}");
        let mut find = self.connection.prepare_cached(&sql)?;
        let mut rows = find.query(params_from_iter(values))?;
        let positions = key_positions(table);
        let mut chunk = RowChunk::default();
        let mut last = Vec::new();
        while let Some(row) = rows.next()? {
            let cells = cells(row, 0, table.stored().count())?;
            table.encode_row(&cells, &mut chunk.tuples)?;
            chunk.rows += 1;
            if chunk.tuples.len() >= CHUNK_BYTES {
                encode_key(table, &select(&cells, &positions), &mut last)?;
                chunk.last_key = Some(last);
                return Ok(chunk);
            }
        }
        chunk.is_last = true;
        Ok(chunk)
    }

    /// Sums the rows of a table.
    pub fn sum(&self, table: &TransferTable) -> Result<RowSum, SqliteMoveError> {
        let sql = format!("select {} from {}", table.stored_list(), table.name);
        let mut find = self.connection.prepare(&sql)?;
        let mut rows = find.query(())?;
        let (mut sum, mut tuple) = (RowSum::default(), Vec::new());
        while let Some(row) = rows.next()? {
            tuple.clear();
            table.encode_row(&cells(row, 0, table.stored().count())?, &mut tuple)?;
            sum.add(&tuple);
        }
        Ok(sum)
    }

    /// Begins a snapshot, which lasts until [`Self::end_snapshot`].
    pub fn begin_snapshot(&self) -> Result<(), SqliteMoveError> {
        self.connection.execute_batch("begin")?;
        // The first read takes the snapshot.
        self.connection
            .query_row("select count(*) from move_state", (), |_| Ok(()))?;
        Ok(())
    }

    /// Ends the snapshot.
    pub fn end_snapshot(&self) -> Result<(), SqliteMoveError> {
        self.connection.execute_batch("rollback")?;
        Ok(())
    }

    /// Passes the rows that the log names to `send`, as they are in the current snapshot. Returns the
    /// number of the last log entry per table. Stops if `send` returns false.
    pub fn read_changes(
        &self,
        tables: &[TransferTable],
        mut send: impl FnMut(ChangeChunk) -> bool,
    ) -> Result<Vec<i64>, SqliteMoveError> {
        let mut last = Vec::with_capacity(tables.len());
        for (position, table) in tables.iter().enumerate() {
            let sql = format!(
                "select coalesce(min(change_id), 0), coalesce(max(change_id), 0) from move_log_{}",
                table.name
            );
            let range = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let (first, newest): (i64, i64) = self.connection.query_row(&sql, (), range)?;
            let mut from = first;
            while newest > 0 && from <= newest {
                let until = newest.min(from + CHUNK_CHANGES - 1);
                let chunk = self.read_logged(table, position, (from, until))?;
                if !send(chunk) {
                    return Err(SqliteMoveError::Stopped);
                }
                from = until + 1;
            }
            last.push(newest);
        }
        Ok(last)
    }

    /// Reads the rows that a range of log entries names.
    fn read_logged(
        &self,
        table: &TransferTable,
        position: usize,
        (from, until): (i64, i64),
    ) -> Result<ChangeChunk, SqliteMoveError> {
        let prefixed = |prefix: &str, names: Vec<&str>| {
            let names = names.iter().map(|name| format!("{prefix}.{name}"));
            names.collect::<Vec<_>>().join(", ")
        };
        let keys: Vec<&str> = table.key.iter().map(|(name, _)| name.as_str()).collect();
        let stored = table.stored().map(|column| column.name.as_str()).collect();
        let joined = keys.iter().map(|name| format!("t.{name} = c.{name}"));
        let sql = format!(
            "select {}, {} from (select distinct {} from move_log_{name}
                                 where change_id between ?1 and ?2) as c
             left join {name} as t on {}",
            prefixed("c", keys.clone()),
            prefixed("t", stored),
            table.key_list(),
            joined.collect::<Vec<_>>().join(" and "),
            name = table.name
        );
        let mut find = self.connection.prepare_cached(&sql)?;
        let mut rows = find.query((from, until))?;
        let (width, columns) = (table.key.len(), table.stored().count());
        let positions = key_positions(table);
        let mut chunk = ChangeChunk {
            table: position,
            ..ChangeChunk::default()
        };
        while let Some(row) = rows.next()? {
            encode_key(table, &cells(row, 0, width)?, &mut chunk.keys)?;
            chunk.key_count += 1;
            let row = cells(row, width, columns)?;
            if select(&row, &positions).contains(&CellValue::Null) {
                // The row was deleted.
                continue;
            }
            let begin = chunk.tuples.len();
            table.encode_row(&row, &mut chunk.tuples)?;
            chunk.sum.add(chunk.tuples.get(begin..).unwrap_or_default());
        }
        Ok(chunk)
    }
}

/// Returns some of a row's values.
fn cells<'a>(
    row: &'a Row<'_>,
    first: usize,
    count: usize,
) -> Result<Vec<CellValue<'a>>, rusqlite::Error> {
    let cell = |position| {
        Ok(match row.get_ref(position)? {
            ValueRef::Null => CellValue::Null,
            ValueRef::Integer(number) => CellValue::Integer(number),
            ValueRef::Text(text) => CellValue::Text(text),
            ValueRef::Blob(bytes) => CellValue::Bytes(bytes),
            // No column of a STRICT table has this type.
            ValueRef::Real(_) => {
                let name = row.as_ref().column_name(position)?.to_owned();
                let kind = rusqlite::types::Type::Real;
                return Err(rusqlite::Error::InvalidColumnType(position, name, kind));
            }
        })
    };
    (first..first + count).map(cell).collect()
}

/// Returns the positions of the key's columns among the stored columns.
fn key_positions(table: &TransferTable) -> Vec<usize> {
    let position = |name: &String| table.stored().position(|column| column.name == *name);
    table
        .key
        .iter()
        .filter_map(|(name, _)| position(name))
        .collect()
}

fn select<'a>(cells: &[CellValue<'a>], positions: &[usize]) -> Vec<CellValue<'a>> {
    let cell = |position: &usize| cells.get(*position).copied();
    positions.iter().filter_map(cell).collect()
}

fn encode_key(
    table: &TransferTable,
    key: &[CellValue<'_>],
    tuples: &mut Vec<u8>,
) -> Result<(), SqliteMoveError> {
    encode_cells(&table.key_types(), key, tuples).map_err(|_| key_fault(table))
}

fn key_fault(table: &TransferTable) -> SqliteMoveError {
    let fault = tributary_store::transfer::TupleFault {
        table: table.name.clone(),
        column: 0,
    };
    fault.into()
}

/// Returns a key's values for SQLite.
fn key_values(table: &TransferTable, tuple: &[u8]) -> Result<Vec<Value>, SqliteMoveError> {
    let types: Vec<TransferType> = table.key_types();
    let cells = decode_cells(&types, tuple).map_err(|_| key_fault(table))?;
    Ok(cells.into_iter().map(owned).collect())
}

pub(super) fn owned(cell: CellValue<'_>) -> Value {
    match cell {
        CellValue::Null => Value::Null,
        CellValue::Integer(number) => Value::Integer(number),
        // PostgreSQL and SQLite text is UTF-8.
        CellValue::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        CellValue::Bytes(bytes) => Value::Blob(bytes.to_vec()),
    }
}
