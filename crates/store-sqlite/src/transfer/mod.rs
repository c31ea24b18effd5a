//! Moving the database to another engine while a server may be using it, or another database into a
//! new file (`target`).
//!
//! While a move is in progress, triggers log the key of every row that changes (`change_log`), so
//! that the rows can be copied again. The cut-over replaces them with a fence: triggers that reject
//! every change. No row of the database is changed.

mod catalog;
mod change_log;
mod rows;
mod target;

pub use change_log::SqliteMoveSource;
pub(crate) use change_log::reject_moved;
pub use rows::SqliteRowReader;
pub(crate) use target::unfinished_path;
pub use target::{
    SqliteMoveTarget, complete_move, finished_move, remove_unfinished, rename_complete,
};

use crate::connection::SqliteOpenError;
use tributary_store::transfer::{MoveId, TupleFault};

/// Why rows cannot be moved from or to SQLite.
#[derive(Debug, thiserror::Error)]
pub enum SqliteMoveError {
    /// The database cannot be opened, read or written.
    #[error("cannot use the SQLite database")]
    Database(#[source] SqliteOpenError),
    /// A value cannot be moved.
    #[error(transparent)]
    Value(#[from] TupleFault),
    /// The schema is older than this version.
    #[error(
        "the SQLite database has an older schema; start a server of this version on it, or run \
         `tributary migrate`, before the move"
    )]
    Outdated,
    /// The schema was migrated after the move began, so some changes were not logged.
    #[error(
        "the SQLite database was migrated after the move began; cancel the move with `tributary move \
         --cancel`, empty the target, and begin again"
    )]
    Migrated,
    /// Another move of the database is in progress.
    #[error(
        "another move of the SQLite database is in progress or finished; cancel it with `tributary \
         move --cancel` first"
    )]
    AnotherMove(MoveId),
    /// The receiver of the rows has failed.
    #[error("copying stopped")]
    Stopped,
}

impl From<rusqlite::Error> for SqliteMoveError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<SqliteOpenError> for SqliteMoveError {
    fn from(error: SqliteOpenError) -> Self {
        Self::Database(error)
    }
}
