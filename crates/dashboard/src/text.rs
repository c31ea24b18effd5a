//! Formats numbers, amounts and times for display.

pub(crate) use tributary_domain::report::number_text::{count, ratio, usd};

use jiff::tz::TimeZone;
use std::time::Duration;
use tributary_domain::vocabulary::calendar::to_time_zone;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

/// Formats a time in the app's time zone: `15 Nov 2026, 12:34:05`.
pub(crate) fn moment(at: Timestamp, zone: &Timezone) -> String {
    format_time(at, to_time_zone(zone), "%-d %b %Y, %H:%M:%S")
}

/// Formats a day in the app's time zone: `15 Nov 2026`.
pub(crate) fn date(at: Timestamp, zone: &Timezone) -> String {
    format_time(at, to_time_zone(zone), "%-d %b %Y")
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

/// Returns the path of the decision about a held install.
pub(crate) fn hold_decision_path(device: &str) -> String {
    format!("held/{}/decision", path_segment(device))
}

/// Encodes a device id as one segment of a path. Senders choose device ids: a slash in an id would
/// otherwise lead to another device's form.
fn path_segment(device: &str) -> String {
    let encoded: String = url::form_urlencoded::byte_serialize(device.as_bytes()).collect();
    // In a path, a space must be `%20`; `+` would be a literal plus sign.
    encoded.replace('+', "%20")
}

/// Formats a share: `98.0 %`.
pub(crate) fn percent(part: i64, whole: i64) -> String {
    let tenths = i128::from(part) * 1_000 / i128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Formats a share in millionths: `12.5 %`, rounded, halves up.
pub(crate) fn share(micros: i64) -> String {
    let tenths = (micros.max(0) + 500) / 1_000;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Formats a relative change: `+12 %`, or `+3.4 %` below ten percent. Finer digits would claim a
/// precision that figures of a few days do not have. Returns `None` if `before` is not positive.
pub(crate) fn change(before: i64, now: i64) -> Option<String> {
    if before <= 0 {
        return None;
    }
    let difference = i128::from(now) - i128::from(before);
    let before = u128::from(before.unsigned_abs());
    let tenths = (difference.unsigned_abs() * 1_000 + before / 2) / before;
    let sign = match difference {
        _ if tenths == 0 => "±",
        1.. => "+",
        _ => "−",
    };
    Some(if (1..100).contains(&tenths) {
        format!("{sign}{}.{} %", tenths / 10, tenths % 10)
    } else {
        let whole = i64::try_from((tenths + 5) / 10).unwrap_or(i64::MAX);
        format!("{sign}{} %", count(whole))
    })
}

/// Formats a ratio: `2.51`, rounded, halves away from zero.
pub(crate) fn ratio(amount: Amount) -> String {
    usd(amount).replace('$', "")
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

    #[rstest]
    #[case(0, "0")]
    #[case(999, "999")]
    #[case(1_000, "1,000")]
    #[case(1_234_567, "1,234,567")]
    #[case(-1_234, "−1,234")]
    fn formats_counts(#[case] number: i64, #[case] expected: &str) {
        assert_eq!(count(number), expected);
    }

    #[rstest]
    #[case("999.99", "$999.99")]
    #[case("1000.5", "$1,001")]
    #[case("-123456.4", "−$123,456")]
    fn formats_brief_dollars(#[case] amount: &str, #[case] expected: &str) {
        assert_eq!(usd_brief(Amount::parse(amount).unwrap()), expected);
    }

    #[rstest]
    #[case(1_000_000, "100.0 %")]
    #[case(333_333, "33.3 %")]
    #[case(666_667, "66.7 %")]
    #[case(499, "0.0 %")]
    fn formats_shares(#[case] micros: i64, #[case] expected: &str) {
        assert_eq!(share(micros), expected);
    }

    #[rstest]
    #[case::more(100, 150, Some("+50 %"))]
    #[case::rounded(81, 91, Some("+12 %"))]
    #[case::small(1_000, 1_034, Some("+3.4 %"))]
    #[case::less(3, 2, Some("−33 %"))]
    #[case::a_little_less(1_000, 996, Some("−0.4 %"))]
    #[case::many_times(4, 504, Some("+12,500 %"))]
    #[case::the_same(5, 5, Some("±0 %"))]
    #[case::hardly_different(1_000_000, 1_000_001, Some("±0 %"))]
    #[case::from_nothing(0, 5, None)]
    #[case::from_a_loss(-5, 5, None)]
    fn formats_changes(#[case] before: i64, #[case] now: i64, #[case] expected: Option<&str>) {
        assert_eq!(change(before, now).as_deref(), expected);
    }

    #[rstest]
    #[case("0", "$0.00")]
    #[case("1234.5", "$1,234.50")]
    #[case("0.005", "$0.01")]
    #[case("-3.999", "−$4.00")]
    #[case("-0.001", "$0.00")]
    fn formats_dollars(#[case] amount: &str, #[case] expected: &str) {
        assert_eq!(usd(Amount::parse(amount).unwrap()), expected);
    }

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
    #[case(1, "1 second")]
    #[case(60, "1 minute")]
    #[case(7_200, "2 hours")]
    #[case(200_000, "2 days")]
    fn formats_durations(#[case] seconds: i64, #[case] expected: &str) {
        assert_eq!(span(seconds), expected);
    }
}
