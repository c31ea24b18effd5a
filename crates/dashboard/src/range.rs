//! A page's date range, read from its URL, and its labels.

use crate::query::UrlQuery;
use crate::text;
use tributary_domain::report::range::{
    ChosenRange, ComparedRange, Comparison, DayRange as Days, RangePreset, RangeRemark,
    RangeRequest, Span,
};
use tributary_domain::report::{Period, TimeUnit};
use tributary_domain::vocabulary::calendar::to_date;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

/// Query parameters of the date control.
pub(crate) const RANGE: &str = "range";
pub(crate) const FROM: &str = "from";
pub(crate) const TO: &str = "to";
pub(crate) const COMPARE: &str = "compare";

/// Longest range that a chart shows by day. A longer one has weeks, so that each stays wide enough
/// to point at.
const DAILY_CHART_DAYS_MAX: i64 = 120;
const DAYS_PER_WEEK: i64 = 7;

/// A range of days in a time zone, including the first and the last day, and the range that it is
/// compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageDateRange {
    pub(crate) days: Days,
    pub(crate) compared: Option<ComparedRange>,
    pub(crate) comparison: Comparison,
    preset: Option<RangePreset>,
    remark: Option<String>,
    now: Timestamp,
}

impl PageDateRange {
    /// Reads the range from the query: a preset, or `from` and `to`.
    pub(crate) fn of(query: &UrlQuery, now: Timestamp, zone: &Timezone) -> Self {
        let request = RangeRequest {
            preset: query.get(RANGE),
            from: query.get(FROM),
            to: query.get(TO),
        };
        let chosen = ChosenRange::choose(request, zone, now);
        let comparison = query.get(COMPARE).and_then(Comparison::parse);
        let comparison = comparison.unwrap_or(Comparison::PreviousPeriod);
        Self {
            compared: chosen.compared(comparison, now),
            comparison,
            preset: chosen.preset,
            remark: chosen.remark.map(RangeRemark::message),
            days: chosen.days,
            now,
        }
    }

    /// Returns the presets: URL value and label.
    pub(crate) fn presets() -> Vec<(&'static str, &'static str)> {
        let presets = RangePreset::ALL.into_iter();
        presets.map(|one| (one.as_str(), one.label())).collect()
    }

    /// Returns the query with a preset instead of the current range.
    pub(crate) fn with_preset(query: &UrlQuery, word: &str) -> String {
        query.with(&[(RANGE, Some(word)), (FROM, None), (TO, None)])
    }

    /// Returns whether the range is this preset.
    pub(crate) fn is(&self, preset: &str) -> bool {
        self.preset.map(RangePreset::as_str) == Some(preset)
    }

    /// Returns the preset's label; `None` if the days were chosen.
    pub(crate) fn preset_label(&self) -> Option<&'static str> {
        self.preset.map(RangePreset::label)
    }

    /// Returns why the page shows other days than requested.
    pub(crate) fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    pub(crate) fn zone(&self) -> &str {
        self.days.zone.as_str()
    }

    /// Returns the whole range as one period.
    pub(crate) fn whole(&self) -> Period {
        self.days.period()
    }

    /// Returns one period per day.
    pub(crate) fn days(&self) -> Vec<Period> {
        let days = self.days.split(Some(TimeUnit::Day));
        days.into_iter().map(|day| day.period).collect()
    }

    /// Returns the time unit of a chart: hours for a single day, weeks for long ranges.
    pub(crate) fn chart_unit(&self) -> TimeUnit {
        match self.days.to.days_since(self.days.from) {
            0 => TimeUnit::Hour,
            1..DAILY_CHART_DAYS_MAX => TimeUnit::Day,
            _ => TimeUnit::Week,
        }
    }

    /// Splits the range by a time unit, with readable labels. Without a unit, the range is one
    /// span.
    pub(crate) fn spans(&self, unit: Option<TimeUnit>) -> Vec<Span> {
        let mut spans = self.days.split(unit);
        for span in &mut spans {
            span.label = match unit {
                None => self.label(),
                Some(TimeUnit::Month) if is_whole(span, unit) => format_day(span.from, "%B %Y"),
                Some(TimeUnit::Week) if is_whole(span, unit) => {
                    format!("week of {}", day_label(span.from))
                }
                // The range begins or ends within the week or month.
                Some(TimeUnit::Month | TimeUnit::Week) => days_text(span.from, span.to),
                Some(TimeUnit::Day) => day_label(span.from),
                Some(TimeUnit::Hour) => text::hour(span.period.0, &self.days.zone),
            };
        }
        spans
    }

    /// Splits the range for a chart, with short labels.
    pub(crate) fn chart_spans(&self) -> Vec<Span> {
        let unit = self.chart_unit();
        let mut spans = self.days.split(Some(unit));
        for span in &mut spans {
            span.label = match unit {
                TimeUnit::Hour => text::clock(span.period.0, &self.days.zone),
                _ => short(span.from),
            };
        }
        spans
    }

    /// Returns the start of a day.
    pub(crate) fn start_of(&self, day: Day) -> Timestamp {
        let days = Days {
            from: day,
            to: day,
            zone: self.days.zone.clone(),
        };
        days.period().0
    }

    /// Returns whether a period has not begun.
    pub(crate) fn is_future(&self, period: Period) -> bool {
        self.now < period.0
    }

    /// Returns whether a period has begun and is not over.
    pub(crate) fn is_unfinished(&self, period: Period) -> bool {
        (period.0..period.1).contains(&self.now)
    }

    /// Returns whether the range is one day that is not over.
    pub(crate) fn is_day_so_far(&self) -> bool {
        self.days.from == self.days.to && self.is_unfinished(self.whole())
    }

    /// Formats the range: `1 Nov – 15 Nov 2026`, or one day.
    pub(crate) fn label(&self) -> String {
        days_label(&self.days)
    }

    /// Returns why nothing is compared, if data begins on `day`: a change from a part of a period
    /// would look like growth.
    pub(crate) fn incomplete(day: Day) -> String {
        format!(
            "The earlier period is incomplete, so nothing is compared: data begins on {}.",
            day_label(day)
        )
    }

    /// Formats the range that this one is compared with; `None` if nothing is compared.
    pub(crate) fn compared_label(&self) -> Option<String> {
        let compared = self.compared.as_ref()?;
        let days = days_label(&compared.days);
        if !compared.is_partial() {
            return Some(days);
        }
        let end = text::clock(compared.period.1, &self.days.zone);
        Some(format!("{days}, until {end}"))
    }
}

/// Formats days: `1 Nov – 15 Nov 2026`, or one day.
pub(crate) fn days_label(days: &Days) -> String {
    days_text(days.from, days.to)
}

fn days_text(from: Day, to: Day) -> String {
    if from == to {
        return day_label(to);
    }
    format!("{} – {}", short(from), day_label(to))
}

/// Returns whether a span is a whole week or month.
fn is_whole(span: &Span, unit: Option<TimeUnit>) -> bool {
    let days = span.to.days_since(span.from) + 1;
    match unit {
        Some(TimeUnit::Week) => days == DAYS_PER_WEEK,
        Some(TimeUnit::Month) => {
            let first = to_date(span.from);
            first.is_some_and(|first| first.day() == 1 && days == i64::from(first.days_in_month()))
        }
        _ => true,
    }
}

fn format_day(day: Day, format: &str) -> String {
    to_date(day)
        .map(|date| date.strftime(format).to_string())
        .unwrap_or_default()
}

fn short(day: Day) -> String {
    format_day(day, "%-d %b")
}

/// Formats a day: `15 Nov 2026`.
pub(crate) fn day_label(day: Day) -> String {
    format_day(day, "%-d %b %Y")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const NOW: Timestamp = Timestamp::from_millis(1_763_173_020_007);

    fn range(query: &str, zone: &str) -> PageDateRange {
        let zone = Timezone::parse(zone).unwrap();
        PageDateRange::of(&UrlQuery::of(Some(query)), NOW, &zone)
    }

    #[rstest]
    #[case::default("", "17 Oct – 15 Nov 2025")]
    #[case::today("range=today", "15 Nov 2025")]
    #[case::a_week("range=7d", "9 Nov – 15 Nov 2025")]
    #[case::days("from=2025-01-01&to=2025-01-31", "1 Jan – 31 Jan 2025")]
    #[case::last_month("range=last-month", "1 Oct – 31 Oct 2025")]
    #[case::cut_to_the_report_limit("from=2024-01-01&to=2025-06-30", "27 May – 30 Jun 2025")]
    #[case::from_after_to("from=2025-02-01&to=2025-01-31", "17 Oct – 15 Nov 2025")]
    #[case::nonsense("range=x&from=y", "17 Oct – 15 Nov 2025")]
    fn reads_ranges_from_the_query(#[case] query: &str, #[case] expected: &str) {
        assert_eq!(range(query, "UTC").label(), expected);
    }

    #[rstest]
    #[case::finished("range=yesterday", Some("13 Nov 2025"))]
    #[case::today("range=today", Some("14 Nov 2025, until 02:15"))]
    #[case::year("range=yesterday&compare=year", Some("14 Nov 2024"))]
    #[case::nothing("range=today&compare=none", None)]
    fn says_what_the_range_is_compared_with(#[case] query: &str, #[case] expected: Option<&str>) {
        assert_eq!(range(query, "UTC").compared_label().as_deref(), expected);
    }

    #[rstest]
    #[case::a_day("range=today", TimeUnit::Hour, 24)]
    #[case::a_month("range=30d", TimeUnit::Day, 30)]
    #[case::a_year("from=2025-01-06&to=2025-06-01", TimeUnit::Week, 21)]
    fn a_chart_has_hours_days_or_weeks(
        #[case] query: &str,
        #[case] unit: TimeUnit,
        #[case] points: usize,
    ) {
        let range = range(query, "UTC");
        assert_eq!(
            (range.chart_unit(), range.chart_spans().len()),
            (unit, points)
        );
    }

    #[test]
    fn splits_at_mondays_and_first_days_of_months() {
        let range = range("from=2025-10-30&to=2025-11-11", "UTC");
        let weeks = range.spans(Some(TimeUnit::Week));
        let (first, last) = (weeks[0].period, weeks[2].period);
        let weeks: Vec<String> = weeks.into_iter().map(|week| week.label).collect();
        assert_eq!(
            weeks,
            [
                "30 Oct – 2 Nov 2025",
                "week of 3 Nov 2025",
                "10 Nov – 11 Nov 2025"
            ]
        );
        assert_eq!((first.0, last.1), range.whole());
        let months = range.spans(Some(TimeUnit::Month)).into_iter();
        let months: Vec<String> = months.map(|month| month.label).collect();
        assert_eq!(months, ["30 Oct – 31 Oct 2025", "1 Nov – 11 Nov 2025"]);
        let whole = super::tests::range("from=2025-10-01&to=2025-10-31", "UTC");
        let whole = whole.spans(Some(TimeUnit::Month)).into_iter();
        let whole: Vec<String> = whole.map(|month| month.label).collect();
        assert_eq!(whole, ["October 2025"]);
        assert_eq!(range.spans(None)[0].period, range.whole());
    }

    #[test]
    fn hours_are_labelled_with_utc_offset() {
        let range = range("from=2025-03-30&to=2025-03-30", "Europe/Berlin");
        let hours = range.spans(Some(TimeUnit::Hour));
        assert_eq!(hours.len(), 23);
        let labels = [&*hours[1].label, &*hours[2].label];
        assert_eq!(
            labels,
            ["30 Mar 2025, 01:00 +01:00", "30 Mar 2025, 03:00 +02:00"]
        );
    }
}
