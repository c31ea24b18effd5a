//! The writable fields of a cost source. Settings and credentials depend on the network.

use crate::integration::Credentials;
use crate::{Fields, any_object, any_text_object, flag, text_as};
use tributary_domain::cost_source::{CostSourceDraft, cost_credentials_of, cost_settings_of};
use tributary_domain::integration::{Network, SettingSpec, SettingValue, check_credential};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::Problem;
use tributary_domain::vocabulary::field_input::FieldInput;

/// Prefix of account ids in Meta's URLs, which people paste.
const META_PREFIX: &str = "act_";

/// Reads a cost source.
pub fn read_draft(fields: &mut Fields<'_>, network: Network) -> (CostSourceDraft, Credentials) {
    let enabled = flag().about("Whether costs are imported. Default: true.");
    let enabled = fields.input("enabled", enabled);
    let mut draft = CostSourceDraft {
        enabled: !matches!(enabled, FieldInput::Value(false)),
        ..CostSourceDraft::default()
    };
    let open = any_object().about(
        "Settings by name. `accountId` is the ad account; further names depend on the network.",
    );
    let mut settings = fields.section_as("settings", open);
    for spec in cost_settings_of(network) {
        let read = settings.change(spec.name, text_as(|text| setting(spec, text)));
        if let Change::Set(value) = read {
            draft.settings.insert(spec.name, value);
        }
    }
    settings.finish();
    let open = any_text_object().write_only().about(
        "Credentials by name, write-only. Names depend on the network. Omitted ones stay unchanged.",
    );
    let mut credentials = Credentials::new();
    let mut section = fields.section_as("credentials", open);
    for spec in cost_credentials_of(network) {
        let read = text_as(|text| Ok((text.to_owned(), check_credential(text)?)));
        credentials.push((spec.name, section.change(spec.name, read.write_only())));
    }
    section.finish();
    (draft, credentials)
}

fn setting(spec: &SettingSpec, text: &str) -> Result<String, Problem> {
    let text = text.trim();
    let text = match spec.name {
        "accountId" => text.strip_prefix(META_PREFIX).unwrap_or(text),
        _ => text,
    };
    match spec.kind.text(text)? {
        SettingValue::Text(text) => Ok(text),
        // Every setting of a cost source is text.
        _ => Ok(String::new()),
    }
}
