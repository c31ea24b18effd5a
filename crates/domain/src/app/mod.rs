//! An app: what it is, how its events are taken, how its installs are attributed.

mod archive;
mod change;
mod platform;

#[cfg(test)]
pub(crate) use change::tests as samples;

pub use change::{AppChange, AuditedChange, SecretStep};
pub use platform::{
    CERT_FINGERPRINTS_MAX, parse_app_store_id, parse_bundle_id, parse_cert_fingerprint,
    parse_link_domain, parse_package_name, parse_team_id,
};

use crate::access::Environment;
use crate::vocabulary::id::{AppId, OrganizationId};
use crate::vocabulary::revision::Revision;
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::timezone::Timezone;
use crate::vocabulary::web_url::{HostName, HttpsUrl};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// How long a click may claim an install, in hours.
pub const CLICK_WINDOW_HOURS: RangeInclusive<i64> = 1..=720;
/// How long a click may claim an install by likeness alone, in hours.
pub const PROBABILISTIC_WINDOW_HOURS: RangeInclusive<i64> = 1..=24;
/// How long a trial is held before it qualifies, in hours.
pub const QUALIFIED_TRIAL_DELAY_HOURS: RangeInclusive<i64> = 1..=720;
/// Characters of a secret that a billing provider signs with, at least.
pub const BILLING_SECRET_CHARS_MIN: usize = 16;
/// Characters of any secret, at most.
pub const SECRET_CHARS_MAX: usize = 8_192;

/// An app with its whole configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// Its id.
    pub id: AppId,
    /// Whose app.
    pub organization: OrganizationId,
    /// What people call it.
    pub name: Name,
    /// In which zone its days begin.
    pub timezone: Timezone,
    /// Put away: kept, no longer shown among the others.
    pub archived: bool,
    /// On Apple's platforms.
    pub ios: Ios,
    /// On Android.
    pub android: Android,
    /// Whether `/web-events` takes events.
    pub web_events_enabled: bool,
    /// A host of the app's own for its links.
    pub link_domain: Option<HostName>,
    /// How the SDK's events are taken.
    pub sdk: Sdk,
    /// How installs are attributed.
    pub attribution: AttributionRules,
    /// Trials that count only after a while.
    pub qualified_trial: QualifiedTrial,
    /// Whether development-signed postbacks count.
    pub skan_test_signals: bool,
    /// Names of custom events whose amounts are income.
    pub revenue_events: Vec<String>,
    /// Who is told when something is wrong.
    pub alert_webhook_url: Option<HttpsUrl>,
    /// Which secrets are set. Their values are elsewhere, sealed.
    pub secrets: BTreeSet<AppSecret>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// How often it was changed.
    pub revision: Revision,
}

/// The app on Apple's platforms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ios {
    /// Such as `com.example.runner`.
    pub bundle_id: Option<String>,
    /// Digits; unique on an instance, since postbacks name nothing else.
    pub app_store_id: Option<String>,
    /// Ten letters and digits.
    pub team_id: Option<String>,
}

/// The app on Android.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Android {
    /// Such as `com.example.runner`.
    pub package_name: Option<String>,
    /// Of the certificates that sign the app.
    pub sha256_cert_fingerprints: Vec<String>,
}

/// How the SDK's events are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sdk {
    /// False tells every SDK to stop.
    pub enabled: bool,
    /// Whether the SDK's money counts.
    pub revenue: SdkRevenue,
    /// The public key of the live app.
    pub live_key: String,
    /// The public key for trying things out.
    pub test_key: String,
}

impl Sdk {
    /// The public keys, and what each is for.
    pub fn keys(&self) -> [(&str, Environment); 2] {
        [
            (&self.live_key, Environment::Live),
            (&self.test_key, Environment::Test),
        ]
    }
}

/// Whether money that the SDK reports counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdkRevenue {
    /// Always.
    Count,
    /// Never.
    Ignore,
    /// Until a billing provider is configured, which then reports the same payments.
    Auto,
}

/// How installs are attributed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributionRules {
    /// How long a click may claim an install.
    pub click_window_hours: i64,
    /// Matching by likeness on Apple's platforms.
    pub probabilistic_ios: bool,
    /// Matching by likeness on Android.
    pub probabilistic_android: bool,
    /// How long a click may claim an install by likeness.
    pub probabilistic_window_hours: i64,
    /// What happens to suspicious installs.
    pub fraud: FraudPolicy,
}

/// What happens to suspicious installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FraudPolicy {
    /// Marked.
    Flag,
    /// Marked and not forwarded.
    Hold,
    /// Not attributed.
    Refuse,
}

/// Trials that count only after a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedTrial {
    /// Off by default: together with `start_trial` two networks would count one trial twice.
    pub enabled: bool,
    /// How long a trial is held.
    pub delay_hours: i64,
}

/// A secret of an app. Write-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppSecret {
    /// Decrypts the social network's install referrer.
    SocialReferrerKey,
    /// Authenticates notifications of a billing provider. Of the App Store, which has none, it says that it is connected.
    Billing(BillingProvider),
    /// The one before it, which stays valid for a while.
    BillingPrevious(BillingProvider),
    /// Signs notifications of a billing provider, where that is something else.
    BillingSigning(BillingProvider),
}

/// A provider of billing notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BillingProvider {
    /// `RevenueCat`.
    Revenuecat,
    /// Superwall.
    Superwall,
    /// The App Store itself, for those who have no provider.
    Appstore,
}

impl BillingProvider {
    /// Those that are authenticated by a secret.
    pub const WITH_SECRET: &'static [Self] = &[Self::Revenuecat, Self::Superwall];
}

crate::keywords! {
    SdkRevenue { Count => "count", Ignore => "ignore", Auto => "auto" }
}
crate::keywords! {
    FraudPolicy { Flag => "flag", Hold => "hold", Refuse => "refuse" }
}
crate::keywords! {
    BillingProvider {
        Revenuecat => "revenuecat",
        Superwall => "superwall",
        Appstore => "appstore",
    }
}

impl AppSecret {
    /// Those that exist: not every provider has every kind.
    pub const ALL: &'static [Self] = &[
        Self::SocialReferrerKey,
        Self::Billing(BillingProvider::Revenuecat),
        Self::Billing(BillingProvider::Superwall),
        Self::Billing(BillingProvider::Appstore),
        Self::BillingPrevious(BillingProvider::Revenuecat),
        Self::BillingPrevious(BillingProvider::Superwall),
        Self::BillingSigning(BillingProvider::Revenuecat),
    ];

    /// As stored and answered.
    pub const fn as_str(self) -> &'static str {
        use BillingProvider::{Appstore, Revenuecat, Superwall};
        match self {
            Self::SocialReferrerKey => "social_referrer_key",
            Self::Billing(Revenuecat) => "billing.revenuecat",
            Self::Billing(Superwall) => "billing.superwall",
            Self::Billing(Appstore) => "billing.appstore",
            Self::BillingPrevious(Revenuecat) => "billing.revenuecat.before",
            Self::BillingPrevious(Superwall) => "billing.superwall.before",
            Self::BillingPrevious(Appstore) => "billing.appstore.before",
            Self::BillingSigning(Revenuecat) => "billing.revenuecat.signing",
            Self::BillingSigning(Superwall) => "billing.superwall.signing",
            Self::BillingSigning(Appstore) => "billing.appstore.signing",
        }
    }

    /// Reads what [`Self::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == text)
    }
}

impl Default for AttributionRules {
    fn default() -> Self {
        Self {
            click_window_hours: 168,
            probabilistic_ios: false,
            probabilistic_android: true,
            probabilistic_window_hours: 24,
            fraud: FraudPolicy::Refuse,
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

/// What a new app is given by the service, beside what its maker asked for.
#[derive(Debug, Clone)]
pub struct AppCreation {
    /// Its id.
    pub id: AppId,
    /// Whose app.
    pub organization: OrganizationId,
    /// The public key of the live app.
    pub live_key: String,
    /// The public key for trying things out.
    pub test_key: String,
    /// When.
    pub at: Timestamp,
}

impl App {
    /// A new app: a name, and defaults for the rest.
    pub fn new(birth: AppCreation, name: Name) -> Self {
        Self {
            id: birth.id,
            organization: birth.organization,
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
                live_key: birth.live_key,
                test_key: birth.test_key,
            },
            attribution: AttributionRules::default(),
            qualified_trial: QualifiedTrial::default(),
            skan_test_signals: false,
            revenue_events: Vec::new(),
            alert_webhook_url: None,
            secrets: BTreeSet::new(),
            created_at: birth.at,
            updated_at: birth.at,
            revision: Revision::FIRST,
        }
    }

    /// Whether a billing provider was set up, or has connected.
    pub fn has_provider(&self, provider: BillingProvider) -> bool {
        self.secrets.contains(&AppSecret::Billing(provider))
            || self.secrets.contains(&AppSecret::BillingSigning(provider))
    }

    /// The address that this app's links begin with.
    pub fn link_base(&self, base_url: &str) -> String {
        match &self.link_domain {
            Some(host) => format!("https://{}", host.as_str()),
            None => base_url.trim_end_matches('/').to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_survives_its_text() {
        for secret in AppSecret::ALL {
            assert_eq!(AppSecret::parse(secret.as_str()), Some(*secret));
        }
        for policy in FraudPolicy::ALL {
            assert_eq!(FraudPolicy::parse(policy.as_str()), Some(*policy));
        }
        for revenue in SdkRevenue::ALL {
            assert_eq!(SdkRevenue::parse(revenue.as_str()), Some(*revenue));
        }
        assert_eq!(BillingProvider::parse("stripe"), None);
    }

    #[test]
    fn links_begin_with_the_apps_own_domain_where_it_has_one() {
        let mut app = samples::any_app();
        assert_eq!(
            app.link_base("http://127.0.0.1:8080/"),
            "http://127.0.0.1:8080"
        );
        app.link_domain = Some(HostName::parse("go.example.com").unwrap());
        assert_eq!(
            app.link_base("http://127.0.0.1:8080/"),
            "https://go.example.com"
        );
    }
}
