//! Formats numbers, amounts and times for display.

pub(crate) use tributary_domain::report::number_text::{count, money, percent, ratio, usd};

use jiff::tz::TimeZone;
use std::time::Duration;
use tributary_domain::vocabulary::calendar::to_time_zone;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

/// Says why costs have no change.
pub(crate) const COSTS_NOT_COMPARED: &str = "Spend, CPI and ROAS are compared only for periods \
                                             that are over, because costs are known by whole days.";

/// Says why ratios with costs look low during a day.
pub(crate) const COSTS_OF_TODAY: &str = "CPI and ROAS of today set the installs and the revenue so \
                                         far against the spend that is known by now, which may be \
                                         that of the whole day.";

/// Says how long the next guess has to wait.
pub(crate) fn retry_message(wait: Duration) -> String {
    format!(
        "Too many failed attempts. Try again in {}.",
        wait_text(wait)
    )
}

/// Says that someone asked too often, and when to ask again.
pub(crate) fn too_many_requests_message(wait: Duration) -> String {
    format!("Too many requests. Try again in {}.", wait_text(wait))
}

fn wait_text(wait: Duration) -> String {
    let seconds = wait.as_secs() + 1;
    if seconds > 90 {
        format!("{} minutes", seconds.div_ceil(60))
    } else {
        format!("{seconds} seconds")
    }
}

/// Formats a time in the app's time zone: `15 Nov 2026, 12:34:05`.
pub(crate) fn moment(at: Timestamp, zone: &Timezone) -> String {
    format_time(at, to_time_zone(zone), "%-d %b %Y, %H:%M:%S")
}

/// Formats a day in the app's time zone: `15 Nov 2026`.
pub(crate) fn date(at: Timestamp, zone: &Timezone) -> String {
    format_time(at, to_time_zone(zone), "%-d %b %Y")
}

/// Formats a calendar day: `15 Nov 2026`.
pub(crate) fn day(day: Day) -> String {
    format_time(day.begins_at(), TimeZone::UTC, "%-d %b %Y")
}

/// Formats an hour: `15 Nov 2026, 12:00 +01:00`. The offset distinguishes the repeated autumn hour.
pub(crate) fn hour(at: Timestamp, zone: &Timezone) -> String {
    format_time(at, to_time_zone(zone), "%-d %b %Y, %H:%M %:z")
}

/// Formats the time of day: `12:00`.
pub(crate) fn clock(at: Timestamp, zone: &Timezone) -> String {
    format_time(at, to_time_zone(zone), "%H:%M")
}

/// Formats a time in UTC: `15 Nov 2026, 12:34 UTC`.
pub(crate) fn moment_utc(at: Timestamp) -> String {
    format_time(at, TimeZone::UTC, "%-d %b %Y, %H:%M UTC")
}

fn format_time(at: Timestamp, zone: TimeZone, format: &str) -> String {
    let moment = jiff::Timestamp::from_millisecond(at.as_millis());
    moment.map_or_else(
        |_| "invalid time".to_owned(),
        |moment| moment.to_zoned(zone).strftime(format).to_string(),
    )
}

/// Formats a time for programs: `2026-11-15T12:34:05Z`.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(at.as_millis());
    moment.map_or_else(|_| String::new(), |moment| moment.to_string())
}

/// Returns the path of a device's page.
pub(crate) fn device_path(device: &str) -> String {
    format!("devices/{}", path_segment(device))
}

/// Returns the path of the form that erases a device.
pub(crate) fn erasure_path(device: &str) -> String {
    format!("devices/{}/erase", path_segment(device))
}

/// Returns the path of the file with a device's data.
pub(crate) fn device_data_path(device: &str) -> String {
    format!("devices/{}/data", path_segment(device))
}

/// Returns the path of the file with a user's data.
pub(crate) fn user_data_path(user: &str) -> String {
    format!("users/{}/data", path_segment(user))
}

/// Returns the path of the decision about a held install.
pub(crate) fn hold_decision_path(device: &str) -> String {
    format!("held/{}/decision", path_segment(device))
}

/// Encodes a device or user id as one segment of a path. Senders choose these ids: a slash in an id
/// would otherwise lead to another device's form.
fn path_segment(id: &str) -> String {
    let encoded: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
    // In a path, a space must be `%20`; `+` would be a literal plus sign.
    encoded.replace('+', "%20")
}

/// Formats a number of hours, from two days on in days if it has no rest: `36 hours`, `7 days`.
pub(crate) fn hours_or_days(hours: i64) -> String {
    if hours >= 48 && hours % 24 == 0 {
        return format!("{} days", hours / 24);
    }
    if hours == 1 {
        return "1 hour".to_owned();
    }
    format!("{hours} hours")
}

/// Formats the age of a time: `3 minutes ago`.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let passed = now.since(at);
    if passed < Duration::from_mins(1) {
        return "just now".to_owned();
    }
    format!(
        "{} ago",
        span(i64::try_from(passed.as_secs()).unwrap_or(i64::MAX))
    )
}

/// Formats a duration: `3 minutes`, `2 days`.
pub(crate) fn span(seconds: i64) -> String {
    let (number, unit) = match seconds {
        ..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn formats_times_in_the_apps_time_zone() {
        let at = Timestamp::from_millis(1_763_173_020_007);
        let berlin = Timezone::parse("Europe/Berlin").unwrap();
        assert_eq!(moment(at, &berlin), "15 Nov 2025, 03:17:00");
        assert_eq!(moment_utc(at), "15 Nov 2025, 02:17 UTC");
        assert_eq!(date(at, &berlin), "15 Nov 2025");
        assert_eq!(rfc3339(at), "2025-11-15T02:17:00.007Z");
    }

    #[rstest]
    #[case("phone-1", "held/phone-1/decision")]
    #[case("../held/victim", "held/..%2Fheld%2Fvictim/decision")]
    #[case("a b?c#d", "held/a%20b%3Fc%23d/decision")]
    fn a_device_id_is_one_segment_of_a_path(#[case] device: &str, #[case] expected: &str) {
        assert_eq!(hold_decision_path(device), expected);
        let page = device_path(device);
        assert_eq!(page.matches('/').count(), 1, "{page}");
    }

    #[rstest]
    #[case(1, "1 hour")]
    #[case(24, "24 hours")]
    #[case(36, "36 hours")]
    #[case(168, "7 days")]
    fn long_windows_are_in_days(#[case] hours: i64, #[case] expected: &str) {
        assert_eq!(hours_or_days(hours), expected);
    }

    #[rstest]
    #[case(1, "1 second")]
    #[case(60, "1 minute")]
    #[case(7_200, "2 hours")]
    #[case(200_000, "2 days")]
    fn formats_durations(#[case] seconds: i64, #[case] expected: &str) {
        assert_eq!(span(seconds), expected);
    }
}
