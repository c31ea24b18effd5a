//! `tributary migrate`: brings the schema up to date, and stops.

use super::print_line;
use crate::config::{Config, DatabaseConfig};
use crate::wiring;

/// Opening the database migrates it; the report says where it stands.
pub async fn run(config: &Config) -> anyhow::Result<()> {
    let store = wiring::open_store(config).await?;
    let report = store.report().await?;
    let place = match config.database() {
        DatabaseConfig::Sqlite(path) => path.display().to_string(),
        DatabaseConfig::Postgres(_) => "of database_url".to_owned(),
    };
    print_line(format!(
        "The database {place} ({}) is at migration {}.",
        report.engine, report.schema
    ));
    store.close().await;
    Ok(())
}
