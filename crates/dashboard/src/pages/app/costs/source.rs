//! `/apps/{app}/costs/{network}` — a network's cost report: account, credentials and imports.

use crate::access::{FormSubmission, PageContext, ReportContext};
use crate::failure::Failure;
use crate::form_state::{FormState, TypedForm};
use crate::pages::integrations::network_in_path;
use crate::pages::links::update::precondition;
use crate::sealing::FormSecretSealer;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::cost_source::{
    CostSource, REPORTING_NETWORKS, cost_credentials_of, cost_settings_of, credential_owner,
    restated_days,
};
use tributary_domain::integration::{Credential, IntegrationStatus, Network, SettingDefault};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_fields::cost_source::read_draft;
use tributary_store::StoreError;

/// A cost source on the page with all costs.
pub(super) struct SourceRow {
    pub(super) network: &'static str,
    pub(super) name: &'static str,
    pub(super) status: &'static str,
    pub(super) tone: &'static str,
    pub(super) summary: String,
    pub(super) action: &'static str,
}

impl SourceRow {
    pub(super) fn of(source: &CostSource) -> Self {
        let (status, _) = source.status();
        let is_failing = source.pulls.problem.is_some();
        let (status, tone) = match status {
            IntegrationStatus::NotConfigured => ("Not set up", "quiet"),
            IntegrationStatus::Active => ("On", "good"),
            IntegrationStatus::Paused if is_failing => ("Paused", "bad"),
            IntegrationStatus::Paused => ("Off", "quiet"),
            IntegrationStatus::Error => ("Failing", "bad"),
        };
        let summary = match source.pulls.pulled_until {
            Some(day) => format!("Imported until {day}."),
            None => "Nothing imported yet.".to_owned(),
        };
        Self {
            network: source.network.as_str(),
            name: source.network.name(),
            status,
            tone,
            summary,
            action: if source.updated_at.is_some() {
                "Change"
            } else {
                "Set up"
            },
        }
    }
}

#[derive(Template)]
#[template(path = "cost_source.html")]
struct CostSourcePage {
    shell: Shell,
    network: &'static str,
    name: &'static str,
    guide: &'static str,
    row: SourceRow,
    tag: String,
    reason: Option<String>,
    form: FormState,
    settings: Vec<AccountSetting>,
    credentials: Vec<ReportSecret>,
    /// Pairs of label and value.
    pulls: Vec<(&'static str, String)>,
    is_enabled: bool,
    is_stored: bool,
    /// Set if the source was to be removed, but had been changed after the page was opened.
    refused_removal: Option<RefusedRemoval>,
}

struct RefusedRemoval {
    /// Whether the imported costs were to be removed as well.
    with_costs: bool,
}

struct AccountSetting {
    field: String,
    label: &'static str,
    hint: &'static str,
    placeholder: &'static str,
}

struct ReportSecret {
    field: String,
    label: &'static str,
    hint: String,
    is_set: bool,
    is_long: bool,
}

/// Explains how to get a network's credentials.
const fn guide(network: Network) -> &'static str {
    match network {
        Network::A => {
            "In Meta Business Settings, create a system user, assign the ad account to it with the \
             permission to view performance, and generate a token with the permission ads_read only."
        }
        Network::B => {
            "In Google Ads, give a user or a service account the access level Read only. Take the \
             developer token from the API Center of your manager account, and enable the Google \
             Ads API in the Cloud project of the OAuth client or service account."
        }
        Network::C | Network::D => {
            "In the TikTok API for Business portal, create an app with the permission for \
             reporting only, let the advertiser authorize it, and paste its access token."
        }
    }
}

/// Returns the label and hint for a setting or credential.
fn field_texts(network: Network, name: &str) -> (&'static str, &'static str) {
    match (network, name) {
        (Network::A, "accountId") => (
            "Ad account id",
            "From Ads Manager, with or without act_ in front.",
        ),
        (Network::B, "accountId") => ("Customer id", "Of the account that runs the ads."),
        (_, "accountId") => ("Advertiser id", "From TikTok Ads Manager."),
        (_, "loginAccountId") => (
            "Manager account id",
            "Only if you reach the account through a manager account.",
        ),
        (_, "clientId") => ("OAuth client id", "Not needed with a service account."),
        (_, "apiVersion") => ("API version", "Leave empty for the default."),
        (_, "accessToken") => ("Access token", "May only read reports."),
        (_, "appSecret") => (
            "App secret",
            "Optional. Only if your Meta app requires proofs of its secret.",
        ),
        (_, "developerToken") => ("Developer token", "From the API Center."),
        (_, "clientSecret") => ("OAuth client secret", "Not needed with a service account."),
        (_, "refreshToken") => ("Refresh token", "Not needed with a service account."),
        (_, "serviceAccountKey") => (
            "Service account key",
            "The whole JSON key file. It replaces the OAuth client and its refresh token.",
        ),
        _ => ("", ""),
    }
}

fn setting(network: Network, name: &'static str, default: SettingDefault) -> AccountSetting {
    let (label, hint) = field_texts(network, name);
    AccountSetting {
        field: format!("settings.{name}"),
        label,
        hint,
        placeholder: match default {
            SettingDefault::Text(text) => text,
            _ => "",
        },
    }
}

fn secret(source: &CostSource, name: &'static str) -> ReportSecret {
    let (label, hint) = field_texts(source.network, name);
    let found = source.credentials.get(name);
    let end = found.and_then(|credential| credential.hint.as_deref());
    let hint = match (found, end) {
        (Some(_), Some(end)) => format!("Set; ends in …{end}. Leave empty to keep it. {hint}"),
        (Some(_), None) => format!("Set. Leave empty to keep it. {hint}"),
        (None, _) => hint.to_owned(),
    };
    ReportSecret {
        field: format!("credentials.{name}"),
        label,
        hint,
        is_set: found.is_some(),
        is_long: name == "serviceAccountKey",
    }
}

/// Builds the form for a stored source. A new one is on, because people come here to import.
fn filled(source: &CostSource) -> FormState {
    let is_on = source.enabled || source.updated_at.is_none();
    let form = FormState::default().with_checkbox("enabled", is_on);
    let settings = source.settings.iter();
    settings.fold(form, |form, (name, value)| {
        form.with(&format!("settings.{name}"), value.as_str())
    })
}

fn pulls(source: &CostSource, zone: &Timezone) -> Vec<(&'static str, String)> {
    let time = |at: Option<Timestamp>, other: &str| {
        at.map_or_else(|| other.to_owned(), |at| text::moment(at, zone))
    };
    let pulls = &source.pulls;
    let until = pulls.pulled_until;
    vec![
        ("Last import", time(pulls.last_success_at, "Never")),
        ("Last attempt", time(pulls.last_pull_at, "Never")),
        (
            "Complete until",
            until.map_or_else(|| "–".to_owned(), |day| day.to_string()),
        ),
        ("Next import", time(pulls.due_at, "None: off or paused")),
        (
            "Imported again",
            format!("The last {} days", restated_days(source.network)),
        ),
    ]
}

/// Returns the network in the path. OpenAI Ads (`network_d`) has no cost report.
fn reporting_network<S>(context: &PageContext<S>) -> Result<Network, Failure> {
    let network = network_in_path(context)?;
    let has_report = REPORTING_NETWORKS.contains(&network);
    has_report.then_some(network).ok_or(Failure::NotFound)
}

async fn page(
    handles: &DashboardHandles,
    context: &PageContext<impl Send>,
    caller: &Authorized<AppsRead>,
    typed: Option<TypedForm>,
) -> Result<CostSourcePage, Failure> {
    let (app, network) = (context.app()?.id, reporting_network(context)?);
    let sources = handles.store.cost_sources(caller, app).await?;
    let found = sources.into_iter().find(|one| one.network == network);
    let source = found.unwrap_or_else(|| CostSource::new(app, network));
    let (_, reason) = source.status();
    let form = TypedForm::or_stored(typed, filled(&source));
    let settings = cost_settings_of(network).iter();
    let secrets = cost_credentials_of(network).iter();
    Ok(CostSourcePage {
        shell: context.shell(Section::Costs),
        network: network.as_str(),
        name: network.name(),
        guide: guide(network),
        row: SourceRow::of(&source),
        tag: form.tag(source.tag()),
        reason: reason.filter(|_| source.enabled),
        settings: settings
            .map(|spec| setting(network, spec.name, spec.default))
            .collect(),
        credentials: secrets.map(|spec| secret(&source, spec.name)).collect(),
        pulls: pulls(&source, &context.app()?.timezone),
        is_enabled: source.enabled,
        is_stored: source.updated_at.is_some(),
        refused_removal: None,
        form,
    })
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AppsRead>,
) -> Result<Response, Failure> {
    let page = page(&handles, &context, &context.authorized, None).await?;
    Ok(context.page(&page))
}

/// Stores the submitted form.
pub(crate) async fn update(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (app, network) = (submission.app()?.id, reporting_network(&submission)?);
    let sealer = FormSecretSealer::new(&handles, &submission)?;
    let ((mut draft, credentials), mut faults) =
        submission.form.read(|fields| read_draft(fields, network));
    let mut is_conflict = false;
    if faults.is_empty() {
        for (name, credential) in credentials {
            let credential = credential.map(|(text, hint)| Credential {
                sealed: sealer.seal(credential_owner(network), name, &text),
                hint,
            });
            draft.credentials.insert(name, credential);
        }
        let (caller, origin) = (&submission.authorized, submission.origin(&handles));
        let opened = precondition(&submission.form);
        let stored = handles
            .store
            .put_cost_source(caller, app, network, draft, opened, origin);
        match stored.await {
            Ok(_) => {
                let page = format_args!("costs/{}", network.as_str());
                return submission.redirect(page, "saved");
            }
            Err(StoreError::Refused(Refusal::Invalid(found))) => faults = found,
            Err(StoreError::Refused(Refusal::VersionConflict)) => is_conflict = true,
            Err(error) => return Err(error.into()),
        }
    }
    // Typed credentials are never sent back.
    let mut form = FormState::from_form(&submission.form).with_faults(faults);
    for spec in cost_credentials_of(network) {
        form = form.with(&format!("credentials.{}", spec.name), "");
    }
    let typed = TypedForm { form, is_conflict };
    let status = typed.status();
    let caller = submission.authorized.read_access();
    let page = page(&handles, &submission.context, &caller, Some(typed)).await?;
    Ok(submission.page_with(status, &page))
}

/// `POST …/pull` — imports costs now.
pub(crate) async fn pull(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (app, network) = (submission.app()?.id, reporting_network(&submission)?);
    let (caller, origin) = (&submission.authorized, submission.origin(&handles));
    let now = origin.at;
    let due = handles.store.pull_cost_source(caller, app, network, origin);
    let notice = match due.await {
        Ok(source) if source.pulls.due_at.is_some_and(|due| due <= now) => "pulling",
        Ok(_) => "not-pulling",
        // It was switched off meanwhile.
        Err(StoreError::Refused(Refusal::Invalid(_))) => "unchanged",
        Err(error) => return Err(error.into()),
    };
    submission.redirect(format_args!("costs/{}", network.as_str()), notice)
}

/// `POST …/remove` — removes the source, unless it was changed after the page was opened.
pub(crate) async fn remove(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (app, network) = (submission.app()?.id, reporting_network(&submission)?);
    let with_costs = submission.form.is_checked("removeCosts");
    let (caller, origin) = (&submission.authorized, submission.origin(&handles));
    let opened = precondition(&submission.form);
    let removed = handles
        .store
        .remove_cost_source(caller, app, network, with_costs, opened, origin);
    match removed.await {
        Ok(()) => submission.redirect("costs", "removed"),
        Err(StoreError::Refused(Refusal::VersionConflict)) => {
            let caller = submission.authorized.read_access();
            let mut page = page(&handles, &submission.context, &caller, None).await?;
            page.refused_removal = Some(RefusedRemoval { with_costs });
            Ok(submission.page_with(StatusCode::CONFLICT, &page))
        }
        Err(error) => Err(error.into()),
    }
}
