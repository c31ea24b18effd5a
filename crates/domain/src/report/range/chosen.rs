//! The range that a person chooses on a page: a preset, or two days.

use super::{DayRange, REPORT_DAYS_MAX, days_before};
use crate::vocabulary::calendar;
use crate::vocabulary::day::Day;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::timezone::Timezone;

/// A range relative to the current day. It moves along from day to day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangePreset {
    /// The current day.
    Today,
    /// The day before.
    Yesterday,
    /// Seven days including today.
    SevenDays,
    /// Thirty days including today.
    ThirtyDays,
    /// Ninety days including today.
    NinetyDays,
    /// The current month until today.
    ThisMonth,
    /// The month before.
    LastMonth,
}

crate::keywords! {
    RangePreset[7] {
        Today => "today",
        Yesterday => "yesterday",
        SevenDays => "7d",
        ThirtyDays => "30d",
        NinetyDays => "90d",
        ThisMonth => "month",
        LastMonth => "last-month",
    }
}

impl RangePreset {
    /// The preset if none is chosen.
    pub const DEFAULT: Self = Self::ThirtyDays;

    /// Returns the label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Today => "Today",
            Self::Yesterday => "Yesterday",
            Self::SevenDays => "7 days",
            Self::ThirtyDays => "30 days",
            Self::NinetyDays => "90 days",
            Self::ThisMonth => "This month",
            Self::LastMonth => "Last month",
        }
    }

    /// Returns the first and the last day.
    pub fn days(self, today: Day) -> (Day, Day) {
        match self {
            Self::Today => (today, today),
            Self::Yesterday => (days_before(today, 1), days_before(today, 1)),
            Self::SevenDays => (days_before(today, 6), today),
            Self::ThirtyDays => (days_before(today, 29), today),
            Self::NinetyDays => (days_before(today, 89), today),
            Self::ThisMonth => (month_start(today), today),
            Self::LastMonth => {
                let last = days_before(month_start(today), 1);
                (month_start(last), last)
            }
        }
    }

    /// Returns whether the range follows calendar months.
    pub(super) const fn is_month(self) -> bool {
        matches!(self, Self::ThisMonth | Self::LastMonth)
    }
}

/// Returns the first day of the month.
pub(super) fn month_start(day: Day) -> Day {
    let offset = calendar::to_date(day).map_or(0, |date| i32::from(date.day()) - 1);
    days_before(day, offset)
}

/// Requested range, as written in a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RangeRequest<'a> {
    /// Keyword of a preset.
    pub preset: Option<&'a str>,
    /// First day.
    pub from: Option<&'a str>,
    /// Last day.
    pub to: Option<&'a str>,
}

/// Why a report covers other days than requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeRemark {
    /// A day or a preset cannot be read.
    Unreadable,
    /// The first day is after the last.
    Reversed,
    /// The range is too long; only its last days are covered.
    Cut,
}

impl RangeRemark {
    /// Returns the message for a page.
    pub fn message(self) -> String {
        match self {
            Self::Unreadable => "The requested dates cannot be read, so the page shows the \
                                 default period. Write dates as 2026-01-31."
                .to_owned(),
            Self::Reversed => "The first day is after the last day, so the page shows the \
                               default period. Choose the days again."
                .to_owned(),
            Self::Cut => format!(
                "A report covers at most {REPORT_DAYS_MAX} days, so the page shows only the last \
                 {REPORT_DAYS_MAX} days of the chosen period."
            ),
        }
    }
}

/// The range that a page shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenRange {
    /// The days.
    pub days: DayRange,
    /// The preset; `None` for days that were chosen one by one.
    pub preset: Option<RangePreset>,
    /// Why these are not the requested days.
    pub remark: Option<RangeRemark>,
}

impl ChosenRange {
    /// Chooses the range. Days take precedence over a preset. Without one of the days, the range
    /// starts or ends as for a report of the API. Requests that cannot be met give the default
    /// preset and a remark.
    pub fn choose(request: RangeRequest<'_>, zone: &Timezone, now: Timestamp) -> Self {
        let (requested, remark) = match days(request, zone, now) {
            Some(Ok((from, to, remark))) => (Some((from, to)), remark),
            Some(Err(remark)) => (None, Some(remark)),
            None => (None, None),
        };
        if let Some((from, to)) = requested {
            return Self {
                days: day_range(from, to, zone),
                preset: None,
                remark,
            };
        }
        let preset = request.preset.map(RangePreset::parse);
        let is_unknown = preset == Some(None);
        let preset = preset.flatten().unwrap_or(RangePreset::DEFAULT);
        let (from, to) = preset.days(calendar::today(now, zone));
        Self {
            days: day_range(from, to, zone),
            preset: Some(preset),
            remark: remark.or(is_unknown.then_some(RangeRemark::Unreadable)),
        }
    }
}

fn day_range(from: Day, to: Day, zone: &Timezone) -> DayRange {
    DayRange {
        from,
        to,
        zone: zone.clone(),
    }
}

type RequestedDays = Result<(Day, Day, Option<RangeRemark>), RangeRemark>;

/// Returns the requested days; `None` if none are requested.
fn days(request: RangeRequest<'_>, zone: &Timezone, now: Timestamp) -> Option<RequestedDays> {
    let read = |text: Option<&str>| text.map(Day::parse).transpose();
    request.from.or(request.to)?;
    let (Ok(from), Ok(to)) = (read(request.from), read(request.to)) else {
        return Some(Err(RangeRemark::Unreadable));
    };
    let to = to.unwrap_or_else(|| {
        let today = calendar::today(now, zone);
        from.map_or(today, |from| from.max(today))
    });
    let from = from.unwrap_or_else(|| RangePreset::DEFAULT.days(to).0);
    if from > to {
        return Some(Err(RangeRemark::Reversed));
    }
    let earliest = days_before(to, REPORT_DAYS_MAX - 1);
    let remark = (from < earliest).then_some(RangeRemark::Cut);
    Some(Ok((from.max(earliest), to, remark)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// 2025-11-15T02:17:00Z, the 14th in New York.
    const NOW: Timestamp = Timestamp::from_millis(1_763_173_020_007);

    #[rstest]
    #[case::today(RangePreset::Today, "2024-03-01", "2024-03-01", "2024-03-01")]
    #[case::yesterday(RangePreset::Yesterday, "2024-03-01", "2024-02-29", "2024-02-29")]
    #[case::week(RangePreset::SevenDays, "2024-03-01", "2024-02-24", "2024-03-01")]
    #[case::thirty(RangePreset::ThirtyDays, "2024-03-30", "2024-03-01", "2024-03-30")]
    #[case::ninety(RangePreset::NinetyDays, "2024-03-30", "2024-01-01", "2024-03-30")]
    #[case::month(RangePreset::ThisMonth, "2024-02-29", "2024-02-01", "2024-02-29")]
    #[case::first_of_month(RangePreset::ThisMonth, "2024-02-01", "2024-02-01", "2024-02-01")]
    #[case::last_month(RangePreset::LastMonth, "2024-03-31", "2024-02-01", "2024-02-29")]
    #[case::last_year(RangePreset::LastMonth, "2024-01-01", "2023-12-01", "2023-12-31")]
    fn presets_end_on_the_current_day_or_before(
        #[case] preset: RangePreset,
        #[case] today: &str,
        #[case] from: &str,
        #[case] to: &str,
    ) {
        let day = |text: &str| Day::parse(text).unwrap();
        assert_eq!(preset.days(day(today)), (day(from), day(to)));
    }

    /// Preset, from, to; expected first and last day, and the remark.
    #[rstest]
    #[case::nothing([None; 3], "2025-10-17", "2025-11-15", None)]
    #[case::preset([Some("7d"), None, None], "2025-11-09", "2025-11-15", None)]
    #[case::days([Some("7d"), Some("2025-01-01"), Some("2025-01-31")], "2025-01-01", "2025-01-31", None)]
    #[case::first_day_only([None, Some("2025-11-14"), None], "2025-11-14", "2025-11-15", None)]
    #[case::from_tomorrow([None, Some("2025-11-16"), None], "2025-11-16", "2025-11-16", None)]
    #[case::last_day_only([None, None, Some("2025-01-30")], "2025-01-01", "2025-01-30", None)]
    #[case::longest([None, Some("2024-01-01"), Some("2025-02-03")], "2024-01-01", "2025-02-03", None)]
    #[case::too_long([None, Some("2024-01-01"), Some("2025-02-04")], "2024-01-02", "2025-02-04", Some(RangeRemark::Cut))]
    #[case::reversed([Some("7d"), Some("2025-02-01"), Some("2025-01-31")], "2025-11-09", "2025-11-15", Some(RangeRemark::Reversed))]
    #[case::unreadable([None, Some("yesterday"), Some("2025-01-31")], "2025-10-17", "2025-11-15", Some(RangeRemark::Unreadable))]
    #[case::unknown_preset([Some("8d"), None, None], "2025-10-17", "2025-11-15", Some(RangeRemark::Unreadable))]
    fn chooses_the_requested_days_and_says_what_it_changes(
        #[case] requested: [Option<&str>; 3],
        #[case] first: &str,
        #[case] last: &str,
        #[case] remark: Option<RangeRemark>,
    ) {
        let [preset, from, to] = requested;
        let request = RangeRequest { preset, from, to };
        let chosen = ChosenRange::choose(request, &Timezone::UTC, NOW);
        let days = (chosen.days.from.to_string(), chosen.days.to.to_string());
        assert_eq!(days, (first.to_owned(), last.to_owned()));
        assert_eq!(chosen.remark, remark);
    }

    #[test]
    fn the_time_zone_decides_which_day_is_today() {
        let zone = Timezone::parse("America/New_York").unwrap();
        let request = RangeRequest {
            preset: Some("today"),
            ..RangeRequest::default()
        };
        let chosen = ChosenRange::choose(request, &zone, NOW);
        assert_eq!(chosen.days.from.to_string(), "2025-11-14");
    }
}
