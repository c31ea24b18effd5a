//! The database: whether it opens, and what it says of itself.

use super::check::Check;
use tributary_store::InstanceReport;

const AREA: &str = "database";

/// Judges what opening the database gave.
pub(super) fn judge(database: &Result<InstanceReport, String>) -> Vec<Check> {
    let report = match database {
        Ok(report) => report,
        Err(error) => {
            let advice = "see database_url and data_dir in `tributary config print`";
            return vec![Check::failure(
                AREA,
                format!("cannot be opened: {error}"),
                advice,
            )];
        }
    };
    let opened = Check::ok(AREA, format!("{}, schema {}", report.engine, report.schema));
    let doubtful = |concern: &String| Check::warning(AREA, concern, "");
    std::iter::once(opened)
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
        let checks = judge(&Ok(report));
        assert_eq!(checks[0], Check::ok(AREA, "SQLite 3.50.4, schema 3"));
        assert_eq!(checks[1], Check::warning(AREA, "fsync is off", ""));
    }

    #[test]
    fn a_database_that_does_not_open_is_broken() {
        let checks = judge(&Err("permission denied".to_owned()));
        assert_eq!(checks[0].verdict, Verdict::Failure);
        assert!(checks[0].message.contains("permission denied"));
    }
}
