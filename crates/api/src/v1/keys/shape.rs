//! JSON form of an API key.

use crate::actor::ActorOut;
use crate::body::Envelope;
use crate::page::List;
use crate::state::ApiState;
use crate::time_text::rfc3339;
use serde::Serialize;
use serde_json::{Value, json};
use tributary_domain::access::key::{ApiKey, KeyText};
use utoipa::ToSchema;

/// An API key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Key")]
pub(super) struct KeyOut {
    #[schema(example = "key_01k9z3v7q8e4r9m2x5c6b7n8d3")]
    id: String,
    name: String,
    /// `full`, `read_only` or `analytics`.
    permission: &'static str,
    /// `live` or `test`.
    environment: &'static str,
    /// The key itself, only in the response that creates it; null otherwise.
    key: Option<String>,
    /// Last four characters of the key.
    hint: String,
    /// `valid`, `expired` or `revoked`.
    state: &'static str,
    /// Apps that the key may access; null for all.
    apps: Option<Vec<String>>,
    /// Address ranges that may use the key; null for all.
    addresses: Option<Vec<String>>,
    #[schema(format = DateTime)]
    created_at: String,
    /// Who created the key; null for keys of versions that did not store it.
    created_by: Option<ActorOut>,
    /// Id of the member who answers for the key. The key ends when the member is removed.
    owner_id: Option<String>,
    /// Accurate to a minute.
    #[schema(format = DateTime)]
    last_used_at: Option<String>,
    /// Address range of the last use: the /24 of an IPv4 address, the /48 of an IPv6 address.
    last_used_from: Option<String>,
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    #[schema(format = DateTime)]
    revoked_at: Option<String>,
    /// Id of the key that replaced this one.
    successor_id: Option<String>,
}

pub(super) type KeyEnvelope = Envelope<KeyOut>;
pub(super) type KeyListEnvelope = List<KeyOut>;

impl KeyOut {
    pub(super) fn of(key: ApiKey, state: &ApiState) -> Self {
        let apps = key.limits.apps.apps();
        Self {
            id: key.id.to_string(),
            state: key.state(state.runtime.now()).as_str(),
            name: key.name,
            permission: key.permission.as_str(),
            environment: key.environment.as_str(),
            key: None,
            hint: key.hint,
            apps: apps.map(|apps| apps.iter().map(ToString::to_string).collect()),
            addresses: key.limits.addresses.ranges(),
            created_at: rfc3339(key.created_at),
            created_by: key.created_by.map(ActorOut::from),
            owner_id: key.owner.map(|owner| owner.to_string()),
            last_used_at: key.last_used_at.map(rfc3339),
            last_used_from: key.last_used_from,
            expires_at: key.expires_at.map(rfc3339),
            revoked_at: key.revoked_at.map(rfc3339),
            successor_id: key.successor.map(|successor| successor.to_string()),
        }
    }

    /// Shapes a new key, with the key itself.
    pub(super) fn created(key: ApiKey, text: &KeyText, state: &ApiState) -> Self {
        Self {
            key: Some(text.reveal().to_owned()),
            ..Self::of(key, state)
        }
    }
}

/// Returns an example for the OpenAPI description.
pub(super) fn example() -> Value {
    json!({
        "id": "key_01k9z3v7q8e4r9m2x5c6b7n8d3",
        "name": "Warehouse",
        "permission": "read_only",
        "environment": "live",
        "key": null,
        "hint": "x7Qa",
        "state": "valid",
        "apps": ["app_01k9z3v7q8e4r9m2x5c6b7n8d0"],
        "addresses": ["192.0.2.0/24"],
        "createdAt": "2026-01-02T10:00:00.000Z",
        "createdBy": {"kind": "user", "id": "usr_01k9z3v7q8e4r9m2x5c6b7n8d4"},
        "ownerId": "usr_01k9z3v7q8e4r9m2x5c6b7n8d4",
        "lastUsedAt": "2026-01-12T07:00:03.120Z",
        "lastUsedFrom": "192.0.2.0/24",
        "expiresAt": "2027-01-02T10:00:00.000Z",
        "revokedAt": null,
        "successorId": null
    })
}

/// Returns an example of a new key.
pub(super) fn created_example() -> Value {
    let mut example = example();
    example["key"] = "ak_live_0M6Yk2vQ…".into();
    example["lastUsedAt"] = Value::Null;
    example["lastUsedFrom"] = Value::Null;
    example
}
