//! `GET /api/v1/apps/{appId}/stats` — returns report figures by dimension.

use super::log;
use super::query::StatsQuery;
use super::shape::{StatsEnvelope, StatsOut, example};
use crate::caller::{Caller, ReportCaller};
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::path::PathIds;
use crate::query::QueryString;
use crate::report::figures::FiguresOut;
use crate::report::{RowKey, RowPage, load_spend, out_of_range, row_key};
use crate::state::ApiState;
use crate::time_text::rfc3339;
use axum::extract::State;
use axum::response::IntoResponse;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::range::{DayRange, Span};
use tributary_domain::report::{
    Period, ReportFigures, ReportQuery, ReportRowKey, Rollup, Spend, StatsRow, report_rows,
};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::ListScope;
use tributary_domain::vocabulary::time::Timestamp;

/// Maximum number of rows in a report over all pages.
const ROWS_MAX: u32 = 50_000;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/stats", tag = "Analytics", operation_id = "getStats",
    summary = "Get report figures",
    description = "Sorted newest first. Hours, days, weeks and months are in the report's time \
                   zone. If the report is grouped by time alone, every period has a row. A \
                   dimension is null if it is unknown. If a day has too many campaigns, ads or \
                   event names, the rest are counted as `(other)`. `meta.totals` contains the \
                   totals over all pages. `meta.completeFrom` is present if the figures lack \
                   events from before that time. Requires `analytics:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("groupBy" = Option<String>, Query,
            description = "Up to three comma-separated dimensions: at most one of `day`, `hour`, \
                           `week` and `month`, and any of `network`, `link`, `campaign`, `adset`, \
                           `ad`, `country`, `platform`, `event` and `source`. Default: `day`."),
        ("network" = Option<String>, Query,
            description = "Filter by network. At most three filters."),
        ("linkId" = Option<String>, Query,
            description = "Filter by link id. The former name `link` still works."),
        ("campaign" = Option<String>, Query, description = "Filter by campaign id."),
        ("adset" = Option<String>, Query, description = "Filter by ad set id."),
        ("ad" = Option<String>, Query, description = "Filter by ad id."),
        ("country" = Option<String>, Query, description = "Filter by two-letter country code."),
        ("platform" = Option<String>, Query,
            description = "Filter by platform: `ios`, `android` or `web`; `app` means iOS and \
                           Android, so without payments on websites."),
        ("event" = Option<String>, Query, description = "Filter by event name."),
        ("source" = Option<String>, Query,
            description = "Filter by source: `sdk`, `billing` or `web`."),
        ("from" = Option<String>, Query,
            description = "First day, such as `2026-01-01`. If omitted, the range covers 30 days."),
        ("to" = Option<String>, Query, description = "Last day, inclusive. Default: today."),
        ("timezone" = Option<String>, Query,
            description = "Time zone for day boundaries. Default: the app's time zone."),
        ("limit" = Option<i64>, Query,
            description = "Rows per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of figures.",
        body = inline(StatsEnvelope), example = json!(example())))
)]
pub(crate) async fn list(
    caller: ReportCaller<AnalyticsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let request = query.read(StatsQuery::read)?;
    request.check()?;
    let app = ids.app()?;
    let range = request
        .range
        .for_app(&state, &caller.authorized, app)
        .await?;
    let scope = scope(&caller, app, &request, &range);
    let spans = range.split(request.group.time);
    let report_query = ReportQuery {
        periods: spans.iter().map(|span| span.period).collect(),
        group_by: request.group.dimensions.clone(),
        filters: request.filters.clone(),
        rows_max: ROWS_MAX + 1,
    };
    let reader = &caller.authorized;
    let has_costs =
        Spend::is_available_for(reader.environment(), request.group.time, &report_query);
    let read = if has_costs {
        report_query.split_by_network()
    } else {
        report_query.clone()
    };
    let (found, complete_from) = figures(&state, reader, app, range.period(), &read).await?;
    let costs = if has_costs {
        Some(load_spend(&state, &caller.authorized, app, &range).await?)
    } else {
        None
    };
    let rows = report_rows(found, &report_query, &spans, costs.as_ref());
    if rows.len() > ROWS_MAX as usize {
        let message = format!(
            "The report has more than {ROWS_MAX} rows. Request fewer days or fewer dimensions."
        );
        return Err(out_of_range("groupBy", message));
    }
    let mut totals = costs.map_or_else(ReportFigures::default, |_| ReportFigures::zero());
    for row in rows.values() {
        totals.add(row);
    }
    let rows = newest_first(rows, &spans, &request);
    let page = RowPage::of(rows, &request.page, &state, &scope)?;
    let mut list = page.into_list_with_totals(FiguresOut::of(&totals));
    list.meta.complete_from = complete_from.map(rfc3339);
    Ok(list)
}

/// Returns the figures: from a roll-up, or from the logs if no roll-up covers the dimensions or the
/// period. A pivot of a range that is too large for the logs may lack earlier events; then the time
/// from which it is complete is returned as well.
async fn figures(
    state: &ApiState,
    reader: &Authorized<AnalyticsRead>,
    app: AppId,
    whole: Period,
    query: &ReportQuery,
) -> Result<(Vec<StatsRow>, Option<Timestamp>), ApiError> {
    let complete_from = state.store.complete_from(reader, app, query).await?;
    if Rollup::for_dimensions(&query.dimensions()).is_none() {
        log::require_countable(state, reader, app, whole).await?;
    } else if complete_from.is_none() || !log::is_countable(state, reader, app, whole).await? {
        let stats = state.store.stats(reader, app, query.clone());
        return Ok((stats.await?, complete_from));
    }
    Ok((log::count(state, reader, app, whole, query).await?, None))
}

/// Returns the scope of the list. A cursor is valid only for the same scope.
fn scope(
    caller: &Caller<AnalyticsRead>,
    app: AppId,
    request: &StatsQuery,
    range: &DayRange,
) -> ListScope {
    let filters: Vec<_> = request
        .filters
        .iter()
        .map(|(dimension, value)| (dimension.as_str(), value))
        .collect();
    let by: Vec<_> = request
        .group
        .dimensions
        .iter()
        .map(|one| one.as_str())
        .collect();
    let narrowed_by = serde_json::json!([
        app.to_string(),
        caller.authorized.environment().as_str(),
        request
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
    request: &StatsQuery,
) -> Vec<(RowKey, StatsOut)> {
    let mut rows: Vec<(ReportRowKey, ReportFigures)> = rows.into_iter().collect();
    rows.sort_by(|((one, first), _), ((other, second), _)| {
        (Reverse(one), first).cmp(&(Reverse(other), second))
    });
    rows.into_iter()
        .map(|((span, values), measured)| {
            let label = spans.get(span).map_or("", |one| &one.label);
            let key = row_key([label].into_iter().chain(values.iter().map(String::as_str)));
            (key, StatsOut::of(label, &values, &request.group, &measured))
        })
        .collect()
}
