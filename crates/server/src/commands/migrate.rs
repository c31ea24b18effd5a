//! `tributary migrate`: brings the schema up to date, and stops.

use super::say;
use crate::config::Config;
use crate::wiring;

/// Opening the database migrates it; the report says where it stands.
pub async fn run(config: &Config) -> anyhow::Result<()> {
    let store = wiring::open_store(config).await?;
    let report = store.report().await?;
    say(format!(
        "The database ({}) is at migration {}.",
        report.engine, report.schema
    ));
    store.close().await;
    Ok(())
}
