//! `/apps/{app}/settings` — all of an app's settings.
//! `POST /apps/{app}/settings/identity-secret` — generates an identity secret, shown once.

use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::{FormState, TypedForm};
use crate::pages::links::update::precondition;
use crate::pages::sdk_keys::{SdkKeyLine, sdk_key_lines};
use crate::sealing::FormSecretSealer;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::app::{App, AppChange, AppSecret, AttributionRules};
use tributary_domain::device::identity_secret;
use tributary_domain::ownership::link_domain::DomainChallenge;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::HttpsUrl;
use tributary_fields::Fields;
use tributary_fields::app::read_change;
use tributary_store::StoreError;

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    shell: Shell,
    tag: String,
    form: FormState,
    live_key: String,
    test_key: String,
    sdk_keys: Vec<SdkKeyLine>,
    base_url: String,
    referrer_key_is_set: bool,
    decryption_key_is_set: bool,
    verification_key_is_set: bool,
    identity: IdentitySecretView,
    claim: Option<DomainClaim>,
}

/// The secret that signs user ids.
struct IdentitySecretView {
    is_set: bool,
    /// A newly generated secret.
    new: Option<String>,
}

/// An unverified link domain.
struct DomainClaim {
    host: String,
    challenge: DomainChallenge,
    fault: Option<String>,
}

impl SettingsPage {
    const fn referrer_key_hint(&self) -> &'static str {
        if self.referrer_key_is_set {
            "Set. Leave empty to keep it. Decrypts Meta's install referrer on Android. On Meta for \
             Developers, open App settings → Basic → Android and copy the install referrer \
             decryption key."
        } else {
            "Decrypts Meta's install referrer on Android. On Meta for Developers, open App \
             settings → Basic → Android and copy the install referrer decryption key."
        }
    }

    const fn decryption_key_hint(&self) -> &'static str {
        if self.decryption_key_is_set {
            "Set. Leave empty to keep it."
        } else {
            "From the Play Console: Test and release → App integrity → Play Integrity API. Choose to \
             manage and download your response encryption keys."
        }
    }

    const fn verification_key_hint(&self) -> &'static str {
        if self.verification_key_is_set {
            "Set. Leave empty to keep it."
        } else {
            "From the same page of the Play Console."
        }
    }

    fn snippet(&self, key: &str) -> String {
        format!(
            "import {{ configure, trackEvent }} from \"tributary-sdk\";\n\n\
             configure({{ key: \"{key}\", baseUrl: \"{}\" }});\n\
             trackEvent(\"purchase\", {{ revenue: \"9.99\", currency: \"EUR\" }});",
            self.base_url
        )
    }
}

/// Adds attribution rules to a form.
pub(crate) fn with_rules(form: FormState, rules: &AttributionRules) -> FormState {
    form.with(
        "attribution.clickWindowHours",
        rules.click_window_hours.to_string(),
    )
    .with_checkbox("attribution.probabilistic.ios", rules.probabilistic_ios)
    .with_checkbox(
        "attribution.probabilistic.android",
        rules.probabilistic_android,
    )
    .with(
        "attribution.probabilistic.windowHours",
        rules.probabilistic_window_hours.to_string(),
    )
    .with("attribution.fraud", rules.fraud.as_str())
}

/// Builds the form for a stored app.
fn filled(app: &App) -> FormState {
    let url = app.alert_webhook_url.as_ref().map(HttpsUrl::as_str);
    with_rules(FormState::default(), &app.attribution)
        .with("name", app.name.as_str())
        .with("timezone", app.timezone.as_str())
        .with_checkbox("archived", app.archived)
        .with_optional("ios.bundleId", app.ios.bundle_id.clone())
        .with_optional("ios.appStoreId", app.ios.app_store_id.clone())
        .with_optional("ios.teamId", app.ios.team_id.clone())
        .with_optional("android.packageName", app.android.package_name.clone())
        .with(
            "android.sha256CertFingerprints",
            app.android.sha256_cert_fingerprints.join("\n"),
        )
        .with_checkbox("webEvents.enabled", app.web_events_enabled)
        .with_optional(
            "linkDomain",
            app.link_domain.as_ref().map(|domain| domain.host.as_str()),
        )
        .with_checkbox("sdk.enabled", app.sdk.enabled)
        .with("sdk.revenue", app.sdk.revenue.as_str())
        .with("sdk.attestation", app.sdk.attestation.as_str())
        .with("sdk.identity", app.sdk.identity.as_str())
        .with("revenueEvents", app.revenue_events.join("\n"))
        .with("deepLinkSchemes", app.deep_link_schemes.join("\n"))
        .with_checkbox("qualifiedTrial.enabled", app.qualified_trial.enabled)
        .with(
            "qualifiedTrial.delayHours",
            app.qualified_trial.delay_hours.to_string(),
        )
        .with_checkbox("skanTestSignals", app.skan_test_signals)
        .with_optional("alertWebhookUrl", url)
}

async fn page(
    handles: &DashboardHandles,
    context: &PageContext<impl Send>,
    caller: &Authorized<AppsRead>,
    typed: Option<TypedForm>,
) -> Result<SettingsPage, Failure> {
    let app = handles.store.app(caller, context.app()?.id).await?;
    let claim = app
        .link_domain
        .as_ref()
        .filter(|domain| !domain.is_verified);
    let claim = claim.map(|domain| DomainClaim {
        host: domain.host.as_str().to_owned(),
        challenge: DomainChallenge::new(&handles.keyring, app.id, &domain.host),
        fault: None,
    });
    let form = TypedForm::or_stored(typed, filled(&app));
    let sdk_keys = sdk_key_lines(handles, caller, &app).await?;
    Ok(SettingsPage {
        sdk_keys,
        claim,
        shell: context.shell(Section::Settings),
        tag: form.tag(app.tag()),
        form,
        base_url: app.link_base(&handles.base_url),
        referrer_key_is_set: app.secrets.contains(&AppSecret::SocialReferrerKey),
        decryption_key_is_set: app.secrets.contains(&AppSecret::PlayDecryptionKey),
        verification_key_is_set: app.secrets.contains(&AppSecret::PlayVerificationKey),
        identity: IdentitySecretView {
            is_set: app.secrets.contains(&AppSecret::Identity),
            new: None,
        },
        live_key: app.sdk.live_key,
        test_key: app.sdk.test_key,
    })
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: PageContext<AppsRead>,
) -> Result<Response, Failure> {
    let page = page(&handles, &context, &context.authorized, None).await?;
    Ok(context.page(&page))
}

/// Generates an identity secret, shown once. The previous one stays valid until the next rotation.
pub(crate) async fn create_identity_secret(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let app = submission.app()?.id;
    let secret = identity_secret(handles.runtime.random_bytes());
    let sealer = FormSecretSealer::new(&handles, &submission)?;
    let sealed = sealer.seal_app_secret(AppSecret::Identity, &secret);
    let rotation = AppChange::rotation(AppSecret::Identity, sealed);
    let (caller, origin) = (&submission.authorized, submission.origin(&handles));
    let stored = handles
        .store
        .update_app(caller, app, rotation, Precondition::None, origin);
    stored.await?;
    let caller = submission.authorized.read_access();
    let page = page(&handles, &submission.context, &caller, None).await?;
    let identity = IdentitySecretView {
        is_set: true,
        new: Some(secret),
    };
    let page = SettingsPage { identity, ..page };
    Ok(submission.page_with(StatusCode::OK, &page))
}

/// Secrets on this page, with their form fields, which are never sent back.
const SECRETS: [(AppSecret, &str); 3] = [
    (
        AppSecret::SocialReferrerKey,
        "attribution.socialReferrerKey",
    ),
    (AppSecret::PlayDecryptionKey, "android.playDecryptionKey"),
    (
        AppSecret::PlayVerificationKey,
        "android.playVerificationKey",
    ),
];

/// Stores the submitted form.
pub(crate) async fn update(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let app = submission.app()?.id;
    let read = |fields: &mut Fields<'_>| read_change(fields, &handles.base_url);
    let ((mut change, mut secrets), mut faults) = submission.form.read(read);
    // Billing secrets are set on the Integrations page.
    secrets.retain(|(secret, _)| SECRETS.iter().any(|(one, _)| one == secret));
    change.secrets = FormSecretSealer::new(&handles, &submission)?.seal_app_secrets(secrets);
    let mut is_conflict = false;
    if faults.is_empty() {
        let (precondition, origin) = (precondition(&submission.form), submission.origin(&handles));
        let caller = &submission.authorized;
        let stored = handles
            .store
            .update_app(caller, app, change, precondition, origin);
        match stored.await {
            Ok(_) => return submission.redirect("settings", "saved"),
            Err(StoreError::Refused(taken @ Refusal::StoreIdTaken)) => {
                let problem = Problem::new(FaultCode::NotAllowed, taken.to_string());
                faults.add("ios.appStoreId", problem);
            }
            Err(StoreError::Refused(Refusal::VersionConflict)) => is_conflict = true,
            Err(error) => return Err(error.into()),
        }
    }
    let form = FormState::from_form(&submission.form);
    let form = SECRETS
        .iter()
        .fold(form, |form, (_, field)| form.with(field, ""));
    let typed = TypedForm {
        form: form.with_faults(faults),
        is_conflict,
    };
    let status = typed.status();
    let caller = submission.authorized.read_access();
    let page = page(&handles, &submission.context, &caller, Some(typed)).await?;
    Ok(submission.page_with(status, &page))
}

/// `POST /apps/{app}/settings/link-domain` — looks up the TXT record that verifies the link domain.
pub(crate) async fn verify_link_domain(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let refused = match verify(&handles, &submission).await {
        Ok(_) => return submission.redirect("settings", "verified"),
        Err(StoreError::Refused(
            refused @ (Refusal::DomainUnproven | Refusal::DnsUnavailable | Refusal::DomainTaken),
        )) => refused,
        Err(error) => return Err(error.into()),
    };
    let caller = submission.authorized.read_access();
    let mut page = page(&handles, &submission.context, &caller, None).await?;
    if let Some(claim) = &mut page.claim {
        claim.fault = Some(refused.to_string());
    }
    Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

async fn verify(
    handles: &DashboardHandles,
    submission: &FormSubmission<AppsWrite>,
) -> Result<App, StoreError> {
    let caller = &submission.authorized;
    let app = submission.app().map_err(|_| Refusal::AppNotFound)?.id;
    let found = handles.store.app(&caller.read_access(), app).await?;
    let host = found.claimed_link_domain()?;
    let challenge = DomainChallenge::new(&handles.keyring, app, host);
    let records = (handles.txt_lookup)(challenge.record_name.clone()).await;
    if !challenge.is_met_by(&records.ok_or(Refusal::DnsUnavailable)?) {
        return Err(Refusal::DomainUnproven.into());
    }
    let (host, origin) = (host.clone(), submission.origin(handles));
    let verified = handles
        .store
        .set_link_domain_verified(caller, app, host, true, origin);
    verified.await
}

#[cfg(test)]
mod tests {
    use crate::testing::{SILENT_DOMAIN, TestDashboard};
    use axum::http::StatusCode;
    use tributary_domain::access::person::Role;

    #[tokio::test]
    async fn a_domain_is_verified_by_its_record() {
        let dashboard = TestDashboard::start().await;
        let owner = dashboard.sign_in_as(Role::Admin).await;
        let app = owner.create_app().await;
        let settings = format!("/apps/{app}/settings");
        let set = async |domain: &str| {
            let form = format!("name=Runner&timezone=UTC&linkDomain={domain}");
            let saved = owner.post(&settings, &form).await;
            assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
        };
        let verify = async || owner.post(&format!("{settings}/link-domain"), "").await;
        for (domain, fault) in [
            ("go.example.com", "was not found"),
            (SILENT_DOMAIN, "DNS lookup failed"),
        ] {
            set(domain).await;
            let page = verify().await;
            assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
            assert!(page.text.contains(&format!("_tributary.{domain}")));
            assert!(page.element("link-domain-fault").contains(fault));
        }
        set(&format!("{}.example.com", app.replace('_', "-"))).await;
        assert_eq!(verify().await.status, StatusCode::SEE_OTHER);
        let page = owner.get(&settings).await;
        assert!(!page.text.contains("Verify the link domain"));
    }
}
