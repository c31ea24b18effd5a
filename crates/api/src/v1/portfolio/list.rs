//! `GET /api/v1/portfolio` — compares the organization's apps.

use crate::caller::{Caller, ReportCaller};
use crate::error::ApiError;
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::query::{QueryParameters, QueryString, parse_bool};
use crate::report::kpis::{self, KpisOut};
use crate::report::range::RangeQuery;
use crate::report::{RowKey, RowPage};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::access::resource::PortfolioRead;
use tributary_domain::app::App;
use tributary_domain::report::range::DayRange;
use tributary_domain::report::{
    CostSum, Dimension, Figures, Period, ReportFigures, ReportQuery, StatsRow,
};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::page::{Limit, ListScope, PageRequest};
use utoipa::ToSchema;

/// Sort keys.
const SORTS: [&str; 9] = [
    "name",
    "clicks",
    "installs",
    "events",
    "revenue",
    "netRevenue",
    "payingDevices",
    "cost",
    "roas",
];

/// An app in the portfolio.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "PortfolioApp")]
struct PortfolioOut {
    #[schema(example = "app_01k9z3v7q8e4r9m2x5c6b7n8d5")]
    id: String,
    name: String,
    archived: bool,
    /// Time zone that defines the app's days in this report.
    timezone: String,
    kpis: KpisOut,
}

type PortfolioEnvelope = List<PortfolioOut, PortfolioMeta>;

/// Metadata about the portfolio.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the envelope that List writes")]
struct PortfolioMeta {
    has_more: bool,
    cursor: Option<String>,
    /// Totals over all apps.
    totals: KpisOut,
}

/// Sort key and direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sort {
    by: &'static str,
    descending: bool,
}

impl Sort {
    const DEFAULT: Self = Self {
        by: "netRevenue",
        descending: true,
    };

    fn parse(text: &str) -> Result<Self, Problem> {
        let (word, descending) = text
            .strip_prefix('-')
            .map_or((text, false), |word| (word, true));
        let by = SORTS.into_iter().find(|one| *one == word).ok_or_else(|| {
            let message = format!(
                "Must be one of {}. Prefix it with - for descending order.",
                SORTS.join(", ")
            );
            Problem::new(FaultCode::UnknownValue, message)
        })?;
        Ok(Self { by, descending })
    }

    fn value(self, measured: &ReportFigures) -> Option<i64> {
        let figures = &measured.figures;
        match self.by {
            "clicks" => Some(figures.clicks),
            "installs" => Some(figures.installs),
            "events" => Some(figures.events),
            "revenue" => Some(figures.revenue_micros),
            "netRevenue" => Some(figures.net_micros()),
            "payingDevices" => Some(figures.paying_devices),
            "cost" => measured.cost,
            "roas" => measured.roas().map(Amount::micros),
            _ => None,
        }
    }
}

struct PortfolioQuery {
    sort: Sort,
    archived: bool,
    range: RangeQuery,
    page: PageQuery,
}

fn read(parameters: &mut QueryParameters<'_>) -> PortfolioQuery {
    PortfolioQuery {
        sort: parameters
            .optional("sort", Sort::parse)
            .unwrap_or(Sort::DEFAULT),
        archived: parameters.optional("archived", parse_bool).unwrap_or(false),
        range: RangeQuery::read(parameters),
        page: PageQuery::read(parameters),
    }
}

#[utoipa::path(
    get, path = "/api/v1/portfolio", tag = "Portfolio", operation_id = "getPortfolio",
    summary = "Compare apps",
    description = "Key figures for all of the organization's apps, compared with the previous \
                   period of the same length. `meta.totals` contains the totals over all pages. \
                   Archived apps are left out by default. Requires `apps:read`.",
    params(
        ("sort" = Option<String>, Query,
            description = "Sort key: `name`, `clicks`, `installs`, `events`, `revenue`, \
                           `netRevenue`, `payingDevices`, `cost` or `roas`. The prefix `-` means \
                           descending. Default: `-netRevenue`."),
        ("archived" = Option<bool>, Query, description = "If `true`, archived apps are included."),
        ("from" = Option<String>, Query,
            description = "First day, such as `2026-01-01`. If omitted, the range covers 30 days."),
        ("to" = Option<String>, Query, description = "Last day, inclusive. Default: today."),
        ("timezone" = Option<String>, Query,
            description = "Time zone for day boundaries. Default: each app's time zone."),
        ("limit" = Option<i64>, Query,
            description = "Apps per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY]))),
    responses((status = 200, description = "A page of apps.",
        body = inline(PortfolioEnvelope), example = json!(example())))
)]
pub(crate) async fn list(
    caller: ReportCaller<PortfolioRead>,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let request = query.read(read)?;
    let apps = all_apps(&state, &caller, request.archived).await?;
    let mut rows = Vec::with_capacity(apps.len());
    for app in apps {
        let range = request
            .range
            .in_zone(state.runtime.now(), app.timezone.clone())?;
        rows.push((app, range));
    }
    let rows = load_rows(&state, &caller, rows).await?;
    let mut totals = [empty_measure(&caller); 2];
    for row in &rows {
        totals[0].add(&row.now);
        totals[1].add(&row.before);
    }
    let scope = ListScope {
        list: "portfolio",
        organization: caller.authorized.organization(),
        filters: json!([
            caller.authorized.environment().as_str(),
            request.sort.by,
            request.sort.descending,
            request.archived,
            request.range.cursor_values()
        ])
        .to_string(),
    };
    let page = RowPage::of(sorted(rows, request.sort), &request.page, &state, &scope)?;
    Ok(page.into_list_with_totals(KpisOut::of(&totals[0], &totals[1])))
}

async fn all_apps(
    state: &ApiState,
    caller: &Caller<PortfolioRead>,
    archived: bool,
) -> Result<Vec<App>, ApiError> {
    let (mut apps, mut before) = (Vec::new(), None);
    loop {
        let request = PageRequest {
            limit: Limit::MAX,
            before,
        };
        let page = state
            .store
            .apps(&caller.authorized, archived, request)
            .await?;
        apps.extend(page.items);
        if !page.has_more {
            return Ok(apps);
        }
        before = apps.last().map(|app: &App| *app.id.as_bytes());
    }
}

/// An app with its figures.
struct Row {
    app: App,
    zone: String,
    now: ReportFigures,
    before: ReportFigures,
}

/// Returns the figures of an app without data. Live figures have a cost of zero; test figures have
/// no cost, because there is no ad cost for test data.
fn empty_measure(caller: &Caller<PortfolioRead>) -> ReportFigures {
    match caller.authorized.environment() {
        Environment::Live => ReportFigures::zero(),
        Environment::Test => ReportFigures::default(),
    }
}

async fn load_rows(
    state: &ApiState,
    caller: &Caller<PortfolioRead>,
    apps: Vec<(App, DayRange)>,
) -> Result<Vec<Row>, ApiError> {
    let costs = find_costs(state, caller, &apps).await?;
    let figures = if costs.is_empty() {
        totals(state, caller, &apps).await?
    } else {
        figures_by_network(state, caller, &apps).await?
    };
    let mut sums: BTreeMap<(AppId, usize), ReportFigures> = BTreeMap::new();
    for (app, period, network, figures) in figures {
        let sum = sums
            .entry((app, period))
            .or_insert_with(|| empty_measure(caller));
        sum.add_network(network.as_deref(), &figures);
    }
    add_costs(caller, &apps, costs, &mut sums);
    let sum = |app: AppId, period| {
        let found: Option<&ReportFigures> = sums.get(&(app, period));
        found.copied().unwrap_or_else(|| empty_measure(caller))
    };
    let rows = apps.into_iter().map(|(app, range)| Row {
        before: sum(app.id, 0),
        now: sum(app.id, 1),
        zone: range.zone.as_str().to_owned(),
        app,
    });
    Ok(rows.collect())
}

/// Figures of an app in a period: the one before, or the requested one. The network is `None` in
/// totals.
type PeriodFigures = (AppId, usize, Option<String>, Figures);

/// Returns the period before the range, and the range.
fn periods(range: &DayRange) -> Vec<Period> {
    vec![range.preceding().period(), range.period()]
}

/// Loads the totals of all apps at once.
async fn totals(
    state: &ApiState,
    caller: &Caller<PortfolioRead>,
    apps: &[(App, DayRange)],
) -> Result<Vec<PeriodFigures>, ApiError> {
    let apps = apps.iter().map(|(app, range)| (app.id, periods(range)));
    let found = state.store.totals(&caller.authorized, apps.collect());
    let found = found.await?.into_iter();
    let found = found.map(|(app, period, figures)| (app, period, None, figures));
    Ok(found.collect())
}

/// Loads the figures of each app by network, which tells paid revenue from organic revenue. Only
/// ratios with costs need it.
async fn figures_by_network(
    state: &ApiState,
    caller: &Caller<PortfolioRead>,
    apps: &[(App, DayRange)],
) -> Result<Vec<PeriodFigures>, ApiError> {
    let reader = caller.authorized.analytics_access();
    let mut all = Vec::new();
    for (app, range) in apps {
        let query = ReportQuery {
            periods: periods(range),
            group_by: vec![Dimension::Network],
            filters: Vec::new(),
            rows_max: u32::MAX,
        };
        let found = state.store.stats(&reader, app.id, query).await?;
        let row = |row: StatsRow| (app.id, row.period, Some(row.values.concat()), row.figures);
        all.extend(found.into_iter().map(row));
    }
    Ok(all)
}

/// Loads the costs of all apps on the days of any of their periods.
async fn find_costs(
    state: &ApiState,
    caller: &Caller<PortfolioRead>,
    apps: &[(App, DayRange)],
) -> Result<Vec<(AppId, CostSum)>, ApiError> {
    let first = apps.iter().map(|(_, range)| range.preceding().from).min();
    let last = apps.iter().map(|(_, range)| range.to).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Ok(Vec::new());
    };
    let ids = apps.iter().map(|(app, _)| app.id).collect();
    let reader = caller.authorized.analytics_access();
    Ok(state.store.cost_sums(&reader, ids, first, last).await?)
}

fn add_costs(
    caller: &Caller<PortfolioRead>,
    apps: &[(App, DayRange)],
    costs: Vec<(AppId, CostSum)>,
    sums: &mut BTreeMap<(AppId, usize), ReportFigures>,
) {
    let ranges: BTreeMap<AppId, &DayRange> =
        apps.iter().map(|(app, range)| (app.id, range)).collect();
    for (app, cost) in costs {
        let Some(range) = ranges.get(&app) else {
            continue;
        };
        let before = range.preceding();
        let period = if (range.from..=range.to).contains(&cost.day) {
            1
        } else if (before.from..=before.to).contains(&cost.day) {
            0
        } else {
            continue;
        };
        let sum = sums
            .entry((app, period))
            .or_insert_with(|| empty_measure(caller));
        sum.cost = sum.cost.map(|sum| sum.saturating_add(cost.usd_micros));
    }
}

fn sorted(mut rows: Vec<Row>, sort: Sort) -> Vec<(RowKey, PortfolioOut)> {
    rows.sort_by(|one, other| {
        let order = if sort.by == "name" {
            let names = [one, other].map(|row| row.app.name.as_str().to_lowercase());
            names[0].cmp(&names[1])
        } else {
            sort.value(&one.now).cmp(&sort.value(&other.now))
        };
        let order = if sort.descending {
            order.reverse()
        } else {
            order
        };
        order.then_with(|| one.app.id.cmp(&other.app.id))
    });
    let shape = |row: Row| {
        let out = PortfolioOut {
            id: row.app.id.to_string(),
            name: row.app.name.as_str().to_owned(),
            archived: row.app.archived,
            timezone: row.zone,
            kpis: KpisOut::of(&row.now, &row.before),
        };
        (*row.app.id.as_bytes(), out)
    };
    rows.into_iter().map(shape).collect()
}

/// Returns an example portfolio for the OpenAPI description.
fn example() -> Value {
    json!({
        "data": [{
            "id": "app_01k9z3v7q8e4r9m2x5c6b7n8d5", "name": "Runner", "archived": false, "timezone": "Europe/Berlin",
            "kpis": kpis::example()
        }],
        "meta": {"hasMore": false, "cursor": null, "totals": kpis::example()}
    })
}
