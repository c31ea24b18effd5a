//! `tributary restore`: creates a data folder from a backup.

use super::backup::{create_temp_file, parent_folder, sqlite_path, sync_folder};
use super::print_line;
use crate::config::Config;
use crate::secret_key;
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use tributary_domain::keyring::KnownKeys;
use tributary_domain::keyring::rotation::StoredCheck;
use tributary_store_sqlite::backup::{self, BackupContents};

/// Verifies the backup first, then writes the key, and the database last. A server that starts in
/// between finds no database.
pub fn run(config: &Config, file: &Path) -> anyhow::Result<()> {
    let database = sqlite_path(config)?;
    if !file.exists() {
        anyhow::bail!("{} does not exist", file.display());
    }
    reject_existing_files(&database)?;
    let contents =
        backup::check(file).with_context(|| format!("cannot restore {}", file.display()))?;
    secret_key::create_data_folder(&config.data_dir)?;
    let key = key_to_write(config, &contents)?;
    let folder = parent_folder(&database);
    let unfinished = create_temp_file(folder)?;
    backup::copy(file, unfinished.path(), None).context("cannot copy the backup")?;
    backup::check(unfinished.path()).context("the copy of the backup is damaged")?;
    unfinished.as_file().sync_all()?;
    if let Some(key) = key {
        secret_key::store_key(&config.data_dir, key)?;
    }
    backup::remove_stale_marker(&database)
        .context("cannot remove the marker of the previous database")?;
    unfinished
        .persist_noclobber(&database)
        .with_context(|| format!("{} cannot be written", database.display()))?;
    sync_folder(folder)?;
    print_line(format!(
        "Restored {} from {}. Start it with `tributary serve`.",
        database.display(),
        file.display()
    ));
    Ok(())
}

/// Fails if there is a database, or a write-ahead log that a running server may still be using.
fn reject_existing_files(database: &Path) -> anyhow::Result<()> {
    let beside = |end: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    if database.symlink_metadata().is_ok() {
        anyhow::bail!(
            "a database already exists at {}; stop the server that may be using it and move the \
             file away (with its -wal, -shm and -unclean), or set data_dir (TRIBUTARY_DATA_DIR) to \
             another folder",
            database.display()
        );
    }
    for path in [beside("-wal"), beside("-shm")] {
        if path.symlink_metadata().is_ok() {
            anyhow::bail!(
                "{} exists without its database; stop the server that may be using it, then move \
                 the file away",
                path.display()
            );
        }
    }
    Ok(())
}

/// Returns the key to write to the data folder. Returns `None` if the data folder or the settings
/// already have the key, or if the database needs none. Fails if the existing key does not match
/// the backup, or if there is no key.
fn key_to_write(config: &Config, contents: &BackupContents) -> anyhow::Result<Option<[u8; 32]>> {
    let in_backup = contents.secret_key.as_deref();
    let in_backup = in_backup.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let existing = secret_key::load(config)?;
    let check = contents.secret_check.as_deref();
    let check = check.and_then(StoredCheck::from_bytes);
    let fits = |keys: &KnownKeys| {
        let is_known = |id| keys.ids().contains(&id);
        check.is_none_or(|check| is_known(check.key()))
            && contents.rotating_from.is_none_or(is_known)
    };
    match (existing, in_backup) {
        (Some(existing), _) if fits(&existing) => Ok(None),
        (Some(_) | None, _) if contents.rotating_from.is_some() => anyhow::bail!(
            "the backup was made during a rotation of the secret key; set secret_key to the old key and \
             next_secret_key to the new one, and run `tributary secret-key rotate` after the restore"
        ),
        (Some(_), _) => anyhow::bail!(
            "the secret key in the data folder or the settings does not match the backup; move the \
             file secret_key away, or set secret_key to the backup's key"
        ),
        (None, Some(key)) => Ok(Some(key)),
        (None, None) if contents.secret_check.is_none() => Ok(None),
        (None, None) => anyhow::bail!(
            "the backup does not contain its secret key; set secret_key (TRIBUTARY_SECRET_KEY), or \
             put the file secret_key into {} first",
            config.data_dir.display()
        ),
    }
}
