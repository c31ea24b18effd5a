//! `tributary migrate`: migrates the schema and exits.

use super::print_line;
use crate::cli::MigrateOptions;
use crate::config::{Config, DatabaseConfig};
use crate::wiring;
use anyhow::Context as _;
use secrecy::ExposeSecret as _;
use tributary_store_postgres::PostgresStore;

/// Opens the database, which migrates it, and prints the schema version. Distributes it first if
/// the options say so.
pub async fn run(config: &Config, options: MigrateOptions) -> anyhow::Result<()> {
    if options.distributed {
        distribute(config).await?;
    }
    let store = wiring::open_store(config).await?;
    let report = store.report().await?;
    let location = match config.database() {
        DatabaseConfig::Sqlite(path) => path.display().to_string(),
        DatabaseConfig::Postgres(_) => "in database_url".to_owned(),
    };
    print_line(format!(
        "The database {location} ({}) is at migration {}.",
        report.engine, report.schema
    ));
    store.close().await;
    Ok(())
}

/// Distributes the database and prints each step.
async fn distribute(config: &Config) -> anyhow::Result<()> {
    let DatabaseConfig::Postgres(url) = config.database() else {
        anyhow::bail!(
            "--distributed needs PostgreSQL with Citus; set database_url to the coordinator"
        );
    };
    let options = wiring::postgres_options(config);
    PostgresStore::distribute(url.expose_secret(), options, |step| print_line(step))
        .await
        .context("cannot distribute the PostgreSQL database in database_url")?;
    print_line("The database is distributed by app. Servers recognise it when they start.");
    Ok(())
}
