//! `tributary restore`: a data folder made of a backup.

use super::backup::{create_temp_file, parent_folder, sqlite_path, sync_folder};
use super::print_line;
use crate::config::Config;
use crate::secret_key;
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use tributary_domain::keyring::{Keyring, constant_time_eq};
use tributary_store_sqlite::backup::{self, BackupContents};

/// Checks everything first, then puts the key into its place and the database last: a server that starts in between
/// finds none.
pub fn run(config: &Config, file: &Path) -> anyhow::Result<()> {
    let database = sqlite_path(config)?;
    if !file.exists() {
        anyhow::bail!("there is no file {}", file.display());
    }
    reject_existing_files(&database)?;
    let contents =
        backup::check(file).with_context(|| format!("{} cannot be restored", file.display()))?;
    secret_key::create_data_folder(&config.data_dir)?;
    let key = key_to_write(config, &contents)?;
    let folder = parent_folder(&database);
    let unfinished = create_temp_file(folder)?;
    backup::copy(file, unfinished.path(), None).context("the backup cannot be copied")?;
    backup::check(unfinished.path()).context("the copy of the backup is not sound")?;
    unfinished.as_file().sync_all()?;
    if let Some(key) = key {
        secret_key::store_key(&config.data_dir, key)?;
    }
    backup::remove_stale_marker(&database)
        .context("the marker of the last database cannot be removed")?;
    unfinished
        .persist_noclobber(&database)
        .with_context(|| format!("{} cannot be written", database.display()))?;
    sync_folder(folder)?;
    print_line(format!(
        "{} is restored from {}. `tributary serve` starts it.",
        database.display(),
        file.display()
    ));
    Ok(())
}

/// Nothing is overwritten: not a database, and not what a server that lost its file still writes into.
fn reject_existing_files(database: &Path) -> anyhow::Result<()> {
    let beside = |end: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    if database.symlink_metadata().is_ok() {
        anyhow::bail!(
            "there is a database at {} already, perhaps with a server that uses it; stop that and move the file \
             away (with its -wal, -shm and -unclean), or set data_dir (TRIBUTARY_DATA_DIR) to another folder",
            database.display()
        );
    }
    for path in [beside("-wal"), beside("-shm")] {
        if path.symlink_metadata().is_ok() {
            anyhow::bail!(
                "{} is there without its database: a server may still be using it; stop that, and move the file away",
                path.display()
            );
        }
    }
    Ok(())
}

/// The key to be kept in the data folder, if it is not there yet. Whichever it is, it must be the database's own.
fn key_to_write(config: &Config, contents: &BackupContents) -> anyhow::Result<Option<[u8; 32]>> {
    let sealed_in = contents.secret_key.as_deref();
    let sealed_in = sealed_in.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let there = secret_key::load(config)?;
    let fits = |key: [u8; 32]| {
        let check = contents.secret_check.as_deref();
        check.is_none_or(|check| constant_time_eq(check, &Keyring::new(key).check_value()))
    };
    match (there, sealed_in) {
        (Some(there), _) if fits(there) => Ok(None),
        (Some(_), _) => anyhow::bail!(
            "the secret key of this folder or of the settings is not the one that the backup was made with; move the \
             file secret_key away, or set secret_key to that of the backup"
        ),
        (None, Some(key)) => Ok(Some(key)),
        (None, None) if contents.secret_check.is_none() => Ok(None),
        (None, None) => anyhow::bail!(
            "the backup was made without its secret key; set secret_key (TRIBUTARY_SECRET_KEY) to it, or put the file \
             secret_key into {} first",
            config.data_dir.display()
        ),
    }
}
