//! Changes to an integration.

use super::{Credential, EventScope, Integration, MappingRow, SettingValue};
use crate::app::AuditedChange;
use crate::audit::{Changes, FieldChange};
use crate::refusal::Refusal;
use crate::vocabulary::change::Change;
use crate::vocabulary::revision::Precondition;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

/// The setting that maps events to conversion actions at Google Ads (`network_b`).
const CONVERSION_ACTIONS: &str = "conversionActions";

/// A change to an integration. Settings and credentials that the change does not mention stay. The
/// event mapping is replaced as a whole.
#[derive(Debug, Clone, Default)]
#[expect(
    missing_docs,
    reason = "each field is the field of Integration that it changes"
)]
pub struct IntegrationChange {
    pub enabled: Change<bool>,
    pub scope: Change<EventScope>,
    pub settings: BTreeMap<&'static str, Change<SettingValue>>,
    pub credentials: BTreeMap<&'static str, Change<Credential>>,
    pub event_mapping: Change<Vec<MappingRow>>,
}

impl Integration {
    /// Rejects a change that is based on another version.
    pub fn admit(&self, precondition: &Precondition) -> Result<(), Refusal> {
        if precondition.admits(&self.tag()) {
            Ok(())
        } else {
            Err(Refusal::VersionConflict)
        }
    }

    /// Applies a change and returns the new integration with its audit entries.
    pub fn changed(
        &self,
        change: IntegrationChange,
        precondition: &Precondition,
        now: Timestamp,
    ) -> Result<AuditedChange<Self>, Refusal> {
        self.admit(precondition)?;
        let mut after = self.clone();
        let mut changes = Changes::new();
        let actions_before = self.settings.get(CONVERSION_ACTIONS).cloned();
        change.enabled.apply(&mut after.enabled, false);
        changes.compare_values("enabled", self.enabled, after.enabled);
        change.scope.apply(&mut after.scope, EventScope::Attributed);
        changes.compare_values("scope", self.scope.as_str(), after.scope.as_str());
        for (name, change) in change.settings {
            let before = after.settings.get(name).map(display_value);
            apply(&mut after.settings, name, change);
            changes.compare(name, before, after.settings.get(name).map(display_value));
        }
        for (name, change) in change.credentials {
            let before = after
                .credentials
                .contains_key(name)
                .then(|| "set".to_owned());
            match change {
                Change::Keep => continue,
                Change::Reset => changes.compare(name, before, None),
                Change::Set(_) => changes.compare(name, before, Some("new value".to_owned())),
            }
            apply(&mut after.credentials, name, change);
        }
        // Explicit rows are not equivalent to the default mapping, even if they look the same. If
        // the saved rows equal the displayed default mapping, the default stays in use.
        let is_shown =
            matches!(&change.event_mapping, Change::Set(rows) if *rows == self.mapping());
        if !is_shown {
            let mapping = &mut after.event_mapping;
            change.event_mapping.apply_optional(mapping);
        }
        let rows = |integration: &Self| display_rows(&integration.mapping());
        changes.compare("eventMapping", Some(rows(self)), Some(rows(&after)));
        let changes: Vec<FieldChange> = changes.into_vec();
        let mapping_changed = self.mapping() != after.mapping()
            || self.scope != after.scope
            || actions_before.as_ref() != after.settings.get(CONVERSION_ACTIONS);
        if mapping_changed {
            after.mapped_at = Some(now);
        }
        if after.is_active() && !self.is_active() {
            after.enabled_at = Some(now);
        }
        if !changes.is_empty() {
            after.revision = self.revision.next();
            after.updated_at = Some(now);
        }
        Ok(AuditedChange { after, changes })
    }
}

fn apply<T>(map: &mut BTreeMap<String, T>, name: &str, change: Change<T>) {
    match change {
        Change::Keep => {}
        Change::Reset => {
            map.remove(name);
        }
        Change::Set(value) => {
            map.insert(name.to_owned(), value);
        }
    }
}

fn display_value(value: &SettingValue) -> String {
    match value {
        SettingValue::Text(text) => text.clone(),
        SettingValue::Flag(flag) => flag.to_string(),
        SettingValue::Number(number) => number.to_string(),
        SettingValue::Map(map) => {
            let pairs: Vec<String> = map.iter().map(|(key, id)| format!("{key}={id}")).collect();
            pairs.join(", ")
        }
    }
}

fn display_rows(rows: &[MappingRow]) -> String {
    let shown = |row: &MappingRow| {
        let off = if row.enabled { "" } else { " (off)" };
        format!("{} → {}{off}", row.event, row.network_event)
    };
    rows.iter().map(shown).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integration::Network;
    use crate::keyring::seal::SealedSecret;
    use crate::vocabulary::id::AppId;

    const NOW: Timestamp = Timestamp::from_millis(5);

    fn new_integration() -> Integration {
        Integration::new(AppId::from_bytes([1; 16]), Network::A)
    }

    fn set_token() -> IntegrationChange {
        let credential = Credential {
            sealed: SealedSecret::from_bytes(b"hush".to_vec()),
            hint: None,
        };
        IntegrationChange {
            credentials: BTreeMap::from([("accessToken", Change::Set(credential))]),
            ..IntegrationChange::default()
        }
    }

    #[test]
    fn settings_that_are_not_mentioned_stay() {
        let set = |name, value: &str| IntegrationChange {
            settings: BTreeMap::from([(name, Change::Set(SettingValue::Text(value.to_owned())))]),
            ..IntegrationChange::default()
        };
        let one = new_integration()
            .changed(set("pixelId", "1"), &Precondition::None, NOW)
            .unwrap()
            .after;
        let two = one
            .changed(set("testEventCode", "T"), &Precondition::None, NOW)
            .unwrap()
            .after;
        assert_eq!(two.settings.len(), 2);
        assert_eq!(two.tag(), "2");
    }

    #[test]
    fn a_new_credential_is_audited_and_never_shown() {
        let changed = new_integration()
            .changed(set_token(), &Precondition::None, NOW)
            .unwrap();
        assert_eq!(changed.changes.len(), 1);
        assert!(!format!("{changed:?}").contains("hush"));
        let again = changed
            .after
            .changed(set_token(), &Precondition::None, NOW)
            .unwrap();
        assert_eq!(again.changes.len(), 1, "a credential set again is a change");
    }

    #[test]
    fn null_restores_the_default_mapping() {
        let mapping = vec![MappingRow {
            event: "boss_defeated".to_owned(),
            network_event: "Boss".to_owned(),
            enabled: true,
        }];
        let replace = IntegrationChange {
            event_mapping: Change::Set(mapping.clone()),
            ..IntegrationChange::default()
        };
        let replaced = new_integration()
            .changed(replace, &Precondition::None, NOW)
            .unwrap()
            .after;
        assert_eq!(replaced.mapping(), mapping);
        let reset = IntegrationChange {
            event_mapping: Change::Reset,
            ..IntegrationChange::default()
        };
        let reset = replaced
            .changed(reset, &Precondition::None, NOW)
            .unwrap()
            .after;
        assert_eq!(
            reset.mapping(),
            crate::integration::default_mapping(Network::A)
        );
    }

    #[test]
    fn saving_the_displayed_default_mapping_changes_nothing() {
        let shown = IntegrationChange {
            event_mapping: Change::Set(new_integration().mapping()),
            ..IntegrationChange::default()
        };
        let saved = new_integration()
            .changed(shown, &Precondition::None, NOW)
            .unwrap();
        assert_eq!(saved.after, new_integration());
    }

    #[test]
    fn a_new_integration_has_version_zero() {
        let precondition = Precondition::AnyOf(vec!["0".to_owned()]);
        assert!(
            new_integration()
                .changed(set_token(), &precondition, NOW)
                .is_ok()
        );
        let old = Precondition::AnyOf(vec!["3".to_owned()]);
        let refused = new_integration().changed(set_token(), &old, NOW);
        assert_eq!(refused.map(|_| ()), Err(Refusal::VersionConflict));
    }
}
