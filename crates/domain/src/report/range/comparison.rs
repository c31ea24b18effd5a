//! The range that a report is compared with.

use super::chosen::month_start;
use super::{ChosenRange, DayRange, REPORT_DAYS_MAX, days_before};
use crate::report::{Grain, Period, TimeUnit};
use crate::vocabulary::calendar;
use crate::vocabulary::day::Day;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// What a range is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The period before: of the same length, or the month before for a range of a month.
    PreviousPeriod,
    /// The same days a year before.
    PreviousYear,
    /// Nothing.
    Nothing,
}

crate::keywords! {
    Comparison[3] {
        PreviousPeriod => "previous",
        PreviousYear => "year",
        Nothing => "none",
    }
}

impl Comparison {
    /// Returns the label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::PreviousPeriod => "Previous period",
            Self::PreviousYear => "Previous year",
            Self::Nothing => "No comparison",
        }
    }
}

/// A range to compare with. If the chosen range is not over yet, only the same part of this one is
/// compared: a day until ten o'clock is compared with another day until ten o'clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedRange {
    /// The whole days.
    pub days: DayRange,
    /// The part that is compared.
    pub period: Period,
}

impl ComparedRange {
    /// Returns whether only a part of the days is compared.
    pub fn is_partial(&self) -> bool {
        self.period != self.days.period()
    }

    /// Returns the periods to look for an app's first figures in: the time before this range, and
    /// each day from its start to `last`.
    pub fn probe(&self, last: Day) -> Vec<Period> {
        let days = DayRange {
            to: last,
            ..self.days.clone()
        };
        let begin = days.period().0;
        let earlier = days_before(days.from, REPORT_DAYS_MAX);
        let before = DayRange {
            from: earlier,
            to: earlier,
            ..days.clone()
        };
        let days = days.split(Some(TimeUnit::Day)).into_iter();
        let before = std::iter::once((before.period().0, begin));
        before.chain(days.map(|day| day.period)).collect()
    }

    /// Returns the day on which data begins, if this range has earlier days. `found` are the numbers
    /// of the periods of [`Self::probe`] that have figures.
    pub fn data_begin(&self, found: impl Iterator<Item = usize>) -> Option<Day> {
        let first = i32::try_from(found.min()?).ok()?;
        (first > 1).then(|| days_before(self.days.from, 1 - first))
    }
}

impl ChosenRange {
    /// Returns the range to compare with; `None` if nothing is compared.
    pub fn compared(&self, with: Comparison, now: Timestamp) -> Option<ComparedRange> {
        let days = match with {
            Comparison::Nothing => return None,
            Comparison::PreviousPeriod if self.preset.is_some_and(super::RangePreset::is_month) => {
                self.month_before()
            }
            Comparison::PreviousPeriod => self.days.preceding(),
            Comparison::PreviousYear => self.year_before(),
        };
        Some(self.days.compared_with(days, now))
    }

    fn with_days(&self, from: Day, to: Day) -> DayRange {
        self.days.with_days(from, to)
    }

    /// Returns the same days of the month before; a whole month gives a whole month.
    fn month_before(&self) -> DayRange {
        let last = days_before(self.days.from, 1);
        let first = month_start(last);
        if self.preset == Some(super::RangePreset::LastMonth) {
            return self.with_days(first, last);
        }
        let count = self
            .days
            .to
            .as_days()
            .saturating_sub(self.days.from.as_days());
        self.with_days(first, days_before(first, -count).min(last))
    }

    fn year_before(&self) -> DayRange {
        let earlier = |day: Day| {
            let date = calendar::to_date(day);
            let (year, month) = date.map_or((0, 0), |date| (date.year(), date.month()));
            let at = |number: i8| Day::from_date(i64::from(year) - 1, month.into(), number.into());
            // A leap day has no counterpart and becomes the 28th.
            let number = date.map_or(0, jiff::civil::Date::day);
            at(number).or_else(|| at(28)).unwrap_or(day)
        };
        self.with_days(earlier(self.days.from), earlier(self.days.to))
    }
}

impl DayRange {
    /// Returns the range of the same length right before this one, to compare with.
    pub fn compared_before(&self, now: Timestamp) -> ComparedRange {
        self.compared_with(self.preceding(), now)
    }

    fn compared_with(&self, days: Self, now: Timestamp) -> ComparedRange {
        let whole = days.period();
        let end = self.same_part(&days, now).unwrap_or(whole.1);
        let period = (whole.0, end.min(whole.1));
        ComparedRange { days, period }
    }

    fn with_days(&self, from: Day, to: Day) -> Self {
        Self {
            from,
            to,
            zone: self.zone.clone(),
        }
    }

    /// Returns the moment in `days` that corresponds to `now`; `None` if this range is over or has
    /// not begun. Figures are stored by quarters of an hour, so the moment is rounded down.
    fn same_part(&self, days: &Self, now: Timestamp) -> Option<Timestamp> {
        let (begin, end) = self.period();
        if now < begin || now >= end {
            return None;
        }
        let today = calendar::today(now, &self.zone);
        let index = today.as_days().saturating_sub(self.from.as_days());
        let start = |day: Day| self.with_days(day, day).period().0;
        let elapsed = now.since(start(today));
        let counterpart = days_before(days.from, -index).min(days.to);
        let moment = start(counterpart).plus(elapsed.min(Duration::from_hours(24)));
        Some(Grain::Quarter.bucket_start(moment))
    }
}

#[cfg(test)]
mod tests {
    use super::super::RangeRequest;
    use super::*;
    use crate::vocabulary::timezone::Timezone;
    use rstest::rstest;

    /// 2025-11-15T02:17:00Z.
    const NOW: Timestamp = Timestamp::from_millis(1_763_173_020_007);

    fn choose(preset: Option<&str>, days: Option<(&str, &str)>) -> ChosenRange {
        let request = RangeRequest {
            preset,
            from: days.map(|days| days.0),
            to: days.map(|days| days.1),
        };
        ChosenRange::choose(request, &Timezone::UTC, NOW)
    }

    #[rstest]
    #[case::today(Some("today"), None, Comparison::PreviousPeriod, Some(("2025-11-14", "2025-11-14")))]
    #[case::week(Some("7d"), None, Comparison::PreviousPeriod, Some(("2025-11-02", "2025-11-08")))]
    #[case::month_until_today(Some("month"), None, Comparison::PreviousPeriod, Some(("2025-10-01", "2025-10-15")))]
    #[case::whole_month(Some("last-month"), None, Comparison::PreviousPeriod, Some(("2025-09-01", "2025-09-30")))]
    #[case::days(None, Some(("2025-03-01", "2025-03-31")), Comparison::PreviousPeriod, Some(("2025-01-29", "2025-02-28")))]
    #[case::year(Some("7d"), None, Comparison::PreviousYear, Some(("2024-11-09", "2024-11-15")))]
    #[case::leap_day(None, Some(("2024-02-29", "2024-03-01")), Comparison::PreviousYear, Some(("2023-02-28", "2023-03-01")))]
    #[case::nothing(Some("7d"), None, Comparison::Nothing, None)]
    fn finds_the_range_to_compare_with(
        #[case] preset: Option<&str>,
        #[case] days: Option<(&str, &str)>,
        #[case] with: Comparison,
        #[case] expected: Option<(&str, &str)>,
    ) {
        let found = choose(preset, days).compared(with, NOW);
        let found = found.map(|one| (one.days.from.to_string(), one.days.to.to_string()));
        let expected = expected.map(|(from, to)| (from.to_owned(), to.to_owned()));
        assert_eq!(found, expected);
    }

    /// Periods with figures: 0 is the time before the range, 1 its first day.
    #[rstest]
    #[case::before(&[0, 1, 5], None)]
    #[case::on_the_first_day(&[3, 1], None)]
    #[case::quiet_at_first(&[0, 5], None)]
    #[case::on_the_second_day(&[2, 3], Some("2025-11-03"))]
    #[case::after_the_range(&[8], Some("2025-11-09"))]
    #[case::never(&[], None)]
    fn finds_the_day_on_which_data_begins(#[case] found: &[usize], #[case] expected: Option<&str>) {
        let chosen = choose(Some("7d"), None);
        let compared = chosen.compared(Comparison::PreviousPeriod, NOW).unwrap();
        let probe = compared.probe(chosen.days.to);
        assert_eq!((probe.len(), probe[1].0), (15, compared.period.0));
        assert_eq!(probe[0].1, compared.period.0);
        let begin = compared.data_begin(found.iter().copied());
        assert_eq!(begin.map(|day| day.to_string()).as_deref(), expected);
    }

    /// Expected: first day and end of the compared part.
    #[rstest]
    #[case::today(
        Some("today"),
        None,
        Comparison::PreviousPeriod,
        "2025-11-14T02:15:00+00:00",
        true
    )]
    #[case::week(
        Some("7d"),
        None,
        Comparison::PreviousPeriod,
        "2025-11-08T02:15:00+00:00",
        true
    )]
    #[case::month(
        Some("month"),
        None,
        Comparison::PreviousPeriod,
        "2025-10-15T02:15:00+00:00",
        true
    )]
    #[case::year(
        Some("today"),
        None,
        Comparison::PreviousYear,
        "2024-11-15T02:15:00+00:00",
        true
    )]
    #[case::ends_tomorrow(None, Some(("2025-11-14", "2025-11-16")), Comparison::PreviousPeriod, "2025-11-12T02:15:00+00:00", true)]
    #[case::over(
        Some("yesterday"),
        None,
        Comparison::PreviousPeriod,
        "2025-11-14T00:00:00+00:00",
        false
    )]
    #[case::not_begun(None, Some(("2025-11-20", "2025-11-20")), Comparison::PreviousPeriod, "2025-11-20T00:00:00+00:00", false)]
    fn an_unfinished_range_is_compared_with_the_same_part(
        #[case] preset: Option<&str>,
        #[case] days: Option<(&str, &str)>,
        #[case] with: Comparison,
        #[case] end: &str,
        #[case] is_partial: bool,
    ) {
        let found = choose(preset, days).compared(with, NOW).unwrap();
        let written = calendar::format_local(found.period.1, &Timezone::UTC);
        assert_eq!((&*written, found.is_partial()), (end, is_partial));
    }
}
