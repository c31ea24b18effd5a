//! Rows of devices and identities.

use super::click::{screen_from_text, screen_to_text};
use super::columns::row;
use super::consent::{ConsentJson, consent_to_json};
use super::decision::{attribution_from_json, decision_to_json};
use super::hold::{hold_to_json, read_hold};
use super::{from_json, to_json};
use crate::StoreError;
use serde::{Deserialize, Serialize};
use tributary_domain::device::{
    AdvertisingId, ContactHashes, Device, DeviceKey, Identity, IdentityFlag, Platform, Traits,
    UserKey,
};
use tributary_domain::install::Attribution;
use tributary_domain::vocabulary::id::AttributionId;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `devices`, without app, environment, address and first payment.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct DeviceRow {
        pub device_id: String,
        pub platform: String,
        pub traits: String,
        pub advertising_id: Option<String>,
        pub idfv: Option<String>,
        pub consent: String,
        pub country: Option<String>,
        pub first_seen_at: i64,
        pub last_seen_at: i64,
        pub attribution_id: [u8; 16],
        pub attribution_revision: i64,
        pub decided_at: i64,
        pub network: String,
        pub link_id: Option<[u8; 16]>,
        pub decision: String,
        pub hold: Option<String>,
        pub hold_details: Option<String>,
    }
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct TraitsJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    os_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    manufacturer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bundle_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    screen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sdk_version: Option<String>,
    /// Spelling of the device id in the app's first call, if it differs from the stored id.
    #[serde(skip_serializing_if = "Option::is_none")]
    spelling: Option<String>,
}

impl DeviceRow {
    /// Converts a device and its attribution to columns.
    pub fn write(device: &Device, attribution: &Attribution) -> Self {
        let traits = device.traits.clone();
        Self {
            device_id: device.key.as_str().to_owned(),
            platform: traits.platform.as_str().to_owned(),
            traits: to_json(&TraitsJson {
                os_version: traits.os_version,
                model: traits.model,
                manufacturer: traits.manufacturer,
                app_version: traits.app_version,
                bundle_id: traits.bundle_id,
                locale: traits.locale,
                timezone: traits.timezone,
                screen: traits.screen.map(screen_to_text),
                sdk_version: traits.sdk_version,
                spelling: device.key.other_spelling().map(str::to_owned),
            }),
            advertising_id: device
                .advertising_id
                .as_ref()
                .map(|id| id.as_str().to_owned()),
            idfv: device.idfv.clone(),
            consent: consent_to_json(device.consent),
            country: device.country.clone(),
            first_seen_at: device.first_seen_at.as_millis(),
            last_seen_at: device.last_seen_at.as_millis(),
            attribution_id: *attribution.id.as_bytes(),
            attribution_revision: i64::from(attribution.revision),
            decided_at: attribution.decided_at.as_millis(),
            network: attribution.decision.network.as_str().to_owned(),
            link_id: attribution.decision.link.map(|link| *link.as_bytes()),
            decision: decision_to_json(attribution),
            hold: attribution
                .hold_state()
                .map(|state| state.as_str().to_owned()),
            hold_details: attribution.hold.as_ref().map(hold_to_json),
        }
    }

    /// Reads the device and its attribution.
    pub fn read(self) -> Result<(Device, Attribution), StoreError> {
        let id = AttributionId::from_bytes(self.attribution_id);
        // A device id is personal data, so errors name the attribution id instead.
        let corrupt = |column| StoreError::corrupt("devices", column, id);
        let traits: TraitsJson = from_json("devices", "traits", id, &self.traits)?;
        let consent: ConsentJson = from_json("devices", "consent", id, &self.consent)?;
        let device = Device {
            key: DeviceKey::stored_as(self.device_id, traits.spelling),
            traits: Traits {
                platform: Platform::parse(&self.platform).ok_or_else(|| corrupt("platform"))?,
                os_version: traits.os_version,
                model: traits.model,
                manufacturer: traits.manufacturer,
                app_version: traits.app_version,
                bundle_id: traits.bundle_id,
                locale: traits.locale,
                timezone: traits.timezone,
                screen: traits.screen.as_deref().and_then(screen_from_text),
                sdk_version: traits.sdk_version,
            },
            advertising_id: self.advertising_id.map(AdvertisingId::stored),
            idfv: self.idfv,
            consent: consent.into(),
            country: self.country,
            first_seen_at: Timestamp::from_millis(self.first_seen_at),
            last_seen_at: Timestamp::from_millis(self.last_seen_at),
        };
        let attribution = attribution_from_json(
            id,
            self.attribution_revision,
            self.decided_at,
            &self.decision,
        )?;
        let hold = read_hold(id, self.hold.as_deref(), self.hold_details.as_deref())?;
        Ok((
            device,
            Attribution {
                hold,
                ..attribution
            },
        ))
    }
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct MatchingJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email_google: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phone_e164: Option<String>,
    /// How often the hashes changed.
    #[serde(skip_serializing_if = "is_zero")]
    changes: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flags: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A row of `identities`, without its key.
#[derive(Clone)]
#[expect(missing_docs, reason = "columns")]
pub struct IdentityRow {
    pub user_id: Option<String>,
    pub matching: String,
}

impl IdentityRow {
    /// Converts an identity to columns.
    pub fn write(identity: &Identity) -> Self {
        let matching = identity.contact_hashes.clone();
        Self {
            user_id: identity.user.as_ref().map(|user| user.as_str().to_owned()),
            matching: to_json(&MatchingJson {
                email: matching.email,
                email_google: matching.email_google,
                phone: matching.phone,
                phone_e164: matching.phone_e164,
                changes: identity.matching_changes,
                flags: identity
                    .flags
                    .iter()
                    .map(|flag| flag.as_str().to_owned())
                    .collect(),
            }),
        }
    }

    /// Reads the identity.
    pub fn read(self) -> Result<Identity, StoreError> {
        // Error messages must contain neither the user nor the device.
        let stored: MatchingJson = from_json("identities", "matching", "a device", &self.matching)?;
        Ok(Identity {
            user: self.user_id.map(UserKey::stored),
            contact_hashes: ContactHashes {
                email: stored.email,
                email_google: stored.email_google,
                phone: stored.phone,
                phone_e164: stored.phone_e164,
            },
            matching_changes: stored.changes,
            flags: stored
                .flags
                .iter()
                .filter_map(|flag| IdentityFlag::parse(flag))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_values_take_no_space() {
        assert_eq!(IdentityRow::write(&Identity::default()).matching, "{}");
        assert_eq!(to_json(&TraitsJson::default()), "{}");
    }
}
