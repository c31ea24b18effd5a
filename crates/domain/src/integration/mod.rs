//! Integrations: one per app and ad network, with its settings, credentials and event mapping.

mod change;
mod mapping;
mod settings;

pub use change::IntegrationChange;
pub use mapping::{
    EVENT_MAPPING_ROWS_MAX, MappingRow, check_mapping, default_mapping, network_event_name,
};
pub use settings::{
    CONVERSION_ACTIONS_MAX, CREDENTIAL_CHARS_MAX, CredentialSpec, SettingDefault, SettingKind,
    SettingSpec, SettingValue, credential, credentials_of, settings_of,
};

use crate::keyring::seal::Sealed;
use crate::vocabulary::id::AppId;
use crate::vocabulary::revision::Revision;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

/// An ad network, by its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Network {
    /// Social.
    A,
    /// Search and display.
    B,
    /// Short video.
    C,
    /// AI assistant.
    D,
}

impl Network {
    /// The four.
    pub const ALL: [Self; 4] = [Self::A, Self::B, Self::C, Self::D];

    /// As stored and answered.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "network_a",
            Self::B => "network_b",
            Self::C => "network_c",
            Self::D => "network_d",
        }
    }

    /// Reads what [`Self::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|network| network.as_str() == text)
    }

    /// What sort of network it is.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::A => "social",
            Self::B => "search",
            Self::C => "short_video",
            Self::D => "ai_assistant",
        }
    }
}

/// Which events a network is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventScope {
    /// Those that are attributed to it.
    Attributed,
    /// Every mapped event of the app.
    All,
}

impl EventScope {
    /// Both.
    pub const ALL: &'static [Self] = &[Self::Attributed, Self::All];

    /// As stored and answered.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attributed => "attributed",
            Self::All => "all",
        }
    }

    /// Reads what [`Self::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|scope| scope.as_str() == text)
    }
}

/// A credential as it is kept: sealed, with what people may see of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The encrypted value.
    pub sealed: Sealed,
    /// Its last characters, where it is long enough to show them.
    pub hint: Option<String>,
}

/// An app's connection to one network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integration {
    /// Of which app.
    pub app: AppId,
    /// To which network.
    pub network: Network,
    /// Whether events are forwarded.
    pub enabled: bool,
    /// Which events.
    pub scope: EventScope,
    /// What was set; names that are not here have their defaults.
    pub settings: BTreeMap<String, SettingValue>,
    /// What was set.
    pub credentials: BTreeMap<String, Credential>,
    /// Which event becomes what; `None`: the default map.
    pub event_mapping: Option<Vec<MappingRow>>,
    /// When it was last changed; never: not in the store.
    pub updated_at: Option<Timestamp>,
    /// How often it was changed; 0: never.
    pub revision: Revision,
}

/// How an integration does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Something that it cannot do without is missing.
    NotConfigured,
    /// Complete and switched on.
    Active,
    /// Complete and switched off.
    Paused,
}

impl Status {
    /// As answered.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotConfigured => "not_configured",
            Self::Active => "active",
            Self::Paused => "paused",
        }
    }
}

impl Integration {
    /// As it is before anybody touched it.
    pub const fn untouched(app: AppId, network: Network) -> Self {
        Self {
            app,
            network,
            enabled: false,
            scope: EventScope::Attributed,
            settings: BTreeMap::new(),
            credentials: BTreeMap::new(),
            event_mapping: None,
            updated_at: None,
            revision: Revision::from_number(0),
        }
    }

    /// The tag that `If-Match` names.
    pub fn tag(&self) -> String {
        self.revision.number().to_string()
    }

    /// The mapping in force.
    pub fn mapping(&self) -> Vec<MappingRow> {
        self.event_mapping
            .clone()
            .unwrap_or_else(|| default_mapping(self.network))
    }

    /// How it does, and why.
    pub fn status(&self) -> (Status, Option<String>) {
        let missing = settings::missing(self);
        if !missing.is_empty() {
            let missing = missing.join(", ");
            let instead = match self.network {
                Network::B => {
                    " A serviceAccountKey stands for clientId, clientSecret and refreshToken."
                }
                Network::A | Network::C | Network::D => "",
            };
            let reason = format!("Missing: {missing}.{instead}");
            return (Status::NotConfigured, Some(reason));
        }
        if self.enabled {
            (Status::Active, None)
        } else {
            let reason = "Switched off; set enabled to true to forward events.";
            (Status::Paused, Some(reason.to_owned()))
        }
    }
}
