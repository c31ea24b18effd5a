//! Databases of older versions, for tests of upgrades.

use crate::connection::{self, SqliteOpenError};
use crate::migrate::{self, MIGRATIONS};
use std::path::Path;
use tributary_store::migration::Migration;

/// Returns all migrations in order.
pub const fn migrations() -> &'static [Migration] {
    MIGRATIONS
}

/// Creates or migrates a database as a program with only these migrations does.
pub fn migrate_with(path: &Path, migrations: &[Migration]) -> Result<(), SqliteOpenError> {
    let mut connection = connection::open_for_writing(path)?;
    migrate::migrate_to(&mut connection, migrations)
}
