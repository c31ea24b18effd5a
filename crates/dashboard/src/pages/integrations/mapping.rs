//! `/apps/{app}/settings/mapping` — each network's event mapping.

use super::network_in_path;
use crate::access::{FormSubmission, PageContext, ReportContext};
use crate::failure::Failure;
use crate::form_state::{FormState, TAG};
use crate::pages::links::update::precondition;
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::integration::{
    Integration, IntegrationChange, MappingRow, Network, check_mapping, network_event_name,
};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::Faults;
use tributary_domain::vocabulary::text::parse_event_name;
use tributary_fields::Form;
use tributary_store::StoreError;

/// Empty rows at the end of the form.
const ROWS_FREE: usize = 3;
/// Maximum number of rows to read from a form. More than a mapping may have, so that validation can
/// report excess rows.
const ROWS_READ_MAX: usize = 300;

#[derive(Template)]
#[template(path = "mapping.html")]
struct MappingPage {
    shell: Shell,
    networks: Vec<NetworkRows>,
}

struct NetworkRows {
    network: &'static str,
    name: &'static str,
    tag: String,
    is_default: bool,
    rows: Vec<(usize, MappingRow)>,
    /// The stored rows, if another change was saved after the form was opened.
    saved: Option<Vec<MappingRow>>,
    form: FormState,
}

/// A submitted mapping that was not saved.
struct TypedMapping {
    network: Network,
    rows: Vec<MappingRow>,
    /// Version that the form was opened with.
    tag: String,
    faults: Faults,
    is_conflict: bool,
}

impl NetworkRows {
    fn of(integration: &Integration, typed: Option<TypedMapping>) -> Self {
        let free = || MappingRow {
            event: String::new(),
            network_event: String::new(),
            enabled: true,
        };
        let is_conflict = typed.as_ref().is_some_and(|typed| typed.is_conflict);
        let opened_with = typed.as_ref().map(|typed| typed.tag.clone());
        let opened_with = opened_with.filter(|tag| !is_conflict && !tag.is_empty());
        let (rows, faults) = match typed {
            Some(typed) => (typed.rows, typed.faults),
            None => (integration.mapping(), Faults::new()),
        };
        let rows = rows.into_iter().chain((0..ROWS_FREE).map(|_| free()));
        Self {
            network: integration.network.as_str(),
            name: integration.network.name(),
            tag: opened_with.unwrap_or_else(|| integration.tag()),
            is_default: integration.event_mapping.is_none(),
            rows: rows.enumerate().collect(),
            saved: is_conflict.then(|| integration.mapping()),
            form: FormState::default().with_faults(faults),
        }
    }
}

async fn page(
    handles: &DashboardHandles,
    context: &PageContext<impl Send>,
    caller: &Authorized<AppsRead>,
    mut typed: Option<TypedMapping>,
) -> Result<MappingPage, Failure> {
    let found = handles
        .store
        .integrations(caller, context.app()?.id)
        .await?;
    let of = |one: &Integration| {
        NetworkRows::of(one, typed.take_if(|typed| typed.network == one.network))
    };
    Ok(MappingPage {
        shell: context.shell(Section::Settings),
        networks: found.iter().map(of).collect(),
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

/// Reads the rows from a form. Rows without names are dropped.
fn rows(form: &Form) -> Vec<MappingRow> {
    let row = |index: usize| {
        let field = |name: &str| form.field(&format!("eventMapping[{index}].{name}"));
        MappingRow {
            event: field("event").trim().to_owned(),
            network_event: field("networkEvent").trim().to_owned(),
            enabled: !field("enabled").is_empty(),
        }
    };
    (0..ROWS_READ_MAX)
        .map(row)
        .filter(|row| !row.event.is_empty() || !row.network_event.is_empty())
        .collect()
}

/// Validates the rows.
fn checked(network: Network, rows: &[MappingRow]) -> Result<Vec<MappingRow>, Faults> {
    let mut faults = Faults::new();
    let mut good = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let path = |name: &str| format!("eventMapping[{index}].{name}");
        let event = faults.check(&path("event"), parse_event_name(&row.event));
        let name = network_event_name(&row.network_event);
        let name = faults.check(&path("networkEvent"), name);
        good.push(event.and(name).map(|_| row.clone()));
    }
    check_mapping(network, &mut good, &mut faults);
    faults.into_result()?;
    Ok(good.into_iter().flatten().collect())
}

/// `POST /apps/{app}/settings/mapping/{network}` — replaces a network's mapping.
pub(crate) async fn update(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let network = network_in_path(&submission)?;
    let mut typed = TypedMapping {
        network,
        rows: rows(&submission.form),
        tag: submission.form.field(TAG),
        faults: Faults::new(),
        is_conflict: false,
    };
    let event_mapping = if submission.form.is_checked("reset") {
        Ok(Change::Reset)
    } else {
        checked(network, &typed.rows).map(Change::Set)
    };
    match event_mapping {
        Err(faults) => typed.faults = faults,
        Ok(event_mapping) => match store(&handles, &submission, network, event_mapping).await {
            Ok(_) => {
                let page = submission.notice_url("settings/mapping", "saved")?;
                return Ok(see_other(&format!("{page}#{}", network.as_str())));
            }
            Err(StoreError::Refused(Refusal::VersionConflict)) => typed.is_conflict = true,
            Err(error) => return Err(error.into()),
        },
    }
    let status = if typed.is_conflict {
        StatusCode::CONFLICT
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let caller = submission.authorized.read_access();
    let page = page(&handles, &submission.context, &caller, Some(typed)).await?;
    Ok(submission.page_with(status, &page))
}

async fn store(
    handles: &DashboardHandles,
    submission: &FormSubmission<AppsWrite>,
    network: Network,
    event_mapping: Change<Vec<MappingRow>>,
) -> Result<Integration, StoreError> {
    let change = IntegrationChange {
        event_mapping,
        ..IntegrationChange::default()
    };
    let app = submission.app().map_err(|_| Refusal::AppNotFound)?.id;
    let (precondition, origin) = (precondition(&submission.form), submission.origin(handles));
    let caller = &submission.authorized;
    let stored =
        handles
            .store
            .update_integration(caller, app, network, change, precondition, origin);
    stored.await
}
