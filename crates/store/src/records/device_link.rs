//! Links from users and advertising ids to devices.

use super::columns::row;
use super::decision::has_flags;
use crate::StoreError;
use tributary_domain::attribution::{HoldState, counts_as_flagged};
use tributary_domain::billing::join::DeviceLink;
use tributary_domain::device::DeviceKey;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A link, with the decision about the device's install and the state of its hold.
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
        pub hold: Option<String>,
    }
}

/// Selects [`DeviceLinkRow`]s of users, without a condition.
pub const SELECT_USER_LINKS: &str = "select links.user_id, links.device_id, links.first_linked_at, links.linked_at, \
            links.is_used, links.is_signed, devices.decision, devices.hold \
     from user_links as links left join devices \
       on devices.app_id = links.app_id and devices.environment = links.environment \
      and devices.device_id = links.device_id";

/// Order of a user's links. If there are more than the limit, those that may win come first: any
/// number of flagged devices must not crowd out one that is not. A flagged install is found by the
/// text of its decision, which both engines compare alike; a value cannot contain this text, because
/// its quotes are escaped.
pub const USER_LINK_ORDER: &str = "links.is_used desc, links.is_signed desc, \
     (coalesce(devices.decision not like '%\"flags\":[\"%', true) \
      or coalesce(devices.hold = 'released', false)) desc, \
     links.first_linked_at, links.device_id";

/// Selects [`DeviceLinkRow`]s of advertising ids, without a condition.
pub const SELECT_ADVERTISING_LINKS: &str = "select advertising_id, device_id, first_seen_at, first_seen_at, true, false, decision, hold \
     from devices";

/// Order of an advertising id's links, as for [`USER_LINK_ORDER`].
pub const ADVERTISING_LINK_ORDER: &str = "(coalesce(decision not like '%\"flags\":[\"%', true) \
      or coalesce(hold = 'released', false)) desc, \
     first_seen_at, device_id";

impl DeviceLinkRow {
    /// Reads the link.
    pub fn read<Id>(self, id: fn(String) -> Id) -> Result<DeviceLink<Id>, StoreError> {
        let has_flags = self.decision.as_deref().map_or(Ok(false), has_flags)?;
        let hold = match self.hold.as_deref() {
            None => None,
            Some(state) => {
                let corrupt = || StoreError::corrupt("devices", "hold", "a device");
                Some(HoldState::parse(state).ok_or_else(corrupt)?)
            }
        };
        Ok(DeviceLink {
            id: id(self.id),
            device: DeviceKey::stored(self.device_id),
            since: Timestamp::from_millis(self.since),
            latest: Timestamp::from_millis(self.latest),
            is_used: self.is_used,
            is_signed: self.is_signed,
            is_flagged: counts_as_flagged(has_flags, hold),
        })
    }
}
