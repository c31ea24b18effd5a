//! The exchange rates: how new they are, by the dollar's rate, which the others depend on. Whether new ones can be fetched is looked at in `services`.

use super::check::Check;
use tributary_domain::exchange::{Day, SNAPSHOT_DAY, Staleness, latest_day, staleness};

pub(super) const AREA: &str = "rates";

/// What is known about imported rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Imported {
    /// The dollar's latest rate is of this day; none: there is none.
    Until(Option<Day>),
    /// The database cannot be asked.
    Unknown,
}

/// Judges how new the rates are.
pub(super) fn judge(imported: Imported, today: Day, is_fetched: bool) -> Vec<Check> {
    let Imported::Until(imported) = imported else {
        return vec![Check::warning(
            AREA,
            format!("the database cannot be asked; those compiled in end with {SNAPSHOT_DAY}"),
            "",
        )];
    };
    let latest = latest_day(imported);
    let origin = if imported == Some(latest) {
        "imported"
    } else {
        "compiled in"
    };
    let message = format!("the dollar's latest rate is of {latest}, {origin}");
    let advice = if is_fetched {
        "see whether rates.url answers, and the log of the server; `tributary fx import FILE` helps meanwhile"
    } else {
        "set rates.url, or import a file now and then: `tributary fx import FILE`"
    };
    vec![match staleness(latest, today) {
        Staleness::Fresh => Check::ok(AREA, message),
        Staleness::Stale { days } => {
            Check::warning(AREA, format!("{message}: {days} days old"), advice)
        }
    }]
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::compiled_in(None, "2026-09-20", Verdict::Ok, "2026-09-14, compiled in")]
    #[case::compiled_in_long_ago(None, "2026-10-14", Verdict::Warning, "compiled in: 30 days old")]
    #[case::imported(Some("2026-10-13"), "2026-10-14", Verdict::Ok, "2026-10-13, imported")]
    #[case::imported_long_ago(
        Some("2026-10-01"),
        "2026-10-14",
        Verdict::Warning,
        "imported: 13 days"
    )]
    #[case::older_than_the_snapshot(Some("2024-01-01"), "2026-09-20", Verdict::Ok, "compiled in")]
    fn how_new_they_are(
        #[case] imported: Option<&str>,
        #[case] today: &str,
        #[case] verdict: Verdict,
        #[case] part: &str,
    ) {
        let day = |text: &str| Day::parse(text).unwrap();
        let checks = judge(Imported::Until(imported.map(day)), day(today), true);
        assert_eq!(checks[0].verdict, verdict);
        assert!(checks[0].message.contains(part), "{checks:?}");
    }

    #[test]
    fn a_database_that_cannot_be_asked_is_no_proof_of_anything() {
        let checks = judge(Imported::Unknown, SNAPSHOT_DAY, true);
        assert_eq!(checks[0].verdict, Verdict::Warning);
    }
}
