//! The database: whether it opens, and what it says of itself.

use super::check::Check;
use super::rates::{Imported, LatestDays};
use tributary_store::InstanceReport;

const AREA: &str = "database";

/// What opening the database gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseState {
    /// It opens, and says this of itself; and how new its rates are.
    Report(InstanceReport, LatestDays),
    /// It is a file that is not there; the first start makes it.
    NotYet,
    /// It does not open, or not with this secret. Why.
    Broken(String),
}

impl DatabaseState {
    /// What the database says of itself.
    pub(super) const fn report(&self) -> Option<&InstanceReport> {
        match self {
            Self::Report(report, _) => Some(report),
            Self::NotYet | Self::Broken(_) => None,
        }
    }

    /// What is known about imported rates.
    pub(super) const fn imported_rates(&self) -> Imported {
        match self {
            Self::Report(_, latest) => Imported::Until(*latest),
            Self::NotYet => Imported::Until(LatestDays::COMPILED_IN),
            Self::Broken(_) => Imported::Unknown,
        }
    }
}

/// Judges what opening the database gave.
pub(super) fn judge(database: &DatabaseState) -> Vec<Check> {
    let report = match database {
        DatabaseState::Report(report, _) => report,
        DatabaseState::NotYet => {
            return vec![Check::warning(
                AREA,
                "no database yet; the first start makes it",
                "if there should be one, see database_url and data_dir in `tributary config print`",
            )];
        }
        DatabaseState::Broken(error) => {
            let advice = "see database_url and data_dir in `tributary config print`";
            return vec![Check::failure(
                AREA,
                format!("cannot be used: {error}"),
                advice,
            )];
        }
    };
    // Said, since whoever asks a doctor does not expect to be operated on.
    let as_the_server = Check::ok(
        AREA,
        "was opened as the server opens it; pending migrations, if any, are applied now",
    );
    let opened = Check::ok(AREA, format!("{}, schema {}", report.engine, report.schema));
    let doubtful = |concern: &String| Check::warning(AREA, concern, "");
    [opened, as_the_server]
        .into_iter()
        .chain(report.concerns.iter().map(doubtful))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_database_that_opens_is_fine_and_its_concerns_are_warnings() {
        let report = InstanceReport {
            engine: "SQLite 3.50.4".to_owned(),
            schema: 3,
            newest: None,
            clock: None,
            concerns: vec!["fsync is off".to_owned()],
        };
        let checks = judge(&DatabaseState::Report(report, LatestDays::COMPILED_IN));
        assert_eq!(checks[0], Check::ok(AREA, "SQLite 3.50.4, schema 3"));
        assert_eq!(checks[2], Check::warning(AREA, "fsync is off", ""));
    }

    #[test]
    fn a_database_that_is_not_made_yet_is_not_broken() {
        let checks = judge(&DatabaseState::NotYet);
        assert_eq!(checks[0].verdict, Verdict::Warning);
        assert!(checks[0].message.contains("the first start makes it"));
    }

    #[test]
    fn a_database_that_does_not_open_is_broken() {
        let checks = judge(&DatabaseState::Broken("permission denied".to_owned()));
        assert_eq!(checks[0].verdict, Verdict::Failure);
        assert!(checks[0].message.contains("permission denied"));
    }
}
