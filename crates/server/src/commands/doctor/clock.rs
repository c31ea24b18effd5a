//! Checks the clock: whether it is plausible, and whether it agrees with the database.
//!
//! Ids are ordered by time and links expire by time, so a wrong clock causes errors that are hard
//! to trace.

use super::check::DoctorCheck;
use std::time::Duration;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::InstanceReport;

const AREA: &str = "clock";
const ADVICE: &str = "set this machine's clock and synchronise it (NTP)";

/// 2026-01-01T00:00:00Z. The program was written later, so any earlier time is wrong.
const EARLIEST_PLAUSIBLE: Timestamp = Timestamp::from_millis(1_767_225_600_000);
/// How far stored times may be ahead of this clock, because clocks differ slightly between nodes.
const BEHIND_MAX: Duration = Duration::from_mins(1);
/// Allowed difference between this clock and the database server's.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(5);

/// Checks the clock against the database.
pub(super) fn judge(now: Timestamp, report: Option<&InstanceReport>) -> Vec<DoctorCheck> {
    if now < EARLIEST_PLAUSIBLE {
        let message = format!("the clock shows {}, which is in the past", format_time(now));
        return vec![DoctorCheck::error(AREA, message, ADVICE)];
    }
    let mut checks = Vec::new();
    if let Some(newest) = report.and_then(|report| report.newest_record_at)
        && newest.since(now) > BEHIND_MAX
    {
        let message = format!(
            "the clock shows {}, but the newest record in the database is from {}",
            format_time(now),
            format_time(newest)
        );
        checks.push(DoctorCheck::error(AREA, message, ADVICE));
    }
    if let Some(other) = report.and_then(|report| report.server_time) {
        let apart = now.since(other).max(other.since(now));
        if apart > CLOCK_SKEW_MAX {
            let message = format!(
                "this clock and the database server's differ by {} ms",
                apart.as_millis()
            );
            checks.push(DoctorCheck::warning(
                AREA,
                message,
                "synchronise both machines (NTP)",
            ));
        }
    }
    if checks.is_empty() {
        checks.push(DoctorCheck::ok(AREA, format_time(now)));
    }
    checks
}

fn format_time(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis())
        .map_or_else(|_| "an impossible time".to_owned(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;
    use rstest::rstest;

    const NOW: i64 = 1_800_000_000_000;
    use CheckStatus::{Error, Ok, Warning};

    #[rstest]
    #[case::nothing_to_compare(NOW, None, None, &[Ok])]
    #[case::of_1970(0, None, None, &[Error])]
    #[case::just_before(1_767_225_599_999, None, None, &[Error])]
    #[case::just_after(1_767_225_600_000, None, None, &[Ok])]
    #[case::after_the_newest(NOW, Some(NOW - 1), None, &[Ok])]
    #[case::a_minute_behind(NOW, Some(NOW + 60_000), None, &[Ok])]
    #[case::more_than_a_minute_behind(NOW, Some(NOW + 60_001), None, &[Error])]
    #[case::five_seconds_ahead(NOW, None, Some(NOW - 5_000), &[Ok])]
    #[case::more_ahead(NOW, None, Some(NOW - 5_001), &[Warning])]
    #[case::more_behind(NOW, None, Some(NOW + 5_001), &[Warning])]
    #[case::both(NOW, Some(NOW + 60_001), Some(NOW + 60_001), &[Error, Warning])]
    #[case::impossible(i64::MAX, None, None, &[Ok])]
    fn compares_the_clock_with_the_database(
        #[case] now: i64,
        #[case] newest: Option<i64>,
        #[case] clock: Option<i64>,
        #[case] expected: &[CheckStatus],
    ) {
        let report = InstanceReport {
            engine: String::new(),
            schema: 1,
            newest_record_at: newest.map(Timestamp::from_millis),
            server_time: clock.map(Timestamp::from_millis),
            standby: None,
            warnings: Vec::new(),
        };
        let checks = judge(Timestamp::from_millis(now), Some(&report));
        let verdicts: Vec<CheckStatus> = checks.iter().map(|check| check.status).collect();
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn checks_plausibility_without_a_database() {
        assert_eq!(judge(Timestamp::from_millis(0), None)[0].status, Error);
        assert_eq!(
            judge(Timestamp::from_millis(NOW), None)[0].message,
            "2027-01-15T08:00:00Z"
        );
    }
}
