//! Backups: one file, created while the server runs, and verified.
//!
//! `VACUUM INTO` copies a snapshot in one read transaction. The copy contains exactly the changes
//! that were committed before it began, and writers do not wait. The copy is an ordinary database
//! without free pages or remains of deleted rows. It may include the secret key, in a row that the
//! live database never has.

use crate::connection::{BUSY_WAIT, SqliteOpenError};
use crate::{integrity, leftover_wal, migrate};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use std::path::Path;
use tributary_domain::keyring::SecretKeyId;
use tributary_domain::keyring::rotation::SecretKeyRotation;
use tributary_recording::KeyRecord;
use tributary_store::migration::MigrationRefusal;

/// The row of `instance` that holds the secret key. Only backups have this row.
const KEY_ROW: &str = "backup_secret_key";
/// The row of `instance` that identifies the secret key.
const CHECK_ROW: &str = KeyRecord::Check.name();
/// The row of `instance` with an unfinished rotation of the secret key.
const ROTATION_ROW: &str = KeyRecord::Rotation.name();
/// What SQLite reports when an integrity check finds no errors.
const SOUND: &str = "ok";

/// Why a backup failed or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// An error from `SQLite`.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] SqliteOpenError),
    /// The file is not a Tributary database.
    #[error("the file is not a Tributary backup")]
    NotOurs,
    /// The file is truncated or corrupt.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// The schema is unknown to this version.
    #[error(transparent)]
    Migration(#[from] MigrationRefusal),
}

/// The contents of a valid backup.
#[derive(Clone, PartialEq, Eq)]
pub struct BackupContents {
    /// The newest migration.
    pub schema: i64,
    /// The secret key, if the backup includes it.
    pub secret_key: Option<Vec<u8>>,
    /// Check value of the secret key; `None` if no server has ever used the database.
    pub secret_check: Option<Vec<u8>>,
    /// The old secret key, if a rotation was unfinished.
    pub rotating_from: Option<SecretKeyId>,
}

/// What a database says about its secret key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretKeyState {
    /// Check value of the key in use.
    pub check: Option<Vec<u8>>,
    /// The old key of an unfinished rotation.
    pub rotating_from: Option<SecretKeyId>,
}

/// Returns what a database says about its secret key. A server may be using the database.
pub fn key_state(database: &Path) -> Result<SecretKeyState, BackupError> {
    read_key_state(&open(database)?)
}

fn read_key_state(connection: &Connection) -> Result<SecretKeyState, BackupError> {
    let rotation = instance_row(connection, ROTATION_ROW)?;
    let rotation = rotation.as_deref().and_then(SecretKeyRotation::from_bytes);
    Ok(SecretKeyState {
        check: instance_row(connection, CHECK_ROW)?,
        rotating_from: rotation.map(|rotation| rotation.from),
    })
}

fn instance_row(connection: &Connection, name: &str) -> Result<Option<Vec<u8>>, BackupError> {
    let question = "select value from instance where name = ?1";
    let answer = connection.query_row(question, [name], |row| row.get(0));
    Ok(answer.optional()?)
}

/// Copies a database into an empty file. A server may be using the database. Includes the secret
/// key if given.
pub fn copy(database: &Path, to: &Path, secret_key: Option<&[u8]>) -> Result<(), BackupError> {
    leftover_wal::make_durable(database)?;
    // Opened read-write, because reading a database whose WAL is not in use requires creating the
    // WAL's index.
    let from = open(database)?;
    let target = to.to_str().ok_or(BackupError::NotOurs)?;
    from.execute("vacuum into ?1", [target])?;
    drop(from);
    let copy = open(to)?;
    copy.pragma_update(None, "secure_delete", true)?;
    copy.execute("delete from instance where name = ?1", [KEY_ROW])?;
    if let Some(key) = secret_key {
        copy.execute(
            "insert into instance (name, value) values (?1, ?2)",
            (KEY_ROW, key),
        )?;
    }
    Ok(())
}

/// Removes the unclean-shutdown marker left by a database that no longer exists. Otherwise a new
/// database in the same place would be checked as if its shutdown had been unclean.
pub fn remove_stale_marker(database: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(integrity::marker_path(database)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Verifies a backup and returns its contents.
pub fn check(file: &Path) -> Result<BackupContents, BackupError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    let ours: Result<bool, _> = connection.query_row(
        "select exists (select 1 from sqlite_schema where name = 'schema_migrations')",
        (),
        |row| row.get(0),
    );
    match ours {
        Ok(true) => {}
        Ok(false) => return Err(BackupError::NotOurs),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            return Err(BackupError::NotOurs);
        }
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
            return Err(BackupError::Damaged(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    }
    let found: String = connection
        .query_row("pragma integrity_check(1)", (), |row| row.get(0))
        .map_err(|error| BackupError::Damaged(error.to_string()))?;
    if found != SOUND {
        return Err(BackupError::Damaged(found));
    }
    let schema = migrate::newest_known(&connection)??;
    let keys = read_key_state(&connection)?;
    Ok(BackupContents {
        schema,
        secret_key: instance_row(&connection, KEY_ROW)?,
        secret_check: keys.check,
        rotating_from: keys.rotating_from,
    })
}

fn open(path: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::open_for_writing;

    struct Scene {
        folder: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let mut connection = open_for_writing(&folder.path().join("tributary.db")).unwrap();
            migrate::migrate(&mut connection).unwrap();
            Self { folder }
        }

        fn path(&self, name: &str) -> std::path::PathBuf {
            self.folder.path().join(name)
        }

        fn copy(&self, key: Option<&[u8]>) -> std::path::PathBuf {
            let to = self.path("copy");
            copy(&self.path("tributary.db"), &to, key).unwrap();
            to
        }
    }

    #[test]
    fn a_backup_is_valid_and_includes_the_key_only_on_request() {
        let scene = Scene::new();
        let contents = check(&scene.copy(None)).unwrap();
        assert_eq!(contents.secret_key, None);
        std::fs::remove_file(scene.path("copy")).unwrap();
        let contents = check(&scene.copy(Some(&[7; 32]))).unwrap();
        assert_eq!(contents.secret_key, Some(vec![7; 32]));
        assert!(contents.schema > 0);
    }

    #[test]
    fn a_backup_of_a_backup_does_not_contain_the_key() {
        let scene = Scene::new();
        let key = [0xab; 32];
        let first = scene.copy(Some(&key));
        let second = scene.path("second");
        copy(&first, &second, None).unwrap();
        assert_eq!(check(&second).unwrap().secret_key, None);
        let bytes = std::fs::read(&second).unwrap();
        assert!(!bytes.windows(key.len()).any(|part| part == key));
    }

    #[test]
    fn a_backup_contains_only_committed_data() {
        let scene = Scene::new();
        let writer = open_for_writing(&scene.path("tributary.db")).unwrap();
        let insert = "insert into instance (name, value) values (?1, x'00')";
        writer.execute(insert, ["committed"]).unwrap();
        writer.execute_batch("begin immediate").unwrap();
        writer.execute(insert, ["open"]).unwrap();
        let copy = open(&scene.copy(None)).unwrap();
        let names: i64 = copy
            .query_row(
                "select count(*) from instance where name in ('committed', 'open')",
                (),
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(names, 1);
    }

    #[test]
    fn rejects_files_that_are_not_backups() {
        let scene = Scene::new();
        let other = scene.path("other");
        std::fs::write(&other, "not a database, but longer than a page".repeat(200)).unwrap();
        assert!(matches!(check(&other), Err(BackupError::NotOurs)));
        let empty = scene.path("empty");
        std::fs::write(&empty, "").unwrap();
        assert!(matches!(check(&empty), Err(BackupError::NotOurs)));
    }

    #[test]
    fn finds_damage() {
        let scene = Scene::new();
        let copy = scene.copy(None);
        let mut bytes = std::fs::read(&copy).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 4_096].fill(0xff);
        std::fs::write(&copy, bytes).unwrap();
        assert!(matches!(check(&copy), Err(BackupError::Damaged(_))));
    }

    #[test]
    fn rejects_a_backup_of_a_newer_version() {
        let scene = Scene::new();
        let copy = scene.copy(None);
        let future = "insert into schema_migrations (number, name, checksum)
                      values (999, 'future', 'x')";
        open(&copy).unwrap().execute(future, ()).unwrap();
        let refused = check(&copy).err().unwrap();
        assert!(matches!(
            refused,
            BackupError::Migration(MigrationRefusal::DatabaseIsNewer { found: 999, .. })
        ));
    }
}
