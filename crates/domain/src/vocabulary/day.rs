//! Calendar days in UTC.

use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::time::Timestamp;

/// Milliseconds per day. Every UTC day has this length, because timestamps ignore leap seconds.
const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1000;
/// Days from 0000-03-01, where the arithmetic starts, to 1970-01-01.
const DAYS_BEFORE_1970: i64 = 719_468;
/// Days in 400 years, after which the calendar repeats.
const DAYS_PER_ERA: i64 = 146_097;
/// Years that have four digits.
const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;

/// A day in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i32);

impl Day {
    /// Creates a day from the days since 1970-01-01.
    pub const fn from_days(days: i32) -> Self {
        Self(days)
    }

    /// Returns the days since 1970-01-01.
    pub const fn as_days(self) -> i32 {
        self.0
    }

    /// Returns the day that contains `moment`.
    pub fn of(moment: Timestamp) -> Self {
        let days = moment.as_millis().div_euclid(MILLIS_PER_DAY);
        let end = if days < 0 { i32::MIN } else { i32::MAX };
        Self(i32::try_from(days).unwrap_or(end))
    }

    /// Converts a date to a day; `None` if the date does not exist.
    pub fn from_date(year: i64, month: i64, day: i64) -> Option<Self> {
        if !YEARS.contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        // The year starts in March here, so that the leap day is its last.
        let (march_year, march_month) = if month > 2 {
            (year, month - 3)
        } else {
            (year - 1, month + 9)
        };
        let (era, year_of_era) = (march_year / 400, march_year % 400);
        let day_of_year = (153 * march_month + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = era * DAYS_PER_ERA + day_of_era - DAYS_BEFORE_1970;
        let found = Self(i32::try_from(days).ok()?);
        // The 30th of February would have become the 1st of March.
        (found.date() == (year, month, day)).then_some(found)
    }

    /// Returns the first day that begins at or after a time.
    #[must_use]
    pub fn first_from(moment: Timestamp) -> Self {
        let day = Self::of(moment);
        if day.begins_at() < moment {
            day.following()
        } else {
            day
        }
    }

    /// Parses `2024-03-18`, and no other format.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let number = |range: std::ops::Range<usize>| {
            let digits = text.get(range)?;
            let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
            all_digits.then(|| digits.parse::<i64>().ok())?
        };
        let separated =
            text.len() == 10 && text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
        let date = || Self::from_date(number(0..4)?, number(5..7)?, number(8..10)?);
        separated.then(date).flatten().ok_or_else(|| {
            Problem::new(
                FaultCode::InvalidFormat,
                "Must be a date, for example 2024-03-18.",
            )
        })
    }

    /// Returns the next day.
    #[must_use]
    pub const fn following(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the start of the day.
    pub fn begins_at(self) -> Timestamp {
        Timestamp::from_millis(i64::from(self.0) * MILLIS_PER_DAY)
    }

    /// Returns the days since `earlier`; negative if this day is before it.
    pub fn days_since(self, earlier: Self) -> i64 {
        i64::from(self.0) - i64::from(earlier.0)
    }

    /// Returns year, month and day.
    fn date(self) -> (i64, i64, i64) {
        let days = i64::from(self.0) + DAYS_BEFORE_1970;
        let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let (month, carry) = if march_month < 10 {
            (march_month + 3, 0)
        } else {
            (march_month - 9, 1)
        };
        (era * 400 + year_of_era + carry, month, day)
    }
}

impl std::fmt::Display for Day {
    /// Formats the day as `2024-03-18`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (year, month, day) = self.date();
        write!(formatter, "{year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::the_first("1970-01-01", 0)]
    #[case::before_it("1969-12-31", -1)]
    #[case::a_leap_day("2024-02-29", 19_782)]
    #[case::after_it("2024-03-01", 19_783)]
    #[case::a_leap_century("2000-02-29", 11_016)]
    #[case::the_earliest("0001-01-01", -719_162)]
    #[case::the_last("9999-12-31", 2_932_896)]
    fn days_round_trip_through_dates(#[case] text: &str, #[case] days: i32) {
        assert_eq!(Day::parse(text), Ok(Day(days)));
        assert_eq!(Day(days).to_string(), text);
    }

    #[rstest]
    #[case::empty("")]
    #[case::no_such_month("2024-13-01")]
    #[case::month_zero("2024-00-01")]
    #[case::no_such_day("2024-04-31")]
    #[case::day_zero("2024-04-00")]
    #[case::no_leap_year("2023-02-29")]
    #[case::no_leap_century("1900-02-29")]
    #[case::year_zero("0000-01-01")]
    #[case::short("2024-3-18")]
    #[case::blank("2024-03-18 ")]
    #[case::sign("2024-+3-18")]
    #[case::slashes("2024/03/18")]
    #[case::time_too("2024-03-18T00:00")]
    #[case::other_digits("２024-03-1")]
    fn rejects_invalid_dates(#[case] text: &str) {
        assert!(Day::parse(text).is_err());
    }

    #[rstest]
    #[case::first_moment(1_710_720_000_000, "2024-03-18")]
    #[case::last_moment(1_710_806_399_999, "2024-03-18")]
    #[case::next_day(1_710_806_400_000, "2024-03-19")]
    #[case::before_1970(-1, "1969-12-31")]
    fn a_time_belongs_to_its_utc_day(#[case] millis: i64, #[case] text: &str) {
        assert_eq!(Day::of(Timestamp::from_millis(millis)).to_string(), text);
    }

    #[test]
    fn extreme_times_have_a_day() {
        let of = |millis| Day::of(Timestamp::from_millis(millis));
        assert_eq!(of(i64::MAX), Day(i32::MAX));
        assert_eq!(of(i64::MIN), Day(i32::MIN));
        assert_eq!(of(i64::MAX).days_since(of(i64::MIN)), i64::from(u32::MAX));
        assert!(of(i64::MIN).to_string().starts_with('-'));
        assert_eq!(Day(i32::MAX).following(), Day(i32::MAX));
    }

    #[test]
    fn a_day_starts_at_midnight() {
        let begin = Day(20_000).begins_at().as_millis();
        let of = |millis| Day::of(Timestamp::from_millis(millis));
        assert_eq!((of(begin - 1), of(begin)), (Day(19_999), Day(20_000)));
    }

    #[rstest]
    #[case::the_next("2024-03-18", "2024-03-19")]
    #[case::a_leap_day("2024-02-28", "2024-02-29")]
    #[case::next_year("2024-12-31", "2025-01-01")]
    fn the_day_after(#[case] day: &str, #[case] expected: &str) {
        assert_eq!(Day::parse(day).unwrap().following().to_string(), expected);
    }

    proptest! {
        #[test]
        fn days_round_trip_through_text(days in -719_162..=2_932_896_i32) {
            prop_assert_eq!(Day::parse(&Day(days).to_string()), Ok(Day(days)));
        }
    }
}
