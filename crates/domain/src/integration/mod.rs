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

/// An ad network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Network {
    /// Meta, a social network.
    A,
    /// Google Ads, search and display.
    B,
    /// TikTok, short video.
    C,
    /// OpenAI Ads, an AI assistant.
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
    /// Returns the name of the product, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "Meta",
            Self::B => "Google Ads",
            Self::C => "TikTok",
            Self::D => "OpenAI Ads",
        }
    }

    /// Returns the name with the identifier, for messages and lists of choices.
    pub const fn name_with_id(self) -> &'static str {
        match self {
            Self::A => "Meta (network_a)",
            Self::B => "Google Ads (network_b)",
            Self::C => "TikTok (network_c)",
            Self::D => "OpenAI Ads (network_d)",
        }
    }

    /// Finds a network in a table that people wrote: by its name or its id.
    pub fn parse_named(text: &str) -> Option<Self> {
        let named = |one: &Self| is_network_name(text, one.name());
        Self::ALL
            .into_iter()
            .find(named)
            .or_else(|| Self::parse(text))
    }

    /// Returns the kind of network.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::A => "social",
            Self::B => "search",
            Self::C => "short_video",
            Self::D => "ai_assistant",
        }
    }
}

/// Returns whether people mean this network name: in any case, with or without “Ads”.
pub fn is_network_name(text: &str, name: &str) -> bool {
    let short = name.strip_suffix(" Ads").unwrap_or(name);
    [name, short]
        .iter()
        .any(|one| one.eq_ignore_ascii_case(text))
}

/// Which events are forwarded to a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventScope {
    /// Events attributed to the network.
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

/// A stored credential: the encrypted value and a hint to display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The encrypted value.
    pub sealed: SealedSecret,
    /// The credential's last characters, if it is long enough to show them.
    pub hint: Option<String>,
}

/// An app's connection to a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integration {
    /// App id.
    pub app: AppId,
    /// The destination network.
    pub network: Network,
    /// Whether events are forwarded.
    pub enabled: bool,
    /// Which events are forwarded.
    pub scope: EventScope,
    /// Settings. Missing names have their defaults.
    pub settings: BTreeMap<String, SettingValue>,
    /// Credentials.
    pub credentials: BTreeMap<String, Credential>,
    /// Event mapping; `None` for the default.
    pub event_mapping: Option<Vec<MappingRow>>,
    /// When the integration last became active: enabled and complete.
    pub enabled_at: Option<Timestamp>,
    /// When the event mapping or scope last changed.
    pub mapped_at: Option<Timestamp>,
    /// Time of the last change; `None` if the integration is not stored.
    pub updated_at: Option<Timestamp>,
    /// Number of changes.
    pub revision: Revision,
}

/// Result of sending a test event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestEventResult {
    /// Whether the network accepted the test event.
    pub accepted: bool,
    /// HTTP status of the response, if there was one.
    pub status: Option<u16>,
    /// Duration in milliseconds.
    pub duration_ms: u32,
    /// The network's code, or one of Tributary's own.
    pub code: Option<String>,
    /// The network's message, truncated and without secrets.
    pub answer: Option<String>,
}

/// Status of an integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegrationStatus {
    /// A required setting or credential is missing.
    NotConfigured,
    /// Complete and enabled.
    Active,
    /// Disabled, or paused after a network's response until an operator fixes the cause.
    Paused,
    /// The network keeps failing; requests are retried.
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
    /// Returns an integration without settings.
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

    /// Returns the entity tag for `If-Match`.
    pub fn tag(&self) -> String {
        self.revision.number().to_string()
    }

    /// Returns the effective mapping.
    pub fn mapping(&self) -> Vec<MappingRow> {
        self.event_mapping
            .clone()
            .unwrap_or_else(|| default_mapping(self.network))
    }

    /// Returns the enabled mapping row for an event.
    pub fn enabled_row(&self, event: &str) -> Option<MappingRow> {
        let rows = self.mapping();
        rows.into_iter()
            .find(|row| row.event == event && row.enabled)
    }

    /// Returns a boolean setting; false if it is not set.
    pub fn flag(&self, name: &str) -> bool {
        self.settings.get(name) == Some(&SettingValue::Flag(true))
    }

    /// Returns a text setting.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.settings.get(name) {
            Some(SettingValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the names of the settings and credentials that are still required.
    pub fn missing(&self) -> Vec<&'static str> {
        settings::missing(self)
    }

    /// Returns whether the integration is enabled and complete.
    pub fn is_active(&self) -> bool {
        self.enabled && self.missing().is_empty()
    }

    /// Returns the time from which the current configuration applies. Earlier events are not sent.
    pub fn active_since(&self) -> Option<Timestamp> {
        self.enabled_at.max(self.mapped_at)
    }

    /// Returns the status and its reason.
    pub fn status(&self, queue: &QueueState) -> (IntegrationStatus, Option<String>) {
        let missing = self.missing();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            let instead = match self.network {
                Network::B => {
                    " A serviceAccountKey replaces clientId, clientSecret and refreshToken."
                }
                Network::A | Network::C | Network::D => "",
            };
            let reason = format!("Missing: {missing}.{instead}");
            return (IntegrationStatus::NotConfigured, Some(reason));
        }
        if !self.enabled {
            let reason = "Disabled. Set enabled to true to forward events.";
            return (IntegrationStatus::Paused, Some(reason.to_owned()));
        }
        if let Some(pause) = &queue.pause {
            let message = pause.message.as_deref().unwrap_or("no message.");
            let cause = match pause.code.as_str() {
                NOT_USABLE => "The integration cannot be used as configured".to_owned(),
                code => format!("The network rejected requests (code {code})"),
            };
            let reason = format!(
                "{cause}: {message} Deliveries are kept. Fix the credential or setting, or resume \
                 the integration."
            );
            return (IntegrationStatus::Paused, Some(reason));
        }
        if queue.is_failing() {
            let reason = format!(
                "The last {} requests failed. Deliveries are kept and retried.",
                queue.failures
            );
            return (IntegrationStatus::Error, Some(reason));
        }
        (IntegrationStatus::Active, None)
    }
}
