//! Streams of the audit log to other systems.

use crate::vocabulary::time::Timestamp;

/// A stream of all entries to a place outside of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditStream {
    /// Appends entries to a file.
    File,
    /// Sends entries to a syslog server.
    Syslog,
}

crate::keywords! {
    AuditStream {
        File => "file",
        Syslog => "syslog",
    }
}

/// Priority of RFC 5424: facility 13 (log audit), severity 5 (notice).
const PRIORITY: u8 = 13 * 8 + 5;

/// Longest message. A UDP packet has at most 65,507 bytes, and receivers commonly allow 64 KiB.
const MESSAGE_BYTES_MAX: usize = 60_000;

/// Returns an entry's line as a message of RFC 5424. The host name is left to the receiver, which
/// knows the sender. A longer line is cut; the database and exports have all of it.
pub fn syslog_message(sent_at: Timestamp, line: &str) -> String {
    let mut message = format!(
        "<{PRIORITY}>1 {} - tributary - audit - {line}",
        sent_at.rfc3339()
    );
    let cut = message.floor_char_boundary(MESSAGE_BYTES_MAX);
    message.truncate(cut);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_header_of_rfc_5424() {
        let message = syslog_message(Timestamp::from_millis(1_700_000_000_123), "{\"a\":1}");
        let expected = "<109>1 2023-11-14T22:13:20.123Z - tributary - audit - {\"a\":1}";
        assert_eq!(message, expected);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let message = syslog_message(Timestamp::from_millis(0), &"ö".repeat(MESSAGE_BYTES_MAX));
        assert!((MESSAGE_BYTES_MAX - 1..=MESSAGE_BYTES_MAX).contains(&message.len()));
    }
}
