//! `/apps/{app}/integrations/{network}` — a network's settings and credentials.

use super::texts::{choice_label, field_texts, setup_guide, skipped_advice};
use super::{StatusLabel, find, network_in_path};
use crate::access::{FormSubmission, PageContext, ReportContext};
use crate::failure::Failure;
use crate::form_state::{FormState, TypedForm};
use crate::pages::events::reason_label;
use crate::pages::links::update::precondition;
use crate::sealing::FormSecretSealer;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::forwarding::skipped::{SkippedConversions, SkippedForReason};
use tributary_domain::integration::{
    Credential, Integration, Network, SettingDefault, SettingKind, SettingSpec, SettingValue,
    credentials_of, settings_of,
};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_fields::integration::read_change;
use tributary_store::StoreError;

#[derive(Template)]
#[template(path = "integration.html")]
struct IntegrationPage {
    shell: Shell,
    network: &'static str,
    name: &'static str,
    guide: &'static str,
    status: StatusLabel,
    can_resume: bool,
    skipped: Vec<SkippedRow>,
    skipped_stopped_early: bool,
    tag: String,
    form: FormState,
    settings: Vec<Setting>,
    credentials: Vec<Secret>,
}

/// Events that were not sent for one reason, with advice.
struct SkippedRow {
    label: String,
    count: String,
    /// Counts by event name.
    events: String,
    advice: &'static str,
}

impl SkippedRow {
    fn all(skipped: &SkippedConversions, network: Network) -> Vec<Self> {
        let number = |count: u64| text::count(i64::try_from(count).unwrap_or(i64::MAX));
        let event = |(name, count): &(String, u64)| format!("{name} {}", number(*count));
        let row = |one: &SkippedForReason| Self {
            label: reason_label(&one.reason).to_owned(),
            count: match one.count {
                1 => "1 event".to_owned(),
                count => format!("{} events", number(count)),
            },
            events: one
                .by_event
                .iter()
                .map(event)
                .collect::<Vec<_>>()
                .join(", "),
            advice: skipped_advice(&one.reason, network),
        };
        skipped.by_reason.iter().map(row).collect()
    }
}

/// A setting as a form field.
struct Setting {
    field: String,
    label: &'static str,
    hint: &'static str,
    kind: Kind,
}

enum Kind {
    Line { placeholder: &'static str },
    Tick,
    Choice(Vec<(&'static str, &'static str)>),
    Lines,
}

/// A credential as a form field.
struct Secret {
    field: String,
    label: &'static str,
    hint: String,
    is_set: bool,
    is_long: bool,
}

fn setting(network: Network, spec: &SettingSpec) -> Setting {
    let (label, hint) = field_texts(network, spec.name);
    Setting {
        field: format!("settings.{}", spec.name),
        label,
        hint,
        kind: match (spec.kind, spec.default) {
            (SettingKind::Flag, _) => Kind::Tick,
            (SettingKind::DigitsMap, _) => Kind::Lines,
            (SettingKind::Choice(choices), _) => {
                let labelled = choices.iter().map(|one| (*one, choice_label(one)));
                Kind::Choice(labelled.collect())
            }
            (_, SettingDefault::Text(placeholder)) => Kind::Line { placeholder },
            _ => Kind::Line { placeholder: "" },
        },
    }
}

fn secret(integration: &Integration, name: &'static str) -> Secret {
    let (label, hint) = field_texts(integration.network, name);
    let found = integration.credentials.get(name);
    let hint = match found {
        Some(Credential {
            hint: Some(end), ..
        }) => {
            format!("Set; ends in …{end}. Leave empty to keep it. {hint}")
        }
        Some(_) => format!("Set. Leave empty to keep it. {hint}"),
        None => hint.to_owned(),
    };
    Secret {
        field: format!("credentials.{name}"),
        label,
        hint,
        is_set: found.is_some(),
        is_long: name == "serviceAccountKey",
    }
}

/// Builds the form for a stored integration.
fn filled(integration: &Integration) -> FormState {
    let mut form = FormState::default()
        .with_checkbox("enabled", integration.enabled)
        .with("scope", integration.scope.as_str());
    for spec in settings_of(integration.network) {
        let field = format!("settings.{}", spec.name);
        form = match (integration.settings.get(spec.name), spec.default) {
            (Some(SettingValue::Text(text)), _) => form.with(&field, text.as_str()),
            (Some(SettingValue::Flag(flag)), _) => form.with_checkbox(&field, *flag),
            (Some(SettingValue::Number(number)), _) => form.with(&field, number.to_string()),
            (Some(SettingValue::Map(map)), _) => {
                let lines: Vec<String> = map
                    .iter()
                    .map(|(name, id)| format!("{name} = {id}"))
                    .collect();
                form.with(&field, lines.join("\n"))
            }
            (None, SettingDefault::Text(text)) => form.with(&field, text),
            (None, _) => form,
        };
    }
    form
}

async fn page(
    handles: &DashboardHandles,
    context: &PageContext<impl Send>,
    caller: &Authorized<AppsRead>,
    typed: Option<TypedForm>,
) -> Result<IntegrationPage, Failure> {
    let network = network_in_path(context)?;
    let (integration, health) = find(handles, context, caller, network).await?;
    let secrets = credentials_of(network).iter();
    let form = TypedForm::or_stored(typed, filled(&integration));
    Ok(IntegrationPage {
        shell: context.shell(Section::Integrations),
        network: network.as_str(),
        name: network.name(),
        guide: setup_guide(network),
        status: StatusLabel::of(&integration, &health.state),
        can_resume: health.state.pause.is_some(),
        skipped: SkippedRow::all(&health.skipped, network),
        skipped_stopped_early: health.skipped.stopped_early,
        tag: form.tag(integration.tag()),
        settings: settings_of(network)
            .map(|spec| setting(network, spec))
            .collect(),
        credentials: secrets
            .map(|spec| secret(&integration, spec.name))
            .collect(),
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
    let (app, network) = (submission.app()?.id, network_in_path(&submission)?);
    let sealer = FormSecretSealer::new(&handles, &submission)?;
    let ((mut change, credentials), faults) =
        submission.form.read(|fields| read_change(fields, network));
    let mut is_conflict = false;
    if faults.is_empty() {
        for (name, credential) in credentials {
            let credential = credential.map(|(text, hint)| Credential {
                sealed: sealer.seal(network.as_str(), name, &text),
                hint,
            });
            change.credentials.insert(name, credential);
        }
        let (precondition, origin) = (precondition(&submission.form), submission.origin(&handles));
        let caller = &submission.authorized;
        let stored =
            handles
                .store
                .update_integration(caller, app, network, change, precondition, origin);
        match stored.await {
            Ok(_) => {
                let page = format_args!("integrations/{}", network.as_str());
                return submission.redirect(page, "saved");
            }
            Err(StoreError::Refused(Refusal::VersionConflict)) => is_conflict = true,
            Err(error) => return Err(error.into()),
        }
    }
    // Typed credentials are never sent back.
    let mut form = FormState::from_form(&submission.form).with_faults(faults);
    for spec in credentials_of(network) {
        form = form.with(&format!("credentials.{}", spec.name), "");
    }
    let typed = TypedForm { form, is_conflict };
    let status = typed.status();
    let caller = submission.authorized.read_access();
    let page = page(&handles, &submission.context, &caller, Some(typed)).await?;
    Ok(submission.page_with(status, &page))
}

/// `POST …/resume` — resumes a paused integration.
pub(crate) async fn resume(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (app, network, origin) = (
        submission.app()?.id,
        network_in_path(&submission)?,
        submission.origin(&handles),
    );
    let resumed = handles.store.resume_integration(
        &submission.authorized,
        app,
        network,
        Precondition::None,
        origin,
    );
    resumed.await?;
    let page = format_args!("integrations/{}", network.as_str());
    submission.redirect(page, "resumed")
}
