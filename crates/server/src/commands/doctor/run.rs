//! Opening what the doctor looks at, and printing what it found.

use super::{check, examine};
use crate::config::{Config, Database};
use crate::{outside, wiring};
use std::process::ExitCode;
use tributary_store::InstanceReport;

/// Looks at everything, prints a table, and says by the exit code whether something is broken.
pub async fn run(config: &Config) -> anyhow::Result<ExitCode> {
    let now = outside::source().now();
    let checks = examine(config, look_at_database(config).await, now).await;
    check::write_table(&checks, &mut std::io::stdout().lock())?;
    Ok(check::exit_code(&checks))
}

/// Opens the database as the server would, commits once, and asks it about itself.
async fn look_at_database(config: &Config) -> Result<InstanceReport, String> {
    if let Database::Sqlite(path) = config.database()
        && !path.exists()
    {
        return Err("there is no database yet; the first start of the server makes it".to_owned());
    }
    let shown = |error: anyhow::Error| format!("{error:#}");
    let (store, _keyring) = wiring::open(config).await.map_err(shown)?;
    let probed = store.commit_probe(outside::source().now()).await;
    let report = match probed {
        Ok(()) => store.report().await,
        Err(error) => Err(error),
    };
    store.close().await;
    report.map_err(|error| shown(error.into()))
}
