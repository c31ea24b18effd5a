//! Timestamps of log lines: RFC 3339 in UTC with microseconds.
//!
//! The default of `tracing-subscriber` prints the same text, but formats seven numbers per line.
//! Here each thread formats the date once per second.

use jiff::Timestamp;
use std::cell::RefCell;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// Prints the current time.
pub(super) struct LogTime;

impl FormatTime for LogTime {
    #[expect(
        clippy::disallowed_methods,
        reason = "log lines have the system's time even in tests"
    )]
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        LAST_SECOND.with_borrow_mut(|last| last.write(now.unwrap_or_default(), writer))
    }
}

thread_local! {
    static LAST_SECOND: RefCell<FormattedSecond> = RefCell::default();
}

/// The second that was formatted last.
#[derive(Default)]
struct FormattedSecond {
    second: u64,
    /// Date and time up to the second, as in `2026-11-17T18:05:09`.
    text: String,
}

impl FormattedSecond {
    fn write(&mut self, now: Duration, writer: &mut impl fmt::Write) -> fmt::Result {
        if self.second != now.as_secs() || self.text.is_empty() {
            let second = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
            let formatted = Timestamp::from_second(second)
                .unwrap_or_default()
                .to_string();
            formatted.trim_end_matches('Z').clone_into(&mut self.text);
            self.second = now.as_secs();
        }
        writer.write_str(&self.text)?;
        write!(writer, ".{:06}Z", now.subsec_micros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_utc_with_microseconds() {
        let mut second = FormattedSecond::default();
        let mut print = |seconds, nanos| {
            let mut text = String::new();
            second
                .write(Duration::new(seconds, nanos), &mut text)
                .unwrap();
            text
        };
        assert_eq!(print(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(
            print(1_795_000_000, 123_456_789),
            "2026-11-18T11:06:40.123456Z"
        );
        assert_eq!(
            print(1_795_000_000, 999_999_999),
            "2026-11-18T11:06:40.999999Z"
        );
        assert_eq!(print(1_795_000_001, 1_000), "2026-11-18T11:06:41.000001Z");
    }
}
