//! Rows of apps.

use super::columns::row;
use super::{from_json, to_json};
use crate::{AppName, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use tributary_domain::app::{
    Android, App, AppSecret, AttributionRules, FraudPolicy, Ios, QualifiedTrial, Sdk, SdkRevenue,
};
use tributary_domain::attestation::AttestationPolicy;
use tributary_domain::device::IdentityMode;
use tributary_domain::ownership::link_domain::LinkDomain;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::revision::Revision;
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_domain::vocabulary::web_url::{HostName, HttpsUrl};

row! {
    /// A row of `apps`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct AppRow {
        pub app_id: [u8; 16],
        pub organization_id: [u8; 16],
        pub name: String,
        pub archived: bool,
        pub settings: String,
        pub created_at: i64,
        pub updated_at: i64,
        pub revision: i64,
    }
}

#[derive(Serialize, Deserialize)]
struct Settings {
    timezone: String,
    bundle_id: Option<String>,
    app_store_id: Option<String>,
    team_id: Option<String>,
    package_name: Option<String>,
    #[serde(default)]
    cert_fingerprints: Vec<String>,
    web_events_enabled: bool,
    link_domain: Option<String>,
    /// Absent in rows from before domains were verified. Those domains stay verified.
    #[serde(default = "verified_before")]
    link_domain_verified: bool,
    sdk_enabled: bool,
    sdk_revenue: String,
    /// Missing in apps stored before attestation existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sdk_attestation: Option<String>,
    /// Absent in apps that an older version stored.
    #[serde(default)]
    sdk_identity: Option<String>,
    sdk_live_key: String,
    sdk_test_key: String,
    click_window_hours: i64,
    probabilistic_ios: bool,
    probabilistic_android: bool,
    probabilistic_window_hours: i64,
    fraud: String,
    qualified_trial_enabled: bool,
    qualified_trial_delay_hours: i64,
    skan_test_signals: bool,
    #[serde(default)]
    revenue_events: Vec<String>,
    #[serde(default)]
    deep_link_schemes: Vec<String>,
    alert_webhook_url: Option<String>,
}

const fn verified_before() -> bool {
    true
}

impl AppRow {
    /// Reads the part that callers with analytics read access may see.
    pub fn read_name(self) -> Result<AppName, StoreError> {
        let app = self.read(BTreeSet::new())?;
        Ok(AppName {
            id: app.id,
            name: app.name,
            timezone: app.timezone,
            archived: app.archived,
        })
    }

    /// Converts an app to columns.
    pub fn write(app: &App) -> Self {
        let settings = Settings {
            timezone: app.timezone.as_str().to_owned(),
            bundle_id: app.ios.bundle_id.clone(),
            app_store_id: app.ios.app_store_id.clone(),
            team_id: app.ios.team_id.clone(),
            package_name: app.android.package_name.clone(),
            cert_fingerprints: app.android.sha256_cert_fingerprints.clone(),
            web_events_enabled: app.web_events_enabled,
            link_domain: app
                .link_domain
                .as_ref()
                .map(|domain| domain.host.as_str().to_owned()),
            link_domain_verified: app.verified_link_domain().is_some(),
            sdk_enabled: app.sdk.enabled,
            sdk_revenue: app.sdk.revenue.as_str().to_owned(),
            sdk_attestation: Some(app.sdk.attestation.as_str().to_owned()),
            sdk_identity: Some(app.sdk.identity.as_str().to_owned()),
            sdk_live_key: app.sdk.live_key.clone(),
            sdk_test_key: app.sdk.test_key.clone(),
            click_window_hours: app.attribution.click_window_hours,
            probabilistic_ios: app.attribution.probabilistic_ios,
            probabilistic_android: app.attribution.probabilistic_android,
            probabilistic_window_hours: app.attribution.probabilistic_window_hours,
            fraud: app.attribution.fraud.as_str().to_owned(),
            qualified_trial_enabled: app.qualified_trial.enabled,
            qualified_trial_delay_hours: app.qualified_trial.delay_hours,
            skan_test_signals: app.skan_test_signals,
            revenue_events: app.revenue_events.clone(),
            deep_link_schemes: app.deep_link_schemes.clone(),
            alert_webhook_url: app
                .alert_webhook_url
                .as_ref()
                .map(|url| url.as_str().to_owned()),
        };
        Self {
            app_id: *app.id.as_bytes(),
            organization_id: *app.organization.as_bytes(),
            name: app.name.as_str().to_owned(),
            archived: app.archived,
            settings: to_json(&settings),
            created_at: app.created_at.as_millis(),
            updated_at: app.updated_at.as_millis(),
            revision: app.revision.number(),
        }
    }

    /// Reads the app, with the names of its stored secrets.
    pub fn read(self, secrets: BTreeSet<AppSecret>) -> Result<App, StoreError> {
        let id = AppId::from_bytes(self.app_id);
        let corrupt = |column| StoreError::corrupt("apps", column, id);
        let stored: Settings = from_json("apps", "settings", id, &self.settings)?;
        let is_verified = stored.link_domain_verified;
        let domain = |text: String| match HostName::parse(&text) {
            Ok(host) => Ok(LinkDomain { host, is_verified }),
            Err(_) => Err(corrupt("settings")),
        };
        let url = |text: String| HttpsUrl::parse(&text).map_err(|_| corrupt("settings"));
        let revenue = SdkRevenue::parse(&stored.sdk_revenue).ok_or_else(|| corrupt("settings"))?;
        let attestation = match stored.sdk_attestation.as_deref() {
            None => AttestationPolicy::Off,
            Some(text) => AttestationPolicy::parse(text).ok_or_else(|| corrupt("settings"))?,
        };
        let identity = stored.sdk_identity.as_deref();
        let identity = identity
            .map_or(Some(IdentityMode::Open), IdentityMode::parse)
            .ok_or_else(|| corrupt("settings"))?;
        let fraud = FraudPolicy::parse(&stored.fraud).ok_or_else(|| corrupt("settings"))?;
        Ok(App {
            id,
            organization: OrganizationId::from_bytes(self.organization_id),
            name: Name::parse(&self.name).map_err(|_| corrupt("name"))?,
            timezone: Timezone::from_stored(&stored.timezone).ok_or_else(|| corrupt("settings"))?,
            archived: self.archived,
            ios: Ios {
                bundle_id: stored.bundle_id,
                app_store_id: stored.app_store_id,
                team_id: stored.team_id,
            },
            android: Android {
                package_name: stored.package_name,
                sha256_cert_fingerprints: stored.cert_fingerprints,
            },
            web_events_enabled: stored.web_events_enabled,
            link_domain: stored.link_domain.map(domain).transpose()?,
            sdk: Sdk {
                enabled: stored.sdk_enabled,
                revenue,
                attestation,
                identity,
                live_key: stored.sdk_live_key,
                test_key: stored.sdk_test_key,
            },
            attribution: AttributionRules {
                click_window_hours: stored.click_window_hours,
                probabilistic_ios: stored.probabilistic_ios,
                probabilistic_android: stored.probabilistic_android,
                probabilistic_window_hours: stored.probabilistic_window_hours,
                fraud,
            },
            qualified_trial: QualifiedTrial {
                enabled: stored.qualified_trial_enabled,
                delay_hours: stored.qualified_trial_delay_hours,
            },
            skan_test_signals: stored.skan_test_signals,
            revenue_events: stored.revenue_events,
            deep_link_schemes: stored.deep_link_schemes,
            alert_webhook_url: stored.alert_webhook_url.map(url).transpose()?,
            secrets,
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
            revision: Revision::from_number(self.revision),
        })
    }
}
