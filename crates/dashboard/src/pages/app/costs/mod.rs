//! `/apps/{app}/costs` — ad costs by day, network and campaign: entered as CSV, or imported.

mod mapping;
pub(crate) mod source;

use crate::access::{FormSubmission, PageContext, ReportContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::network_label::NetworkLabel;
use crate::range::day_label;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::value_names::ValueNames;
use crate::{paging, text};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use mapping::{Mapping, Upload, read_upload};
use source::SourceRow;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Dimension;
use tributary_domain::report::cost::{CostFilter, CostOrigin, StoredCost};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::digest::{from_hex, hex};
use tributary_domain::vocabulary::id::AppId;
use tributary_store::StoreError;

#[derive(Template)]
#[template(path = "costs.html")]
struct CostsPage {
    shell: Shell,
    rows: Vec<Row>,
    older: Option<String>,
    form: FormState,
    /// The columns of an export, to be confirmed.
    mapping: Option<Mapping>,
    sources: Vec<SourceRow>,
}

struct Row {
    day: String,
    network: NetworkLabel,
    /// Name of the campaign, or its id if the name is unknown.
    campaign: String,
    /// Id of a campaign that is shown by its name; otherwise empty.
    campaign_id: String,
    amount: String,
    usd: String,
    is_imported: bool,
    is_counted: bool,
}

fn row(stored: &StoredCost, names: &ValueNames) -> Row {
    let cost = &stored.cost;
    Row {
        day: day_label(cost.day),
        network: NetworkLabel::credited(cost.network),
        campaign: names.label(Dimension::Campaign, &cost.campaign),
        campaign_id: names.id(Dimension::Campaign, &cost.campaign),
        amount: text::money(cost.amount, cost.currency),
        usd: text::usd(stored.usd),
        is_imported: cost.origin == CostOrigin::Imported,
        is_counted: stored.is_counted,
    }
}

/// Loads the names of the costs' campaigns, as they were used until now.
async fn campaign_names(
    handles: &DashboardHandles,
    caller: &Authorized<AppsRead>,
    app: AppId,
    costs: &[StoredCost],
) -> Result<ValueNames, Failure> {
    let days = costs.iter().map(|one| one.cost.day);
    let now = handles.runtime.now();
    let first = days.min().map_or(now, Day::begins_at);
    let values = costs
        .iter()
        .map(|one| (Dimension::Campaign, &one.cost.campaign));
    ValueNames::load(
        handles,
        &caller.analytics_access(),
        app,
        (first, now),
        values,
    )
    .await
}

async fn page(
    handles: &DashboardHandles,
    context: &PageContext<impl Send>,
    caller: &Authorized<AppsRead>,
    form: FormState,
) -> Result<CostsPage, Failure> {
    let app = context.app()?.id;
    let before = context.query.get("before").and_then(from_hex);
    let before = before.and_then(|bytes| bytes.try_into().ok());
    let request = paging::request(before);
    let found = handles
        .store
        .costs(caller, app, CostFilter::default(), request)
        .await?;
    let names = campaign_names(handles, caller, app, &found.items).await?;
    let sources = handles.store.cost_sources(caller, app).await?;
    let last = found.items.last().map(|one| hex(one.cost.key().as_bytes()));
    Ok(CostsPage {
        shell: context.shell(Section::Costs),
        rows: found.items.iter().map(|one| row(one, &names)).collect(),
        older: paging::older(&context.query, found.has_more, last),
        form,
        mapping: None,
        sources: sources.iter().map(SourceRow::of).collect(),
    })
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AppsRead>,
) -> Result<Response, Failure> {
    let page = page(
        &handles,
        &context,
        &context.authorized,
        FormState::default(),
    )
    .await?;
    Ok(context.page(&page))
}

/// Stores the submitted lines.
pub(crate) async fn put(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let app = submission.app()?.id;
    let (faults, mapping) = match read_upload(&submission.form) {
        Upload::Costs(costs) => {
            let origin = submission.origin(&handles);
            let put = handles
                .store
                .put_costs(&submission.authorized, app, costs, origin);
            match put.await {
                Ok(_) => return submission.redirect("costs", "saved"),
                Err(StoreError::Refused(Refusal::Invalid(found))) => (found, None),
                Err(error) => return Err(error.into()),
            }
        }
        Upload::Unconfirmed(faults, mapping) => (faults, Some(mapping)),
        Upload::Faulty(faults) => (faults, None),
    };
    let status = if faults.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let form = FormState::from_form(&submission.form).with_faults(faults);
    let caller = submission.authorized.read_access();
    let mut page = page(&handles, &submission.context, &caller, form).await?;
    page.mapping = mapping;
    Ok(submission.page_with(status, &page))
}
