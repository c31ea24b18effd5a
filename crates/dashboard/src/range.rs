//! A page's date range, read from its URL, and its labels.

use crate::query::UrlQuery;
use crate::text;
use tributary_domain::report::range::{DayRange as Days, REPORT_DAYS_MAX, Span, days_before};
use tributary_domain::report::{Period, TimeUnit};
use tributary_domain::vocabulary::calendar::{to_date, today};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

/// Presets: URL value, label, number of days.
pub(crate) const PRESETS: [(&str, &str, i32); 4] = [
    ("today", "Today", 1),
    ("7d", "7 days", 7),
    ("30d", "30 days", 30),
    ("90d", "90 days", 90),
];
const PRESET_DEFAULT: usize = 2;

/// A range of days in a time zone, including the first and the last day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageDateRange {
    pub(crate) days: Days,
    /// URL value of the preset, if the range is a preset.
    preset: Option<&'static str>,
}

impl PageDateRange {
    /// Reads the range from the query: a preset, or `from` and `to`. Unreadable values are ignored.
    pub(crate) fn of(query: &UrlQuery, now: Timestamp, zone: &Timezone) -> Self {
        let of = |from, to, preset| Self {
            days: Days {
                from,
                to,
                zone: zone.clone(),
            },
            preset,
        };
        let day = |name: &str| query.get(name).and_then(|text| Day::parse(text).ok());
        if let (Some(from), Some(to)) = (day("from"), day("to"))
            && from <= to
        {
            return of(from.max(days_before(to, REPORT_DAYS_MAX - 1)), to, None);
        }
        let requested = query.get("range");
        let found = PRESETS.iter().find(|(word, ..)| Some(*word) == requested);
        let (word, _, days) = found.unwrap_or(&PRESETS[PRESET_DEFAULT]);
        let today = today(now, zone);
        of(days_before(today, days - 1), today, Some(*word))
    }

    /// Returns whether the range is this preset.
    pub(crate) fn is(&self, preset: &str) -> bool {
        self.preset == Some(preset)
    }

    /// Returns the preceding range of the same length.
    #[must_use]
    pub(crate) fn before(&self) -> Self {
        Self {
            days: self.days.preceding(),
            preset: None,
        }
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

    /// Splits the range by a time unit, with readable labels. Without a unit, the range is one
    /// span.
    pub(crate) fn spans(&self, unit: Option<TimeUnit>) -> Vec<Span> {
        let mut spans = self.days.split(unit);
        for span in &mut spans {
            span.label = match unit {
                None => self.label(),
                Some(TimeUnit::Month) => format_day(span.from, "%B %Y"),
                Some(TimeUnit::Week) => format!("week of {}", long(span.from)),
                Some(TimeUnit::Day) => long(span.from),
                Some(TimeUnit::Hour) => text::hour(span.period.0, &self.days.zone),
            };
        }
        spans
    }

    /// Returns the chart labels for the days.
    pub(crate) fn labels(&self) -> Vec<String> {
        let days = self.days.split(Some(TimeUnit::Day));
        days.into_iter().map(|day| short(day.from)).collect()
    }

    /// Formats the range: `1 Nov – 15 Nov 2026`.
    pub(crate) fn label(&self) -> String {
        format!("{} – {}", short(self.days.from), long(self.days.to))
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

fn long(day: Day) -> String {
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
    #[case::today("range=today", "15 Nov – 15 Nov 2025")]
    #[case::a_week("range=7d", "9 Nov – 15 Nov 2025")]
    #[case::days("from=2025-01-01&to=2025-01-31", "1 Jan – 31 Jan 2025")]
    #[case::cut_to_the_report_limit("from=2024-01-01&to=2025-06-30", "27 May – 30 Jun 2025")]
    #[case::from_after_to("from=2025-02-01&to=2025-01-31", "17 Oct – 15 Nov 2025")]
    #[case::nonsense("range=x&from=y", "17 Oct – 15 Nov 2025")]
    fn reads_ranges_from_the_query(#[case] query: &str, #[case] expected: &str) {
        assert_eq!(range(query, "UTC").label(), expected);
    }

    #[test]
    fn the_preceding_range_has_the_same_length() {
        let range = range("range=7d", "UTC");
        assert_eq!(range.before().label(), "2 Nov – 8 Nov 2025");
        assert_eq!(range.before().whole().1, range.whole().0);
        assert_eq!(range.days().len(), 7);
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
                "week of 30 Oct 2025",
                "week of 3 Nov 2025",
                "week of 10 Nov 2025"
            ]
        );
        assert_eq!((first.0, last.1), range.whole());
        let months = range.spans(Some(TimeUnit::Month)).into_iter();
        let months: Vec<String> = months.map(|month| month.label).collect();
        assert_eq!(months, ["October 2025", "November 2025"]);
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
