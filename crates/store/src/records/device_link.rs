//! Links from users and advertising ids to devices.

use super::columns::row;
use super::decision::is_flagged;
use crate::StoreError;
use tributary_domain::billing::join::DeviceLink;
use tributary_domain::device::DeviceKey;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A link, with the decision about the device's install.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct DeviceLinkRow {
        pub id: String,
        pub device_id: String,
        pub since: i64,
        pub latest: i64,
        pub is_used: bool,
        pub is_signed: bool,
        pub decision: Option<String>,
    }
}

/// Selects [`DeviceLinkRow`]s of users, without a condition.
pub const SELECT_USER_LINKS: &str = "select links.user_id, links.device_id, links.first_linked_at, links.linked_at, \
            links.is_used, links.is_signed, devices.decision \
     from user_links as links left join devices \
       on devices.app_id = links.app_id and devices.environment = links.environment \
      and devices.device_id = links.device_id";

/// Order of a user's links. If there are more than the limit, those that may win come first.
pub const USER_LINK_ORDER: &str =
    "links.is_used desc, links.is_signed desc, links.first_linked_at, links.device_id";

/// Selects [`DeviceLinkRow`]s of advertising ids, without a condition.
pub const SELECT_ADVERTISING_LINKS: &str = "select advertising_id, device_id, first_seen_at, first_seen_at, true, false, decision \
     from devices";

/// Order of an advertising id's links.
pub const ADVERTISING_LINK_ORDER: &str = "first_seen_at, device_id";

impl DeviceLinkRow {
    /// Reads the link.
    pub fn read<Id>(self, id: fn(String) -> Id) -> Result<DeviceLink<Id>, StoreError> {
        Ok(DeviceLink {
            id: id(self.id),
            device: DeviceKey::stored(self.device_id),
            since: Timestamp::from_millis(self.since),
            latest: Timestamp::from_millis(self.latest),
            is_used: self.is_used,
            is_signed: self.is_signed,
            is_flagged: self.decision.as_deref().map_or(Ok(false), is_flagged)?,
        })
    }
}
