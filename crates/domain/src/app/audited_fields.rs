//! An app's fields as the audit log shows them.

use super::App;
use crate::audit::{Changes, FieldChange};

/// Returns the configurable fields with their audit log names and values.
pub(super) fn audit_values(app: &App) -> Vec<(&'static str, Option<String>)> {
    let always = |value: &dyn ToString| Some(value.to_string());
    let rules = &app.attribution;
    vec![
        ("name", always(&app.name.as_str())),
        ("timezone", always(&app.timezone.as_str())),
        ("archived", always(&app.archived)),
        ("ios.bundleId", app.ios.bundle_id.clone()),
        ("ios.appStoreId", app.ios.app_store_id.clone()),
        ("ios.teamId", app.ios.team_id.clone()),
        ("android.packageName", app.android.package_name.clone()),
        (
            "android.sha256CertFingerprints",
            always(&app.android.sha256_cert_fingerprints.join(", ")),
        ),
        ("webEvents.enabled", always(&app.web_events_enabled)),
        (
            "linkDomain",
            app.link_domain
                .as_ref()
                .map(|domain| domain.host.as_str().to_owned()),
        ),
        (
            "linkDomainVerification.verified",
            app.link_domain
                .as_ref()
                .map(|domain| domain.is_verified.to_string()),
        ),
        ("sdk.enabled", always(&app.sdk.enabled)),
        ("sdk.revenue", always(&app.sdk.revenue.as_str())),
        ("sdk.identity", always(&app.sdk.identity.as_str())),
        ("sdk.attestation", always(&app.sdk.attestation.as_str())),
        ("revenueEvents", always(&app.revenue_events.join(", "))),
        ("deepLinkSchemes", always(&app.deep_link_schemes.join(", "))),
        (
            "attribution.clickWindowHours",
            always(&rules.click_window_hours),
        ),
        (
            "attribution.probabilistic.ios",
            always(&rules.probabilistic_ios),
        ),
        (
            "attribution.probabilistic.android",
            always(&rules.probabilistic_android),
        ),
        (
            "attribution.probabilistic.windowHours",
            always(&rules.probabilistic_window_hours),
        ),
        ("attribution.fraud", always(&rules.fraud.as_str())),
        (
            "qualifiedTrial.enabled",
            always(&app.qualified_trial.enabled),
        ),
        (
            "qualifiedTrial.delayHours",
            always(&app.qualified_trial.delay_hours),
        ),
        ("skanTestSignals", always(&app.skan_test_signals)),
        (
            "alertWebhookUrl",
            app.alert_webhook_url
                .as_ref()
                .map(|url| url.as_str().to_owned()),
        ),
    ]
}

/// Returns the fields that differ between two states of an app.
pub(super) fn differences(before: &App, after: &App) -> Vec<FieldChange> {
    let mut changes = Changes::new();
    for ((field, before), (_, after)) in audit_values(before).into_iter().zip(audit_values(after)) {
        changes.compare(field, before, after);
    }
    changes.into_vec()
}
