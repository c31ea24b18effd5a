//! `tributary move`: moves all data from one database to another.

mod report;
mod to_postgres;

use super::print_line;
use crate::cli::MoveOptions;
use crate::config::{Config, DatabaseConfig};
use anyhow::Context as _;
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
        return cancel(&from);
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
        (DatabaseConfig::Postgres(_), _) => {
            anyhow::bail!("the source is PostgreSQL; name the SQLite file with --from sqlite:PATH")
        }
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
fn cancel(from: &DatabaseConfig) -> anyhow::Result<()> {
    let DatabaseConfig::Sqlite(path) = from else {
        anyhow::bail!("name the SQLite file that was being moved with --from sqlite:PATH");
    };
    let mut source = SqliteMoveSource::open(path)?;
    if source.state()?.is_none() {
        anyhow::bail!("no move of {} is in progress", path.display());
    }
    source.cancel()?;
    print_line(format!(
        "Cancelled. Servers can write to {} again. Before another move, drop the tables of the \
         PostgreSQL schema.",
        path.display()
    ));
    Ok(())
}
