//! `GET /api/v1/apps/{appId}/cohorts` — returns retention and revenue by install cohort.

use super::shape::{CohortOut, CohortsEnvelope, example};
use crate::caller::ReportCaller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::PageQuery;
use crate::path::PathIds;
use crate::query::{QueryParameters, QueryString};
use crate::report::range::RangeQuery;
use crate::report::{RowKey, RowPage, load_spend, out_of_range, row_key};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::access::resource::CohortsRead;
use tributary_domain::report::cohort::{
    AGE_DAYS_MAX, CohortDimension, CohortFigures, CohortReportQuery, CohortRow,
};
use tributary_domain::report::range::Span;
use tributary_domain::report::{Dimension, ReportQuery, Spend, TimeUnit};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::page::ListScope;
use tributary_domain::vocabulary::time::Timestamp;

/// Default value of `maxAge`.
const AGES_DEFAULT: u8 = 30;
/// Maximum number of rows to read for a report. There is one row per cohort and day since install.
const ROWS_MAX: u32 = 200_000;

struct CohortsQuery {
    interval: TimeUnit,
    by: Option<CohortDimension>,
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
        CohortDimension::parse(text)
            .ok_or_else(|| unknown("Must be one of network, link, campaign, country."))
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
                   device's install). Web events belong to no install. Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("interval" = Option<String>, Query,
            description = "Cohort length: `day`, `week` or `month`. Default: `day`."),
        ("groupBy" = Option<String>, Query,
            description = "`network`, `link`, `campaign` or `country`. Default: no grouping."),
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
    let report_query = CohortReportQuery {
        periods: spans.iter().map(|span| span.period).collect(),
        group_by: request.by,
        age_max: request.age_max,
        rows_max: ROWS_MAX + 1,
    };
    let found = state.store.cohorts(&reader, app, report_query);
    let found = found.await?;
    if found.len() > ROWS_MAX as usize {
        let message = "The report has too many cohorts. Request fewer days or a longer interval.";
        return Err(out_of_range("groupBy", message));
    }
    let costs = if caller.authorized.environment() == Environment::Live {
        costs_by_cohort(
            &load_spend(&state, &reader, app, &range).await?,
            &spans,
            request.by,
        )
    } else {
        None
    };
    let rows = newest_first(found, costs.as_ref(), &spans, &request, state.runtime.now());
    let scope = ListScope {
        list: "cohorts",
        organization: caller.authorized.organization(),
        filters: json!([
            app.to_string(),
            caller.authorized.environment().as_str(),
            request.interval.as_str(),
            request.by.map(CohortDimension::as_str),
            request.age_max,
            range.from.to_string(),
            range.to.to_string(),
            range.zone.as_str()
        ])
        .to_string(),
    };
    Ok(RowPage::of(rows, &request.page, &state, &scope)?.into_list())
}

/// Returns the cost of each cohort. Costs have no link or country, so there is no cost for cohorts
/// grouped by link or by country.
fn costs_by_cohort(
    costs: &Spend,
    spans: &[Span],
    by: Option<CohortDimension>,
) -> Option<BTreeMap<(usize, String), i64>> {
    let by = match by {
        None => Vec::new(),
        Some(CohortDimension::Network) => vec![Dimension::Network],
        Some(CohortDimension::Campaign) => vec![Dimension::Campaign],
        Some(CohortDimension::Link | CohortDimension::Country) => return None,
    };
    let report_query = ReportQuery {
        periods: Vec::new(),
        group_by: by,
        filters: Vec::new(),
        rows_max: 0,
    };
    let mut sums: BTreeMap<(usize, String), i64> = BTreeMap::new();
    for (span, values, cost) in costs.rows(spans, &report_query) {
        let value = values.into_iter().next().unwrap_or_default();
        let sum = sums.entry((span, value)).or_default();
        *sum = sum.saturating_add(cost);
    }
    Some(sums)
}

fn newest_first(
    found: Vec<CohortRow>,
    costs: Option<&BTreeMap<(usize, String), i64>>,
    spans: &[Span],
    request: &CohortsQuery,
    now: Timestamp,
) -> Vec<(RowKey, CohortOut)> {
    let mut cohorts: BTreeMap<(Reverse<usize>, String), BTreeMap<u8, CohortFigures>> =
        BTreeMap::new();
    for row in found {
        let ages = cohorts.entry((Reverse(row.period), row.value)).or_default();
        ages.entry(row.age).or_default().add(&row.figures, 1);
    }
    cohorts
        .into_iter()
        .filter_map(|((Reverse(number), value), ages)| {
            let span = spans.get(number)?;
            let cost = costs.map(|costs| {
                let found = costs.get(&(number, value.clone()));
                found.copied().unwrap_or_default()
            });
            let key = row_key([span.label.as_str(), value.as_str()]);
            let by = request.by.map(|by| (by.as_str(), value.as_str()));
            let out = CohortOut::of(span, by, &ages, cost, request.age_max, now);
            Some((key, out))
        })
        .collect()
}
