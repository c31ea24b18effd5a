//! New facts about a device that may connect it to subscriptions.

use super::{advertising_key, device_key, person_key};
use crate::device::{AdvertisingId, DeviceKey, UserKey};

/// New facts about a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceUpdate {
    /// New user id.
    pub user: Option<UserKey>,
    /// New advertising id.
    pub advertising: Option<AdvertisingId>,
    /// Whether a device property that is copied to events has changed.
    pub is_changed: bool,
}

impl DeviceUpdate {
    /// Returns whether the device has a new id, so that subscriptions with that id may now belong
    /// to the device.
    pub const fn has_new_id(&self) -> bool {
        self.user.is_some() || self.advertising.is_some()
    }

    /// Returns the keys of the affected subscriptions.
    pub fn keys(&self, device: &DeviceKey) -> Vec<String> {
        let ids = self.user.as_ref().map(person_key).into_iter();
        let ids = ids.chain(self.advertising.as_ref().map(advertising_key));
        let device = (self.has_new_id() || self.is_changed).then(|| device_key(device));
        ids.chain(device).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::billing::samples::{device, person};
    use rstest::rstest;

    #[rstest]
    #[case::nothing(None, false, &[])]
    #[case::a_person(Some("p"), false, &["person:p", "device:d"])]
    #[case::changed_device(None, true, &["device:d"])]
    fn finds_affected_subscriptions(
        #[case] user: Option<&str>,
        #[case] is_changed: bool,
        #[case] expected: &[&str],
    ) {
        let update = DeviceUpdate {
            user: user.map(person),
            is_changed,
            ..DeviceUpdate::default()
        };
        assert_eq!(update.keys(&device("d")), expected);
    }
}
