//! `tributary backup`: the embedded database in one file, beside a running server.

use super::print_line;
use crate::cli::BackupOptions;
use crate::config::{Config, DatabaseConfig};
use crate::{secret_key, wiring};
use anyhow::Context as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use tributary_store_sqlite::backup;

/// What an unfinished file is called, for whoever finds one that a killed backup left behind.
const PREFIX: &str = ".tributary-backup-";

/// Writes, checks and names the file, in this order: a file of this name is a sound backup.
pub fn run(config: &Config, options: &BackupOptions) -> anyhow::Result<()> {
    let database = sqlite_path(config)?;
    wiring::require_database(config)?;
    let file = &options.file;
    if !options.force && file.symlink_metadata().is_ok() {
        anyhow::bail!(
            "{} is there already; name another file, or say --force to replace it",
            file.display()
        );
    }
    let key = match config.secret_key {
        // Whoever keeps it in the settings keeps it apart from the data.
        None if !options.without_key => secret_key::load(config)?,
        _ => None,
    };
    let folder = parent_folder(file);
    let unfinished = create_temp_file(folder)?;
    backup::copy(
        &database,
        unfinished.path(),
        key.as_ref().map(<[u8; 32]>::as_slice),
    )
    .with_context(|| format!("{} cannot be copied", database.display()))?;
    let contents = backup::check(unfinished.path()).context("the copy is not sound")?;
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
        "{} holds the database of {} ({bytes} bytes, migration {}), checked.",
        file.display(),
        database.display(),
        contents.schema
    ));
    print_line(match contents.secret_key {
        Some(_) => "It holds the secret key, too: keep it as safe as the data folder.",
        None => "It does not hold the secret key, without which it is of no use: keep that apart.",
    });
    Ok(())
}

/// The file of the embedded database; `PostgreSQL` has tools of its own.
pub(super) fn sqlite_path(config: &Config) -> anyhow::Result<PathBuf> {
    match config.database() {
        DatabaseConfig::Sqlite(path) => Ok(path),
        DatabaseConfig::Postgres(_) => anyhow::bail!(
            "the data is in PostgreSQL: use pg_dump and pg_restore, or continuous archiving, and keep secret_key \
             apart; this command is for the embedded database"
        ),
    }
}

/// An empty file for its owner alone, in the folder that the finished one is to be in.
pub(super) fn create_temp_file(folder: &Path) -> anyhow::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(PREFIX)
        .tempfile_in(folder)
        .with_context(|| {
            format!(
                "no file can be made in {}; the folder must be there, and writable",
                folder.display()
            )
        })
}

/// The folder of a file; that of `x` is the present one.
pub(super) fn parent_folder(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A name is as durable as its folder.
pub(super) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}
