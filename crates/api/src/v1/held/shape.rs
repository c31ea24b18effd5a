//! JSON form of holds and held installs.

use crate::actor::ActorOut;
use crate::body::Envelope;
use crate::campaign::CampaignOut;
use crate::page::List;
use crate::time_text::rfc3339;
use serde::Serialize;
use tributary_domain::attribution::{Flag, InstallHold};
use tributary_domain::device::DeviceKey;
use tributary_store::HeldInstall;
use utoipa::ToSchema;

/// Hold on a flagged install.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Hold")]
pub(crate) struct HoldOut {
    #[schema(inline, value_type = crate::choices::HoldStateChoice)]
    state: &'static str,
    #[schema(format = DateTime)]
    held_at: String,
    /// Time of the latest decision; null while the install is held.
    #[schema(format = DateTime)]
    decided_at: Option<String>,
    /// Who made the latest decision.
    decided_by: Option<ActorOut>,
}

impl From<InstallHold> for HoldOut {
    fn from(hold: InstallHold) -> Self {
        let (decided_at, decided_by) = hold
            .review
            .map(|review| (rfc3339(review.decided_at), review.decided_by.into()))
            .unzip();
        Self {
            state: hold.state.as_str(),
            held_at: rfc3339(hold.held_at),
            decided_at,
            decided_by,
        }
    }
}

/// An install that is or was held.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "HeldInstall")]
pub(super) struct HeldOut {
    device_id: String,
    /// Id of the install's attribution. Entries in the audit log refer to it.
    attribution_id: String,
    hold: Option<HoldOut>,
    /// Fraud signals: `unverified_time`, `short_ctit`, `implausible`, `impossible_device`,
    /// `install_burst`, `attestation_failed`, `attestation_missing`.
    flags: Vec<&'static str>,
    /// Explanation of the attribution in one sentence.
    reason: String,
    network: &'static str,
    match_type: &'static str,
    link_id: Option<String>,
    campaign: CampaignOut,
    #[schema(inline, value_type = crate::track::PlatformChoice)]
    platform: &'static str,
    /// Two-letter country code of the device's first call.
    country: Option<String>,
    /// Time of the first open.
    #[schema(format = DateTime)]
    first_seen_at: String,
}

impl From<HeldInstall> for HeldOut {
    fn from(held: HeldInstall) -> Self {
        let HeldInstall {
            device,
            attribution,
        } = held;
        let decision = attribution.decision;
        Self {
            attribution_id: attribution.id.to_string(),
            hold: attribution.hold.map(HoldOut::from),
            flags: decision.flags.iter().copied().map(Flag::as_str).collect(),
            reason: decision.reason,
            network: decision.network.as_str(),
            match_type: decision.match_type.as_str(),
            link_id: decision.link.map(|link| link.to_string()),
            campaign: decision.campaign.into(),
            platform: device.traits.platform.as_str(),
            country: device.country,
            first_seen_at: rfc3339(device.first_seen_at),
            device_id: DeviceKey::into_string(device.key),
        }
    }
}

pub(super) type HeldEnvelope = Envelope<HeldOut>;
pub(super) type HeldListEnvelope = List<HeldOut>;

/// Returns an example hold for the OpenAPI description.
pub(super) fn example_hold() -> serde_json::Value {
    serde_json::json!({
        "state": "held", "heldAt": "2026-01-01T00:00:00.000Z", "decidedAt": null, "decidedBy": null
    })
}

/// Returns an example for the OpenAPI description.
pub(super) fn example() -> serde_json::Value {
    serde_json::json!({
        "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "attributionId": "att_01k9z3v7q8e4r9m2x5c6b7n8d4",
        "hold": example_hold(),
        "flags": ["short_ctit"],
        "reason": "The app was opened 4 seconds after a click on this link.",
        "network": "network_a",
        "matchType": "click_id",
        "linkId": "lnk_01k9z3v7q8e4r9m2x5c6b7n8d1",
        "campaign": {
            "id": "238", "name": "Spring", "adsetId": null, "adsetName": null, "adId": null, "adName": null
        },
        "platform": "android",
        "country": "DE",
        "firstSeenAt": "2026-01-01T00:00:00.000Z"
    })
}
