//! `/team/single-sign-on` — the organization's provider.

use super::{redirect_url, sign_in_path};
use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::{FormState, TypedForm};
use crate::pages::links::update::precondition;
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::MembersWrite;
use tributary_domain::access::person::Role;
use tributary_domain::access::single_sign_on::{
    CLIENT_SECRET_FIELD, Issuer, ProviderSummary, SingleSignOn, SingleSignOnDraft,
    parse_client_text, parse_default_role, parse_email_domains, secret_scope,
};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::fault::Faults;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::web_url::HostName;
use tributary_fields::Form;
use tributary_store::StoreError;

#[derive(Template)]
#[template(path = "single_sign_on.html")]
struct SettingsPage {
    shell: Shell,
    form: FormState,
    tag: String,
    is_stored: bool,
    redirect_url: String,
    sign_in_url: String,
    roles: Vec<(&'static str, &'static str)>,
    tested: Option<Result<ProviderSummary, String>>,
}

/// Fields of the stored settings.
fn filled(settings: Option<&SingleSignOn>) -> FormState {
    let Some(settings) = settings else {
        return FormState::default()
            .with("defaultRole", Role::Viewer.as_str())
            .with_checkbox("allowsPasswords", true);
    };
    let domains = settings.email_domains.iter().map(HostName::as_str);
    FormState::default()
        .with("issuer", settings.issuer.as_str())
        .with("clientId", settings.client_id.as_str())
        .with("emailDomains", domains.collect::<Vec<_>>().join("\n"))
        .with("defaultRole", settings.default_role.as_str())
        .with_checkbox("allowsPasswords", settings.allows_passwords)
}

async fn page(
    handles: &DashboardHandles,
    context: &PageContext<MembersWrite>,
    typed: Option<TypedForm>,
    tested: Option<Result<ProviderSummary, String>>,
) -> Result<SettingsPage, Failure> {
    let organization = context.authorized.organization();
    let stored = handles.store.single_sign_on(organization).await?;
    let form = TypedForm::or_stored(typed, filled(stored.as_ref()));
    let tag = stored.as_ref().map(SingleSignOn::tag);
    Ok(SettingsPage {
        shell: context.shell(Section::Team),
        tag: form.tag(tag.unwrap_or_default()),
        form,
        is_stored: stored.is_some(),
        redirect_url: redirect_url(handles, organization),
        sign_in_url: format!("{}{}", handles.base_url, sign_in_path(organization)),
        roles: [Role::Admin, Role::Analyst, Role::Viewer]
            .map(|role| (role.as_str(), role.as_str()))
            .to_vec(),
        tested,
    })
}

/// Shows the settings.
pub(crate) async fn show_settings(
    State(handles): State<DashboardHandles>,
    context: PageContext<MembersWrite>,
) -> Result<Response, Failure> {
    Ok(context.page(&page(&handles, &context, None, None).await?))
}

/// Saves the settings.
pub(crate) async fn save(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let organization = submission.authorized.organization();
    let mut is_conflict = false;
    let faults = match draft(&handles, organization, &submission.form) {
        Err(faults) => faults,
        Ok(draft) => {
            let precondition = precondition(&submission.form);
            let origin = submission.origin(&handles);
            let caller = &submission.authorized;
            let saved = handles
                .store
                .replace_single_sign_on(caller, draft, precondition, origin);
            match saved.await {
                Ok(_) => return Ok(see_other("/team/single-sign-on?notice=saved")),
                Err(StoreError::Refused(Refusal::VersionConflict)) => {
                    is_conflict = true;
                    Faults::new()
                }
                Err(StoreError::Refused(Refusal::Invalid(faults))) => faults,
                Err(error) => return Err(error.into()),
            }
        }
    };
    // A typed secret is not sent back.
    let form = FormState::from_form(&submission.form).with(CLIENT_SECRET_FIELD, "");
    let typed = TypedForm {
        form: form.with_faults(faults),
        is_conflict,
    };
    let status = typed.status();
    let page = page(&handles, &submission.context, Some(typed), None).await?;
    Ok(submission.page_with(status, &page))
}

/// Reads the form, and seals the client secret.
fn draft(
    handles: &DashboardHandles,
    organization: OrganizationId,
    form: &Form,
) -> Result<SingleSignOnDraft, Faults> {
    let mut faults = Faults::new();
    let issuer = Issuer::parse(&form.field("issuer"), handles.sign_on.allows_http());
    let issuer = faults.check("issuer", issuer);
    let client_id = faults.check("clientId", parse_client_text(&form.field("clientId")));
    let secret = form.field(CLIENT_SECRET_FIELD);
    let secret = (!secret.trim().is_empty()).then(|| parse_client_text(&secret));
    let secret = secret.and_then(|secret| faults.check(CLIENT_SECRET_FIELD, secret));
    let domains = parse_email_domains(&form.field("emailDomains"));
    let domains = faults.check("emailDomains", domains);
    let role = faults.check(
        "defaultRole",
        parse_default_role(&form.field("defaultRole")),
    );
    let scope = organization.to_string();
    let seal = |secret: String| {
        let nonce = handles.runtime.random_bytes();
        let keyring = &handles.keyring;
        keyring.seal(&secret_scope(&scope), nonce, secret.as_bytes())
    };
    match (issuer, client_id, domains, role) {
        (Some(issuer), Some(client_id), Some(email_domains), Some(default_role))
            if faults.is_empty() =>
        {
            Ok(SingleSignOnDraft {
                issuer,
                client_id,
                client_secret: secret.map(seal),
                email_domains,
                default_role,
                allows_passwords: form.is_checked("allowsPasswords"),
            })
        }
        _ => Err(faults),
    }
}

/// `POST /team/single-sign-on/test` — fetches the provider's configuration and keys.
pub(crate) async fn test(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let organization = submission.authorized.organization();
    let settings = handles.store.single_sign_on(organization).await?;
    let settings = settings.ok_or(Failure::NotFound)?;
    let now = handles.runtime.now();
    let tested = handles.sign_on.test(settings.issuer, now).await;
    let tested = Some(tested.map_err(|fault| fault.to_string()));
    let page = page(&handles, &submission.context, None, tested).await?;
    Ok(submission.page(&page))
}

/// `POST /team/single-sign-on/remove` — removes the settings.
pub(crate) async fn remove(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let (caller, origin) = (&submission.authorized, submission.origin(&handles));
    let removed = handles.store.remove_single_sign_on(caller, origin);
    removed.await?;
    Ok(see_other("/team/single-sign-on?notice=removed"))
}
