//! Timestamps in responses: RFC 3339, UTC, with milliseconds.

use tributary_domain::vocabulary::time::Timestamp;

/// Formats a timestamp as `2026-11-15T02:37:00.000Z`.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.as_millis()) {
        Ok(at) => format!("{at:.3}"),
        // A time after the year 9999, which no clock returns.
        Err(_) => "9999-12-31T23:59:59.999Z".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_always_written() {
        assert_eq!(
            rfc3339(Timestamp::from_millis(0)),
            "1970-01-01T00:00:00.000Z"
        );
        assert_eq!(
            rfc3339(Timestamp::from_millis(1_763_173_020_007)),
            "2025-11-15T02:17:00.007Z"
        );
        assert_eq!(
            rfc3339(Timestamp::from_millis(i64::MAX)),
            "9999-12-31T23:59:59.999Z"
        );
    }
}
