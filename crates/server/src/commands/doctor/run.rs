//! Opens the database for the checks and prints the results.

use super::rates::LatestRateDays;
use super::{DatabaseState, check, examine};
use crate::config::{Config, DatabaseConfig};
use crate::{rates, secret_key, system, wiring};
use std::process::ExitCode;
use tributary_domain::keyring::KnownKeys;
use tributary_domain::vocabulary::day::Day;
use tributary_store::{InstanceReport, Store};

/// Runs all checks and prints a table. The exit code shows whether there are errors.
pub async fn run(config: &Config) -> anyhow::Result<ExitCode> {
    let now = system::runtime().now();
    let checks = examine(config, inspect_database(config).await, now).await;
    // A closed pipe (`| head`) is not an error.
    let _gone = check::write_table(&checks, &mut std::io::stdout().lock());
    Ok(check::exit_code(&checks))
}

async fn inspect_database(config: &Config) -> DatabaseState {
    if let DatabaseConfig::Sqlite(path) = config.database()
        && !path.exists()
    {
        return DatabaseState::Missing;
    }
    match open_and_query(config).await {
        Ok((report, latest)) => DatabaseState::Report(report, latest),
        Err(error) => DatabaseState::Unusable(format!("{error:#}")),
    }
}

/// Opens an existing database, commits once, and queries its report.
async fn open_and_query(config: &Config) -> anyhow::Result<(InstanceReport, LatestRateDays)> {
    // Load the key first, so that wrong permissions are reported even if the database does not
    // open.
    let keys = secret_key::load(config)?;
    let store = wiring::open_existing_store(config).await?;
    let result = query_database(&*store, keys).await;
    store.close().await;
    result
}

async fn query_database(
    store: &dyn Store,
    keys: Option<KnownKeys>,
) -> anyhow::Result<(InstanceReport, LatestRateDays)> {
    store.commit_probe(system::runtime().now()).await?;
    let mut report = store.report().await?;
    // Check the key only if there are records. Checking an empty database would make it adopt the
    // key. A database with records already has a key, because the server checks the key before it
    // stores anything.
    if report.newest_record_at.is_some() {
        match keys {
            Some(keys) => {
                wiring::open_keyring(store, keys).await?;
            }
            None => anyhow::bail!(
                "the database was set up, but its secret_key is missing: restore the file, or set \
                 secret_key"
            ),
        }
    }
    if let Some(rotation) = store.stored_keys().await?.rotation {
        report.warnings.push(format!(
            "a rotation of the secret key began at {} and is unfinished; run `tributary secret-key \
             rotate` again, and keep both keys until it is finished",
            rotation.started_at.rfc3339()
        ));
    }
    let today = Day::of(system::runtime().now());
    let latest = LatestRateDays {
        imported: rates::latest_imported_day(store).await?,
        second: rates::latest_second_source_day(store, today).await?,
    };
    Ok((report, latest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::first_run;
    use std::fs;
    use std::path::Path;

    fn config(folder: &Path, more: &[(&str, &str)]) -> Config {
        let data_dir = ("TRIBUTARY_DATA_DIR", folder.to_str().unwrap());
        let environment = std::iter::once(data_dir).chain(more.iter().copied());
        let owned = environment.map(|(name, text)| (name.to_owned(), text.to_owned()));
        Config::load(None, owned).unwrap()
    }

    #[tokio::test]
    async fn inspecting_creates_neither_database_nor_key() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("data");
        let config = config(&folder, &[]);
        let state = inspect_database(&config).await;
        assert!(matches!(state, DatabaseState::Missing), "{state:?}");
        assert!(!folder.exists());
        wiring::open_store(&config).await.unwrap().close().await;
        let state = inspect_database(&config).await;
        assert!(matches!(state, DatabaseState::Report(..)), "{state:?}");
        assert!(!folder.join(secret_key::SECRET_KEY_FILE).exists());
    }

    #[tokio::test]
    async fn a_configured_key_is_not_stored_in_an_empty_database() {
        let folder = tempfile::tempdir().unwrap();
        let with_key = |digits: &str| {
            config(
                folder.path(),
                &[("TRIBUTARY_SECRET_KEY", &digits.repeat(32))],
            )
        };
        let (one, other) = (with_key("ab"), with_key("cd"));
        wiring::open_store(&one).await.unwrap().close().await;
        let state = inspect_database(&one).await;
        assert!(matches!(state, DatabaseState::Report(..)), "{state:?}");
        let (store, _keyring) = wiring::open(&other).await.expect("no key is known yet");
        first_run::create_first_organization(&*store, &system::runtime())
            .await
            .unwrap();
        store.close().await;
        let state = inspect_database(&one).await;
        assert!(
            matches!(&state, DatabaseState::Unusable(text) if text.contains("secret_key")),
            "{state:?}"
        );
    }

    #[tokio::test]
    async fn reports_a_lost_key_without_creating_one() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path(), &[]);
        let (store, _keyring) = wiring::open(&config).await.unwrap();
        first_run::create_first_organization(&*store, &system::runtime())
            .await
            .unwrap();
        store.close().await;
        let key = folder.path().join(secret_key::SECRET_KEY_FILE);
        fs::remove_file(&key).unwrap();
        let state = inspect_database(&config).await;
        assert!(
            matches!(&state, DatabaseState::Unusable(text) if text.contains("is missing")),
            "{state:?}"
        );
        assert!(!key.exists());
    }
}
