//! The fields of an app that can be set, in a new one and in a change alike.

use crate::fields::{Fields, choice, flag, integer_in, text_as, wrong_type};
use crate::json::Node;
use crate::sealing::{SEALED_FOR_APP, Sealer};
use tributary_domain::app::{
    self, AppChange, AppSecret, BILLING_SECRET_CHARS_MIN, BillingProvider, CERT_FINGERPRINTS_MAX,
    CLICK_WINDOW_HOURS, FraudPolicy, PROBABILISTIC_WINDOW_HOURS, QUALIFIED_TRIAL_DELAY_HOURS,
    SECRET_CHARS_MAX, SdkRevenue,
};
use tributary_domain::event::name::{REVENUE_EVENTS_MAX, revenue_event};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_domain::vocabulary::web_url::HttpsUrl;
use utoipa::ToSchema;

/// Reads everything but the name.
pub(super) fn read_change(
    fields: &mut Fields<'_>,
    sealer: &Sealer<'_>,
    base_url: &str,
) -> AppChange {
    let mut change = AppChange {
        timezone: fields.change("timezone", text_as(Timezone::parse)),
        archived: fields.change("archived", flag),
        link_domain: fields.change(
            "linkDomain",
            text_as(|text| app::link_domain(text, base_url)),
        ),
        skan_test_signals: fields.change("skanTestSignals", flag),
        revenue_events: fields.change("revenueEvents", revenue_events),
        alert_webhook_url: fields.change("alertWebhookUrl", text_as(HttpsUrl::parse_outbound)),
        ..AppChange::default()
    };
    let mut ios = fields.section("ios");
    change.ios_bundle_id = ios.change("bundleId", text_as(app::bundle_id));
    change.ios_app_store_id = ios.change("appStoreId", text_as(app::app_store_id));
    change.ios_team_id = ios.change("teamId", text_as(app::team_id));
    ios.finish();
    let mut android = fields.section("android");
    change.android_package_name = android.change("packageName", text_as(app::package_name));
    change.android_sha256_cert_fingerprints =
        android.change("sha256CertFingerprints", cert_fingerprints);
    android.finish();
    let mut web_events = fields.section("webEvents");
    change.web_events_enabled = web_events.change("enabled", flag);
    web_events.finish();
    let mut sdk = fields.section("sdk");
    change.sdk_enabled = sdk.change("enabled", flag);
    change.sdk_revenue = sdk.change("revenue", choice(SdkRevenue::parse, "count, ignore, auto"));
    sdk.finish();
    read_attribution(fields, sealer, &mut change);
    let mut trial = fields.section("qualifiedTrial");
    change.qualified_trial_enabled = trial.change("enabled", flag);
    change.qualified_trial_delay_hours =
        trial.change("delayHours", integer_in(QUALIFIED_TRIAL_DELAY_HOURS));
    trial.finish();
    read_billing(fields, sealer, &mut change);
    change
}

fn read_attribution(fields: &mut Fields<'_>, sealer: &Sealer<'_>, change: &mut AppChange) {
    let mut attribution = fields.section("attribution");
    change.click_window_hours =
        attribution.change("clickWindowHours", integer_in(CLICK_WINDOW_HOURS));
    change.fraud = attribution.change("fraud", choice(FraudPolicy::parse, "flag, hold, refuse"));
    let secret = AppSecret::SocialReferrerKey;
    let read = sealer.secret(SEALED_FOR_APP, secret.as_str(), 1..=SECRET_CHARS_MAX);
    change
        .secrets
        .push((secret, attribution.change("socialReferrerKey", read)));
    let mut probabilistic = attribution.section("probabilistic");
    change.probabilistic_ios = probabilistic.change("ios", flag);
    change.probabilistic_android = probabilistic.change("android", flag);
    change.probabilistic_window_hours =
        probabilistic.change("windowHours", integer_in(PROBABILISTIC_WINDOW_HOURS));
    probabilistic.finish();
    attribution.finish();
}

fn read_billing(fields: &mut Fields<'_>, sealer: &Sealer<'_>, change: &mut AppChange) {
    let mut billing = fields.section("billing");
    for provider in BillingProvider::WITH_SECRET {
        let mut section = billing.section(provider.as_str());
        let secrets = [
            ("secret", AppSecret::Billing(*provider)),
            ("signingSecret", AppSecret::BillingSigning(*provider)),
        ];
        for (name, secret) in secrets {
            // Only some providers sign with something else than they authenticate with.
            if AppSecret::ALL.contains(&secret) {
                let chars = BILLING_SECRET_CHARS_MIN..=SECRET_CHARS_MAX;
                let read = sealer.secret(SEALED_FOR_APP, secret.as_str(), chars);
                change.secrets.push((secret, section.change(name, read)));
            }
        }
        section.finish();
    }
    billing.finish();
}

fn revenue_events(node: &Node) -> Result<Vec<String>, Problem> {
    let Node::List(items) = node else {
        return Err(wrong_type("a list of strings"));
    };
    if items.len() > REVENUE_EVENTS_MAX {
        let message = format!("Must have at most {REVENUE_EVENTS_MAX} items.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    let mut names = Vec::new();
    for item in items {
        let name = text_as(revenue_event)(item)?;
        if names.contains(&name) {
            return Err(Problem::new(FaultCode::Duplicate, "Duplicate name."));
        }
        names.push(name);
    }
    Ok(names)
}

fn cert_fingerprints(node: &Node) -> Result<Vec<String>, Problem> {
    let Node::List(items) = node else {
        return Err(wrong_type("a list of strings"));
    };
    if items.len() > CERT_FINGERPRINTS_MAX {
        let message = format!("Must have at most {CERT_FINGERPRINTS_MAX} items.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    items
        .iter()
        .map(|item| text_as(app::cert_fingerprint)(item))
        .collect()
}

/// What can be set of an app. Absent: unchanged (the default, in a new app); null: the default.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", title = "AppFields")]
#[expect(
    dead_code,
    reason = "describes what read_change reads; a test compares the two"
)]
pub(super) struct AppFields {
    /// 1–200 characters.
    #[schema(min_length = 1, max_length = 200, nullable = false)]
    name: Option<String>,
    /// An IANA time zone; the default is UTC.
    timezone: Option<String>,
    archived: Option<bool>,
    ios: Option<IosFields>,
    android: Option<AndroidFields>,
    web_events: Option<WebEventsFields>,
    /// A host name, unique on the instance.
    link_domain: Option<String>,
    sdk: Option<SdkFields>,
    attribution: Option<AttributionFields>,
    qualified_trial: Option<QualifiedTrialFields>,
    skan_test_signals: Option<bool>,
    /// Custom events whose amounts are income. Amounts on `purchase`, `subscribe` and `renewal` always are. Replaced
    /// whole.
    #[schema(max_items = 50)]
    revenue_events: Option<Vec<String>>,
    /// An https URL with a host name and the default port.
    alert_webhook_url: Option<String>,
    billing: Option<BillingFields>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see AppFields")]
struct IosFields {
    bundle_id: Option<String>,
    /// Digits; unique on the instance.
    app_store_id: Option<String>,
    /// Ten capital letters and digits.
    team_id: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see AppFields")]
struct AndroidFields {
    package_name: Option<String>,
    /// Replaced whole.
    #[schema(max_items = 20)]
    sha256_cert_fingerprints: Option<Vec<String>>,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "see AppFields")]
struct WebEventsFields {
    enabled: Option<bool>,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "see AppFields")]
struct SdkFields {
    enabled: Option<bool>,
    #[schema(inline)]
    revenue: Option<crate::choices::SdkRevenueChoice>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see AppFields")]
struct AttributionFields {
    #[schema(minimum = 1, maximum = 720)]
    click_window_hours: Option<i64>,
    probabilistic: Option<ProbabilisticFields>,
    #[schema(inline)]
    fraud: Option<crate::choices::FraudChoice>,
    /// Write-only.
    #[schema(write_only)]
    social_referrer_key: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see AppFields")]
struct ProbabilisticFields {
    ios: Option<bool>,
    android: Option<bool>,
    #[schema(minimum = 1, maximum = 24)]
    window_hours: Option<i64>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see AppFields")]
struct QualifiedTrialFields {
    enabled: Option<bool>,
    #[schema(minimum = 1, maximum = 720)]
    delay_hours: Option<i64>,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "see AppFields")]
struct BillingFields {
    revenuecat: Option<RevenuecatFields>,
    superwall: Option<BillingProviderFields>,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "see AppFields")]
struct RevenuecatFields {
    /// The value of the Authorization header. Write-only, 16 characters or more.
    #[schema(write_only, min_length = 16)]
    secret: Option<String>,
    /// The secret that notifications are signed with. Write-only, 16 characters or more.
    #[schema(write_only, min_length = 16)]
    signing_secret: Option<String>,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "see AppFields")]
struct BillingProviderFields {
    /// Write-only, 16 characters or more.
    #[schema(write_only, min_length = 16)]
    secret: Option<String>,
}
