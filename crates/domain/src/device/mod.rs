//! Devices as the SDK reports them: traits, consent and the user's identity.
//!
//! Personal ids and hashes stay in this module and the store. They are never logged, and no error
//! repeats them.

mod claim;
mod consent;
mod identity;
mod signature;

pub use claim::{
    ADDRESS_CLAIMS_MAX, ADDRESS_CLAIMS_WINDOW, ClaimDecision, ClaimFacts, ClaimProof,
    DEVICE_CLAIMS_MAX, DEVICE_USERS_MAX, IdentityClaim, IdentityFlag, IdentityMode,
    MATCHING_CHANGES_MAX, SIGNED_USER_LINKS_MAX, USER_LINKS_MAX, UserClaim, claim,
};
pub use consent::{Consent, Tracking};
pub use identity::{AdvertisingId, ContactHashes, DeviceKey, UserKey};
pub use signature::{identity_secret, prove, sign_user};

use crate::access::Environment;
use crate::vocabulary::id::AppId;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum length of a device trait such as model, version or locale, in characters. Longer values
/// are cut: an app that is already released cannot be fixed and must not lose its install.
pub const TRAIT_CHARS_MAX: usize = 200;

/// Reference to a device within its app and environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceRef<'a> {
    /// App id.
    pub app: AppId,
    /// Live or test.
    pub environment: Environment,
    /// Device key.
    pub key: &'a DeviceKey,
}

/// Minimum interval between updates of a device's last-seen time. A shorter interval would rewrite
/// the device on every event.
pub const LAST_SEEN_STEP: Duration = Duration::from_hours(1);

/// Platform of an app or a click.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Platform {
    /// iPhone and iPad.
    Ios,
    /// Android.
    Android,
    /// Any other browser; for a device, a web page that uses the SDK.
    Web,
}

crate::keywords! {
    Platform {
        Ios => "ios",
        Android => "android",
        Web => "web",
    }
}

/// Screen size in points, and scale in hundredths. The longer side comes first, so that the
/// orientation does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    longer: u32,
    shorter: u32,
    scale_hundredths: u32,
}

impl Screen {
    /// Creates a screen from its sides, in any order. Returns `None` if a value is zero, which
    /// clients send for "unknown".
    pub fn new(width: u32, height: u32, scale_hundredths: u32) -> Option<Self> {
        (width > 0 && height > 0 && scale_hundredths > 0).then(|| Self {
            longer: width.max(height),
            shorter: width.min(height),
            scale_hundredths,
        })
    }

    /// Returns the longer side, the shorter side and the scale in hundredths.
    pub const fn parts(self) -> (u32, u32, u32) {
        (self.longer, self.shorter, self.scale_hundredths)
    }
}

/// Device properties that every `configure` call reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traits {
    /// Platform of the device.
    pub platform: Platform,
    /// OS version, such as `17.5.1`.
    pub os_version: Option<String>,
    /// Model, such as `iPhone15,2` or `Pixel 8`.
    pub model: Option<String>,
    /// Manufacturer, such as `Google`.
    pub manufacturer: Option<String>,
    /// Version of the app.
    pub app_version: Option<String>,
    /// Bundle id of the app.
    pub bundle_id: Option<String>,
    /// Locale, such as `en_US`.
    pub locale: Option<String>,
    /// IANA name of the time zone.
    pub timezone: Option<String>,
    /// Screen of the device.
    pub screen: Option<Screen>,
    /// Version of the SDK.
    pub sdk_version: Option<String>,
}

impl Traits {
    /// Creates traits with only the platform set.
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

    /// Merges a later report. Omitted values keep their previous value. The platform never changes.
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

/// User of a device, as reported by the app. Stored apart from the device, because an app may
/// identify the user before the device is configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// User id assigned by the app.
    pub user: Option<UserKey>,
    /// Hashes of the user's email address and phone number, computed on the device.
    pub contact_hashes: ContactHashes,
    /// How often the hashes changed.
    pub matching_changes: u32,
    /// Suspicious properties.
    pub flags: BTreeSet<IdentityFlag>,
}

/// A registered device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Device key.
    pub key: DeviceKey,
    /// Traits from the latest report.
    pub traits: Traits,
    /// Advertising id, if the user allows it.
    pub advertising_id: Option<AdvertisingId>,
    /// Apple's identifier for vendors (IDFV).
    pub idfv: Option<String>,
    /// Consent of the user.
    pub consent: Consent,
    /// Country of the first call, as two letters.
    pub country: Option<String>,
    /// Time of the first `configure` call.
    pub first_seen_at: Timestamp,
    /// Time of the last call of any kind.
    pub last_seen_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orientation_does_not_change_a_screen() {
        assert_eq!(Screen::new(390, 844, 300), Screen::new(844, 390, 300));
        assert_ne!(Screen::new(390, 844, 300), Screen::new(390, 844, 200));
        assert_eq!(Screen::new(0, 0, 0), None);
    }
}
