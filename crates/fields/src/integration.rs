//! The writable fields of an integration. Settings and credentials depend on the network.

use crate::{
    Fields, any_object, any_text_object, choice, flag, integer, objects, text_as, text_map,
};
use tributary_domain::integration::{
    EVENT_MAPPING_ROWS_MAX, EventScope, IntegrationChange, MappingRow, NETWORK_EVENT_CHARS_MAX,
    Network, SettingKind, SettingSpec, SettingValue, check_credential, check_mapping,
    credentials_of, network_event_name, settings_of,
};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::field_input::FieldInput;
use tributary_domain::vocabulary::text::{EVENT_NAME_CHARS_MAX, parse_event_name};

/// Credentials set by a body or a form, with their hints, not encrypted yet.
pub type Credentials = Vec<(&'static str, Change<(String, Option<String>)>)>;

/// Reads a change to an integration.
pub fn read_change(fields: &mut Fields<'_>, network: Network) -> (IntegrationChange, Credentials) {
    let scope = choice(EventScope::ALL, EventScope::as_str);
    let mut change = IntegrationChange {
        enabled: fields.change("enabled", flag()),
        scope: fields.change(
            "scope",
            scope.about(
                "Forward only events attributed to the network, or every mapped event of the app.",
            ),
        ),
        event_mapping: read_mapping(fields, network),
        ..IntegrationChange::default()
    };
    let open = any_object().about(
        "Settings by name. Available names depend on the network. Omitted ones stay unchanged.",
    );
    let mut settings = fields.section_as("settings", open);
    for spec in settings_of(network) {
        let value = read_setting(&mut settings, spec);
        change.settings.insert(spec.name, value);
    }
    settings.finish();
    let open = any_text_object().write_only().about(
        "Credentials by name, write-only. Names depend on the network. Omitted ones stay unchanged.",
    );
    let mut credentials = Credentials::new();
    let mut section = fields.section_as("credentials", open);
    for spec in credentials_of(network) {
        let read = text_as(|text| Ok((text.to_owned(), check_credential(text)?)));
        credentials.push((spec.name, section.change(spec.name, read.write_only())));
    }
    section.finish();
    (change, credentials)
}

fn read_setting(settings: &mut Fields<'_>, spec: &SettingSpec) -> Change<SettingValue> {
    let (name, kind) = (spec.name, spec.kind);
    match kind {
        SettingKind::Flag => settings.change(name, flag()).map(SettingValue::Flag),
        SettingKind::Number(..) => {
            let number = integer().expecting(kind.expectation());
            settings.change(name, number.then(|number| kind.number(number)))
        }
        SettingKind::DigitsMap => settings.change(name, text_map().then(|map| kind.map(map))),
        SettingKind::Digits
        | SettingKind::AccountId
        | SettingKind::Code
        | SettingKind::ApiVersion
        | SettingKind::MajorVersion
        | SettingKind::Token
        | SettingKind::Choice(_) => settings.change(name, text_as(|text| kind.text(text))),
    }
}

fn read_mapping(fields: &mut Fields<'_>, network: Network) -> Change<Vec<MappingRow>> {
    let is_null = fields.is_null("eventMapping");
    let list = objects()
        .size(0..=EVENT_MAPPING_ROWS_MAX)
        .expecting_each("an object with event, networkEvent and enabled")
        .about("Replaces the stored mapping; null restores the default mapping.");
    match fields.items("eventMapping", list, read_row) {
        FieldInput::Absent if is_null => Change::Reset,
        FieldInput::Absent | FieldInput::Invalid => Change::Keep,
        FieldInput::Value(rows) => {
            let rows = rows.into_iter().map(|row| row.value().flatten());
            let mut rows: Vec<_> = rows.collect();
            fields.check(|faults| check_mapping(network, &mut rows, faults));
            // A row that could not be read has a fault, so the change is not applied.
            Change::Set(rows.into_iter().flatten().collect())
        }
    }
}

fn read_row(fields: &mut Fields<'_>) -> Option<MappingRow> {
    let event = text_as(parse_event_name)
        .size(1..=EVENT_NAME_CHARS_MAX)
        .about(
            "Event name in Tributary. Standard names ignore case; `renewal` and `refund` are never \
         forwarded.",
        );
    let event = fields.required("event", event);
    let network_event = text_as(network_event_name)
        .size(1..=NETWORK_EVENT_CHARS_MAX)
        .about(
            "The network's name for the event. OpenAI Ads (`network_d`) accepts its standard types \
         and lower-case custom names.",
        );
    let network_event = fields.required("networkEvent", network_event);
    let enabled = match fields.input("enabled", flag()) {
        FieldInput::Absent => Some(true),
        FieldInput::Invalid => None,
        FieldInput::Value(enabled) => Some(enabled),
    };
    Some(MappingRow {
        event: event?,
        network_event: network_event?,
        enabled: enabled?,
    })
}
