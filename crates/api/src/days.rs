//! Day filter for lists.

use crate::query::QueryParameters;
use tributary_domain::vocabulary::calendar::day_bounds;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

/// First and last day to list, both inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DayFilter {
    pub(crate) from: Option<Day>,
    pub(crate) to: Option<Day>,
}

impl DayFilter {
    /// Reads `from` and `to`.
    pub(crate) fn read(parameters: &mut QueryParameters<'_>) -> Self {
        let from = parameters.optional("from", Day::parse);
        let to = parameters.optional("to", parse_last_day(from));
        Self { from, to }
    }

    /// Tells whether neither day is set.
    pub(crate) const fn is_empty(self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Returns the start of the first day and the end (exclusive) of the last day in this time
    /// zone.
    pub(crate) fn timestamps(self, zone: &Timezone) -> (Option<Timestamp>, Option<Timestamp>) {
        day_bounds(self.from, self.to, zone)
    }
}

/// Returns a parser for the last day that rejects a day before `from`.
pub(crate) fn parse_last_day(from: Option<Day>) -> impl FnOnce(&str) -> Result<Day, Problem> {
    move |text| {
        let to = Day::parse(text)?;
        if from.is_some_and(|from| to < from) {
            let message = "Must not be before `from`.";
            return Err(Problem::new(FaultCode::OutOfRange, message));
        }
        Ok(to)
    }
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
        let days = DayFilter {
            from: Some(Day::parse(from).unwrap()),
            to: Some(Day::parse(to).unwrap()),
        };
        let (from, until) = days.timestamps(&Timezone::parse(zone).unwrap());
        assert_eq!(
            (
                rfc3339(from.unwrap()).as_str(),
                rfc3339(until.unwrap()).as_str()
            ),
            (begin, end)
        );
    }

    #[test]
    fn supports_the_first_and_last_day_of_the_calendar() {
        let days = DayFilter {
            from: Some(Day::parse("0001-01-01").unwrap()),
            to: Some(Day::parse("9999-12-31").unwrap()),
        };
        for zone in ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"] {
            let (from, until) = days.timestamps(&Timezone::parse(zone).unwrap());
            assert!(from.unwrap() < Timestamp::from_millis(0));
            assert_eq!(until, None, "9999-12-31 has no next day");
        }
        let lost = Timezone::from_stored("Mars/Olympus").unwrap();
        assert!(days.timestamps(&lost).0.is_some());
    }
}
