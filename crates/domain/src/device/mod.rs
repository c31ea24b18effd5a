//! A device as the SDK reports it: what it is, what it consented to, what its person is known by.
//!
//! Ids and hashes of people end here and in the store. They are never logged, and no error repeats them.

mod consent;
mod identity;

pub use consent::{Consent, Tracking};
pub use identity::{AdvertisingId, ContactHashes, DeviceKey, UserKey};

use crate::access::Environment;
use crate::vocabulary::id::AppId;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Characters of what a device says about itself: model, version, locale and their like. Longer ones are
/// cut: a client that cannot be mended any more must not lose its install for a long name.
pub const TRAIT_CHARS_MAX: usize = 200;

/// Which device, of which app and environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceRef<'a> {
    /// Of which app.
    pub app: AppId,
    /// Live or test.
    pub environment: Environment,
    /// Its key.
    pub key: &'a DeviceKey,
}

/// By how much a device's last call may be out of date. Every event would otherwise rewrite the device.
pub const LAST_SEEN_STEP: Duration = Duration::from_hours(1);

/// What an app, or a click, runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Platform {
    /// iPhone and iPad.
    Ios,
    /// Android.
    Android,
    /// A browser on anything else; for a device, a web page that uses the SDK.
    Web,
}

crate::keywords! {
    Platform {
        Ios => "ios",
        Android => "android",
        Web => "web",
    }
}

/// The size of a screen, in points, and its scale in hundredths. A device turned on its side has the same
/// screen: the longer side is kept first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    longer: u32,
    shorter: u32,
    scale_hundredths: u32,
}

impl Screen {
    /// From its sides, in any order. Nothing when a side is zero: that is how "unknown" is sent.
    pub fn new(width: u32, height: u32, scale_hundredths: u32) -> Option<Self> {
        (width > 0 && height > 0 && scale_hundredths > 0).then(|| Self {
            longer: width.max(height),
            shorter: width.min(height),
            scale_hundredths,
        })
    }

    /// The longer side, the shorter one, the scale in hundredths.
    pub const fn parts(self) -> (u32, u32, u32) {
        (self.longer, self.shorter, self.scale_hundredths)
    }
}

/// What a device says about itself with every `configure`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traits {
    /// What it runs on.
    pub platform: Platform,
    /// Such as `17.5.1`.
    pub os_version: Option<String>,
    /// Such as `iPhone15,2` or `Pixel 8`.
    pub model: Option<String>,
    /// Such as `Google`.
    pub manufacturer: Option<String>,
    /// Of the app.
    pub app_version: Option<String>,
    /// Of the app.
    pub bundle_id: Option<String>,
    /// Such as `en_US`.
    pub locale: Option<String>,
    /// An IANA name.
    pub timezone: Option<String>,
    /// Of the device.
    pub screen: Option<Screen>,
    /// Of the SDK.
    pub sdk_version: Option<String>,
}

impl Traits {
    /// Returns traits of which only the platform is known.
    #[must_use]
    pub const fn of(platform: Platform) -> Self {
        Self {
            platform,
            os_version: None,
            model: None,
            manufacturer: None,
            app_version: None,
            bundle_id: None,
            locale: None,
            timezone: None,
            screen: None,
            sdk_version: None,
        }
    }

    /// What is known after a later call: what it says replaces, what it leaves out stays. The platform of a
    /// device does not change.
    #[must_use]
    pub fn updated(self, later: Self) -> Self {
        Self {
            platform: self.platform,
            os_version: later.os_version.or(self.os_version),
            model: later.model.or(self.model),
            manufacturer: later.manufacturer.or(self.manufacturer),
            app_version: later.app_version.or(self.app_version),
            bundle_id: later.bundle_id.or(self.bundle_id),
            locale: later.locale.or(self.locale),
            timezone: later.timezone.or(self.timezone),
            screen: later.screen.or(self.screen),
            sdk_version: later.sdk_version.or(self.sdk_version),
        }
    }
}

/// The person behind a device, as far as the app tells. Kept apart from the device: an app may know the
/// person before the device was ever configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// The app's own id of the person.
    pub user: Option<UserKey>,
    /// Hashes of the person's address and number, made on the device.
    pub contact_hashes: ContactHashes,
}

impl Identity {
    /// What is known after a later call: what it gives replaces, what it leaves out stays.
    #[must_use]
    pub fn updated(self, later: Self) -> Self {
        Self {
            user: later.user.or(self.user),
            contact_hashes: self.contact_hashes.updated(later.contact_hashes),
        }
    }

    /// The person, if the device did not go by that id before.
    pub fn new_user(&self, before: &Self) -> Option<UserKey> {
        let user = self.user.clone();
        user.filter(|user| before.user.as_ref() != Some(user))
    }
}

/// A device in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The id that the SDK made.
    pub key: DeviceKey,
    /// What it said last.
    pub traits: Traits,
    /// The advertising id, where the person allowed it.
    pub advertising_id: Option<AdvertisingId>,
    /// Apple's id of the vendor.
    pub idfv: Option<String>,
    /// What the person consented to.
    pub consent: Consent,
    /// Where its first call came from, as two letters.
    pub country: Option<String>,
    /// The first `configure`.
    pub first_seen_at: Timestamp,
    /// The last call of any kind.
    pub last_seen_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_is_the_same_on_its_side() {
        assert_eq!(Screen::new(390, 844, 300), Screen::new(844, 390, 300));
        assert_ne!(Screen::new(390, 844, 300), Screen::new(390, 844, 200));
        assert_eq!(Screen::new(0, 0, 0), None);
    }
}
