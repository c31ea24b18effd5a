//! `tributary doctor`: checks the installation and suggests fixes.
//!
//! Each area collects observations and evaluates them in a pure function. All areas are checked
//! even if a check fails, because an operator wants the whole list.
//!
//! The command creates no database file, folder or secret key, and stores no secret in a database.
//! It opens an existing database as the server does, which applies pending migrations (all of them
//! for an empty `PostgreSQL` database), and commits the time of the last probe. It also creates and
//! removes a file in the data folder.

mod check;
mod clock;
mod database;
mod disk;
mod geo;
mod limits;
mod mail;
mod postbacks;
mod rates;
mod roles;
mod run;
mod services;

pub use check::{CheckStatus, DoctorCheck};
pub use database::DatabaseState;
pub use run::run;

use crate::config::Config;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;

/// Runs all checks. The caller opens the database; `now` is the clock under test.
pub async fn examine(config: &Config, database: DatabaseState, now: Timestamp) -> Vec<DoctorCheck> {
    let (services, mail) = tokio::join!(services::examine(config), mail::examine(config));
    [
        configuration(config.warnings()),
        vec![roles::judge(config.roles)],
        database::judge(&database),
        disk::examine(config),
        clock::judge(now, database.report()),
        limits::examine(config),
        vec![postbacks::judge(config.configured_base_url())],
        rates::judge(
            database.imported_rates(),
            Day::of(now),
            config.rates.url.is_some(),
            config.rates.second_url.is_some(),
        ),
        services,
        mail,
        geo::examine(&config.geo),
    ]
    .concat()
}

fn configuration(warnings: &[String]) -> Vec<DoctorCheck> {
    const AREA: &str = "configuration";
    if warnings.is_empty() {
        return vec![DoctorCheck::ok(AREA, "no errors or warnings")];
    }
    let to_check = |warning: &String| DoctorCheck::warning(AREA, warning, "");
    warnings.iter().map(to_check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn risky_settings_are_warnings() {
        assert_eq!(configuration(&[])[0].status, CheckStatus::Ok);
        let checks = configuration(&["one".to_owned(), "two".to_owned()]);
        assert_eq!(checks.len(), 2);
        assert!(
            checks
                .iter()
                .all(|check| check.status == CheckStatus::Warning)
        );
    }

    #[tokio::test]
    async fn checks_every_area_even_without_a_database() {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = vec![
            ("TRIBUTARY_DATA_DIR", folder.path().to_str().unwrap()),
            ("TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES", "true"),
            ("TRIBUTARY_RATES__URL", ""),
            ("TRIBUTARY_RATES__SECOND_URL", ""),
        ];
        // Nothing listens on this port, so the real networks are not contacted.
        environment.extend(SERVICES.map(|name| (name, "http://127.0.0.1:1")));
        let environment = environment
            .into_iter()
            .map(|(name, text)| (name.into(), text.into()));
        let config = Config::load(None, environment).unwrap();
        let now = Timestamp::from_millis(1_800_000_000_000);
        let checks = examine(
            &config,
            DatabaseState::Unusable("no such file".to_owned()),
            now,
        )
        .await;
        let areas: Vec<&str> = checks.iter().map(|check| check.area).collect();
        for area in [
            "configuration",
            "roles",
            "database",
            "disk",
            "clock",
            "limits",
            "postbacks",
            "rates",
            "networks",
            "geo",
        ] {
            assert!(areas.contains(&area), "{area} is missing in {areas:?}");
        }
        let errors: Vec<&str> = checks
            .iter()
            .filter(|check| check.status == CheckStatus::Error)
            .map(|check| check.area)
            .collect();
        assert_eq!(errors, ["database"], "unreachable services are warnings");
    }

    const SERVICES: [&str; 7] = [
        "TRIBUTARY_NETWORKS__NETWORK_A__BASE_URL",
        "TRIBUTARY_NETWORKS__NETWORK_B__BASE_URL",
        "TRIBUTARY_NETWORKS__NETWORK_B__TOKEN_URL",
        "TRIBUTARY_NETWORKS__NETWORK_B__REPORTS_URL",
        "TRIBUTARY_NETWORKS__NETWORK_C__BASE_URL",
        "TRIBUTARY_NETWORKS__NETWORK_D__BASE_URL",
        "TRIBUTARY_ADSERVICES__BASE_URL",
    ];
}
