//! Checks the database: whether it opens, and what it reports about itself.

use super::check::DoctorCheck;
use super::rates::{ImportStatus, LatestRateDays};
use tributary_store::{InstanceReport, StandbyReport};

const AREA: &str = "database";

/// Result of opening the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseState {
    /// The database can be opened. Contains its report and the days of its latest rates.
    Report(InstanceReport, LatestRateDays),
    /// The database file does not exist yet; the first start creates it.
    Missing,
    /// The database cannot be opened, or was set up with another secret key. Contains the reason.
    Unusable(String),
}

impl DatabaseState {
    /// Returns the database's report about itself.
    pub(super) const fn report(&self) -> Option<&InstanceReport> {
        match self {
            Self::Report(report, _) => Some(report),
            Self::Missing | Self::Unusable(_) => None,
        }
    }

    /// Returns the status of imported rates.
    pub(super) const fn imported_rates(&self) -> ImportStatus {
        match self {
            Self::Report(_, latest) => ImportStatus::Latest(*latest),
            Self::Missing => ImportStatus::Latest(LatestRateDays::COMPILED_IN),
            Self::Unusable(_) => ImportStatus::Unknown,
        }
    }
}

/// Checks the result of opening the database.
pub(super) fn judge(database: &DatabaseState) -> Vec<DoctorCheck> {
    let report = match database {
        DatabaseState::Report(report, _) => report,
        DatabaseState::Missing => {
            return vec![DoctorCheck::warning(
                AREA,
                "no database yet; the first start creates it",
                "if one should exist, check database_url and data_dir in `tributary config print`",
            )];
        }
        DatabaseState::Unusable(error) => {
            let advice = "check database_url and data_dir in `tributary config print`";
            return vec![DoctorCheck::error(
                AREA,
                format!("cannot be used: {error}"),
                advice,
            )];
        }
    };
    // Operators do not expect a check to change the database, so tell them.
    let migrated = DoctorCheck::ok(
        AREA,
        "opened as by the server; any pending migrations were applied",
    );
    let opened = DoctorCheck::ok(AREA, format!("{}, schema {}", report.engine, report.schema));
    let to_check = |concern: &String| DoctorCheck::warning(AREA, concern, "");
    [opened, migrated]
        .into_iter()
        .chain(report.standby.as_ref().map(judge_standby))
        .chain(report.warnings.iter().map(to_check))
        .collect()
}

/// Checks the standby that serves reports.
fn judge_standby(standby: &StandbyReport) -> DoctorCheck {
    match standby {
        StandbyReport::Unusable(problem) => DoctorCheck::warning(
            AREA,
            format!("the standby cannot be used: {problem}"),
            "check database_read_url; until then, the primary serves reports",
        ),
        StandbyReport::Usable { lag, lag_max } if lag > lag_max => DoctorCheck::warning(
            AREA,
            format!("the standby is {:.1} seconds behind", lag.as_secs_f64()),
            "find out why replication is slow; until then, the primary serves reports",
        ),
        StandbyReport::Usable { lag, .. } => DoctorCheck::ok(
            AREA,
            format!(
                "standby for reports, {:.1} seconds behind",
                lag.as_secs_f64()
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;
    use std::time::Duration;

    #[test]
    fn concerns_of_an_open_database_are_warnings() {
        let report = InstanceReport {
            engine: "SQLite 3.50.4".to_owned(),
            schema: 3,
            newest_record_at: None,
            server_time: None,
            standby: None,
            warnings: vec!["fsync is off".to_owned()],
        };
        let checks = judge(&DatabaseState::Report(report, LatestRateDays::COMPILED_IN));
        assert_eq!(checks[0], DoctorCheck::ok(AREA, "SQLite 3.50.4, schema 3"));
        assert_eq!(checks[2], DoctorCheck::warning(AREA, "fsync is off", ""));
    }

    #[test]
    fn a_standby_is_a_warning_if_reports_do_not_use_it() {
        let second = Duration::from_secs(1);
        let usable = |lag| StandbyReport::Usable {
            lag,
            lag_max: second * 10,
        };
        for (standby, expected, text) in [
            (usable(second), CheckStatus::Ok, "1.0 seconds behind"),
            (
                usable(second * 11),
                CheckStatus::Warning,
                "11.0 seconds behind",
            ),
            (
                StandbyReport::Unusable("no answer".to_owned()),
                CheckStatus::Warning,
                "no answer",
            ),
        ] {
            let check = judge_standby(&standby);
            assert_eq!(check.status, expected, "{standby:?}");
            assert!(check.message.contains(text), "{check:?}");
        }
    }

    #[test]
    fn a_missing_database_is_a_warning() {
        let checks = judge(&DatabaseState::Missing);
        assert_eq!(checks[0].status, CheckStatus::Warning);
        assert!(checks[0].message.contains("the first start creates it"));
    }

    #[test]
    fn an_unusable_database_is_an_error() {
        let checks = judge(&DatabaseState::Unusable("permission denied".to_owned()));
        assert_eq!(checks[0].status, CheckStatus::Error);
        assert!(checks[0].message.contains("permission denied"));
    }
}
