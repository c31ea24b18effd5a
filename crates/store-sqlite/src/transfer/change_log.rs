//! The log of changed rows, and the fence that ends it.
//!
//! The log is one table per table, with the keys of inserted, updated and deleted rows in the order
//! of the changes. Triggers fill it in the transaction of each change, whichever process makes it.

use super::{SqliteMoveError, catalog};
use crate::connection::{self, SqliteOpenError};
use crate::{leftover_wal, migrate};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use tributary_store::transfer::{CatalogTable, MoveId, MovePhase, TransferTable};

/// Maximum number of log entries deleted in one transaction, so that the server's writer waits only
/// a few milliseconds.
const DELETED_MAX: i64 = 5_000;
/// What the server reports for each change after the cut-over.
const FENCE_MESSAGE: &str = "this database was moved; restart the server with the new database_url";

/// A database that is being moved away.
#[derive(Debug)]
pub struct SqliteMoveSource {
    connection: Connection,
    path: PathBuf,
}

impl SqliteMoveSource {
    /// Opens an existing database. A server may be using it.
    pub fn open(path: &Path) -> Result<Self, SqliteMoveError> {
        leftover_wal::make_durable(path)?;
        let connection = connection::open_for_writing(path)?;
        let newest = migrate::newest_known(&connection)?.map_err(SqliteOpenError::from)?;
        if newest < migrate::MIGRATIONS.last().map_or(0, |step| step.number) {
            return Err(SqliteMoveError::Outdated);
        }
        // The server runs the checkpoints.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lists the tables.
    pub fn catalog(&self) -> Result<Vec<CatalogTable>, SqliteMoveError> {
        Ok(catalog::read_catalog(&self.connection)?)
    }

    /// Returns the move in progress.
    pub fn state(&self) -> Result<Option<(MoveId, MovePhase)>, SqliteMoveError> {
        Ok(read_state(&self.connection)?)
    }

    /// Starts to log changes.
    pub fn start_log(
        &mut self,
        id: MoveId,
        tables: &[TransferTable],
    ) -> Result<(), SqliteMoveError> {
        let tx = self.begin()?;
        tx.execute_batch(
            "create table move_state (move_id blob not null, migration integer not null, phase text not null) strict",
        )?;
        tx.execute(
            "insert into move_state (move_id, migration, phase) values (?1, ?2, ?3)",
            (id.0, migration(&tx)?, MovePhase::Following.as_str()),
        )?;
        for table in tables {
            tx.execute_batch(&log_sql(table))?;
        }
        tx.commit()?;
        Ok(())
    }

    /// Fails if the schema is not the one that the log was made for.
    pub fn check_log(&self, tables: &[TransferTable]) -> Result<(), SqliteMoveError> {
        check_log(&self.connection, tables)
    }

    /// Deletes the log entries up to these numbers, one per table. Only the last statement deletes the
    /// last entry: an empty log begins at one again, so the same statement could then delete a new
    /// entry.
    pub fn forget(
        &mut self,
        tables: &[TransferTable],
        last: &[i64],
    ) -> Result<(), SqliteMoveError> {
        for (table, last) in tables.iter().zip(last) {
            let name = &table.name;
            let first = format!("select coalesce(min(change_id), 0) - 1 from move_log_{name}");
            let mut until: i64 = self.connection.query_row(&first, (), |row| row.get(0))?;
            let delete = format!("delete from move_log_{name} where change_id <= ?1");
            while until < *last {
                until = (*last).min(until + DELETED_MAX);
                self.connection.execute(&delete, [until])?;
            }
        }
        Ok(())
    }

    /// Rejects all further changes. Changes that were committed before are in the log.
    pub fn fence(&mut self, tables: &[TransferTable]) -> Result<(), SqliteMoveError> {
        let tx = self.begin()?;
        check_log(&tx, tables)?;
        for table in tables {
            tx.execute_batch(&fence_sql(&table.name))?;
        }
        set_phase(&tx, MovePhase::Fenced)?;
        tx.commit()?;
        Ok(())
    }

    /// Removes the log after the cut-over. The fence stays.
    pub fn finish(&mut self, tables: &[TransferTable]) -> Result<(), SqliteMoveError> {
        let tx = self.begin()?;
        set_phase(&tx, MovePhase::Moved)?;
        for table in tables {
            tx.execute_batch(&drop_log_sql(&table.name))?;
        }
        tx.commit()?;
        Ok(())
    }

    /// Removes the log and the fence, so that a server may write again.
    pub fn cancel(&mut self) -> Result<(), SqliteMoveError> {
        let tables = self.catalog()?;
        let tx = self.begin()?;
        for table in tables {
            tx.execute_batch(&drop_log_sql(&table.name))?;
            for change in CHANGES {
                let sql = format!("drop trigger if exists move_fence_{}_{change}", table.name);
                tx.execute_batch(&sql)?;
            }
        }
        tx.execute_batch("drop table if exists move_state")?;
        tx.commit()?;
        Ok(())
    }

    fn begin(&mut self) -> Result<Transaction<'_>, rusqlite::Error> {
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
    }
}

/// The kinds of changes, each with its own trigger.
const CHANGES: [&str; 3] = ["insert", "update", "delete"];

fn log_sql(table: &TransferTable) -> String {
    let (name, key) = (&table.name, table.key_list());
    let list = |row: &str| {
        let columns = table.key.iter().map(|(name, _)| format!("{row}.{name}"));
        columns.collect::<Vec<_>>().join(", ")
    };
    let (new, old) = (list("new"), list("old"));
    format!(
        "create table move_log_{name} (change_id integer primary key, {columns}) strict;
         create trigger move_log_{name}_insert after insert on {name} begin
             insert into move_log_{name} ({key}) values ({new});
         end;
         create trigger move_log_{name}_update after update on {name} begin
             insert into move_log_{name} ({key}) values ({new});
             insert into move_log_{name} ({key}) select {old} where ({old}) is not ({new});
         end;
         create trigger move_log_{name}_delete after delete on {name} begin
             insert into move_log_{name} ({key}) values ({old});
         end;",
        columns = log_columns(table)
    )
}

fn log_columns(table: &TransferTable) -> String {
    let columns = table
        .key
        .iter()
        .map(|(name, _)| format!("{name} any not null"));
    columns.collect::<Vec<_>>().join(", ")
}

fn drop_log_sql(name: &str) -> String {
    let triggers = CHANGES
        .iter()
        .map(|change| format!("drop trigger if exists move_log_{name}_{change};"));
    format!(
        "{} drop table if exists move_log_{name}",
        triggers.collect::<String>()
    )
}

fn fence_sql(name: &str) -> String {
    let triggers = CHANGES.iter().map(|change| {
        format!(
            "create trigger if not exists move_fence_{name}_{change} before {change} on {name} begin
                 select raise(abort, '{FENCE_MESSAGE}');
             end;"
        )
    });
    triggers.collect()
}

fn check_log(connection: &Connection, tables: &[TransferTable]) -> Result<(), SqliteMoveError> {
    let then: i64 =
        connection.query_row("select migration from move_state", (), |row| row.get(0))?;
    let triggers: i64 = connection.query_row(
        "select count(*) from sqlite_schema where type = 'trigger' and name like 'move\\_log\\_%' escape '\\'",
        (),
        |row| row.get(0),
    )?;
    let expected = i64::try_from(tables.len() * CHANGES.len()).ok();
    if then == migration(connection)? && Some(triggers) == expected {
        Ok(())
    } else {
        Err(SqliteMoveError::Migrated)
    }
}

fn set_phase(connection: &Connection, phase: MovePhase) -> Result<(), rusqlite::Error> {
    connection.execute("update move_state set phase = ?1", [phase.as_str()])?;
    Ok(())
}

fn migration(connection: &Connection) -> Result<i64, rusqlite::Error> {
    let sql = "select coalesce(max(number), 0) from schema_migrations";
    connection.query_row(sql, (), |row| row.get(0))
}

fn read_state(connection: &Connection) -> Result<Option<(MoveId, MovePhase)>, rusqlite::Error> {
    let exists: bool = connection.query_row(
        "select exists (select 1 from sqlite_schema where name = 'move_state')",
        (),
        |row| row.get(0),
    )?;
    if !exists {
        return Ok(None);
    }
    let read = |row: &rusqlite::Row<'_>| {
        let phase: String = row.get(1)?;
        Ok((MoveId(row.get(0)?), MovePhase::parse(&phase)))
    };
    connection
        .query_row("select move_id, phase from move_state", (), read)
        .optional()
}

/// Fails if the database was moved, so that no server starts on it by mistake.
pub(crate) fn reject_moved(connection: &Connection) -> Result<(), SqliteOpenError> {
    match read_state(connection)? {
        Some((_, MovePhase::Fenced | MovePhase::Moved)) => Err(SqliteOpenError::Moved),
        _ => Ok(()),
    }
}
