//! `tributary backup`: copies the SQLite database into one file while the server runs.

use super::print_line;
use crate::cli::BackupOptions;
use crate::config::{Config, DatabaseConfig};
use crate::{secret_key, wiring};
use anyhow::Context as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use tributary_domain::keyring::KnownKeys;
use tributary_domain::keyring::rotation::StoredCheck;
use tributary_store_sqlite::backup::{self, SecretKeyState};

/// Prefix of temporary files, so that a file left behind by a killed backup is recognisable.
const PREFIX: &str = ".tributary-backup-";

/// Writes and verifies a temporary file, then renames it. A file with the final name is always a
/// valid backup.
pub fn run(config: &Config, options: &BackupOptions) -> anyhow::Result<()> {
    let database = sqlite_path(config)?;
    wiring::require_database(config)?;
    let file = &options.file;
    if !options.force && file.symlink_metadata().is_ok() {
        anyhow::bail!(
            "{} already exists; choose another file, or use --force to overwrite it",
            file.display()
        );
    }
    let state = backup::key_state(&database)
        .with_context(|| format!("cannot read {}", database.display()))?;
    // The operator deliberately keeps a key in the settings apart from the data, so it is not copied.
    let copies_key = !options.without_key && !config.has_secret_key();
    if copies_key && state.rotating_from.is_some() {
        anyhow::bail!(
            "a rotation of the secret key is unfinished, and a backup contains one key; run `tributary \
             secret-key rotate` again first, or use --without-key and keep both keys elsewhere"
        );
    }
    let keys = if copies_key {
        secret_key::load(config)?
    } else {
        None
    };
    let key = keys.and_then(|keys| key_in_use(&keys, &state));
    let folder = parent_folder(file);
    let unfinished = create_temp_file(folder)?;
    backup::copy(
        &database,
        unfinished.path(),
        key.as_ref().map(<[u8; 32]>::as_slice),
    )
    .with_context(|| format!("cannot copy {}", database.display()))?;
    let contents = backup::check(unfinished.path()).context("the copy is damaged")?;
    if key.is_some() && contents.secret_check != state.check {
        anyhow::bail!("the secret key was replaced during the backup; run the command again");
    }
    unfinished.as_file().sync_all()?;
    let bytes = unfinished.as_file().metadata()?.len();
    let named = if options.force {
        unfinished.persist(file)
    } else {
        unfinished.persist_noclobber(file)
    };
    named.with_context(|| format!("{} cannot be written", file.display()))?;
    sync_folder(folder)?;
    print_line(format!(
        "Wrote and verified {}, a backup of {} ({bytes} bytes, migration {}).",
        file.display(),
        database.display(),
        contents.schema
    ));
    print_line(match contents.secret_key {
        Some(_) => "It contains the secret key: protect it like the data folder.",
        None => {
            "It does not contain the secret key, which is needed to restore it: keep the key \
             separately."
        }
    });
    Ok(())
}

/// Returns the key that the values in the database are encrypted with: the next one after a rotation
/// whose last step, the rename of its file, is missing.
fn key_in_use(keys: &KnownKeys, state: &SecretKeyState) -> Option<[u8; 32]> {
    match state.check.as_deref().and_then(StoredCheck::from_bytes) {
        None => Some(keys.current),
        Some(check) => keys.iter().copied().find(|key| check.fits(key)),
    }
}

/// Returns the path of the SQLite database. PostgreSQL has its own backup tools.
pub(super) fn sqlite_path(config: &Config) -> anyhow::Result<PathBuf> {
    match config.database() {
        DatabaseConfig::Sqlite(path) => Ok(path),
        DatabaseConfig::Postgres(_) => anyhow::bail!(
            "the data is in PostgreSQL: use pg_dump and pg_restore, or continuous archiving, and \
             keep secret_key separately; this command is for SQLite only"
        ),
    }
}

/// Creates an empty file, readable by its owner only, in the folder of the final file.
pub(super) fn create_temp_file(folder: &Path) -> anyhow::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(PREFIX)
        .tempfile_in(folder)
        .with_context(|| {
            format!(
                "cannot create a file in {}; the folder must exist and be writable",
                folder.display()
            )
        })
}

/// Returns the folder that contains a file: the current folder for a bare file name.
pub(super) fn parent_folder(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Syncs the folder, because a rename is durable only after its folder was synced.
pub(super) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}
