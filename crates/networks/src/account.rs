//! An integration's settings and decrypted credentials, in the form that the adapters need.

use crate::secret::Secret;
use crate::text::percent_encoded;
use crate::{network_a, network_b, network_c, network_d};
use std::collections::BTreeMap;
use tributary_domain::integration::{
    Integration, Network, SettingDefault, SettingValue, settings_of,
};

/// Everything that one integration's requests need.
#[derive(Debug, Clone)]
pub enum Account {
    /// Meta.
    A(network_a::MetaAccount),
    /// Google Ads.
    B(network_b::GoogleAdsAccount),
    /// TikTok.
    C(network_c::TikTokAccount),
    /// OpenAI Ads.
    D(network_d::OpenAiAccount),
}

/// The integration cannot be used with its current settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableIntegration {
    /// What the operator should do.
    pub message: String,
}

impl UnusableIntegration {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl Account {
    /// Reads an integration. `credentials` are its decrypted credentials by name.
    pub fn read(
        integration: &Integration,
        credentials: &BTreeMap<String, Secret>,
    ) -> Result<Self, UnusableIntegration> {
        let settings = AccountSettings {
            integration,
            credentials,
        };
        Ok(match integration.network {
            Network::A => Self::A(network_a::MetaAccount::read(&settings)?),
            Network::B => Self::B(network_b::GoogleAdsAccount::read(&settings)?),
            Network::C => Self::C(network_c::TikTokAccount::read(&settings)?),
            Network::D => Self::D(network_d::OpenAiAccount::read(&settings)?),
        })
    }

    /// Returns the account's network.
    pub const fn network(&self) -> Network {
        match self {
            Self::A(_) => Network::A,
            Self::B(_) => Network::B,
            Self::C(_) => Network::C,
            Self::D(_) => Network::D,
        }
    }

    /// Returns whether the account is in test mode. `network_b` and `network_d` only validate test
    /// requests.
    pub const fn is_test_mode(&self) -> bool {
        match self {
            Self::A(account) => account.test_code.is_some(),
            Self::B(account) => account.validate_only,
            Self::C(account) => account.test_code.is_some(),
            Self::D(account) => account.validate_only,
        }
    }

    /// Returns whether the network only validates this account's requests.
    pub const fn validates_only(&self) -> bool {
        matches!(self, Self::B(_) | Self::D(_)) && self.is_test_mode()
    }

    /// Same as [`Self::read`], but in test mode regardless of the integration's setting.
    pub fn read_for_test(
        integration: &Integration,
        credentials: &BTreeMap<String, Secret>,
    ) -> Result<Self, UnusableIntegration> {
        let mut integration = integration.clone();
        let on = SettingValue::Flag(true);
        integration.settings.insert("testMode".to_owned(), on);
        Self::read(&integration, credentials)
    }

    /// Returns the secrets, which must not appear in stored or displayed text.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let secrets: Vec<&Secret> = match self {
            Self::A(account) => account.secrets().collect(),
            Self::B(account) => account.secrets().collect(),
            Self::C(account) => vec![&account.access_token],
            Self::D(account) => vec![&account.api_key],
        };
        secrets.into_iter().map(Secret::expose)
    }

    /// Removes the account's secrets from a text, plain or percent-encoded.
    pub fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.secrets().filter(|secret| !secret.is_empty()) {
            for written in [secret.to_owned(), percent_encoded(secret)] {
                text = text.replace(&written, "***");
            }
        }
        text
    }

    /// Returns the cloud project whose quota applies. Only `network_b` counts requests per project.
    pub fn quota_project(&self) -> Option<&str> {
        match self {
            Self::B(account) => Some(account.project()),
            Self::A(_) | Self::C(_) | Self::D(_) => None,
        }
    }
}

/// An integration's settings, with defaults.
pub(crate) struct AccountSettings<'a> {
    integration: &'a Integration,
    credentials: &'a BTreeMap<String, Secret>,
}

impl AccountSettings<'_> {
    fn default(&self, name: &str) -> SettingDefault {
        let mut specs = settings_of(self.integration.network);
        specs
            .find(|spec| spec.name == name)
            .map_or(SettingDefault::None, |spec| spec.default)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match (self.integration.settings.get(name), self.default(name)) {
            (Some(SettingValue::Text(text)), _) => Some(text.clone()),
            (_, SettingDefault::Text(text)) => Some(text.to_owned()),
            _ => None,
        }
    }

    pub(crate) fn required(&self, name: &str) -> Result<String, UnusableIntegration> {
        self.text(name).ok_or_else(|| missing("settings", name))
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        match (self.integration.settings.get(name), self.default(name)) {
            (Some(SettingValue::Flag(flag)), _) => *flag,
            (_, SettingDefault::Flag(flag)) => flag,
            _ => false,
        }
    }

    pub(crate) fn map(&self, name: &str) -> BTreeMap<String, String> {
        match self.integration.settings.get(name) {
            Some(SettingValue::Map(map)) => map.clone(),
            _ => BTreeMap::new(),
        }
    }

    pub(crate) fn secret(&self, name: &str) -> Option<Secret> {
        self.credentials.get(name).cloned()
    }

    pub(crate) fn required_secret(&self, name: &str) -> Result<Secret, UnusableIntegration> {
        self.secret(name)
            .ok_or_else(|| missing("credentials", name))
    }

    /// Returns the code that marks test events. Test mode requires a code, because the network
    /// would treat an event without a code like any other event. `network_a` counts test events
    /// even if they have a code.
    pub(crate) fn test_code(&self) -> Result<Option<String>, UnusableIntegration> {
        if !self.flag("testMode") {
            return Ok(None);
        }
        let code = self.text("testEventCode").ok_or_else(|| {
            UnusableIntegration::new(
                "testMode requires settings.testEventCode; copy it from the network's console.",
            )
        })?;
        Ok(Some(code))
    }
}

fn missing(section: &str, name: &str) -> UnusableIntegration {
    UnusableIntegration::new(format!("Missing: {section}.{name}."))
}
