//! Erasing, as columns. A device may have thousands of events: their columns are cleared where they are, and the contract
//! suite holds that what remains is what the rule says.

use super::columns::row;
use super::to_json;
use crate::StoreError;
use tributary_domain::device::UserKey;
use tributary_domain::erasure::Trace;
use tributary_domain::event::EventSource;
use tributary_domain::vocabulary::id::{ClickId, EventId};

/// What is set in rows of `events` beside the device: what [`Erasure::event`] leaves.
///
/// [`Erasure::event`]: tributary_domain::erasure::Erasure::event
pub const ERASED_EVENT: &str = "user_id = null, params = null, email_sha256 = null, device_spelling = null, \
     source_url = case when source_url is not null then '' end";

/// What is set in rows of `clicks` beside what their URLs said: what [`Erasure::click`] leaves.
///
/// [`Erasure::click`]: tributary_domain::erasure::Erasure::click
pub const ERASED_CLICK: &str = "os_version = null, model = null, language = null, timezone = null, \
     screen = null, address = null, address_hash = null, advertising_hash = null, \
     user_agent = null, referer = null";

/// A text as it stands within a JSON column, to be looked for there.
pub fn json_string(text: &str) -> String {
    to_json(&text)
}

row! {
    /// A row of `events`, as far as it leads to other data.
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
    /// The entity of a row.
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
