//! The `Retry-After` header: seconds or a date.

use std::time::Duration;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

/// When to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// After this many seconds.
    Delta(u64),
    /// At this Unix time, which may be in the past.
    Date(i64),
}

impl RetryAfter {
    /// Parses the header. An invalid value is treated as absent.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            // A number with too many digits is treated as the longest possible wait.
            return Some(Self::Delta(text.parse().unwrap_or(u64::MAX)));
        }
        date(text).map(Self::Date)
    }

    /// Returns the time to wait from now; `None` if the date is past.
    pub fn wait(self, now: Timestamp) -> Option<Duration> {
        match self {
            Self::Delta(seconds) => Some(Duration::from_secs(seconds)),
            Self::Date(seconds) => {
                let at = Timestamp::from_millis(seconds.saturating_mul(1_000));
                Some(at.since(now)).filter(|wait| !wait.is_zero())
            }
        }
    }
}

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT`, the only date format still in use.
fn date(text: &str) -> Option<i64> {
    let (_weekday, rest) = text.split_once(", ")?;
    let mut parts = rest.split(' ');
    let mut next = || parts.next();
    let (day, month, year, time) = (next()?, next()?, next()?, next()?);
    if next()? != "GMT" || next().is_some() {
        return None;
    }
    let month = MONTHS.iter().zip(1..).find(|(name, _)| **name == month)?.1;
    let day = Day::from_date(number(year)?, month, number(day)?)?;
    let mut parts = time.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    let (hour, minute, second) = (number(hour)?, number(minute)?, number(second)?);
    let in_range = hour < 24 && minute < 60 && second <= 60 && parts.next().is_none();
    in_range
        .then(|| i64::from(day.as_days()) * SECONDS_PER_DAY + hour * 3_600 + minute * 60 + second)
}

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::seconds("120", Some(RetryAfter::Delta(120)))]
    #[case::none_at_all("0", Some(RetryAfter::Delta(0)))]
    #[case::absurd("99999999999999999999999", Some(RetryAfter::Delta(u64::MAX)))]
    #[case::a_date("Sun, 06 Nov 1994 08:49:37 GMT", Some(RetryAfter::Date(784_111_777)))]
    #[case::a_date_to_come("Sat, 14 Nov 2026 12:00:00 GMT", Some(RetryAfter::Date(1_794_657_600)))]
    #[case::negative("-5", None)]
    #[case::fraction("1.5", None)]
    #[case::no_such_day("Sun, 31 Feb 2026 08:49:37 GMT", None)]
    #[case::no_such_hour("Sun, 06 Nov 1994 24:49:37 GMT", None)]
    #[case::another_zone("Sun, 06 Nov 1994 08:49:37 CET", None)]
    #[case::words("soon", None)]
    #[case::empty("", None)]
    fn parses_seconds_and_dates(#[case] text: &str, #[case] expected: Option<RetryAfter>) {
        assert_eq!(RetryAfter::read(text), expected);
    }
}
