//! Evidence that the device sent.

use super::ad_services::AdServices;
use super::referrer::Referrer;
use crate::access::Environment;
use crate::attestation::AttestationOutcome;
use crate::click::address::AddressClass;
use crate::device::{Platform, Screen};
use crate::vocabulary::time::Timestamp;

/// How a click id reached the device, most reliable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClickIdSource {
    /// Through the Play Store referrer, which has timestamps.
    Referrer,
    /// From a web client, or from the URL that opened the app.
    Client,
    /// From an app link that opened the app directly, without our redirect.
    AppLink,
}

/// Timestamps of an install from the Play Store, by Google's and by the device's clock. Zero means
/// unknown and becomes `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReferrerTimes {
    /// Tap in the store, by the device's clock.
    pub click_at: Option<Timestamp>,
    /// Start of the installation, by the device's clock.
    pub install_begin_at: Option<Timestamp>,
    /// Tap in the store, by Google's clock.
    pub click_at_server: Option<Timestamp>,
    /// Start of the installation, by Google's clock.
    pub install_begin_at_server: Option<Timestamp>,
}

/// Device properties at the first open, for probabilistic matching.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceFingerprint {
    /// Class of the IP address.
    pub address_class: Option<AddressClass>,
    /// Full OS version, as the SDK reports it.
    pub os_version: Option<String>,
    /// Model, as the SDK reports it.
    pub model: Option<String>,
    /// IANA name of the time zone.
    pub timezone: Option<String>,
    /// Locale, such as `en_US`.
    pub locale: Option<String>,
    /// Screen of the device.
    pub screen: Option<Screen>,
}

/// All evidence for an install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Platform of the app.
    pub platform: Platform,
    /// Live or test.
    pub environment: Environment,
    /// Time of the first open. Evidence that arrives later is evaluated as of this time.
    pub first_open_at: Timestamp,
    /// Time of the decision.
    pub now: Timestamp,
    /// Play Store referrer; `None` if the SDK sent none.
    pub referrer: Option<Referrer>,
    /// Timestamps from the store.
    pub times: ReferrerTimes,
    /// Result from Apple's AdServices.
    pub ad_services: AdServices,
    /// Device properties for probabilistic matching.
    pub fingerprint: DeviceFingerprint,
    /// Whether a probabilistic match is allowed: only at the first `configure` call.
    pub probabilistic_allowed: bool,
    /// Whether the device proved that it runs the genuine app; `None` if the app did not ask.
    pub attestation: Option<AttestationOutcome>,
}
