//! `tributary move`: moves all data from one database to another.

mod report;
mod to_postgres;
mod to_sqlite;

use super::print_line;
use crate::cli::MoveOptions;
use crate::config::{Config, DatabaseConfig};
use crate::wiring;
use anyhow::Context as _;
use secrecy::ExposeSecret as _;
use tributary_store_postgres::transfer::PostgresMoveSource;
use tributary_store_sqlite::transfer::SqliteMoveSource;

/// Number of changes that are left for the pause: a fraction of a second.
const PAUSE_CHANGES_MAX: u64 = 2_000;

/// Which rows are compared after changes were applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompareScope {
    /// Only the changed rows.
    ChangedRows,
    /// All rows of all tables.
    AllRows,
}

/// Moves the data, or cancels a move.
pub async fn run(config: &Config, options: &MoveOptions) -> anyhow::Result<()> {
    let from = location(config, options.from.as_deref()).context("--from is invalid")?;
    if let DatabaseConfig::Sqlite(path) = &from
        && !path.exists()
    {
        anyhow::bail!("there is no database at {}; check --from", path.display());
    }
    if options.cancel {
        return cancel(config, &from).await;
    }
    let to = location(config, options.to.as_deref()).context("--to is invalid")?;
    match (from, to) {
        (DatabaseConfig::Sqlite(path), DatabaseConfig::Postgres(url)) => {
            to_postgres::run(config, path, url, options.cut_over).await
        }
        (DatabaseConfig::Sqlite(_), DatabaseConfig::Sqlite(_)) => anyhow::bail!(
            "both databases are SQLite files; name the PostgreSQL database with --to or --from, or \
             use `tributary backup` and `tributary restore`"
        ),
        (DatabaseConfig::Postgres(url), DatabaseConfig::Sqlite(path)) => {
            to_sqlite::run(config, url, &path, options.cut_over).await
        }
        (DatabaseConfig::Postgres(_), DatabaseConfig::Postgres(_)) => anyhow::bail!(
            "both databases are PostgreSQL; name the SQLite file with --from or --to sqlite:PATH, or \
             use pg_dump and pg_restore"
        ),
    }
}

/// Returns the database with this URL; the configured one by default.
fn location(config: &Config, url: Option<&str>) -> anyhow::Result<DatabaseConfig> {
    match url {
        None => Ok(config.database()),
        Some(url) => DatabaseConfig::parse(url, &config.data_dir).map_err(anyhow::Error::msg),
    }
}

/// Lets servers write to the source again, and stops following its changes.
async fn cancel(config: &Config, from: &DatabaseConfig) -> anyhow::Result<()> {
    let is_cancelled = match from {
        DatabaseConfig::Sqlite(path) => {
            let mut source = SqliteMoveSource::open(path)?;
            let is_moving = source.state()?.is_some();
            if is_moving {
                source.cancel()?;
            }
            is_moving
        }
        DatabaseConfig::Postgres(url) => {
            let options = wiring::postgres_options(config);
            let mut source = PostgresMoveSource::connect(url.expose_secret(), options).await?;
            let is_moving = source.state().await?.is_some();
            if is_moving {
                source.cancel().await?;
            }
            is_moving
        }
    };
    if !is_cancelled {
        anyhow::bail!("no move from this database is in progress; name the source with --from");
    }
    print_line(
        "Cancelled. Servers can write to the source again. Before another move, drop the tables of \
         the PostgreSQL schema, or remove the unfinished file (.moving).",
    );
    Ok(())
}
