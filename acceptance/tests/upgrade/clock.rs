//! The times of the rows. They are recent, because retention removes old rows from a running server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400_000;
/// Age of the rows, in days.
const AGE_DAYS: i64 = 2;
/// Time until leases and deadlines of the rows, in days.
const FUTURE_DAYS: i64 = 30;

/// Returns the start of the day of the rows.
pub(super) fn day_start() -> i64 {
    today() - AGE_DAYS * DAY
}

/// Returns a time after the end of the test.
pub(super) fn future() -> i64 {
    today() + FUTURE_DAYS * DAY
}

/// Returns the date of the rows.
pub(super) fn date() -> String {
    let start = jiff::Timestamp::from_millisecond(day_start()).unwrap();
    start.strftime("%Y-%m-%d").to_string()
}

/// Returns the start of the day on which the test process began, so that all its rows are alike.
#[expect(
    clippy::disallowed_methods,
    reason = "a server process uses the system clock"
)]
fn today() -> i64 {
    static NOW: std::sync::OnceLock<Duration> = std::sync::OnceLock::new();
    let now = NOW.get_or_init(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap());
    let millis = i64::try_from(now.as_millis()).unwrap();
    millis - millis % DAY
}
