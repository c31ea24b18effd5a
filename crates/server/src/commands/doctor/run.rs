//! Opening what the doctor looks at, and printing what it found.

use super::rates::LatestRateDays;
use super::{DatabaseState, check, examine};
use crate::config::{Config, DatabaseConfig};
use crate::{rates, secret_key, system, wiring};
use std::process::ExitCode;
use tributary_domain::keyring::Keyring;
use tributary_domain::vocabulary::day::Day;
use tributary_store::{InstanceReport, Store};

/// Looks at everything, prints a table, and says by the exit code whether something is broken.
pub async fn run(config: &Config) -> anyhow::Result<ExitCode> {
    let now = system::runtime().now();
    let checks = examine(config, inspect_database(config).await, now).await;
    // A reader that has gone away (`| head`) is no error of ours.
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

/// Opens a database that is there, commits once, and asks it about itself.
async fn open_and_query(config: &Config) -> anyhow::Result<(InstanceReport, LatestRateDays)> {
    // First, so that a key that others can read is named even when the database does not open.
    let key = secret_key::load(config)?;
    let store = wiring::open_existing_store(config).await?;
    let asked = query_database(&*store, key.map(Keyring::new)).await;
    store.close().await;
    asked
}

async fn query_database(
    store: &dyn Store,
    keyring: Option<Keyring>,
) -> anyhow::Result<(InstanceReport, LatestRateDays)> {
    store.commit_probe(system::runtime().now()).await?;
    let report = store.report().await?;
    // A database that knows no secret would take the one it is asked about. One with records knows its own:
    // nothing is stored before the secret was compared.
    if report.newest_record_at.is_some() {
        match keyring {
            Some(keyring) => wiring::check_secret(store, &keyring).await?,
            None => anyhow::bail!(
                "the database has been set up, and its secret_key is gone: restore the file, or set \
                 secret_key; the server would make another one and then refuse to start"
            ),
        }
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
    async fn looking_makes_no_database_and_no_key() {
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
    async fn a_key_that_is_set_is_not_written_into_an_empty_database() {
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
    async fn a_key_that_was_lost_is_named_and_not_made() {
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
            matches!(&state, DatabaseState::Unusable(text) if text.contains("is gone")),
            "{state:?}"
        );
        assert!(!key.exists());
    }
}
