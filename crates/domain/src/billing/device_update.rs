//! Devices and people that show up, before or after their subscriptions.

use super::{advertising_key, device_key, person_key};
use crate::device::{AdvertisingId, DeviceKey, UserKey};

/// What a device shows that it did not show before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceUpdate {
    /// A person's id.
    pub user: Option<UserKey>,
    /// An advertising id.
    pub advertising: Option<AdvertisingId>,
    /// Whether what its events say about it changed.
    pub is_changed: bool,
}

impl DeviceUpdate {
    /// Whether the device is linked to an id, so that subscriptions of that id may become its own.
    pub const fn has_new_id(&self) -> bool {
        self.user.is_some() || self.advertising.is_some()
    }

    /// The keys of the subscriptions that this concerns.
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
    #[case::itself(None, true, &["device:d"])]
    fn what_is_shown_leads_to_subscriptions(
        #[case] user: Option<&str>,
        #[case] is_changed: bool,
        #[case] expected: &[&str],
    ) {
        let shown = DeviceUpdate {
            user: user.map(person),
            is_changed,
            ..DeviceUpdate::default()
        };
        assert_eq!(shown.keys(&device("d")), expected);
    }
}
