//! Timestamps in responses: RFC 3339, UTC, with milliseconds.

use tributary_domain::vocabulary::time::Timestamp;

/// Formats a timestamp as `2026-11-15T02:37:00.000Z`.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    at.rfc3339()
}
