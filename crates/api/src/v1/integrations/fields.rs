//! The fields of an integration that can be changed. Settings and credentials depend on the network.

use crate::fields::{
    Fields, Value, any_object, any_texts, choice, described_body, flag, integer, objects, text_as,
    text_map, value_as,
};
use tributary_domain::integration::{
    EVENT_MAPPING_ROWS_MAX, EventScope, IntegrationChange, MappingRow, NETWORK_EVENT_CHARS_MAX,
    Network, SettingKind, SettingValue, check_mapping, credential, credentials_of,
    network_event_name, settings_of,
};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::Problem;
use tributary_domain::vocabulary::given::Given;
use tributary_domain::vocabulary::text::{EVENT_NAME_CHARS_MAX, event_name};

described_body! {
    /// What can be changed of an integration. Absent: unchanged; null: back to the default.
    pub(super) IntegrationFields("IntegrationFields") = |fields| read_change(fields, Network::A)
}

/// Credentials that a body sets, with their hints, not sealed yet.
type Credentials = Vec<(&'static str, Change<(String, Option<String>)>)>;

/// Reads a change of an integration.
pub(super) fn read_change(
    fields: &mut Fields<'_>,
    network: Network,
) -> (IntegrationChange, Credentials) {
    let scope = choice(EventScope::ALL, EventScope::as_str);
    let mut change = IntegrationChange {
        enabled: fields.change("enabled", flag()),
        scope: fields.change(
            "scope",
            scope.about(
                "Events that are attributed to the network, or every mapped event of the app.",
            ),
        ),
        event_mapping: read_mapping(fields, network),
        ..IntegrationChange::default()
    };
    let open = any_object().about(
        "Plain settings by name; which there are depends on the network. Those not mentioned stay.",
    );
    let mut settings = fields.section_as("settings", open);
    for spec in settings_of(network) {
        let read = value_as(|value| read_setting(spec.kind, value));
        change
            .settings
            .insert(spec.name, settings.change(spec.name, read));
    }
    settings.finish();
    let open = any_texts().write_only().about(
        "Secrets by name; which there are depends on the network. Write-only; those not mentioned stay.",
    );
    let mut credentials = Credentials::new();
    let mut section = fields.section_as("credentials", open);
    for spec in credentials_of(network) {
        let read = text_as(|text| Ok((text.to_owned(), credential(text)?)));
        credentials.push((spec.name, section.change(spec.name, read)));
    }
    section.finish();
    (change, credentials)
}

fn read_setting(kind: SettingKind, value: Value<'_>) -> Result<SettingValue, Problem> {
    match kind {
        SettingKind::Flag => flag().of(value).map(SettingValue::Flag),
        SettingKind::Number(..) => kind.number(integer().of(value)?),
        SettingKind::DigitsMap => kind.map(text_map().of(value)?),
        SettingKind::Digits
        | SettingKind::AccountId
        | SettingKind::Code
        | SettingKind::ApiVersion
        | SettingKind::Token
        | SettingKind::Choice(_) => text_as(|text| kind.text(text)).of(value),
    }
}

fn read_mapping(fields: &mut Fields<'_>, network: Network) -> Change<Vec<MappingRow>> {
    let is_null = fields.is_null("eventMapping");
    let list = objects()
        .size(0..=EVENT_MAPPING_ROWS_MAX)
        .each("an object with event, networkEvent and enabled")
        .about("Replaced whole; null brings the default map back.");
    match fields.items("eventMapping", list, read_row) {
        Given::Absent if is_null => Change::Reset,
        Given::Absent | Given::Faulty => Change::Keep,
        Given::Value(rows) => {
            let rows = rows.into_iter().map(|row| row.value().flatten());
            let mut rows: Vec<_> = rows.collect();
            fields.check(|faults| check_mapping(network, &mut rows, faults));
            // A row that is missing here was noted as a fault, and then nothing of this is used.
            Change::Set(rows.into_iter().flatten().collect())
        }
    }
}

fn read_row(fields: &mut Fields<'_>) -> Option<MappingRow> {
    let event = text_as(event_name).size(1..=EVENT_NAME_CHARS_MAX).about(
        "The event's name in the service. Standard names ignore case; `renewal` and `refund` are never forwarded.",
    );
    let event = fields.required("event", event);
    let network_event = text_as(network_event_name).size(1..=NETWORK_EVENT_CHARS_MAX).about(
        "The event's name at the network. `network_d` takes its standard types and lower-case custom names.",
    );
    let network_event = fields.required("networkEvent", network_event);
    let enabled = match fields.given("enabled", flag()) {
        Given::Absent => Some(true),
        Given::Faulty => None,
        Given::Value(enabled) => Some(enabled),
    };
    Some(MappingRow {
        event: event?,
        network_event: network_event?,
        enabled: enabled?,
    })
}
