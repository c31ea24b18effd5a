//! The range of days that a report covers.

mod chosen;
mod comparison;

pub use chosen::{ChosenRange, RangePreset, RangeRemark, RangeRequest};
pub use comparison::{ComparedRange, Comparison};

use super::{Period, TimeUnit};
use crate::vocabulary::calendar;
use crate::vocabulary::day::Day;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::timezone::Timezone;

/// Default length of a report in days, including today.
pub const REPORT_DAYS_DEFAULT: i32 = 30;
/// Maximum length of a report in days: a year, plus a month to compare with.
pub const REPORT_DAYS_MAX: i32 = 400;

/// Returns the day that is `days` before `day`.
pub fn days_before(day: Day, days: i32) -> Day {
    Day::from_days(day.as_days().saturating_sub(days))
}

/// A range of days in a time zone, both ends inclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayRange {
    /// First day.
    pub from: Day,
    /// Last day.
    pub to: Day,
    /// Time zone that defines when a day starts.
    pub zone: Timezone,
}

/// Part of a range, with its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Label.
    pub label: String,
    /// The part as a period.
    pub period: Period,
    /// First day of the part.
    pub from: Day,
    /// Last day of the part.
    pub to: Day,
}

impl DayRange {
    /// Resolves the requested days. Without `to` the range ends today, or on `from` if that is in
    /// the future. Without `from` the range has [`REPORT_DAYS_DEFAULT`] days. Rejects ranges of
    /// more than [`REPORT_DAYS_MAX`] days.
    pub fn resolve(
        from: Option<Day>,
        to: Option<Day>,
        zone: Timezone,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let to = to.unwrap_or_else(|| {
            let today = calendar::today(now, &zone);
            from.map_or(today, |from| from.max(today))
        });
        let from = from.unwrap_or_else(|| days_before(to, REPORT_DAYS_DEFAULT - 1));
        if to.days_since(from) >= i64::from(REPORT_DAYS_MAX) {
            let message = format!("The range may have at most {REPORT_DAYS_MAX} days.");
            return Err(Problem::new(FaultCode::OutOfRange, message));
        }
        Ok(Self { from, to, zone })
    }

    /// Returns the range of the same length right before this one.
    #[must_use]
    pub fn preceding(&self) -> Self {
        let to = days_before(self.from, 1);
        let days = self.to.as_days().saturating_sub(self.from.as_days());
        Self {
            from: days_before(to, days),
            to,
            zone: self.zone.clone(),
        }
    }

    /// Returns the whole range as a period.
    pub fn period(&self) -> Period {
        let days = calendar::each_day(self.from, self.to, &self.zone);
        let begin = days.first().map_or(Timestamp::from_millis(0), |day| day.0);
        (begin, days.last().map_or(begin, |day| day.1))
    }

    /// Splits the range by calendar unit, in order; without a unit, returns the whole range. The
    /// first and last week or month may be partial.
    pub fn split(&self, unit: Option<TimeUnit>) -> Vec<Span> {
        let Some(unit) = unit else {
            return vec![Span {
                label: String::new(),
                period: self.period(),
                from: self.from,
                to: self.to,
            }];
        };
        let mut found: Vec<Span> = Vec::new();
        let mut day = self.from;
        for period in calendar::each_day(self.from, self.to, &self.zone) {
            if unit == TimeUnit::Hour {
                found.extend(self.hours(day, period));
            } else {
                let label = label(day, unit);
                match found.last_mut().filter(|last| last.label == label) {
                    Some(last) => (last.period.1, last.to) = (period.1, day),
                    None => found.push(Span {
                        label,
                        period,
                        from: day,
                        to: day,
                    }),
                }
            }
            day = day.following();
        }
        found
    }

    /// Returns the 23 to 25 hours of a day, each labelled by its start.
    fn hours(&self, day: Day, (begin, end): Period) -> Vec<Span> {
        let mut hours = Vec::new();
        let mut from = begin;
        while from < end {
            let until = from.plus(std::time::Duration::from_hours(1)).min(end);
            hours.push(Span {
                label: calendar::format_local(from, &self.zone),
                period: (from, until),
                from: day,
                to: day,
            });
            from = until;
        }
        hours
    }
}

/// Returns the label: the date of a day, the Monday of a week, `YYYY-MM` of a month.
fn label(day: Day, unit: TimeUnit) -> String {
    match unit {
        TimeUnit::Hour | TimeUnit::Day => day.to_string(),
        // 1970-01-01 was a Thursday.
        TimeUnit::Week => days_before(day, (day.as_days() + 3).rem_euclid(7)).to_string(),
        TimeUnit::Month => day.to_string().chars().take(7).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn range(from: &str, to: &str, zone: &str) -> DayRange {
        DayRange {
            from: Day::parse(from).unwrap(),
            to: Day::parse(to).unwrap(),
            zone: Timezone::parse(zone).unwrap(),
        }
    }

    const NOW: Timestamp = Timestamp::from_millis(1_763_173_020_007);

    /// Resolves `from` and `to` on 2025-11-15 in UTC.
    #[rstest]
    #[case::neither(None, None, Some(("2025-10-17", "2025-11-15")))]
    #[case::both(Some("2025-01-01"), Some("2025-01-31"), Some(("2025-01-01", "2025-01-31")))]
    #[case::until_today(Some("2025-11-14"), None, Some(("2025-11-14", "2025-11-15")))]
    #[case::from_tomorrow(Some("2025-11-16"), None, Some(("2025-11-16", "2025-11-16")))]
    #[case::default_first_day(None, Some("2025-01-30"), Some(("2025-01-01", "2025-01-30")))]
    #[case::the_longest(Some("2024-01-01"), Some("2025-02-03"), Some(("2024-01-01", "2025-02-03")))]
    #[case::a_day_too_long(Some("2024-01-01"), Some("2025-02-04"), None)]
    fn resolves_the_requested_days(
        #[case] from: Option<&str>,
        #[case] to: Option<&str>,
        #[case] expected: Option<(&str, &str)>,
    ) {
        let day = |text: &str| Day::parse(text).unwrap();
        let found = DayRange::resolve(
            from.map(day),
            to.map(day),
            Timezone::parse("UTC").unwrap(),
            NOW,
        );
        assert_eq!(
            found.ok(),
            expected.map(|(from, to)| range(from, to, "UTC"))
        );
    }

    fn labels(range: &DayRange, unit: TimeUnit) -> Vec<String> {
        let all = range.split(Some(unit)).into_iter();
        all.map(|span| span.label).collect()
    }

    #[rstest]
    #[case::days("2026-02-27", "2026-03-01", TimeUnit::Day, &["2026-02-27", "2026-02-28", "2026-03-01"])]
    #[case::weeks("2026-03-01", "2026-03-09", TimeUnit::Week, &["2026-02-23", "2026-03-02", "2026-03-09"])]
    #[case::months("2025-12-31", "2026-02-01", TimeUnit::Month, &["2025-12", "2026-01", "2026-02"])]
    fn splits_into_labelled_units(
        #[case] from: &str,
        #[case] to: &str,
        #[case] unit: TimeUnit,
        #[case] expected: &[&str],
    ) {
        assert_eq!(labels(&range(from, to, "Europe/Berlin"), unit), expected);
    }

    #[rstest]
    #[case::spring("2026-03-29", "Europe/Berlin", 23)]
    #[case::autumn("2026-10-25", "Europe/Berlin", 25)]
    #[case::half_an_hour("2026-04-05", "Australia/Lord_Howe", 25)]
    #[case::any("2026-06-01", "Asia/Kathmandu", 24)]
    fn a_day_has_the_hours_of_its_local_clocks(
        #[case] day: &str,
        #[case] zone: &str,
        #[case] hours: usize,
    ) {
        let range = range(day, day, zone);
        let all = range.split(Some(TimeUnit::Hour));
        assert_eq!(all.len(), hours);
        let (begin, end) = range.period();
        assert_eq!((all[0].period.0, all[hours - 1].period.1), (begin, end));
        let mut unique_labels = labels(&range, TimeUnit::Hour);
        unique_labels.dedup();
        assert_eq!(unique_labels.len(), hours, "hour labels are unique");
    }

    #[test]
    fn the_preceding_range_has_the_same_length() {
        let before = range("2026-03-01", "2026-03-31", "UTC").preceding();
        assert_eq!(before, range("2026-01-29", "2026-02-28", "UTC"));
    }
}
