//! The fields of an integration that can be changed. Settings and credentials depend on the network.

use crate::fields::{Fields, choice, flag, integer, text_as, text_map, wrong_type};
use crate::json::Node;
use crate::sealing::Sealer;
use std::collections::BTreeMap;
use tributary_domain::integration::{
    Credential, EventScope, IntegrationChange, MappingRow, Network, SettingKind, SettingValue,
    check_mapping, credential, credentials_of, network_event_name, settings_of,
};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::{Faults, Problem};
use tributary_domain::vocabulary::given::Given;
use tributary_domain::vocabulary::text::event_name;
use utoipa::ToSchema;

pub(super) fn read_change(
    fields: &mut Fields<'_>,
    network: Network,
    sealer: &Sealer<'_>,
) -> IntegrationChange {
    let mut change = IntegrationChange {
        enabled: fields.change("enabled", flag),
        scope: fields.change("scope", choice(EventScope::parse, "attributed, all")),
        event_mapping: read_mapping(fields, network),
        ..IntegrationChange::default()
    };
    let mut settings = fields.section("settings");
    for spec in settings_of(network) {
        let read = |node: &Node| read_setting(spec.kind, node);
        change
            .settings
            .insert(spec.name, settings.change(spec.name, read));
    }
    settings.finish();
    let mut credentials = fields.section("credentials");
    for spec in credentials_of(network) {
        let read = text_as(|text| {
            let hint = credential(text)?;
            Ok(Credential {
                sealed: sealer.seal(network.as_str(), spec.name, text),
                hint,
            })
        });
        change
            .credentials
            .insert(spec.name, credentials.change(spec.name, read));
    }
    credentials.finish();
    change
}

fn read_setting(kind: SettingKind, node: &Node) -> Result<SettingValue, Problem> {
    match kind {
        SettingKind::Flag => flag(node).map(SettingValue::Flag),
        SettingKind::Number(..) => kind.number(integer(node)?),
        SettingKind::DigitsMap => kind.map(text_map(node)?),
        SettingKind::Digits
        | SettingKind::AccountId
        | SettingKind::Code
        | SettingKind::ApiVersion
        | SettingKind::Token
        | SettingKind::Choice(_) => text_as(|text| kind.text(text))(node),
    }
}

fn read_mapping(fields: &mut Fields<'_>, network: Network) -> Change<Vec<MappingRow>> {
    let is_null = fields.is_null("eventMapping");
    match fields.items("eventMapping", read_row) {
        Given::Absent if is_null => Change::Reset,
        Given::Absent | Given::Faulty => Change::Keep,
        Given::Value(mut rows) => {
            fields.check(|faults| check_mapping(network, &mut rows, faults));
            // A row that is missing here was noted as a fault, and then nothing of this is used.
            Change::Set(rows.into_iter().flatten().collect())
        }
    }
}

fn read_row(node: &Node, path: String, faults: &mut Faults) -> Option<MappingRow> {
    if !matches!(node, Node::Object(_)) {
        faults.add(
            path,
            wrong_type("an object with event, networkEvent and enabled"),
        );
        return None;
    }
    let mut fields = Fields::of_item(node, path, faults);
    let event = fields.required("event", text_as(event_name));
    let network_event = fields.required("networkEvent", text_as(network_event_name));
    let enabled = match fields.given("enabled", flag) {
        Given::Absent => Some(true),
        Given::Faulty => None,
        Given::Value(enabled) => Some(enabled),
    };
    fields.finish();
    Some(MappingRow {
        event: event?,
        network_event: network_event?,
        enabled: enabled?,
    })
}

/// What can be changed of an integration. Absent: unchanged; null: back to the default.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", title = "IntegrationFields", example = json!({
    "enabled": true,
    "settings": {"pixelId": "1234567890"},
    "credentials": {"accessToken": "EAABsbCS1234567890"},
    "eventMapping": [
        {"event": "purchase", "networkEvent": "Purchase", "enabled": true},
        {"event": "boss_defeated", "networkEvent": "BossDefeated", "enabled": true}
    ]
}))]
#[expect(
    dead_code,
    reason = "describes what read_change reads; a test compares the two"
)]
pub(super) struct IntegrationFields {
    enabled: Option<bool>,
    #[schema(inline)]
    scope: Option<crate::choices::ScopeChoice>,
    /// Plain settings by name; which there are depends on the network. Those not mentioned stay.
    #[schema(value_type = Option<Object>)]
    settings: Option<BTreeMap<String, String>>,
    /// Secrets by name; which there are depends on the network. Write-only; those not mentioned stay.
    #[schema(write_only)]
    credentials: Option<BTreeMap<String, Option<String>>>,
    /// Replaced whole; null brings the default map back.
    #[schema(max_items = 200)]
    event_mapping: Option<Vec<MappingRowFields>>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see IntegrationFields")]
struct MappingRowFields {
    /// The event's name in the service. Standard names ignore case; `renewal` and `refund` are never forwarded.
    #[schema(min_length = 1, max_length = 255)]
    event: String,
    /// The event's name at the network. `network_d` takes its standard types and lower-case custom names.
    #[schema(min_length = 1, max_length = 100)]
    network_event: String,
    enabled: Option<bool>,
}
