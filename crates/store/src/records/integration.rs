//! Rows of integrations.

use super::columns::row;
use super::{from_json, to_json};
use crate::StoreError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tributary_domain::integration::{
    Credential, EventScope, Integration, MappingRow, Network, SettingValue,
};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::revision::Revision;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `integrations`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct IntegrationRow {
        pub app_id: [u8; 16],
        pub network: String,
        pub enabled: bool,
        pub scope: String,
        pub settings: String,
        pub credentials: String,
        pub event_mapping: Option<String>,
        pub enabled_at: Option<i64>,
        pub mapped_at: Option<i64>,
        pub updated_at: i64,
        pub revision: i64,
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredSetting {
    Flag(bool),
    Number(i64),
    Text(String),
    Map(BTreeMap<String, String>),
}

#[derive(Serialize, Deserialize)]
struct StoredCredential {
    sealed: String,
    hint: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct StoredMappingRow {
    event: String,
    network_event: String,
    enabled: bool,
}

/// Writes credentials, which are encrypted.
pub(super) fn credentials_to_json(credentials: &BTreeMap<String, Credential>) -> String {
    let credential = |value: &Credential| StoredCredential {
        sealed: BASE64.encode(value.sealed.as_bytes()),
        hint: value.hint.clone(),
    };
    let credentials: BTreeMap<&String, StoredCredential> = credentials
        .iter()
        .map(|(name, value)| (name, credential(value)))
        .collect();
    to_json(&credentials)
}

/// Reads credentials, which are encrypted.
pub(super) fn credentials_from_json(
    table: &'static str,
    app: AppId,
    text: &str,
) -> Result<BTreeMap<String, Credential>, StoreError> {
    let stored: BTreeMap<String, StoredCredential> = from_json(table, "credentials", app, text)?;
    let credential = |(name, stored): (String, StoredCredential)| {
        let bytes = BASE64
            .decode(stored.sealed)
            .map_err(|_| StoreError::corrupt(table, "credentials", app))?;
        let credential = Credential {
            sealed: SealedSecret::from_bytes(bytes),
            hint: stored.hint,
        };
        Ok((name, credential))
    };
    stored.into_iter().map(credential).collect()
}

impl IntegrationRow {
    /// Converts an integration to columns. Only integrations that were changed at least once are
    /// stored.
    pub fn write(integration: &Integration) -> Self {
        let setting = |value: &SettingValue| match value.clone() {
            SettingValue::Text(text) => StoredSetting::Text(text),
            SettingValue::Flag(flag) => StoredSetting::Flag(flag),
            SettingValue::Number(number) => StoredSetting::Number(number),
            SettingValue::Map(map) => StoredSetting::Map(map),
        };
        let settings: BTreeMap<&String, StoredSetting> = integration
            .settings
            .iter()
            .map(|(name, value)| (name, setting(value)))
            .collect();
        let row = |row: &MappingRow| StoredMappingRow {
            event: row.event.clone(),
            network_event: row.network_event.clone(),
            enabled: row.enabled,
        };
        let mapping = |rows: &Vec<MappingRow>| to_json(&rows.iter().map(row).collect::<Vec<_>>());
        Self {
            app_id: *integration.app.as_bytes(),
            network: integration.network.as_str().to_owned(),
            enabled: integration.enabled,
            scope: integration.scope.as_str().to_owned(),
            settings: to_json(&settings),
            credentials: credentials_to_json(&integration.credentials),
            event_mapping: integration.event_mapping.as_ref().map(mapping),
            enabled_at: integration.enabled_at.map(Timestamp::as_millis),
            mapped_at: integration.mapped_at.map(Timestamp::as_millis),
            updated_at: integration.updated_at.map_or(0, Timestamp::as_millis),
            revision: integration.revision.number(),
        }
    }

    /// Reads the integration.
    pub fn read(self) -> Result<Integration, StoreError> {
        const TABLE: &str = "integrations";
        let app = AppId::from_bytes(self.app_id);
        let corrupt = |column| StoreError::corrupt(TABLE, column, app);
        let settings: BTreeMap<String, StoredSetting> =
            from_json(TABLE, "settings", app, &self.settings)?;
        let setting = |stored| match stored {
            StoredSetting::Text(text) => SettingValue::Text(text),
            StoredSetting::Flag(flag) => SettingValue::Flag(flag),
            StoredSetting::Number(number) => SettingValue::Number(number),
            StoredSetting::Map(map) => SettingValue::Map(map),
        };
        let mapping = |text: String| {
            let rows: Vec<StoredMappingRow> = from_json(TABLE, "event_mapping", app, &text)?;
            let row = |row: StoredMappingRow| MappingRow {
                event: row.event,
                network_event: row.network_event,
                enabled: row.enabled,
            };
            Ok::<_, StoreError>(rows.into_iter().map(row).collect())
        };
        Ok(Integration {
            app,
            network: Network::parse(&self.network).ok_or_else(|| corrupt("network"))?,
            enabled: self.enabled,
            scope: EventScope::parse(&self.scope).ok_or_else(|| corrupt("scope"))?,
            settings: settings
                .into_iter()
                .map(|(name, value)| (name, setting(value)))
                .collect(),
            credentials: credentials_from_json(TABLE, app, &self.credentials)?,
            event_mapping: self.event_mapping.map(mapping).transpose()?,
            enabled_at: self.enabled_at.map(Timestamp::from_millis),
            mapped_at: self.mapped_at.map(Timestamp::from_millis),
            updated_at: Some(Timestamp::from_millis(self.updated_at)),
            revision: Revision::from_number(self.revision),
        })
    }

    /// Returns the four integrations of an app, with default settings for those that are not
    /// stored.
    pub fn read_all(app: AppId, rows: Vec<Self>) -> Result<Vec<Integration>, StoreError> {
        let stored = rows
            .into_iter()
            .map(Self::read)
            .collect::<Result<Vec<_>, _>>()?;
        let of = |network| stored.iter().find(|one| one.network == network).cloned();
        Ok(Network::ALL
            .into_iter()
            .map(|network| of(network).unwrap_or_else(|| Integration::new(app, network)))
            .collect())
    }
}
