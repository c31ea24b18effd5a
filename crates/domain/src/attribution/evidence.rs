//! What the device showed.

use super::ad_services::AdServices;
use super::referrer::Referrer;
use crate::access::Environment;
use crate::click::address::AddressClass;
use crate::device::{Platform, Screen};
use crate::vocabulary::time::Timestamp;

/// How a click became known to the device, surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClickIdSource {
    /// Its id, through the Play Store, which says when.
    Referrer,
    /// Its id, by a web client, or in the URL that opened the app.
    Client,
    /// It is the tap on a link that opened the app itself, without passing our doors.
    AppLink,
}

/// Google's and the device's times of an install from Play. Zero, which means unknown, is nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReferrerTimes {
    /// The tap in the store, by the device's clock.
    pub click_at: Option<Timestamp>,
    /// The begin of the installation, by the device's clock.
    pub install_begin_at: Option<Timestamp>,
    /// The tap in the store, by Google's clock.
    pub click_at_server: Option<Timestamp>,
    /// The begin of the installation, by Google's clock.
    pub install_begin_at_server: Option<Timestamp>,
}

/// The circumstances of a first open, for matching by likeness.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceFingerprint {
    /// Of what kind the address is.
    pub address_class: Option<AddressClass>,
    /// As the SDK reports it, in full.
    pub os_version: Option<String>,
    /// As the SDK reports it.
    pub model: Option<String>,
    /// An IANA name.
    pub timezone: Option<String>,
    /// Such as `en_US`.
    pub locale: Option<String>,
    /// Of the device.
    pub screen: Option<Screen>,
}

/// Everything the device showed, with what is known of it so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// What the app runs on.
    pub platform: Platform,
    /// Live or test.
    pub environment: Environment,
    /// When the device was first seen. Later evidence is judged as of then.
    pub first_open_at: Timestamp,
    /// When the decision is made.
    pub now: Timestamp,
    /// What the Play Store handed over; nothing when the SDK sent no referrer at all.
    pub referrer: Option<Referrer>,
    /// When, by the store's account.
    pub times: ReferrerTimes,
    /// What Apple answered.
    pub ad_services: AdServices,
    /// The circumstances.
    pub fingerprint: DeviceFingerprint,
    /// Whether likeness may decide: at the first `configure` only.
    pub probabilistic_allowed: bool,
}
