//! JSON form of an integration. For credentials, only whether they are set and their last
//! characters are shown.

use crate::body::Envelope;
use crate::page::List;
use crate::time_text::rfc3339;
use serde::Serialize;
use std::collections::BTreeMap;
use tributary_domain::integration::{
    Integration, MappingRow, SettingDefault, SettingValue, credentials_of, settings_of,
};
use tributary_store::IntegrationHealth;
use utoipa::ToSchema;

/// An app's connection to one ad network.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Integration")]
pub(crate) struct IntegrationOut {
    #[schema(inline, value_type = crate::choices::NetworkChoice)]
    network: &'static str,
    /// `social`, `search`, `short_video` or `ai_assistant`.
    kind: &'static str,
    /// Whether events are forwarded.
    enabled: bool,
    #[schema(inline, value_type = crate::choices::ScopeChoice)]
    scope: &'static str,
    /// `not_configured`, `active`, `paused` or `error`.
    status: &'static str,
    /// Reason for the status.
    status_reason: Option<String>,
    /// Settings by name, with defaults for those that are not set.
    #[schema(value_type = Object)]
    settings: BTreeMap<&'static str, serde_json::Value>,
    /// Credentials by name: whether each is set, and its last characters. Secrets are never
    /// returned.
    credentials: BTreeMap<&'static str, CredentialOut>,
    /// The network's names for events. An event without a row is not forwarded.
    event_mapping: Vec<MappingRowOut>,
    health: HealthOut,
    /// Time of the last change; null if the integration was never changed.
    #[schema(format = DateTime)]
    updated_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct CredentialOut {
    set: bool,
    hint: Option<String>,
}

/// Delivery figures for the network.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct HealthOut {
    /// Number of pending deliveries.
    pending: u64,
    delivered24h: u64,
    /// Number of deliveries in the last 24 hours that failed, expired or stayed unconfirmed.
    failed24h: u64,
    #[schema(format = DateTime)]
    last_delivered_at: Option<String>,
    /// Live conversions from the last 7 days that were not sent, by reason, most frequent first.
    /// Expected reasons, such as `not_attributed` and `not_mapped`, are left out.
    skipped7d: Vec<SkippedOut>,
    /// True if the count is incomplete, because only the newest 20000 events or failed deliveries
    /// are read.
    skipped7d_stopped_early: bool,
}

/// The number of conversions that were not sent for one reason.
#[derive(Debug, Serialize, ToSchema)]
struct SkippedOut {
    /// Reason code on the events or deliveries, such as `insufficient_identity`.
    reason: String,
    count: u64,
    /// The most frequent event names, at most 10. Deliveries that became unsendable after planning
    /// are counted in `count` only.
    events: Vec<SkippedEventOut>,
}

/// The number of conversions with one event name.
#[derive(Debug, Serialize, ToSchema)]
struct SkippedEventOut {
    name: String,
    count: u64,
}

impl From<&IntegrationHealth> for HealthOut {
    fn from(health: &IntegrationHealth) -> Self {
        let skipped = health.skipped.by_reason.iter();
        let event = |(name, count): &(String, u64)| SkippedEventOut {
            name: name.clone(),
            count: *count,
        };
        let skipped = skipped.map(|one| SkippedOut {
            reason: one.reason.clone(),
            count: one.count,
            events: one.by_event.iter().map(event).collect(),
        });
        Self {
            pending: health.pending,
            delivered24h: health.delivered,
            failed24h: health.failed,
            last_delivered_at: health.state.last_delivered_at.map(rfc3339),
            skipped7d: skipped.collect(),
            skipped7d_stopped_early: health.skipped.stopped_early,
        }
    }
}

/// A row of the event mapping.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MappingRowOut {
    event: String,
    network_event: String,
    enabled: bool,
}

fn json_of(value: &SettingValue) -> serde_json::Value {
    match value {
        SettingValue::Text(text) => text.as_str().into(),
        SettingValue::Flag(flag) => (*flag).into(),
        SettingValue::Number(number) => (*number).into(),
        SettingValue::Map(map) => serde_json::json!(map),
    }
}

fn json_of_default(default: SettingDefault) -> serde_json::Value {
    match default {
        SettingDefault::None => serde_json::Value::Null,
        SettingDefault::Flag(flag) => flag.into(),
        SettingDefault::Text(text) => text.into(),
        SettingDefault::EmptyMap => serde_json::json!({}),
    }
}

impl IntegrationOut {
    pub(crate) fn of(integration: &Integration, health: &IntegrationHealth) -> Self {
        let (status, status_reason) = integration.status(&health.state);
        let setting = |name: &str, default| {
            integration
                .settings
                .get(name)
                .map_or_else(|| json_of_default(default), json_of)
        };
        let settings = settings_of(integration.network)
            .map(|spec| (spec.name, setting(spec.name, spec.default)))
            .collect();
        let credential = |name: &str| {
            let found = integration.credentials.get(name);
            let hint = found.and_then(|credential| credential.hint.clone());
            CredentialOut {
                set: found.is_some(),
                hint: hint.map(|hint| format!("…{hint}")),
            }
        };
        let credentials = credentials_of(integration.network)
            .iter()
            .map(|spec| (spec.name, credential(spec.name)))
            .collect();
        let row = |row: MappingRow| MappingRowOut {
            event: row.event,
            network_event: row.network_event,
            enabled: row.enabled,
        };
        Self {
            network: integration.network.as_str(),
            kind: integration.network.kind(),
            enabled: integration.enabled,
            scope: integration.scope.as_str(),
            status: status.as_str(),
            status_reason,
            settings,
            credentials,
            event_mapping: integration.mapping().into_iter().map(row).collect(),
            health: health.into(),
            updated_at: integration.updated_at.map(rfc3339),
        }
    }
}

pub(crate) type IntegrationEnvelope = Envelope<IntegrationOut>;

pub(crate) type IntegrationListEnvelope = List<IntegrationOut>;

/// Returns an example integration for the OpenAPI description.
pub(crate) fn example() -> serde_json::Value {
    serde_json::json!({
        "network": "network_a",
        "kind": "social",
        "enabled": true,
        "scope": "attributed",
        "status": "active",
        "statusReason": null,
        "settings": {
            "apiVersion": "v26.0",
            "forwardProbabilistic": false,
            "limitedDataUse": false,
            "maxEventAge": null,
            "pixelId": "1234567890",
            "sdkEventMode": "website",
            "testEventCode": null,
            "testMode": false,
            "webEventId": false
        },
        "credentials": {
            "accessToken": {"set": true, "hint": "…9f2c"},
            "appSecret": {"set": false, "hint": null}
        },
        "eventMapping": [{"event": "purchase", "networkEvent": "Purchase", "enabled": true}],
        "health": {
            "pending": 0, "delivered24h": 0, "failed24h": 0, "lastDeliveredAt": null,
            "skipped7d": [{"reason": "insufficient_identity", "count": 12}], "skipped7dStoppedEarly": false
        },
        "updatedAt": "2026-01-01T00:00:00.000Z"
    })
}
