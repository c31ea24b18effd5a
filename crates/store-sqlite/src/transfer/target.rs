//! Moving all rows of another database into a new file.
//!
//! The file has another name until it is complete, so no server uses it before that. Its secondary
//! indexes are dropped before the bulk copy and created again after it. The tables `move_…` hold what
//! an interrupted move needs to continue.

use super::rows::SqliteRowReader;
use super::{SqliteMoveError, catalog};
use crate::connection::{self, SqliteOpenError};
use crate::{backup, checkpoints, leftover_wal, migrate, vacuum_once};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, ToSql, params_from_iter};
use std::path::{Path, PathBuf};
use tributary_store::transfer::{
    CatalogTable, CellValue, MoveId, RowSum, TransferTable, TupleFault, decode_cells,
};

/// The row of `instance` that names the last finished move.
const MOVED_ROW: &str = "moved_from";
/// Rows per transaction. Each transaction costs a sync.
const ROWS_PER_COMMIT: u64 = 50_000;

/// A new database that rows are moved into.
#[derive(Debug)]
pub struct SqliteMoveTarget {
    connection: Connection,
    /// The file while it is incomplete.
    unfinished: PathBuf,
    /// The file when it is complete.
    path: PathBuf,
    /// Rows since the last commit.
    uncommitted: u64,
}

impl SqliteMoveTarget {
    /// Creates the file, or opens it to continue.
    pub fn open(path: &Path) -> Result<Self, SqliteMoveError> {
        let unfinished = unfinished_path(path);
        let mut connection = connection::open_for_writing(&unfinished)?;
        migrate::migrate(&mut connection)?;
        // Checked when everything is copied.
        connection.pragma_update(None, "foreign_keys", false)?;
        Ok(Self {
            connection,
            unfinished,
            path: path.to_owned(),
            uncommitted: 0,
        })
    }

    /// Lists the tables.
    pub fn catalog(&self) -> Result<Vec<CatalogTable>, SqliteMoveError> {
        Ok(catalog::read_catalog(&self.connection)?)
    }

    /// Returns the unfinished move into this file.
    pub fn unfinished(&self) -> Result<Option<MoveId>, SqliteMoveError> {
        let exists: bool = self.connection.query_row(
            "select exists (select 1 from sqlite_schema where name = 'move_target')",
            (),
            |row| row.get(0),
        )?;
        if !exists {
            return Ok(None);
        }
        let sql = "select move_id from move_target";
        let id = self.connection.query_row(sql, (), |row| row.get(0));
        Ok(id.optional()?.map(MoveId))
    }

    /// Begins a move: lists the tables to copy, and drops the secondary indexes.
    pub fn begin(&mut self, id: MoveId, tables: &[TransferTable]) -> Result<(), SqliteMoveError> {
        let tx = self.connection.transaction()?;
        tx.execute_batch(
            "create table move_target (move_id blob not null) strict;
             create table move_tables (name text primary key) strict;
             create table move_definitions (name text primary key, sql text not null) strict;
             insert into move_definitions
             select name, sql from sqlite_schema where type = 'index' and sql is not null;",
        )?;
        tx.execute("insert into move_target (move_id) values (?1)", [id.0])?;
        for table in tables {
            tx.execute("insert into move_tables (name) values (?1)", [&table.name])?;
        }
        let mut find = tx.prepare("select name from move_definitions")?;
        let names = find.query_map((), |row| row.get::<_, String>(0))?;
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        drop(find);
        for name in names {
            tx.execute_batch(&format!("drop index {name}"))?;
        }
        tx.commit()?;
        Ok(())
    }

    /// Begins to copy a table from its first row. Returns false if it is copied already.
    pub fn begin_table(&mut self, table: &TransferTable) -> Result<bool, SqliteMoveError> {
        let is_left: bool = self.connection.query_row(
            "select exists (select 1 from move_tables where name = ?1)",
            [&table.name],
            |row| row.get(0),
        )?;
        if is_left {
            let sql = format!("begin immediate; delete from {}", table.name);
            self.connection.execute_batch(&sql)?;
        }
        Ok(is_left)
    }

    /// Begins to apply changes.
    pub fn begin_changes(&mut self) -> Result<(), SqliteMoveError> {
        self.connection.execute_batch("begin immediate")?;
        Ok(())
    }

    /// Adds a row.
    pub fn insert(&mut self, table: &TransferTable, tuple: &[u8]) -> Result<(), SqliteMoveError> {
        let cells = table.decode_row(tuple)?;
        let marks = vec!["?"; cells.len()].join(", ");
        let (name, columns) = (&table.name, table.stored_list());
        let sql = format!("insert into {name} ({columns}) values ({marks})");
        let mut insert = self.connection.prepare_cached(&sql)?;
        insert.execute(params_from_iter(cells.into_iter().map(BoundCell)))?;
        Ok(())
    }

    /// Adds a row of the bulk copy.
    pub fn insert_in_bulk(
        &mut self,
        table: &TransferTable,
        tuple: &[u8],
    ) -> Result<(), SqliteMoveError> {
        self.insert(table, tuple)?;
        self.uncommitted += 1;
        if self.uncommitted >= ROWS_PER_COMMIT {
            self.uncommitted = 0;
            self.connection.execute_batch("commit; begin immediate")?;
        }
        Ok(())
    }

    /// Removes the row with a key.
    pub fn delete(&mut self, table: &TransferTable, key: &[u8]) -> Result<(), SqliteMoveError> {
        let cells = decode_cells(&table.key_types(), key).map_err(|column| TupleFault {
            table: table.name.clone(),
            column,
        })?;
        let (name, columns) = (&table.name, table.key_list());
        let marks = vec!["?"; cells.len()].join(", ");
        let sql = format!("delete from {name} where ({columns}) = ({marks})");
        let mut delete = self.connection.prepare_cached(&sql)?;
        delete.execute(params_from_iter(cells.into_iter().map(BoundCell)))?;
        Ok(())
    }

    /// Commits a table that is completely copied.
    pub fn end_table(&mut self, table: &TransferTable) -> Result<(), SqliteMoveError> {
        let sql = "delete from move_tables where name = ?1";
        self.connection.execute(sql, [&table.name])?;
        self.commit()
    }

    /// Commits.
    pub fn commit(&mut self) -> Result<(), SqliteMoveError> {
        self.uncommitted = 0;
        self.connection.execute_batch("commit")?;
        Ok(())
    }

    /// Creates the secondary indexes again. Returns their number.
    pub fn restore_definitions(&mut self) -> Result<usize, SqliteMoveError> {
        let mut find = self
            .connection
            .prepare("select name, sql from move_definitions")?;
        let rows = find.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let definitions: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
        drop(find);
        for (name, sql) in &definitions {
            let tx = self.connection.transaction()?;
            tx.execute_batch(sql)?;
            tx.execute("delete from move_definitions where name = ?1", [name])?;
            tx.commit()?;
        }
        Ok(definitions.len())
    }

    /// Sums the rows of a table.
    pub fn sum(&self, table: &TransferTable) -> Result<RowSum, SqliteMoveError> {
        SqliteRowReader::open(&self.unfinished)?.sum(table)
    }

    /// Returns a table with a row that refers to a missing row.
    pub fn broken_reference(&self) -> Result<Option<String>, SqliteMoveError> {
        let sql = "pragma foreign_key_check";
        let table = self.connection.query_row(sql, (), |row| row.get(0));
        Ok(table.optional()?)
    }

    /// Completes the file and gives it its final name. Fails if there is a file with that name.
    pub fn finish(mut self, id: MoveId) -> Result<(), SqliteMoveError> {
        let tx = self.connection.transaction()?;
        tx.execute(
            "insert into instance (name, value) values (?1, ?2)
             on conflict (name) do update set value = excluded.value",
            (MOVED_ROW, id.0),
        )?;
        // The file never had deleted rows that were not overwritten.
        tx.execute(
            "insert into instance (name, value) values (?1, x'01') on conflict (name) do nothing",
            [vacuum_once::DONE_ROW],
        )?;
        tx.execute_batch(
            "drop table move_target; drop table move_tables; drop table move_definitions",
        )?;
        tx.commit()?;
        checkpoints::truncate(&self.connection)?;
        let closed = self.connection.close();
        closed.map_err(|(_, error)| SqliteOpenError::from(error))?;
        rename_complete(&self.path)
    }
}

/// Returns the name of the file until it is complete.
pub(crate) fn unfinished_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".moving");
    PathBuf::from(name)
}

/// Returns the move whose file is complete but does not have its final name, because the move was
/// interrupted in between.
pub fn complete_move(path: &Path) -> Result<Option<MoveId>, SqliteMoveError> {
    let unfinished = unfinished_path(path);
    if unfinished.exists() {
        finished_move(&unfinished)
    } else {
        Ok(None)
    }
}

/// Gives a complete file its final name. Fails if there is a file with that name.
pub fn rename_complete(path: &Path) -> Result<(), SqliteMoveError> {
    let unfinished = unfinished_path(path);
    let file = std::fs::File::open(&unfinished).map_err(SqliteOpenError::File)?;
    file.sync_all().map_err(SqliteOpenError::File)?;
    backup::remove_stale_marker(path).map_err(SqliteOpenError::File)?;
    std::fs::hard_link(&unfinished, path).map_err(SqliteOpenError::File)?;
    remove_unfinished(path)
}

/// Removes the other name of a file that has its final name.
pub fn remove_unfinished(path: &Path) -> Result<(), SqliteMoveError> {
    match std::fs::remove_file(unfinished_path(path)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(SqliteOpenError::File(error).into());
        }
        _ => {}
    }
    leftover_wal::sync_folder(path).map_err(SqliteOpenError::Folder)?;
    Ok(())
}

/// Returns the move that created a file.
pub fn finished_move(path: &Path) -> Result<Option<MoveId>, SqliteMoveError> {
    let connection = connection::open_for_reading(path)?;
    let sql = "select value from instance where name = ?1";
    let id = connection.query_row(sql, [MOVED_ROW], |row| row.get(0));
    Ok(id.optional()?.map(MoveId))
}

/// A value to bind.
struct BoundCell<'a>(CellValue<'a>);

impl ToSql for BoundCell<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>, rusqlite::Error> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            CellValue::Null => ValueRef::Null,
            CellValue::Integer(number) => ValueRef::Integer(number),
            CellValue::Text(text) => ValueRef::Text(text),
            CellValue::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
