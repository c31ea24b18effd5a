//! Exit codes for failed commands. A supervisor should restart the server unless its settings are
//! wrong.

use crate::commands::client::RemoteError;
use crate::secret_key::{CommandFailure, SecretKeyError};
use std::error::Error;
use std::io;
use tributary_store::{DatabaseDamaged, StoreError};
use tributary_store_postgres::PostgresOpenError as PostgresError;
use tributary_store_sqlite::SqliteOpenError as SqliteError;

/// Settings or arguments are wrong; a retry does not help.
const CONFIGURATION_ERROR: u8 = 2;
/// The SQLite database is damaged; the operator has to restore a backup.
const DATABASE_DAMAGED: u8 = 3;
/// A later retry may succeed.
const TEMPORARY_FAILURE: u8 = 1;

/// Returns the exit code for this error.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if error.chain().any(is_damage) {
        DATABASE_DAMAGED
    } else if is_transient(error) {
        TEMPORARY_FAILURE
    } else {
        CONFIGURATION_ERROR
    }
}

/// Returns whether the error may go away without a change to the settings, as with an unreachable
/// database.
pub(crate) fn is_transient(error: &anyhow::Error) -> bool {
    error.chain().any(is_transient_cause)
}

fn is_damage(cause: &(dyn Error + 'static)) -> bool {
    // The background integrity check can report damage before startup has finished.
    matches!(cause.downcast_ref(), Some(SqliteError::Damaged(_))) || cause.is::<DatabaseDamaged>()
}

fn is_transient_cause(cause: &(dyn Error + 'static)) -> bool {
    if let Some(error) = cause.downcast_ref::<PostgresError>() {
        error.is_transient()
    } else if let Some(error) = cause.downcast_ref::<SqliteError>() {
        error.is_transient()
    } else if let Some(error) = cause.downcast_ref::<StoreError>() {
        matches!(error, StoreError::Unavailable { .. })
    } else if let Some(error) = cause.downcast_ref::<RemoteError>() {
        error.is_transient()
    } else if let Some(SecretKeyError::Io { source, .. }) = cause.downcast_ref() {
        source.kind() == io::ErrorKind::StorageFull
    } else if let Some(SecretKeyError::Command { reason, .. }) = cause.downcast_ref() {
        // The vault may be away.
        matches!(reason, CommandFailure::TimedOut | CommandFailure::Failed)
    } else if let Some(error) = cause.downcast_ref::<io::Error>() {
        // Another program may release the port, and a full disk may be cleaned up.
        matches!(
            error.kind(),
            io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable | io::ErrorKind::StorageFull
        )
    } else {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigError;
    use anyhow::Context as _;
    use rstest::rstest;
    use std::path::PathBuf;
    use tributary_domain::refusal::Refusal;
    use tributary_store::migration::MigrationRefusal;

    fn io(kind: io::ErrorKind) -> io::Error {
        kind.into()
    }

    fn key_file(kind: io::ErrorKind) -> SecretKeyError {
        SecretKeyError::Io {
            action: "cannot write",
            path: PathBuf::from("secret_key"),
            source: io(kind),
        }
    }

    fn command(reason: CommandFailure) -> SecretKeyError {
        let setting = "secret_key";
        SecretKeyError::Command { setting, reason }
    }

    /// The error number of a failed read or write.
    const EIO: i32 = 5;
    const NEWER: MigrationRefusal = MigrationRefusal::DatabaseIsNewer { found: 2, known: 1 };

    #[rstest]
    #[case::unreachable(PostgresError::Unreachable("x".to_owned()).into(), 1)]
    #[case::wrong_password_or_starting_up(PostgresError::Refused("x".to_owned()).into(), 1)]
    #[case::lost_while_migrating(PostgresError::Statement("x".to_owned()).into(), 1)]
    #[case::locked_while_migrating(PostgresError::Locked("x".to_owned()).into(), 1)]
    #[case::wrong_url(PostgresError::Url("x".to_owned()).into(), 2)]
    #[case::unsafe_server(PostgresError::Unsafe { setting: "fsync" }.into(), 2)]
    #[case::newer_postgres(PostgresError::Migration(NEWER).into(), 2)]
    #[case::damaged_sqlite(SqliteError::Damaged("x".to_owned()).into(), 3)]
    #[case::damage_found_while_starting(StoreError::unavailable("x", DatabaseDamaged).into(), 3)]
    #[case::newer_sqlite(SqliteError::Migration(NEWER).into(), 2)]
    #[case::full_disk(SqliteError::File(io(io::ErrorKind::StorageFull)).into(), 1)]
    #[case::failing_disk(SqliteError::Folder(io::Error::from_raw_os_error(EIO)).into(), 1)]
    #[case::no_permission(SqliteError::File(io(io::ErrorKind::PermissionDenied)).into(), 2)]
    #[case::full_disk_for_the_key(key_file(io::ErrorKind::StorageFull).into(), 1)]
    #[case::no_permission_for_the_key(key_file(io::ErrorKind::PermissionDenied).into(), 2)]
    #[case::vault_away(command(CommandFailure::TimedOut).into(), 1)]
    #[case::no_such_program(command(CommandFailure::NotStarted(io::ErrorKind::NotFound)).into(), 2)]
    #[case::no_key_printed(command(CommandFailure::Malformed).into(), 2)]
    #[case::unavailable(StoreError::unavailable("x", "away").into(), 1)]
    #[case::refused(StoreError::from(Refusal::AppNotFound).into(), 2)]
    #[case::port_in_use(io(io::ErrorKind::AddrInUse).into(), 1)]
    #[case::settings(ConfigError { problems: Vec::new() }.into(), 2)]
    #[case::anything_else(anyhow::anyhow!("a mistake"), 2)]
    fn maps_errors_to_exit_codes(#[case] error: anyhow::Error, #[case] code: u8) {
        assert_eq!(exit_code(&error), code, "{error:#}");
        let within = Err::<(), _>(error).context("the server cannot start");
        assert_eq!(exit_code(&within.unwrap_err()), code);
    }
}
