//! The database: whether it opens, and what it says of itself.

use super::check::DoctorCheck;
use super::rates::{ImportStatus, LatestRateDays};
use tributary_store::InstanceReport;

const AREA: &str = "database";

/// What opening the database gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseState {
    /// It opens, and says this of itself; and how new its rates are.
    Report(InstanceReport, LatestRateDays),
    /// It is a file that is not there; the first start makes it.
    Missing,
    /// It does not open, or not with this secret. Why.
    Unusable(String),
}

impl DatabaseState {
    /// What the database says of itself.
    pub(super) const fn report(&self) -> Option<&InstanceReport> {
        match self {
            Self::Report(report, _) => Some(report),
            Self::Missing | Self::Unusable(_) => None,
        }
    }

    /// What is known about imported rates.
    pub(super) const fn imported_rates(&self) -> ImportStatus {
        match self {
            Self::Report(_, latest) => ImportStatus::Latest(*latest),
            Self::Missing => ImportStatus::Latest(LatestRateDays::COMPILED_IN),
            Self::Unusable(_) => ImportStatus::Unknown,
        }
    }
}

/// Judges what opening the database gave.
pub(super) fn judge(database: &DatabaseState) -> Vec<DoctorCheck> {
    let report = match database {
        DatabaseState::Report(report, _) => report,
        DatabaseState::Missing => {
            return vec![DoctorCheck::warning(
                AREA,
                "no database yet; the first start makes it",
                "if there should be one, see database_url and data_dir in `tributary config print`",
            )];
        }
        DatabaseState::Unusable(error) => {
            let advice = "see database_url and data_dir in `tributary config print`";
            return vec![DoctorCheck::error(
                AREA,
                format!("cannot be used: {error}"),
                advice,
            )];
        }
    };
    // Said, since whoever asks a doctor does not expect to be operated on.
    let as_the_server = DoctorCheck::ok(
        AREA,
        "was opened as the server opens it; pending migrations, if any, are applied now",
    );
    let opened = DoctorCheck::ok(AREA, format!("{}, schema {}", report.engine, report.schema));
    let doubtful = |concern: &String| DoctorCheck::warning(AREA, concern, "");
    [opened, as_the_server]
        .into_iter()
        .chain(report.warnings.iter().map(doubtful))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;

    #[test]
    fn a_database_that_opens_is_fine_and_its_concerns_are_warnings() {
        let report = InstanceReport {
            engine: "SQLite 3.50.4".to_owned(),
            schema: 3,
            newest_record_at: None,
            server_time: None,
            warnings: vec!["fsync is off".to_owned()],
        };
        let checks = judge(&DatabaseState::Report(report, LatestRateDays::COMPILED_IN));
        assert_eq!(checks[0], DoctorCheck::ok(AREA, "SQLite 3.50.4, schema 3"));
        assert_eq!(checks[2], DoctorCheck::warning(AREA, "fsync is off", ""));
    }

    #[test]
    fn a_database_that_is_not_made_yet_is_not_broken() {
        let checks = judge(&DatabaseState::Missing);
        assert_eq!(checks[0].status, CheckStatus::Warning);
        assert!(checks[0].message.contains("the first start makes it"));
    }

    #[test]
    fn a_database_that_does_not_open_is_broken() {
        let checks = judge(&DatabaseState::Unusable("permission denied".to_owned()));
        assert_eq!(checks[0].status, CheckStatus::Error);
        assert!(checks[0].message.contains("permission denied"));
    }
}
