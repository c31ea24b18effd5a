//! Apps: configuration, accepted events and attribution rules.

mod archive;
mod audited_fields;
mod change;
mod platform;
mod sdk_key;
mod secret;

#[cfg(test)]
pub(crate) use change::tests as samples;

pub use change::{AppChange, AuditedChange, SecretStep};
pub use platform::{
    CERT_FINGERPRINTS_MAX, parse_app_store_id, parse_bundle_id, parse_cert_fingerprint,
    parse_link_domain, parse_package_name, parse_team_id,
};
pub use sdk_key::{
    ENDED_SDK_KEYS_KEPT_MAX, RotatedSdkKey, SDK_KEY_OVERLAP_DAYS_DEFAULT, SDK_KEY_OVERLAP_DAYS_MAX,
    SDK_KEY_USE_INTERVAL, SdkKey, SdkKeyEnd, SdkKeyRotation, SdkKeyState, VALID_SDK_KEYS_MAX,
    parse_sdk_key, revoke_sdk_key,
};
pub use secret::{AppSecret, BillingProvider};

use crate::access::Environment;
use crate::attestation::AttestationPolicy;
use crate::device::IdentityMode;
use crate::ownership::link_domain::LinkDomain;
use crate::refusal::Refusal;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::id::{AppId, OrganizationId};
use crate::vocabulary::revision::Revision;
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::timezone::Timezone;
use crate::vocabulary::web_url::{HostName, HttpsUrl};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Allowed click window, in hours.
pub const CLICK_WINDOW_HOURS: RangeInclusive<i64> = 1..=720;
/// Allowed window for probabilistic matches, in hours.
pub const PROBABILISTIC_WINDOW_HOURS: RangeInclusive<i64> = 1..=24;
/// Allowed delay before a trial qualifies, in hours.
pub const QUALIFIED_TRIAL_DELAY_HOURS: RangeInclusive<i64> = 1..=720;
/// Minimum length of a billing secret in characters.
pub const BILLING_SECRET_CHARS_MIN: usize = 16;
/// Maximum length of any secret in characters.
pub const SECRET_CHARS_MAX: usize = 8_192;

/// An app with its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// App id.
    pub id: AppId,
    /// Owning organization.
    pub organization: OrganizationId,
    /// Display name.
    pub name: Name,
    /// Time zone in which the app's days begin.
    pub timezone: Timezone,
    /// Whether the app is archived. Archived apps are hidden from lists and record no new data.
    pub archived: bool,
    /// iOS identifiers.
    pub ios: Ios,
    /// Android identifiers.
    pub android: Android,
    /// Whether `/web-events` accepts events.
    pub web_events_enabled: bool,
    /// Custom host for the app's links.
    pub link_domain: Option<LinkDomain>,
    /// SDK settings.
    pub sdk: Sdk,
    /// Attribution settings.
    pub attribution: AttributionRules,
    /// Settings for qualified trials.
    pub qualified_trial: QualifiedTrial,
    /// Whether development-signed postbacks from Apple count.
    pub skan_test_signals: bool,
    /// Names of custom events that count as revenue.
    pub revenue_events: Vec<String>,
    /// Schemes that deep links may use besides `https`, in lower case.
    pub deep_link_schemes: Vec<String>,
    /// Webhook URL that receives alerts.
    pub alert_webhook_url: Option<HttpsUrl>,
    /// Secrets that are set. Their encrypted values are stored separately.
    pub secrets: BTreeSet<AppSecret>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Revision number, increased by every change.
    pub revision: Revision,
}

/// An app's iOS identifiers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ios {
    /// Bundle id, such as `com.example.runner`.
    pub bundle_id: Option<String>,
    /// Numeric App Store id, the only id in a postback that identifies the app. If several
    /// organizations have it, evidence decides ([`crate::ownership::store_id`]).
    pub app_store_id: Option<String>,
    /// Team id: ten letters and digits.
    pub team_id: Option<String>,
}

/// An app's Android identifiers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Android {
    /// Package name, such as `com.example.runner`.
    pub package_name: Option<String>,
    /// SHA-256 fingerprints of the signing certificates.
    pub sha256_cert_fingerprints: Vec<String>,
}

/// An app's SDK settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sdk {
    /// Whether SDKs may send data. `false` tells every SDK to stop.
    pub enabled: bool,
    /// Whether revenue reported by the SDK counts.
    pub revenue: SdkRevenue,
    /// What the app does with attestation.
    pub attestation: AttestationPolicy,
    /// Whether user ids must be signed by the app's backend.
    pub identity: IdentityMode,
    /// Public SDK key for live data.
    pub live_key: String,
    /// Public SDK key for test data.
    pub test_key: String,
}

impl Sdk {
    /// Returns the public keys with their environments.
    pub fn keys(&self) -> [(&str, Environment); 2] {
        [
            (&self.live_key, Environment::Live),
            (&self.test_key, Environment::Test),
        ]
    }
}

/// Whether revenue reported by the SDK counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdkRevenue {
    /// Always.
    Count,
    /// Never.
    Ignore,
    /// Until a billing provider is configured, because it reports the same payments.
    Auto,
}

/// An app's attribution settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributionRules {
    /// Click window in hours.
    pub click_window_hours: i64,
    /// Whether probabilistic matching is enabled on iOS.
    pub probabilistic_ios: bool,
    /// Whether probabilistic matching is enabled on Android.
    pub probabilistic_android: bool,
    /// Window for probabilistic matches in hours.
    pub probabilistic_window_hours: i64,
    /// Handling of suspicious installs.
    pub fraud: FraudPolicy,
}

/// Handling of suspicious installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FraudPolicy {
    /// Flag the install.
    Flag,
    /// Flag the install, and neither count nor forward its events until it is reviewed.
    Hold,
    /// Do not attribute the install.
    Refuse,
}

/// Settings for `qualified_trial` events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedTrial {
    /// Whether `qualified_trial` events are created. Off by default, because two networks would
    /// count the same trial twice: once as `start_trial` and once as `qualified_trial`.
    pub enabled: bool,
    /// Hours until a trial qualifies.
    pub delay_hours: i64,
}

crate::keywords! {
    SdkRevenue { Count => "count", Ignore => "ignore", Auto => "auto" }
}
crate::keywords! {
    FraudPolicy { Flag => "flag", Hold => "hold", Refuse => "refuse" }
}
impl Default for AttributionRules {
    fn default() -> Self {
        Self {
            click_window_hours: 168,
            probabilistic_ios: false,
            probabilistic_android: true,
            probabilistic_window_hours: 24,
            fraud: FraudPolicy::Hold,
        }
    }
}

impl Default for QualifiedTrial {
    fn default() -> Self {
        Self {
            enabled: false,
            delay_hours: 2,
        }
    }
}

/// Fields of a new app that the service generates.
#[derive(Debug, Clone)]
pub struct AppCreation {
    /// App id.
    pub id: AppId,
    /// Owning organization.
    pub organization: OrganizationId,
    /// Public SDK key for live data.
    pub live_key: String,
    /// Public SDK key for test data.
    pub test_key: String,
    /// Creation time.
    pub at: Timestamp,
}

impl App {
    /// Creates an app with a name and default settings.
    pub fn new(creation: AppCreation, name: Name) -> Self {
        Self {
            id: creation.id,
            organization: creation.organization,
            name,
            timezone: Timezone::UTC,
            archived: false,
            ios: Ios::default(),
            android: Android::default(),
            web_events_enabled: false,
            link_domain: None,
            sdk: Sdk {
                enabled: true,
                revenue: SdkRevenue::Auto,
                attestation: AttestationPolicy::Off,
                identity: IdentityMode::Open,
                live_key: creation.live_key,
                test_key: creation.test_key,
            },
            attribution: AttributionRules::default(),
            qualified_trial: QualifiedTrial::default(),
            skan_test_signals: false,
            revenue_events: Vec::new(),
            deep_link_schemes: Vec::new(),
            alert_webhook_url: None,
            secrets: BTreeSet::new(),
            created_at: creation.at,
            updated_at: creation.at,
            revision: Revision::FIRST,
        }
    }

    /// Returns whether a billing provider is set up or connected.
    pub fn has_provider(&self, provider: BillingProvider) -> bool {
        self.secrets.contains(&AppSecret::Billing(provider))
            || self.secrets.contains(&AppSecret::BillingSigning(provider))
    }

    /// Returns the billing providers that are set up or connected.
    pub fn providers(&self) -> impl Iterator<Item = BillingProvider> {
        let all = BillingProvider::ALL.iter().copied();
        all.filter(|provider| self.has_provider(*provider))
    }

    /// Returns the link domain if the organization has proven that it controls it.
    pub fn verified_link_domain(&self) -> Option<&HostName> {
        let domain = self.link_domain.as_ref()?;
        domain.is_verified.then_some(&domain.host)
    }

    /// Returns the link domain to verify. Refused if the app has none.
    pub fn claimed_link_domain(&self) -> Result<&HostName, Refusal> {
        let missing = || {
            let mut faults = Faults::new();
            let message = "The app has no link domain. Set linkDomain first.";
            faults.add("linkDomain", Problem::new(FaultCode::Required, message));
            Refusal::Invalid(faults)
        };
        let domain = self.link_domain.as_ref().ok_or_else(missing)?;
        Ok(&domain.host)
    }

    /// Returns whether events are forwarded only for devices with a verified attestation.
    pub fn requires_attestation(&self) -> bool {
        self.sdk.attestation == AttestationPolicy::Require
    }

    /// Returns the base URL of the app's links. Links stay at the instance's own host until the
    /// link domain is verified.
    pub fn link_base(&self, base_url: &str) -> String {
        match self.verified_link_domain() {
            Some(host) => format!("https://{}", host.as_str()),
            None => base_url.trim_end_matches('/').to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_round_trip_through_their_text() {
        for secret in AppSecret::ALL {
            assert_eq!(AppSecret::parse(secret.as_str()), Some(*secret));
        }
        for policy in FraudPolicy::ALL {
            assert_eq!(FraudPolicy::parse(policy.as_str()), Some(*policy));
        }
        for revenue in SdkRevenue::ALL {
            assert_eq!(SdkRevenue::parse(revenue.as_str()), Some(*revenue));
        }
        assert_eq!(BillingProvider::parse("paddle"), None);
    }

    #[test]
    fn links_use_the_custom_domain_once_it_is_verified() {
        let mut app = samples::any_app();
        assert_eq!(
            app.link_base("http://127.0.0.1:8080/"),
            "http://127.0.0.1:8080"
        );
        let mut domain = LinkDomain::claim(HostName::parse("go.example.com").unwrap());
        app.link_domain = Some(domain.clone());
        assert_eq!(
            app.link_base("http://127.0.0.1:8080/"),
            "http://127.0.0.1:8080"
        );
        domain.is_verified = true;
        app.link_domain = Some(domain);
        assert_eq!(
            app.link_base("http://127.0.0.1:8080/"),
            "https://go.example.com"
        );
    }
}
