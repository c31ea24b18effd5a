//! `GET /api/v1/apps/{appId}/cohorts` — what devices that were installed together did in the days after.

use super::shape::{CohortOut, CohortsEnvelope, example};
use crate::caller::Caller;
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
use tributary_domain::access::{AppsRead, Environment};
use tributary_domain::report::cohort::{
    AGE_DAYS_MAX, CohortDimension, CohortFigures, CohortReportQuery, CohortRow,
};
use tributary_domain::report::range::Span;
use tributary_domain::report::{Dimension, ReportQuery, Spend, TimeUnit};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::page::ListScope;
use tributary_domain::vocabulary::time::Timestamp;

/// Ages that are shown when nobody says.
const AGES_DEFAULT: u8 = 30;
/// Rows of one report, one for each cohort and age.
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
    summary = "Follow installs",
    description = "Installs of a day, week or month, newest first, and for each age in days (24 hours since a device's own \
                   install) how many devices had an event, and the money so far. Website events belong to no install. Needs \
                   `apps:read`.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("interval" = Option<String>, Query, description = "`day`, `week` or `month` of the install; `day` when absent."),
        ("groupBy" = Option<String>, Query, description = "`network`, `link`, `campaign` or `country`; all together when absent."),
        ("maxAge" = Option<i64>, Query, description = "The last age; 30 when absent.", minimum = 0, maximum = 127),
        ("from" = Option<String>, Query, description = "The first day of installs, such as `2026-01-01`; 30 days when absent."),
        ("to" = Option<String>, Query, description = "The last day, inclusive; today when absent."),
        ("timezone" = Option<String>, Query, description = "In which zone the days begin; the app's when absent."),
        ("limit" = Option<i64>, Query, description = "Cohorts of a page; 50 when absent.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` of the page before."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of cohorts.", body = inline(CohortsEnvelope), example = json!(example())))
)]
pub(crate) async fn list(
    caller: Caller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let asked = query.read(read)?;
    let app = ids.app()?;
    let reader = caller.authorized.analytics_access();
    let range = asked.range.for_app(&state, &reader, app).await?;
    let spans = range.split(Some(asked.interval));
    let question = CohortReportQuery {
        periods: spans.iter().map(|span| span.period).collect(),
        group_by: asked.by,
        age_max: asked.age_max,
        rows_max: ROWS_MAX + 1,
    };
    let found = state.store.cohorts(&reader, app, question);
    let found = found.await?;
    if found.len() > ROWS_MAX as usize {
        let message = "Comes to too many cohorts; ask for fewer days, or a longer interval.";
        return Err(out_of_range("groupBy", message));
    }
    let costs = if caller.authorized.environment() == Environment::Live {
        costs_by_cohort(
            &load_spend(&state, &reader, app, &range).await?,
            &spans,
            asked.by,
        )
    } else {
        None
    };
    let rows = newest_first(found, costs.as_ref(), &spans, &asked, state.runtime.now());
    let scope = ListScope {
        list: "cohorts",
        organization: caller.authorized.organization(),
        filters: json!([
            app.to_string(),
            caller.authorized.environment().as_str(),
            asked.interval.as_str(),
            asked.by.map(CohortDimension::as_str),
            asked.age_max,
            range.from.to_string(),
            range.to.to_string(),
            range.zone.as_str()
        ])
        .to_string(),
    };
    Ok(RowPage::of(rows, &asked.page, &state, &scope)?.into_list())
}

/// What each cohort cost. It is not told by link or country.
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
    let question = ReportQuery {
        periods: Vec::new(),
        group_by: by,
        filters: Vec::new(),
        rows_max: 0,
    };
    let mut sums: BTreeMap<(usize, String), i64> = BTreeMap::new();
    for (span, values, cost) in costs.rows(spans, &question) {
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
    asked: &CohortsQuery,
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
            let by = asked.by.map(|by| (by.as_str(), value.as_str()));
            let out = CohortOut::of(span, by, &ages, cost, asked.age_max, now);
            Some((key, out))
        })
        .collect()
}
