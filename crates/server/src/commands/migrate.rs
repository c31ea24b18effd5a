//! `tributary migrate`: migrates the schema and exits.

use super::print_line;
use crate::config::{Config, DatabaseConfig};
use crate::wiring;

/// Opens the database, which migrates it, and prints the schema version.
pub async fn run(config: &Config) -> anyhow::Result<()> {
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
