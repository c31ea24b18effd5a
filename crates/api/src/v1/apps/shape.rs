//! JSON form of an app.

use crate::body::Envelope;
use crate::page::List;
use crate::state::ApiState;
use crate::time_text::rfc3339;
use crate::v1::billing::get::overlapping_sources;
use serde::Serialize;
use tributary_domain::app::{App, AppSecret, BillingProvider};
use tributary_domain::keyring::Keyring;
use tributary_domain::ownership::link_domain::DomainChallenge;
use utoipa::ToSchema;

/// An app.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "App")]
pub(crate) struct AppOut {
    #[schema(example = "app_01k9z3v7q8e4r9m2x5c6b7n8d0")]
    id: String,
    name: String,
    /// IANA time zone that defines the app's days.
    timezone: String,
    archived: bool,
    ios: IosOut,
    android: AndroidOut,
    web_events: WebEventsOut,
    /// Host that serves the app's links and association files once it is verified.
    link_domain: Option<String>,
    /// State of the link domain, and the DNS record that verifies it. Null without a link domain.
    link_domain_verification: Option<LinkDomainVerificationOut>,
    sdk: SdkOut,
    attribution: AttributionOut,
    qualified_trial: QualifiedTrialOut,
    /// Whether development-signed SKAdNetwork and AdAttributionKit postbacks count.
    skan_test_signals: bool,
    /// Custom events whose amounts count as revenue, besides `purchase`, `subscribe` and `renewal`.
    revenue_events: Vec<String>,
    /// Schemes that deep links may use besides https.
    deep_link_schemes: Vec<String>,
    /// URL that receives alerts when an integration is paused, many deliveries fail, exchange
    /// rates are out of date, or traffic is unusual.
    alert_webhook_url: Option<String>,
    billing: BillingOut,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LinkDomainVerificationOut {
    /// If false, the app's links stay at the service's own host.
    verified: bool,
    /// Name of the TXT record.
    #[schema(example = "_tributary.go.example.com")]
    record_name: String,
    /// Value of the TXT record.
    #[schema(example = "tributary-verification=8f14e45fceea167a5a36dedd4bea2543")]
    record_value: String,
}

impl LinkDomainVerificationOut {
    fn of(app: &App, keyring: &Keyring) -> Option<Self> {
        let domain = app.link_domain.as_ref()?;
        let challenge = DomainChallenge::new(keyring, app.id, &domain.host);
        Some(Self {
            verified: domain.is_verified,
            record_name: challenge.record_name,
            record_value: challenge.record_value,
        })
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct IosOut {
    bundle_id: Option<String>,
    app_store_id: Option<String>,
    team_id: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AndroidOut {
    package_name: Option<String>,
    sha256_cert_fingerprints: Vec<String>,
    play_decryption_key: SecretOut,
    play_verification_key: SecretOut,
}

#[derive(Debug, Serialize, ToSchema)]
struct WebEventsOut {
    /// Whether the web-events endpoint is enabled for the app.
    enabled: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SdkOut {
    /// If false, SDKs stop sending.
    enabled: bool,
    #[schema(inline, value_type = crate::choices::SdkRevenueChoice)]
    revenue: &'static str,
    #[schema(inline, value_type = crate::choices::AttestationChoice)]
    attestation: &'static str,
    #[schema(inline, value_type = crate::choices::IdentityChoice)]
    identity: &'static str,
    /// Secret that signs user ids. `POST …/identity/secret` creates it.
    identity_secret: SecretOut,
    /// Public SDK key for live data.
    live_key: String,
    /// Public SDK key for test data.
    test_key: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AttributionOut {
    click_window_hours: i64,
    probabilistic: ProbabilisticOut,
    #[schema(inline, value_type = crate::choices::FraudChoice)]
    fraud: &'static str,
    social_referrer_key: SecretOut,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProbabilisticOut {
    ios: bool,
    android: bool,
    window_hours: i64,
}

/// A secret. The response shows whether it is set, but not the secret itself.
#[derive(Debug, Serialize, ToSchema)]
struct SecretOut {
    set: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct QualifiedTrialOut {
    enabled: bool,
    delay_hours: i64,
}

#[derive(Debug, Serialize, ToSchema)]
struct BillingOut {
    revenuecat: BillingProviderOut,
    superwall: BillingProviderOut,
    appstore: BillingProviderOut,
    stripe: BillingProviderOut,
    adapty: BillingProviderOut,
    qonversion: BillingProviderOut,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BillingProviderOut {
    /// True if a secret is set. For the App Store, true once the first notification has arrived.
    configured: bool,
    /// URL that the provider must send notifications to.
    url: String,
    /// Connected providers that report the same payments, so that these count twice. While there is
    /// one for `appstore`, Apple's notifications are rejected. Omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    overlaps_with: Vec<&'static str>,
}

impl AppOut {
    pub(crate) fn of(app: App, state: &ApiState) -> Self {
        let base_url = &state.base_url;
        let verification = LinkDomainVerificationOut::of(&app, &state.keyring);
        let billing = |provider: BillingProvider| BillingProviderOut {
            configured: app.has_provider(provider),
            url: format!("{base_url}/api/webhook/{}/{}", provider.as_str(), app.id),
            overlaps_with: overlapping_sources(&app, provider),
        };
        let secret = |secret: AppSecret| SecretOut {
            set: app.secrets.contains(&secret),
        };
        Self {
            billing: BillingOut {
                revenuecat: billing(BillingProvider::Revenuecat),
                superwall: billing(BillingProvider::Superwall),
                appstore: billing(BillingProvider::Appstore),
                stripe: billing(BillingProvider::Stripe),
                adapty: billing(BillingProvider::Adapty),
                qonversion: billing(BillingProvider::Qonversion),
            },
            id: app.id.to_string(),
            name: app.name.as_str().to_owned(),
            timezone: app.timezone.as_str().to_owned(),
            archived: app.archived,
            ios: IosOut {
                bundle_id: app.ios.bundle_id,
                app_store_id: app.ios.app_store_id,
                team_id: app.ios.team_id,
            },
            android: AndroidOut {
                package_name: app.android.package_name,
                sha256_cert_fingerprints: app.android.sha256_cert_fingerprints,
                play_decryption_key: secret(AppSecret::PlayDecryptionKey),
                play_verification_key: secret(AppSecret::PlayVerificationKey),
            },
            web_events: WebEventsOut {
                enabled: app.web_events_enabled,
            },
            link_domain_verification: verification,
            link_domain: app
                .link_domain
                .map(|domain| domain.host.as_str().to_owned()),
            sdk: SdkOut {
                enabled: app.sdk.enabled,
                revenue: app.sdk.revenue.as_str(),
                attestation: app.sdk.attestation.as_str(),
                identity: app.sdk.identity.as_str(),
                identity_secret: SecretOut {
                    set: app.secrets.contains(&AppSecret::Identity),
                },
                live_key: app.sdk.live_key,
                test_key: app.sdk.test_key,
            },
            attribution: AttributionOut {
                click_window_hours: app.attribution.click_window_hours,
                probabilistic: ProbabilisticOut {
                    ios: app.attribution.probabilistic_ios,
                    android: app.attribution.probabilistic_android,
                    window_hours: app.attribution.probabilistic_window_hours,
                },
                fraud: app.attribution.fraud.as_str(),
                social_referrer_key: secret(AppSecret::SocialReferrerKey),
            },
            qualified_trial: QualifiedTrialOut {
                enabled: app.qualified_trial.enabled,
                delay_hours: app.qualified_trial.delay_hours,
            },
            skan_test_signals: app.skan_test_signals,
            revenue_events: app.revenue_events,
            deep_link_schemes: app.deep_link_schemes,
            alert_webhook_url: app.alert_webhook_url.map(|url| url.as_str().to_owned()),
            created_at: rfc3339(app.created_at),
            updated_at: rfc3339(app.updated_at),
        }
    }
}

pub(crate) type AppEnvelope = Envelope<AppOut>;

pub(crate) type AppListEnvelope = List<AppOut>;

/// Returns an example app for the OpenAPI description.
pub(crate) fn example() -> serde_json::Value {
    serde_json::json!({
        "id": "app_01k9z3v7q8e4r9m2x5c6b7n8d0",
        "name": "Runner",
        "timezone": "Europe/Berlin",
        "archived": false,
        "ios": {
            "bundleId": "com.example.runner",
            "appStoreId": "123456789",
            "teamId": "ABCDE12345"
        },
        "android": {
            "packageName": "com.example.runner",
            "sha256CertFingerprints": [],
            "playDecryptionKey": {"set": false},
            "playVerificationKey": {"set": false}
        },
        "webEvents": {"enabled": false},
        "linkDomain": null,
        "linkDomainVerification": null,
        "sdk": {
            "enabled": true,
            "revenue": "auto",
            "attestation": "off",
            "identity": "open",
            "identitySecret": {"set": false},
            "liveKey": "pk_live_…",
            "testKey": "pk_test_…"
        },
        "attribution": {
            "clickWindowHours": 168,
            "probabilistic": {"ios": false, "android": true, "windowHours": 24},
            "fraud": "hold",
            "socialReferrerKey": {"set": false}
        },
        "qualifiedTrial": {"enabled": false, "delayHours": 2},
        "skanTestSignals": false,
        "revenueEvents": [],
        "deepLinkSchemes": ["runner"],
        "alertWebhookUrl": null,
        "billing": {
            "revenuecat": {
                "configured": false,
                "url": "https://t.example.com/api/webhook/revenuecat/app_01k9z3v7q8e4r9m2x5c6b7n8d0"
            },
            "superwall": {
                "configured": false,
                "url": "https://t.example.com/api/webhook/superwall/app_01k9z3v7q8e4r9m2x5c6b7n8d0"
            },
            "appstore": {
                "configured": false,
                "url": "https://t.example.com/api/webhook/appstore/app_01k9z3v7q8e4r9m2x5c6b7n8d0"
            },
            "stripe": {
                "configured": false,
                "url": "https://t.example.com/api/webhook/stripe/app_01k9z3v7q8e4r9m2x5c6b7n8d0"
            },
            "adapty": {
                "configured": false,
                "url": "https://t.example.com/api/webhook/adapty/app_01k9z3v7q8e4r9m2x5c6b7n8d0"
            },
            "qonversion": {
                "configured": false,
                "url": "https://t.example.com/api/webhook/qonversion/app_01k9z3v7q8e4r9m2x5c6b7n8d0"
            }
        },
        "createdAt": "2026-01-01T00:00:00.000Z",
        "updatedAt": "2026-01-01T00:00:00.000Z"
    })
}
