//! The days that a report is about, and as many before them.

use crate::query::Query;
use jiff::ToSpan as _;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use tributary_domain::exchange::Day;
use tributary_domain::report::{Period, TimeUnit};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

/// Presets: the word of the address, the words for people, the days.
pub(crate) const PRESETS: [(&str, &str, i32); 4] = [
    ("today", "Today", 1),
    ("7d", "7 days", 7),
    ("30d", "30 days", 30),
    ("90d", "90 days", 90),
];
const PRESET_DEFAULT: usize = 2;
/// Days that one report tells apart, at most: a leap year.
const DAYS_MAX: i32 = 366;

/// Days of a zone, both inclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) from: Day,
    pub(crate) to: Day,
    /// The word of the preset, where it is one.
    preset: Option<&'static str>,
    zone: TimeZone,
}

impl Range {
    /// As the query says: a preset, or `from` and `to`. What cannot be read is as good as absent.
    pub(crate) fn of(query: &Query, now: Timestamp, zone: &Timezone) -> Self {
        let zone = crate::text::zone_of(zone);
        let today = day_of(now, &zone);
        let day = |name: &str| query.get(name).and_then(|text| Day::parse(text).ok());
        if let (Some(from), Some(to)) = (day("from"), day("to"))
            && from <= to
        {
            let first = Day::from_days(to.as_days().saturating_sub(DAYS_MAX - 1));
            return Self {
                from: from.max(first),
                to,
                preset: None,
                zone,
            };
        }
        let asked = query.get("range");
        let found = PRESETS.iter().find(|(word, ..)| Some(*word) == asked);
        let (word, _, days) = found.unwrap_or(&PRESETS[PRESET_DEFAULT]);
        Self {
            from: Day::from_days(today.as_days() - (days - 1)),
            to: today,
            preset: Some(word),
            zone,
        }
    }

    /// Whether it is this preset.
    pub(crate) fn is(&self, preset: &str) -> bool {
        self.preset == Some(preset)
    }

    /// As many days, right before these.
    #[must_use]
    pub(crate) fn before(&self) -> Self {
        let days = self.to.as_days() - self.from.as_days() + 1;
        Self {
            from: Day::from_days(self.from.as_days() - days),
            to: Day::from_days(self.to.as_days() - days),
            preset: None,
            zone: self.zone.clone(),
        }
    }

    /// All of it.
    pub(crate) fn whole(&self) -> Period {
        (self.begin(self.from), self.begin(self.to.following()))
    }

    /// Day by day.
    pub(crate) fn days(&self) -> Vec<Period> {
        let days = self.from.as_days()..=self.to.as_days();
        let period = |day: i32| {
            let day = Day::from_days(day);
            (self.begin(day), self.begin(day.following()))
        };
        days.map(period).collect()
    }

    /// Stretch by stretch, with what each is called; all of it as one where no unit is named.
    pub(crate) fn stretches(&self, unit: Option<TimeUnit>) -> (Vec<String>, Vec<Period>) {
        let Some(unit) = unit else {
            return (vec![self.words()], vec![self.whole()]);
        };
        let mut stretches: Vec<(i64, String, Day)> = Vec::new();
        for day in self.from.as_days()..=self.to.as_days() {
            let day = Day::from_days(day);
            let key = stretch_of(day, unit);
            if stretches.last().is_none_or(|(last, ..)| *last != key) {
                let words = match unit {
                    TimeUnit::Month => month(day),
                    TimeUnit::Week => format!("week of {}", long(day)),
                    TimeUnit::Day | TimeUnit::Hour => long(day),
                };
                stretches.push((key, words, day));
            }
        }
        let ends = stretches.iter().skip(1).map(|(_, _, day)| *day);
        let ends = ends.chain([self.to.following()]);
        let periods = stretches
            .iter()
            .zip(ends)
            .map(|((_, _, from), end)| (self.begin(*from), self.begin(end)))
            .collect();
        (
            stretches.into_iter().map(|(_, words, _)| words).collect(),
            periods,
        )
    }

    /// The days as a chart writes them.
    pub(crate) fn labels(&self) -> Vec<String> {
        let days = self.from.as_days()..=self.to.as_days();
        days.map(|day| short(Day::from_days(day))).collect()
    }

    /// `1 Nov – 15 Nov 2026`.
    pub(crate) fn words(&self) -> String {
        format!("{} – {}", short(self.from), long(self.to))
    }

    fn begin(&self, day: Day) -> Timestamp {
        // Only the ends of all time have no moment in some zone.
        let moment = date(day).and_then(|date| date.to_zoned(self.zone.clone()).ok());
        Timestamp::from_millis(moment.map_or(0, |zoned| zoned.timestamp().as_millisecond()))
    }
}

fn date(day: Day) -> Option<Date> {
    let epoch = Date::constant(1970, 1, 1);
    epoch.checked_add(i64::from(day.as_days()).days()).ok()
}

fn day_of(now: Timestamp, zone: &TimeZone) -> Day {
    let moment = jiff::Timestamp::from_millisecond(now.as_millis()).unwrap_or_default();
    let date = moment.to_zoned(zone.clone()).date();
    let day = Day::from_date(date.year().into(), date.month().into(), date.day().into());
    day.unwrap_or_else(|| Day::of(now))
}

/// A number that days of one stretch have in common. Weeks begin on Monday, as 1970-01-05 was one.
fn stretch_of(day: Day, unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Month => date(day).map_or(0, |date| {
            i64::from(date.year()) * 12 + i64::from(date.month())
        }),
        TimeUnit::Week => (i64::from(day.as_days()) - 4).div_euclid(7),
        TimeUnit::Day | TimeUnit::Hour => i64::from(day.as_days()),
    }
}

fn month(day: Day) -> String {
    date(day)
        .map(|date| date.strftime("%B %Y").to_string())
        .unwrap_or_default()
}

fn short(day: Day) -> String {
    date(day)
        .map(|date| date.strftime("%-d %b").to_string())
        .unwrap_or_default()
}

fn long(day: Day) -> String {
    date(day)
        .map(|date| date.strftime("%-d %b %Y").to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const NOW: Timestamp = Timestamp::from_millis(1_763_173_020_007);

    fn range(query: &str, zone: &str) -> Range {
        let zone = Timezone::parse(zone).unwrap();
        Range::of(&Query::of(Some(query)), NOW, &zone)
    }

    #[rstest]
    #[case::default("", "17 Oct – 15 Nov 2025")]
    #[case::today("range=today", "15 Nov – 15 Nov 2025")]
    #[case::a_week("range=7d", "9 Nov – 15 Nov 2025")]
    #[case::days("from=2025-01-01&to=2025-01-31", "1 Jan – 31 Jan 2025")]
    #[case::turned_round("from=2025-02-01&to=2025-01-31", "17 Oct – 15 Nov 2025")]
    #[case::nonsense("range=x&from=y", "17 Oct – 15 Nov 2025")]
    fn ranges(#[case] query: &str, #[case] expected: &str) {
        assert_eq!(range(query, "UTC").words(), expected);
    }

    #[test]
    fn the_days_before_are_as_many() {
        let range = range("range=7d", "UTC");
        assert_eq!(range.before().words(), "2 Nov – 8 Nov 2025");
        assert_eq!(range.before().whole().1, range.whole().0);
        assert_eq!(range.days().len(), 7);
    }

    #[test]
    fn weeks_begin_on_monday_and_months_on_their_first() {
        let range = range("from=2025-10-30&to=2025-11-11", "UTC");
        let (weeks, periods) = range.stretches(Some(TimeUnit::Week));
        assert_eq!(
            weeks,
            [
                "week of 30 Oct 2025",
                "week of 3 Nov 2025",
                "week of 10 Nov 2025"
            ]
        );
        assert_eq!(periods[0].0, range.whole().0);
        assert_eq!(periods[2].1, range.whole().1);
        let (months, _) = range.stretches(Some(TimeUnit::Month));
        assert_eq!(months, ["October 2025", "November 2025"]);
        assert_eq!(range.stretches(None).1, [range.whole()]);
    }

    #[test]
    fn a_day_is_as_long_as_its_clocks_say() {
        let range = range("from=2025-03-30&to=2025-03-30", "Europe/Berlin");
        let (from, until) = range.whole();
        assert_eq!(until.as_millis() - from.as_millis(), 23 * 60 * 60 * 1_000);
    }
}
