//! `tributary migrate`: brings the schema up to date, and stops.

use super::say;
use crate::config::{Config, Database};
use crate::wiring;

/// Opening the database migrates it; the report says where it stands.
pub async fn run(config: &Config) -> anyhow::Result<()> {
    let store = wiring::open_store(config).await?;
    let report = store.report().await?;
    let place = match config.database() {
        Database::Sqlite(path) => path.display().to_string(),
        Database::Postgres(_) => "of database_url".to_owned(),
    };
    say(format!(
        "The database {place} ({}) is at migration {}.",
        report.engine, report.schema
    ));
    store.close().await;
    Ok(())
}
