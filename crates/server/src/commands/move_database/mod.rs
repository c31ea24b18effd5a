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

/// Number of changes that may be left for the pause at any load: a fraction of a second.
const FEW_CHANGES: u64 = 2_000;
/// Number of changes beyond which the pause would be longer than a few seconds.
const PAUSE_CHANGES_MAX: u64 = 100_000;

/// Which rows are compared after changes were applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompareScope {
    /// Only the changed rows.
    ChangedRows,
    /// All rows of all tables.
    AllRows,
}

/// Returns whether another round would leave no fewer changes for the next one. Each round copies
/// what changed during the one before, so the numbers fall until they depend on the load only.
fn is_caught_up(before: Option<u64>, changed: u64) -> bool {
    changed <= FEW_CHANGES || before.is_some_and(|before| changed > before / 2)
}

/// Rejects a cut-over that would take too long.
fn check_pause(changed: u64) -> anyhow::Result<()> {
    if changed > PAUSE_CHANGES_MAX {
        anyhow::bail!(
            "{changed} rows changed while the last changes were copied, so the pause would be long; \
             run the command again when there are fewer requests"
        );
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::few_at_first(None, FEW_CHANGES, true)]
    #[case::many_at_first(None, FEW_CHANGES + 1, false)]
    #[case::falling(Some(1_000_000), 400_000, false)]
    #[case::no_longer_falling(Some(30_000), 29_000, true)]
    #[case::growing(Some(30_000), 40_000, true)]
    fn rounds_end_when_another_one_would_not_help(
        #[case] before: Option<u64>,
        #[case] changed: u64,
        #[case] expected: bool,
    ) {
        assert_eq!(is_caught_up(before, changed), expected);
    }

    #[test]
    fn a_long_pause_is_refused() {
        assert!(check_pause(PAUSE_CHANGES_MAX).is_ok());
        assert!(check_pause(PAUSE_CHANGES_MAX + 1).is_err());
    }
}
