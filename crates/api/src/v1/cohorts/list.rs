//! `GET /api/v1/apps/{appId}/cohorts` — returns retention and revenue by install cohort.

use super::shape::{CohortOut, CohortsEnvelope, CohortsMeta, example};
use crate::caller::{Caller, ReportCaller};
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::PageQuery;
use crate::path::PathIds;
use crate::query::{QueryParameters, QueryString};
use crate::report::filters::read_filters;
use crate::report::range::RangeQuery;
use crate::report::{RowPage, load_spend, out_of_range, row_key};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde_json::json;
use tributary_domain::access::resource::CohortsRead;
use tributary_domain::report::cohort::{
    AGE_DAYS_MAX, CohortReportQuery, CohortTable, cohort_report,
};
use tributary_domain::report::range::DayRange;
use tributary_domain::report::{Dimension, Spend, TimeUnit};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::ListScope;

/// Default value of `maxAge`.
const AGES_DEFAULT: u8 = 30;
/// Maximum number of rows to read for a report. There is one row per cohort and day since install.
const ROWS_MAX: u32 = 200_000;
/// Maximum number of rows to read for a report with costs. There is one row per cohort, network and
/// day since install; a report of all days without a grouping fits.
const SPLIT_ROWS_MAX: u32 = 400_000;
/// Dimensions to filter by.
const FILTERS: [Dimension; 4] = [
    Dimension::Network,
    Dimension::Link,
    Dimension::Campaign,
    Dimension::Country,
];

struct CohortsQuery {
    interval: TimeUnit,
    by: Option<Dimension>,
    filters: Vec<(Dimension, String)>,
    age_max: u8,
    range: RangeQuery,
    page: PageQuery,
}

fn read(parameters: &mut QueryParameters<'_>) -> CohortsQuery {
    let unknown = |message: &str| Problem::new(FaultCode::UnknownValue, message.to_owned());
    let interval = |text: &str| {
        let unit = TimeUnit::parse(text).filter(|unit| *unit != TimeUnit::Hour);
        unit.ok_or_else(|| unknown("Must be one of day, week, month."))
    };
    let by = |text: &str| {
        let dimension = Dimension::parse(text).filter(|one| CohortTable::has_dimension(*one));
        dimension.ok_or_else(|| unknown("Must be one of network, link, campaign, country."))
    };
    let age_max = |text: &str| {
        let number = text.parse().ok().filter(|age| *age <= AGE_DAYS_MAX);
        number.ok_or_else(|| {
            let message = format!("Must be a whole number from 0 to {AGE_DAYS_MAX}.");
            Problem::new(FaultCode::OutOfRange, message)
        })
    };
    CohortsQuery {
        interval: parameters
            .optional("interval", interval)
            .unwrap_or(TimeUnit::Day),
        by: parameters.optional("groupBy", by),
        filters: read_filters(parameters, &FILTERS),
        age_max: parameters
            .optional("maxAge", age_max)
            .unwrap_or(AGES_DEFAULT),
        range: RangeQuery::read(parameters),
        page: PageQuery::read(parameters),
    }
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/cohorts", tag = "Analytics", operation_id = "getCohorts",
    summary = "Get cohorts",
    description = "Installs by day, week or month, newest first. Each cohort has the number of \
                   active devices and the revenue for each age in days (24 hours since the \
                   device's install). Web events belong to no install. A cost without installs has \
                   its own row. `meta.averages` contains the average over the cohorts of all \
                   pages, weighted by their size or cost, and `meta.sameCohorts` the figures of those \
                   cohorts that have completed the last of its days. Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("interval" = Option<String>, Query,
            description = "Cohort length: `day`, `week` or `month`. Default: `day`."),
        ("groupBy" = Option<String>, Query,
            description = "`network`, `link`, `campaign` or `country`. Default: no grouping."),
        ("network" = Option<String>, Query,
            description = "Filter by network. Network, link and campaign can be combined with each \
                           other, but not with country."),
        ("linkId" = Option<String>, Query, description = "Filter by link id."),
        ("campaign" = Option<String>, Query, description = "Filter by campaign id."),
        ("country" = Option<String>, Query, description = "Filter by two-letter country code."),
        ("maxAge" = Option<i64>, Query,
            description = "Highest age in days. Default: 30.", minimum = 0, maximum = 127),
        ("from" = Option<String>, Query,
            description = "First install day, such as `2026-01-01`. If omitted, the range covers 30 days."),
        ("to" = Option<String>, Query, description = "Last day, inclusive. Default: today."),
        ("timezone" = Option<String>, Query,
            description = "Time zone for day boundaries. Default: the app's time zone."),
        ("limit" = Option<i64>, Query,
            description = "Cohorts per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of cohorts.",
        body = inline(CohortsEnvelope), example = json!(example())))
)]
pub(crate) async fn list(
    caller: ReportCaller<CohortsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let request = query.read(read)?;
    let app = ids.app()?;
    let reader = caller.authorized.analytics_access();
    let range = request.range.for_app(&state, &reader, app).await?;
    let spans = range.split(Some(request.interval));
    let periods = spans.iter().map(|span| span.period).collect();
    let by: Vec<Dimension> = request.by.into_iter().collect();
    let mut question = CohortReportQuery::new(periods, &by, request.age_max, ROWS_MAX + 1);
    question.report.filters.clone_from(&request.filters);
    let unit = Some(request.interval);
    let has_costs = Spend::is_available_for(reader.environment(), unit, &question.report);
    let (read, costs) = if has_costs {
        let costs = load_spend(&state, &reader, app, &range).await?;
        (question.split_by_network(SPLIT_ROWS_MAX + 1), Some(costs))
    } else {
        (question.clone(), None)
    };
    let payers_from = state.store.payers_complete_from(&reader, app).await?;
    let found = state.store.cohorts(&reader, app, read.clone()).await?;
    if read.is_cut(found.len()) {
        let message = "The report has too many cohorts. Request fewer days or a longer interval.";
        return Err(out_of_range("groupBy", message));
    }
    let now = state.runtime.now();
    let cohorts = cohort_report(found, &question, &spans, costs.as_ref(), payers_from, now);
    let row = |cohort: &_| {
        let out = CohortOut::of(cohort, &spans, request.by);
        let key = row_key(out.labels());
        (key, out)
    };
    let rows = cohorts.iter().map(row).collect();
    let scope = scope(&caller, app, &request, &range);
    let page = RowPage::of(rows, &request.page, &state, &scope)?;
    Ok(page.into_list_with(|page| CohortsMeta::new(page, &cohorts, request.age_max)))
}

fn scope(
    caller: &Caller<CohortsRead>,
    app: AppId,
    request: &CohortsQuery,
    range: &DayRange,
) -> ListScope {
    let filters = request.filters.iter();
    let filters = filters.map(|(dimension, value)| json!([dimension.as_str(), value]));
    ListScope {
        list: "cohorts",
        organization: caller.authorized.organization(),
        filters: json!([
            app.to_string(),
            caller.authorized.environment().as_str(),
            request.interval.as_str(),
            request.by.map(Dimension::as_str),
            filters.collect::<Vec<_>>(),
            request.age_max,
            range.from.to_string(),
            range.to.to_string(),
            range.zone.as_str()
        ])
        .to_string(),
    }
}
