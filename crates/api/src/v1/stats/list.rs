//! `GET /api/v1/apps/{appId}/stats` — figures, told apart by what is asked for.

use super::log;
use super::query::StatsQuery;
use super::shape::{StatsEnvelope, StatsOut, example};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::path::PathIds;
use crate::query::QueryString;
use crate::report::figures::FiguresOut;
use crate::report::{RowKey, RowPage, load_spend, out_of_range, row_key};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tributary_domain::access::AnalyticsRead;
use tributary_domain::report::range::{DayRange, Span};
use tributary_domain::report::{
    ReportFigures, ReportQuery, ReportRowKey, Rollup, Spend, report_rows,
};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::ListScope;

/// Rows of one report, over all its pages.
const ROWS_MAX: u32 = 50_000;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/stats", tag = "Analytics", operation_id = "getStats",
    summary = "Read figures",
    description = "Newest first. Days, weeks, months and hours begin when the clocks of the zone say so; grouped by time alone, \
                   every one of them has a row. A dimension is null where there is nothing. What a day has too many of \
                   (campaigns, ads, names of events) counts under `(other)`. `meta.totals` are the sums over all pages. Needs `analytics:read`.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("groupBy" = Option<String>, Query,
            description = "At most three of `day`, `hour`, `week`, `month`, `network`, `link`, `campaign`, `adset`, `ad`, \
                           `country`, `platform`, `event`, `source`, with commas between, and one of the first four at \
                           most; `day` when absent."),
        ("network" = Option<String>, Query, description = "Of this network only; at most three filters at once."),
        ("linkId" = Option<String>, Query, description = "Filter by link id. The former name `link` still works."),
        ("campaign" = Option<String>, Query, description = "Of the campaign of this id only."),
        ("adset" = Option<String>, Query, description = "Of the ad set of this id only."),
        ("ad" = Option<String>, Query, description = "Of the ad of this id only."),
        ("country" = Option<String>, Query, description = "Of this country only: two letters."),
        ("platform" = Option<String>, Query, description = "`ios`, `android` or `web` only."),
        ("event" = Option<String>, Query, description = "Events of this name only."),
        ("source" = Option<String>, Query, description = "`sdk`, `billing` or `web` only."),
        ("from" = Option<String>, Query, description = "The first day, such as `2026-01-01`; 30 days when absent."),
        ("to" = Option<String>, Query, description = "The last day, inclusive; today when absent."),
        ("timezone" = Option<String>, Query, description = "In which zone the days begin; the app's when absent."),
        ("limit" = Option<i64>, Query, description = "Rows of a page; 50 when absent.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` of the page before."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of figures.", body = inline(StatsEnvelope), example = json!(example())))
)]
pub(crate) async fn list(
    caller: Caller<AnalyticsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let asked = query.read(StatsQuery::read)?;
    asked.check()?;
    let app = ids.app()?;
    let range = asked.range.for_app(&state, &caller.authorized, app).await?;
    let scope = scope(&caller, app, &asked, &range);
    let spans = range.split(asked.group.time);
    let question = ReportQuery {
        periods: spans.iter().map(|span| span.period).collect(),
        group_by: asked.group.dimensions.clone(),
        filters: asked.filters.clone(),
        rows_max: ROWS_MAX + 1,
    };
    let found = if Rollup::for_dimensions(&question.dimensions()).is_some() {
        let stats = state.store.stats(&caller.authorized, app, question.clone());
        stats.await?
    } else {
        log::count(&state, &caller.authorized, app, range.period(), &question).await?
    };
    let environment = caller.authorized.environment();
    let costs = if Spend::is_available_for(environment, asked.group.time, &question) {
        Some(load_spend(&state, &caller.authorized, app, &range).await?)
    } else {
        None
    };
    let rows = report_rows(found, &question, &spans, costs.as_ref());
    if rows.len() > ROWS_MAX as usize {
        let message = format!("Comes to more than {ROWS_MAX} rows; ask for fewer days or groups.");
        return Err(out_of_range("groupBy", message));
    }
    let mut totals = costs.map_or_else(ReportFigures::default, |_| ReportFigures::zero());
    for row in rows.values() {
        totals.add(row);
    }
    let rows = newest_first(rows, &spans, &asked);
    let page = RowPage::of(rows, &asked.page, &state, &scope)?;
    Ok(page.into_list_with_totals(FiguresOut::of(&totals)))
}

/// Everything that makes this another list.
fn scope(
    caller: &Caller<AnalyticsRead>,
    app: AppId,
    asked: &StatsQuery,
    range: &DayRange,
) -> ListScope {
    let filters: Vec<_> = asked
        .filters
        .iter()
        .map(|(dimension, value)| (dimension.as_str(), value))
        .collect();
    let by: Vec<_> = asked
        .group
        .dimensions
        .iter()
        .map(|one| one.as_str())
        .collect();
    let narrowed_by = serde_json::json!([
        app.to_string(),
        caller.authorized.environment().as_str(),
        asked
            .group
            .time
            .map(tributary_domain::report::TimeUnit::as_str),
        by,
        filters,
        range.from.to_string(),
        range.to.to_string(),
        range.zone.as_str()
    ]);
    ListScope {
        list: "stats",
        organization: caller.authorized.organization(),
        filters: narrowed_by.to_string(),
    }
}

fn newest_first(
    rows: BTreeMap<ReportRowKey, ReportFigures>,
    spans: &[Span],
    asked: &StatsQuery,
) -> Vec<(RowKey, StatsOut)> {
    let mut rows: Vec<(ReportRowKey, ReportFigures)> = rows.into_iter().collect();
    rows.sort_by(|((one, first), _), ((other, second), _)| {
        (Reverse(one), first).cmp(&(Reverse(other), second))
    });
    rows.into_iter()
        .map(|((span, values), measured)| {
            let label = spans.get(span).map_or("", |one| &one.label);
            let key = row_key([label].into_iter().chain(values.iter().map(String::as_str)));
            (key, StatsOut::of(label, &values, &asked.group, &measured))
        })
        .collect()
}
