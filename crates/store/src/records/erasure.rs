//! SQL for erasing. A device may have thousands of events, so SQL statements clear the events'
//! columns. The contract suite checks that the result equals the domain rule.

use super::columns::row;
use super::to_json;
use crate::StoreError;
use tributary_domain::device::UserKey;
use tributary_domain::erasure::Trace;
use tributary_domain::event::EventSource;
use tributary_domain::vocabulary::id::{ClickId, EventId};

/// Columns to clear in `events`, equivalent to [`Erasure::erase_event`].
///
/// [`Erasure::erase_event`]: tributary_domain::erasure::Erasure::erase_event
pub const ERASED_EVENT: &str = "user_id = null, params = null, email_sha256 = null, \
     device_spelling = null, consent = null, source_url = case when source_url is not null then '' end";

/// Columns to clear in `clicks` besides `captured`, equivalent to [`Erasure::erase_click`].
///
/// [`Erasure::erase_click`]: tributary_domain::erasure::Erasure::erase_click
pub const ERASED_CLICK: &str = "os_version = null, model = null, language = null, timezone = null, \
     screen = null, address = null, address_hash = null, advertising_hash = null, \
     user_agent = null, referer = null";

/// Condition on `events` for the events of a user that have no device, or that of an erased one. Each
/// `_` stands for one character of the pseudonym.
pub const OF_USER_WITHOUT_DEVICE: &str =
    "(device_id is null or device_id like 'erased-________-____-____-____-____________')";

/// Encodes a text as it appears inside a JSON column, for searching.
pub fn json_string(text: &str) -> String {
    to_json(&text)
}

row! {
    /// The columns of `events` that refer to other data.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[expect(missing_docs, reason = "columns")]
    pub struct TraceRow {
        pub event_id: [u8; 16],
        pub source: String,
        pub given_id: String,
        pub user_id: Option<String>,
        pub click_id: Option<[u8; 16]>,
    }
}

impl TraceRow {
    /// Reads the references.
    pub fn read(self) -> Result<Trace, StoreError> {
        let event = EventId::from_bytes(self.event_id);
        let corrupt = || StoreError::corrupt("events", "source", event);
        Ok(Trace {
            event,
            source: EventSource::parse(&self.source).ok_or_else(corrupt)?,
            external_id: self.given_id,
            user: self.user_id.map(UserKey::stored),
            click: self.click_id.map(ClickId::from_bytes),
        })
    }
}
