//! Erasing, as columns. A device may have thousands of events: their columns are cleared where they are, and the contract
//! suite holds that what remains is what the rule says.

use super::to_json;

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
pub fn within_json(text: &str) -> String {
    to_json(&text)
}
