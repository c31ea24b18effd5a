//! The writable fields of an app, for creation and changes.

use crate::{FieldKind, Fields, InputValue, choice, flag, integer_in, text_as, text_list};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use tributary_domain::app::{
    self, AppChange, AppSecret, BILLING_SECRET_CHARS_MIN, BillingProvider, CERT_FINGERPRINTS_MAX,
    CLICK_WINDOW_HOURS, FraudPolicy, PROBABILISTIC_WINDOW_HOURS, QUALIFIED_TRIAL_DELAY_HOURS,
    SECRET_CHARS_MAX, SdkRevenue,
};
use tributary_domain::attestation::{
    AttestationPolicy, parse_play_decryption_key, parse_play_verification_key,
};
use tributary_domain::device::IdentityMode;
use tributary_domain::event::name::{REVENUE_EVENTS_MAX, revenue_event};
use tributary_domain::keyring::secret_scope::check_secret;
use tributary_domain::link::{DEEP_LINK_SCHEMES_MAX, deep_link_scheme};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::text::{NAME_CHARS_MAX, Name};
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_domain::vocabulary::web_url::HttpsUrl;

/// Secrets set by a body or a form, not encrypted yet.
pub type Secrets = Vec<(AppSecret, Change<String>)>;

/// Reads a new app.
pub fn read_new(fields: &mut Fields<'_>, base_url: &str) -> Option<(Name, AppChange, Secrets)> {
    let name = text_as(Name::parse).size(1..=NAME_CHARS_MAX);
    let name = fields.required("name", name.about("1–200 characters."));
    let (change, secrets) = read_common(fields, base_url);
    Some((name?, change, secrets))
}

/// Reads a change to an app.
pub fn read_change(fields: &mut Fields<'_>, base_url: &str) -> (AppChange, Secrets) {
    let name = text_as(Name::parse).size(1..=NAME_CHARS_MAX);
    let name = fields.settable("name", name.about("1–200 characters."));
    let (change, secrets) = read_common(fields, base_url);
    (AppChange { name, ..change }, secrets)
}

fn read_common(fields: &mut Fields<'_>, base_url: &str) -> (AppChange, Secrets) {
    let revenue_events = text_list(REVENUE_EVENTS_MAX, revenue_event)
        .then(reject_duplicates)
        .about(
            "Custom events whose amounts count as revenue. Amounts in `purchase`, `subscribe` and \
             `renewal` events always count. Replaces the stored list.",
        );
    let schemes = text_list(DEEP_LINK_SCHEMES_MAX, deep_link_scheme)
        .then(reject_duplicates)
        .about(
            "Schemes that the deep links of the app's links may use besides https, for example \
             `runner`. Replaces the stored list.",
        );
    let mut change = AppChange {
        timezone: fields.change(
            "timezone",
            text_as(Timezone::parse).about("IANA time zone. Default: UTC."),
        ),
        archived: fields.change("archived", flag()),
        link_domain: fields.change(
            "linkDomain",
            text_as(|text| app::parse_link_domain(text, base_url))
                .about("Host name. A new domain must be verified before it serves links."),
        ),
        skan_test_signals: fields.change("skanTestSignals", flag()),
        revenue_events: fields.change("revenueEvents", revenue_events),
        deep_link_schemes: fields.change("deepLinkSchemes", schemes),
        alert_webhook_url: fields.change(
            "alertWebhookUrl",
            text_as(HttpsUrl::parse_outbound)
                .about("https URL with a host name and the default port."),
        ),
        ..AppChange::default()
    };
    let mut secrets = Vec::new();
    read_platforms(fields, &mut change, &mut secrets);
    read_attribution(fields, &mut change, &mut secrets);
    let mut trial = fields.section("qualifiedTrial");
    change.qualified_trial_enabled = trial.change("enabled", flag());
    change.qualified_trial_delay_hours =
        trial.change("delayHours", integer_in(QUALIFIED_TRIAL_DELAY_HOURS));
    trial.finish();
    let (billing, kept) = read_billing_secrets(fields);
    secrets.extend(billing);
    change.kept_secrets = kept;
    (change, secrets)
}

fn read_platforms(fields: &mut Fields<'_>, change: &mut AppChange, secrets: &mut Secrets) {
    let mut ios = fields.section("ios");
    change.ios_bundle_id = ios.change("bundleId", text_as(app::parse_bundle_id));
    let store_id = text_as(app::parse_app_store_id).about("Digits, unique in the organization.");
    change.ios_app_store_id = ios.change("appStoreId", store_id);
    let team_id = text_as(app::parse_team_id).about("Ten capital letters and digits.");
    change.ios_team_id = ios.change("teamId", team_id);
    ios.finish();
    let mut android = fields.section("android");
    change.android_package_name = android.change("packageName", text_as(app::parse_package_name));
    change.android_sha256_cert_fingerprints = android.change(
        "sha256CertFingerprints",
        text_list(CERT_FINGERPRINTS_MAX, app::parse_cert_fingerprint)
            .about("Replaces the stored list."),
    );
    let about =
        "Play Integrity decryption key from the Play Console: 32 bytes in base64. Write-only.";
    let key = play_key(parse_play_decryption_key, about);
    let key = android.change("playDecryptionKey", key);
    secrets.push((AppSecret::PlayDecryptionKey, key));
    let about = "Play Integrity verification key from the Play Console: a P-256 public key (DER) in \
                 base64. Write-only.";
    let key = play_key(parse_play_verification_key, about);
    let key = android.change("playVerificationKey", key);
    secrets.push((AppSecret::PlayVerificationKey, key));
    android.finish();
    let mut web_events = fields.section("webEvents");
    change.web_events_enabled = web_events.change("enabled", flag());
    web_events.finish();
    let mut sdk = fields.section("sdk");
    change.sdk_enabled = sdk.change("enabled", flag());
    let revenue = choice(SdkRevenue::ALL, SdkRevenue::as_str).about(
        "Whether revenue from SDK events counts. `auto`: yes, until a billing provider is \
         configured.",
    );
    change.sdk_revenue = sdk.change("revenue", revenue);
    let attestation = choice(AttestationPolicy::ALL, AttestationPolicy::as_str).about(
        "What happens to installs without proof of a genuine app (App Attest or Play Integrity). \
         `flag`: they are flagged. `require`: also, their events are not forwarded.",
    );
    change.sdk_attestation = sdk.change("attestation", attestation);
    let identity = choice(IdentityMode::ALL, IdentityMode::as_str).about(
        "Which user ids from the SDK are used: all, or only those that the app's backend signed.",
    );
    change.sdk_identity = sdk.change("identity", identity);
    sdk.finish();
}

fn read_attribution(fields: &mut Fields<'_>, change: &mut AppChange, secrets: &mut Secrets) {
    let mut attribution = fields.section("attribution");
    read_rules(&mut attribution, change);
    let key = secret(1..=SECRET_CHARS_MAX, "Write-only.");
    secrets.push((
        AppSecret::SocialReferrerKey,
        attribution.change("socialReferrerKey", key),
    ));
    attribution.finish();
}

/// Reads attribution rules to try, as in a change to an app. Fields that are left out keep the app's
/// rules.
pub fn read_tried_rules(fields: &mut Fields<'_>) -> AppChange {
    let mut change = AppChange::default();
    let mut attribution = fields.section("attribution");
    read_rules(&mut attribution, &mut change);
    attribution.finish();
    change
}

fn read_rules(attribution: &mut Fields<'_>, change: &mut AppChange) {
    change.click_window_hours =
        attribution.change("clickWindowHours", integer_in(CLICK_WINDOW_HOURS));
    let fraud = choice(FraudPolicy::ALL, FraudPolicy::as_str).about(
        "How to handle suspicious installs: flag; hold, which neither counts nor forwards them \
         until they are released; or do not attribute.",
    );
    change.fraud = attribution.change("fraud", fraud);
    let mut probabilistic = attribution.section("probabilistic");
    change.probabilistic_ios = probabilistic.change("ios", flag());
    change.probabilistic_android = probabilistic.change("android", flag());
    change.probabilistic_window_hours =
        probabilistic.change("windowHours", integer_in(PROBABILISTIC_WINDOW_HOURS));
    probabilistic.finish();
}

/// Reads the billing providers' secrets, and returns those whose replaced value stays valid.
pub fn read_billing_secrets(fields: &mut Fields<'_>) -> (Secrets, Vec<AppSecret>) {
    let (mut secrets, mut kept) = (Vec::new(), Vec::new());
    let chars = BILLING_SECRET_CHARS_MIN..=SECRET_CHARS_MAX;
    let mut billing = fields.section("billing");
    for provider in BillingProvider::WITH_SECRET {
        let mut section = billing.section(provider.as_str());
        let about = match provider {
            BillingProvider::Revenuecat | BillingProvider::Adapty | BillingProvider::Qonversion => {
                "Value of the Authorization header. Write-only, at least 16 characters."
            }
            BillingProvider::Stripe => {
                "Signing secret that Stripe shows for the webhook URL, with `whsec_`. Write-only."
            }
            BillingProvider::Superwall | BillingProvider::Appstore => {
                "Write-only, at least 16 characters."
            }
        };
        let value = section.change("secret", secret(chars.clone(), about));
        secrets.push((AppSecret::Billing(*provider), value));
        // Only some providers have a separate signing secret.
        let signing = AppSecret::BillingSigning(*provider);
        if AppSecret::ALL.contains(&signing) {
            let about = "Secret that signs the provider's notifications. Write-only, at least 16 \
                         characters.";
            let value = section.change("signingSecret", secret(chars.clone(), about));
            secrets.push((signing, value));
        }
        let test = AppSecret::BillingTest(*provider);
        if AppSecret::ALL.contains(&test) {
            let about = "Secret for notifications of the provider's test environment, if it is \
                         another one. Write-only, at least 16 characters.";
            let value = section.change("testSecret", secret(chars.clone(), about));
            secrets.push((test, value));
        }
        let about = "Whether the replaced secrets of the provider stay valid for 24 hours. Default: \
                     false. Write-only.";
        let keep_previous = section.optional("keepPrevious", flag().write_only().about(about));
        if keep_previous == Some(true) {
            let all = [AppSecret::Billing(*provider), signing, test];
            kept.extend(all.into_iter().filter(|one| AppSecret::ALL.contains(one)));
        }
        section.finish();
    }
    billing.finish();
    (secrets, kept)
}

fn secret(
    chars: RangeInclusive<usize>,
    about: &'static str,
) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<String, Problem>> {
    let size = chars.clone();
    let check = move |text: &str| check_secret(text, &chars).map(|()| text.to_owned());
    text_as(check).size(size).write_only().about(about)
}

fn play_key<T>(
    parse: fn(&str) -> Result<T, Problem>,
    about: &'static str,
) -> FieldKind<impl FnOnce(InputValue<'_>) -> Result<String, Problem>> {
    let check = move |text: &str| parse(text).map(|_| text.trim().to_owned());
    text_as(check)
        .size(1..=SECRET_CHARS_MAX)
        .write_only()
        .about(about)
}

fn reject_duplicates(names: Vec<String>) -> Result<Vec<String>, Problem> {
    let distinct: BTreeSet<&String> = names.iter().collect();
    if distinct.len() < names.len() {
        return Err(Problem::new(FaultCode::Duplicate, "Duplicate name."));
    }
    Ok(names)
}
