//! Integrations: one per app and ad network, with its settings, credentials and event mapping.

mod change;
pub mod custom_name;
mod mapping;
mod settings;

pub use change::IntegrationChange;
pub use mapping::{
    EVENT_MAPPING_ROWS_MAX, MappingRow, NETWORK_EVENT_CHARS_MAX, REPORTING_ONLY, check_mapping,
    default_mapping, network_event_name,
};
pub use settings::{
    CONVERSION_ACTIONS_MAX, CREDENTIAL_CHARS_MAX, CredentialSpec, SettingDefault, SettingKind,
    SettingSpec, SettingValue, check_credential, credentials_of, settings_of,
};

use crate::forwarding::queue::{NOT_USABLE, QueueState};
use crate::keyring::seal::SealedSecret;
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

crate::keywords! {
    Network[4] {
        A => "network_a",
        B => "network_b",
        C => "network_c",
        D => "network_d",
    }
}

impl Network {
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

crate::keywords! {
    EventScope {
        Attributed => "attributed",
        All => "all",
    }
}

/// A credential as it is kept: sealed, with what people may see of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The encrypted value.
    pub sealed: SealedSecret,
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
    /// When it was last switched on, complete as it was.
    pub enabled_at: Option<Timestamp>,
    /// When what it maps last changed.
    pub mapped_at: Option<Timestamp>,
    /// When it was last changed; never: not in the store.
    pub updated_at: Option<Timestamp>,
    /// How often it was changed; 0: never.
    pub revision: Revision,
}

/// What a network made of a test event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestEventResult {
    /// Whether it took it.
    pub accepted: bool,
    /// The status of its answer; nothing when none came.
    pub status: Option<u16>,
    /// How long it took.
    pub duration_ms: u32,
    /// The network's code, or ours.
    pub code: Option<String>,
    /// The network's words, cut and cleaned of secrets.
    pub answer: Option<String>,
}

/// How an integration does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegrationStatus {
    /// Something that it cannot do without is missing.
    NotConfigured,
    /// Complete and switched on.
    Active,
    /// Switched off, or stopped by the network's answer until somebody mends it.
    Paused,
    /// The network does not answer as it should; it is tried again and again.
    Error,
}

crate::keywords! {
    IntegrationStatus {
        NotConfigured => "not_configured",
        Active => "active",
        Paused => "paused",
        Error => "error",
    }
}

impl Integration {
    /// As it is before anybody touched it.
    pub const fn new(app: AppId, network: Network) -> Self {
        Self {
            app,
            network,
            enabled: false,
            scope: EventScope::Attributed,
            settings: BTreeMap::new(),
            credentials: BTreeMap::new(),
            event_mapping: None,
            enabled_at: None,
            mapped_at: None,
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

    /// The row in force for an event.
    pub fn enabled_row(&self, event: &str) -> Option<MappingRow> {
        let rows = self.mapping();
        rows.into_iter()
            .find(|row| row.event == event && row.enabled)
    }

    /// A setting that is yes or no; no when nobody set it.
    pub fn flag(&self, name: &str) -> bool {
        self.settings.get(name) == Some(&SettingValue::Flag(true))
    }

    /// A setting that is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.settings.get(name) {
            Some(SettingValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Whether it is switched on and has everything that it needs.
    pub fn is_active(&self) -> bool {
        self.enabled && settings::missing(self).is_empty()
    }

    /// Since when it sends what it sends now. What was accepted before is history, which is not replayed.
    pub fn active_since(&self) -> Option<Timestamp> {
        self.enabled_at.max(self.mapped_at)
    }

    /// How it does, and why.
    pub fn status(&self, queue: &QueueState) -> (IntegrationStatus, Option<String>) {
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
            return (IntegrationStatus::NotConfigured, Some(reason));
        }
        if !self.enabled {
            let reason = "Switched off; set enabled to true to forward events.";
            return (IntegrationStatus::Paused, Some(reason.to_owned()));
        }
        if let Some(pause) = &queue.pause {
            let words = pause.message.as_deref().unwrap_or("no words");
            let who = match pause.code.as_str() {
                NOT_USABLE => "It cannot be used as it is".to_owned(),
                code => format!("The network refused to go on (code {code})"),
            };
            let reason = format!(
                "{who}: {words} Deliveries are kept: mend the credential or setting, or ask for it \
                 to be resumed."
            );
            return (IntegrationStatus::Paused, Some(reason));
        }
        if queue.is_failing() {
            let reason = format!(
                "The last {} requests failed. Deliveries are kept and tried again.",
                queue.failures
            );
            return (IntegrationStatus::Error, Some(reason));
        }
        (IntegrationStatus::Active, None)
    }
}
