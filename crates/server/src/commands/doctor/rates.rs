//! Checks the age of the exchange rates, based on the dollar's rate, which all conversions require.
//! `services` checks whether new rates can be fetched.

use super::check::DoctorCheck;
use tributary_domain::exchange::{
    SECOND_SNAPSHOT_DAY, SNAPSHOT_DAY, Staleness, latest_day, staleness,
};
use tributary_domain::vocabulary::day::Day;

pub(super) const AREA: &str = "rates";

/// Days of the latest rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatestRateDays {
    /// Day of the dollar's latest imported rate.
    pub imported: Option<Day>,
    /// Day of the second source's latest rates, which are stored in the database or compiled in.
    pub second: Day,
}

impl LatestRateDays {
    /// Latest days for an instance without imports.
    pub const COMPILED_IN: Self = Self {
        imported: None,
        second: SECOND_SNAPSHOT_DAY,
    };
}

/// Status of imported rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImportStatus {
    /// Days of the latest rates.
    Latest(LatestRateDays),
    /// The database cannot be queried.
    Unknown,
}

/// Checks the age of the rates.
pub(super) fn judge(
    imported: ImportStatus,
    today: Day,
    is_fetched: bool,
    is_second_fetched: bool,
) -> Vec<DoctorCheck> {
    let ImportStatus::Latest(LatestRateDays { imported, second }) = imported else {
        return vec![DoctorCheck::warning(
            AREA,
            format!("the database cannot be queried; the compiled-in rates end on {SNAPSHOT_DAY}"),
            "",
        )];
    };
    let latest = latest_day(imported);
    let origin = if imported == Some(latest) {
        "imported"
    } else {
        "compiled in"
    };
    let message = format!("the latest dollar rate is from {latest}, {origin}");
    let advice = if is_fetched {
        "check that rates.url responds, and the server's log; until then use `tributary fx import \
         FILE`"
    } else {
        "set rates.url, or import files regularly: `tributary fx import FILE`"
    };
    let first = match staleness(latest, today) {
        Staleness::Fresh => DoctorCheck::ok(AREA, message),
        Staleness::Stale { days } => {
            DoctorCheck::warning(AREA, format!("{message}: {days} days old"), advice)
        }
    };
    vec![first, judge_second(second, today, is_second_fetched)]
}

/// Checks the second source. Old rates are a warning only if `rates.second_url` is set; otherwise
/// the operator imports rates by hand.
fn judge_second(latest: Day, today: Day, is_fetched: bool) -> DoctorCheck {
    let message = format!("the second source's latest rates are from {latest}");
    match staleness(latest, today) {
        Staleness::Stale { days } if is_fetched => DoctorCheck::warning(
            AREA,
            format!("{message}: {days} days old"),
            "check that rates.second_url responds, and the server's log",
        ),
        Staleness::Stale { .. } | Staleness::Fresh => DoctorCheck::ok(AREA, message),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::compiled_in(None, "2026-09-20", CheckStatus::Ok, "2026-09-14, compiled in")]
    #[case::compiled_in_long_ago(
        None,
        "2026-10-14",
        CheckStatus::Warning,
        "compiled in: 30 days old"
    )]
    #[case::imported(
        Some("2026-10-13"),
        "2026-10-14",
        CheckStatus::Ok,
        "2026-10-13, imported"
    )]
    #[case::imported_long_ago(
        Some("2026-10-01"),
        "2026-10-14",
        CheckStatus::Warning,
        "imported: 13 days"
    )]
    #[case::older_than_the_snapshot(
        Some("2024-01-01"),
        "2026-09-20",
        CheckStatus::Ok,
        "compiled in"
    )]
    fn warns_about_old_rates(
        #[case] imported: Option<&str>,
        #[case] today: &str,
        #[case] verdict: CheckStatus,
        #[case] part: &str,
    ) {
        let day = |text: &str| Day::parse(text).unwrap();
        let latest = LatestRateDays {
            imported: imported.map(day),
            ..LatestRateDays::COMPILED_IN
        };
        let checks = judge(ImportStatus::Latest(latest), day(today), true, true);
        assert_eq!(checks[0].status, verdict);
        assert!(checks[0].message.contains(part), "{checks:?}");
    }

    #[rstest]
    #[case::fresh("2026-10-10", "2026-10-14", true, CheckStatus::Ok, "from 2026-10-10")]
    #[case::stale("2026-10-01", "2026-10-14", true, CheckStatus::Warning, "13 days old")]
    #[case::not_fetched("2026-10-01", "2026-10-14", false, CheckStatus::Ok, "from 2026-10-01")]
    fn warns_about_old_rates_of_a_fetched_second_source(
        #[case] second: &str,
        #[case] today: &str,
        #[case] is_fetched: bool,
        #[case] verdict: CheckStatus,
        #[case] part: &str,
    ) {
        let day = |text: &str| Day::parse(text).unwrap();
        let latest = LatestRateDays {
            imported: Some(day(today)),
            second: day(second),
        };
        let checks = judge(ImportStatus::Latest(latest), day(today), true, is_fetched);
        assert_eq!(
            checks[0].status,
            CheckStatus::Ok,
            "the first source is fresh"
        );
        assert_eq!(checks[1].status, verdict);
        assert!(checks[1].message.contains(part), "{checks:?}");
    }

    #[test]
    fn an_unreadable_database_is_a_warning() {
        let checks = judge(ImportStatus::Unknown, SNAPSHOT_DAY, true, true);
        assert_eq!(checks[0].status, CheckStatus::Warning);
    }
}
