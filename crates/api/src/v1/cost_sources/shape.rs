//! JSON form of a cost source. For credentials, only whether they are set and their last characters
//! are shown.

use crate::body::Envelope;
use crate::page::List;
use crate::time_text::rfc3339;
use serde::Serialize;
use std::collections::BTreeMap;
use tributary_domain::cost_source::{
    CostSource, cost_credentials_of, cost_settings_of, restated_days,
};
use tributary_domain::integration::SettingDefault;
use utoipa::ToSchema;

/// An app's access to a network's cost report.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "CostSource")]
pub(super) struct CostSourceOut {
    network: &'static str,
    /// Whether costs are imported.
    enabled: bool,
    /// `not_configured`, `active`, `paused` or `error`.
    status: &'static str,
    /// Reason for the status, and what to do.
    status_reason: Option<String>,
    /// Settings by name, with defaults for those that are not set.
    #[schema(value_type = Object)]
    settings: BTreeMap<&'static str, Option<String>>,
    /// Credentials by name: whether each is set, and its last characters. Secrets are never
    /// returned.
    credentials: BTreeMap<&'static str, CostCredentialOut>,
    /// Days that are imported again with every pull, because the network may restate them.
    restated_days: i32,
    /// End of the last pull.
    #[schema(format = DateTime)]
    last_pull_at: Option<String>,
    /// End of the last successful pull.
    #[schema(format = DateTime)]
    last_success_at: Option<String>,
    /// Last day of the last complete pull.
    #[schema(format = Date)]
    imported_until: Option<String>,
    /// When the next pull is due; null if the source is off or paused.
    #[schema(format = DateTime)]
    next_pull_at: Option<String>,
    /// Time of the last change; null if the source was never set.
    #[schema(format = DateTime)]
    updated_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct CostCredentialOut {
    set: bool,
    hint: Option<String>,
}

impl From<&CostSource> for CostSourceOut {
    fn from(source: &CostSource) -> Self {
        let (status, status_reason) = source.status();
        let setting = |name: &str, default| match (source.settings.get(name), default) {
            (Some(text), _) => Some(text.clone()),
            (None, SettingDefault::Text(text)) => Some(text.to_owned()),
            _ => None,
        };
        let credential = |name: &str| {
            let found = source.credentials.get(name);
            let hint = found.and_then(|credential| credential.hint.clone());
            CostCredentialOut {
                set: found.is_some(),
                hint: hint.map(|hint| format!("…{hint}")),
            }
        };
        let pulls = &source.pulls;
        Self {
            network: source.network.as_str(),
            enabled: source.enabled,
            status: status.as_str(),
            status_reason,
            settings: cost_settings_of(source.network)
                .iter()
                .map(|spec| (spec.name, setting(spec.name, spec.default)))
                .collect(),
            credentials: cost_credentials_of(source.network)
                .iter()
                .map(|spec| (spec.name, credential(spec.name)))
                .collect(),
            restated_days: restated_days(source.network),
            last_pull_at: pulls.last_pull_at.map(rfc3339),
            last_success_at: pulls.last_success_at.map(rfc3339),
            imported_until: pulls.pulled_until.map(|day| day.to_string()),
            next_pull_at: pulls.due_at.map(rfc3339),
            updated_at: source.updated_at.map(rfc3339),
        }
    }
}

pub(super) type CostSourceEnvelope = Envelope<CostSourceOut>;

pub(super) type CostSourceListEnvelope = List<CostSourceOut>;

/// Returns an example for the OpenAPI description.
pub(super) fn example() -> serde_json::Value {
    serde_json::json!({
        "network": "network_a",
        "enabled": true,
        "status": "active",
        "statusReason": null,
        "settings": {"accountId": "1234567890", "apiVersion": "v26.0"},
        "credentials": {
            "accessToken": {"set": true, "hint": "…9f2c"},
            "appSecret": {"set": false, "hint": null}
        },
        "restatedDays": 28,
        "lastPullAt": "2026-01-01T00:00:00.000Z",
        "lastSuccessAt": "2026-01-01T00:00:00.000Z",
        "importedUntil": "2026-01-01",
        "nextPullAt": "2026-01-01T04:00:00.000Z",
        "updatedAt": "2026-01-01T00:00:00.000Z"
    })
}
