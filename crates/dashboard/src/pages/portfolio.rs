//! `GET /portfolio` — the organization's apps, each with its trend and change.

use crate::access::{PageContext, ReportContext};
use crate::data_begin::data_begin;
use crate::failure::Failure;
use crate::metric::{Metric, MetricChange};
use crate::query::UrlQuery;
use crate::range::PageDateRange;
use crate::shell::{Section, Shell};
use crate::sparkline::sparkline;
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::access::resource::PortfolioRead;
use tributary_domain::report::metric::SMALL_SAMPLE_INSTALLS;
use tributary_domain::report::range::{Comparison, DayRange};
use tributary_domain::report::{CostSum, ReportFigures, ReportQuery, Spend, StatsRow, report_rows};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_store::AppName;

/// Metrics of each app if any app has ad costs: the cards of the overview.
const COST_METRICS: [&str; 6] = [
    "cost",
    "installs",
    "paidCpi",
    "netRevenue",
    "paidRoas",
    "payingDevices",
];
/// Metrics of each app without ad costs.
const METRICS: [&str; 6] = [
    "clicks",
    "installs",
    "trials",
    "purchases",
    "netRevenue",
    "payingDevices",
];
/// Maximum number of apps with figures, because each app requires its own report query. The page
/// lists the other apps by name only.
const APPS_READ_MAX: usize = 50;

#[derive(Template)]
#[template(path = "portfolio.html")]
struct PortfolioPage {
    shell: Shell,
    range: PageDateRange,
    query: UrlQuery,
    metrics: Vec<&'static Metric>,
    rows: Vec<Row>,
    totals: Vec<String>,
    /// Whether an app has paid installs and no spend, so that CPI and ROAS of the total look too good.
    has_paid_without_spend: bool,
    /// Whether changes of costs are missing, because a part of a day has no costs.
    lacks_compared_costs: bool,
    others: Vec<AppName>,
    archived: Vec<AppName>,
}

struct Row {
    id: String,
    name: String,
    /// Sparkline of daily installs.
    trend: String,
    figures: Vec<Cell>,
    /// Why the app is not compared.
    incomplete: Option<String>,
}

struct Cell {
    value: String,
    change: Option<MetricChange>,
    /// Whether the value is from few installs.
    is_few: bool,
}

impl PortfolioPage {
    fn presets(&self) -> Vec<(&'static str, &'static str)> {
        PageDateRange::presets()
    }

    fn with_range(&self, word: &str) -> String {
        PageDateRange::with_preset(&self.query, word)
    }

    /// Returns the query string that keeps the date range on an app's page.
    fn days(&self) -> String {
        let query = self.query.with(&[]);
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{mark}{query}")
    }

    /// Returns what the figures are compared with. Each app has its own days, so it names none.
    const fn compared_label(&self) -> Option<&'static str> {
        match self.range.comparison {
            Comparison::PreviousPeriod => Some("the previous period"),
            Comparison::PreviousYear => Some("the previous year"),
            Comparison::Nothing => None,
        }
    }

    fn has_costs(&self) -> bool {
        self.metrics.iter().any(|metric| metric.needs_cost)
    }

    /// Returns the limit of a small sample, if a value is from one.
    fn small_sample(&self) -> Option<i64> {
        let mut cells = self.rows.iter().flat_map(|row| &row.figures);
        cells
            .any(|cell| cell.is_few)
            .then_some(SMALL_SAMPLE_INSTALLS)
    }
}

/// An app's figures in its own days.
struct AppFigures {
    /// Installs of each day.
    installs: Vec<i64>,
    now: ReportFigures,
    /// Total of the compared part; `None` if nothing is compared.
    before: Option<ReportFigures>,
    /// Day on which the data begins, if the compared range has earlier days.
    data_begin: Option<Day>,
}

/// Loads the costs of the apps in their ranges and compared ranges. Test data has none.
async fn spend(
    handles: &DashboardHandles,
    context: &PageContext<PortfolioRead>,
    ranges: &[(&AppName, PageDateRange)],
) -> Result<Option<BTreeMap<AppId, Spend>>, Failure> {
    let caller = context.authorized.analytics_access();
    if caller.environment() != Environment::Live {
        return Ok(None);
    }
    let days = || {
        ranges.iter().flat_map(|(_, range)| {
            let compared = range.compared.as_ref().map(|compared| &compared.days);
            std::iter::once(&range.days).chain(compared)
        })
    };
    let first = days().map(|days| days.from).min();
    let last = days().map(|days| days.to).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Ok(None);
    };
    let apps = ranges.iter().map(|(app, _)| app.id).collect();
    let sums = handles.store.cost_sums(&caller, apps, first, last).await?;
    let mut costs: BTreeMap<AppId, Vec<CostSum>> = BTreeMap::new();
    for (app, sum) in sums {
        costs.entry(app).or_default().push(sum);
    }
    let spend = costs
        .into_iter()
        .map(|(app, sums)| (app, sums.into_iter().collect()));
    Ok(Some(spend.collect()))
}

/// Loads an app's figures by day, and of the range that it is compared with.
async fn figures(
    handles: &DashboardHandles,
    context: &PageContext<PortfolioRead>,
    app: &AppName,
    range: &PageDateRange,
    spend: Option<&Spend>,
) -> Result<AppFigures, Failure> {
    let caller = context.authorized.analytics_access();
    let days = range.days();
    let count = days.len();
    let compared = range.compared.as_ref();
    let query = ReportQuery {
        rows_max: u32::try_from(count + 1).unwrap_or(u32::MAX),
        periods: days
            .into_iter()
            .chain(compared.map(|compared| compared.period))
            .collect(),
        group_by: Vec::new(),
        filters: Vec::new(),
    };
    // The network tells paid revenue from organic revenue.
    let found = handles
        .store
        .stats(&caller, app.id, query.split_by_network())
        .await?;
    let (rows, rows_before): (Vec<StatsRow>, Vec<StatsRow>) =
        found.into_iter().partition(|row| row.period < count);
    let mut installs = vec![0; count];
    for row in &rows {
        installs[row.period] += row.figures.installs;
    }
    let total = |rows: Vec<StatsRow>, days: &DayRange, spend| {
        let rows = rows.into_iter().map(|row| StatsRow { period: 0, ..row });
        let rows = report_rows(rows.collect(), &query, &days.split(None), spend);
        rows.into_values().next().unwrap_or_default()
    };
    let data_begin = data_begin(handles, &caller, app.id, range).await?;
    Ok(AppFigures {
        installs,
        now: total(rows, &range.days, spend),
        // Costs are known by whole days, so a part of a day has none.
        before: compared.filter(|_| data_begin.is_none()).map(|compared| {
            let spend = spend.filter(|_| !compared.is_partial());
            total(rows_before, &compared.days, spend)
        }),
        data_begin,
    })
}

impl Row {
    fn of(app: &AppName, metrics: &[&'static Metric], figures: &AppFigures) -> Self {
        let (now, before) = (&figures.now, figures.before.as_ref());
        let cell = |one: &&'static Metric| Cell {
            value: one.write_brief(now),
            change: before.and_then(|before| one.change(before, now)),
            is_few: one.is_from_small_sample(now),
        };
        Self {
            id: app.id.to_string(),
            name: app.name.as_str().to_owned(),
            trend: sparkline(&figures.installs),
            figures: metrics.iter().map(cell).collect(),
            incomplete: figures.data_begin.map(PageDateRange::incomplete),
        }
    }
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<PortfolioRead>,
) -> Result<Response, Failure> {
    let (archived, mut active): (Vec<AppName>, Vec<AppName>) =
        context.apps().iter().cloned().partition(|app| app.archived);
    let others = active.split_off(active.len().min(APPS_READ_MAX));
    let now = handles.runtime.now();
    let ranges = active.iter().map(|app| {
        let range = PageDateRange::of(&context.query, now, &app.timezone);
        (app, range)
    });
    let ranges: Vec<(&AppName, PageDateRange)> = ranges.collect();
    let spend = spend(&handles, &context, &ranges).await?;
    let mut apps = Vec::with_capacity(ranges.len());
    let mut total = ReportFigures {
        cost: spend.as_ref().map(|_| 0),
        ..ReportFigures::zero()
    };
    let no_spend = Spend::default();
    for (app, range) in &ranges {
        let spend = spend
            .as_ref()
            .map(|spend| spend.get(&app.id).unwrap_or(&no_spend));
        let found = figures(&handles, &context, app, range, spend).await?;
        total.add(&found.now);
        apps.push((*app, found));
    }
    let has_costs = total.cost.is_some_and(|cost| cost > 0);
    let metrics = Metric::select(if has_costs { &COST_METRICS } else { &METRICS });
    let is_unpaid = |row: &ReportFigures| row.cost == Some(0) && row.paid_installs() > 0;
    let lacks_cost = |row: &ReportFigures| row.cost.is_none();
    let page = PortfolioPage {
        shell: context.shell(Section::Portfolio),
        range: PageDateRange::of(&context.query, now, &Timezone::UTC),
        query: context.query.clone(),
        has_paid_without_spend: has_costs && apps.iter().any(|(_, found)| is_unpaid(&found.now)),
        lacks_compared_costs: has_costs
            && apps
                .iter()
                .any(|(_, found)| found.before.as_ref().is_some_and(lacks_cost)),
        totals: metrics.iter().map(|one| one.write_brief(&total)).collect(),
        rows: apps
            .iter()
            .map(|(app, found)| Row::of(app, &metrics, found))
            .collect(),
        metrics,
        others,
        archived,
    };
    Ok(context.page(&page))
}

#[cfg(test)]
mod tests {
    use crate::testing::{NOW, TestDashboard, TestUser, ad_click};
    use std::time::Duration;
    use tributary_domain::access::person::Role;
    use tributary_domain::click::Click;
    use tributary_domain::device::DeviceKey;
    use tributary_domain::event::web::{WebEvent, WebEventKind};
    use tributary_domain::vocabulary::currency::Currency;
    use tributary_domain::vocabulary::id::EventId;
    use tributary_domain::vocabulary::money::Amount;
    use tributary_domain::vocabulary::time::Timestamp;
    use tributary_domain::vocabulary::web_url::WebOrigin;

    const SHOP: &str = "https://shop.example.com";
    const DAY: Duration = Duration::from_hours(24);

    /// Creates an app with a click on an ad that leads to a shop.
    async fn app_with_click(
        dashboard: &TestDashboard,
        owner: &TestUser<'_>,
        at: Timestamp,
    ) -> (String, Click) {
        let app = owner.create_app().await;
        let form = format!("name=Shop&type=web_funnel&destinationUrl={SHOP}&active=on");
        let link = owner.create_link(&app, &form).await;
        let mut click = ad_click(&app, &link, at);
        click.destination_origin = Some(SHOP.to_owned());
        dashboard.store.record_click(click.clone()).await.unwrap();
        (app, click)
    }

    async fn pay(dashboard: &TestDashboard, click: &Click, amount: &str) {
        let at = click.clicked_at.plus(Duration::from_mins(1));
        let event = WebEvent {
            app: click.app,
            id: EventId::new(at, [1; 10]),
            external_id: "p1".to_owned(),
            click_text: click.id.to_string(),
            click: Some(click.id),
            device: DeviceKey::parse("visitor").unwrap(),
            occurred_at: at,
            kind: WebEventKind::Purchase,
            amount: Some(Amount::parse(amount).unwrap()),
            currency: Currency::from_stored("USD"),
            source_url: format!("{SHOP}/paid"),
            origin: WebOrigin::from_stored(SHOP).unwrap(),
            parent: None,
            email_sha256: None,
            received_at: at,
        };
        dashboard.store.accept_web_event(event).await.unwrap();
    }

    async fn add_cost(owner: &TestUser<'_>, app: &str, day: &str, amount: &str) {
        let body = format!("costs={day}%2Cnetwork_a%2C%2C{amount}%2CUSD");
        let stored = owner.post(&format!("/apps/{app}/costs"), &body).await;
        assert_eq!(stored.status, 303, "{}", stored.text);
    }

    /// Returns the cells of the row that contains a text.
    fn row<'a>(text: &'a str, part: &str) -> Vec<&'a str> {
        let mut rows = text.split("<tr").filter(|row| row.contains(part));
        let row = rows.next().unwrap();
        let cells = row.split("<td class=\"num").skip(1);
        let value = |cell: &'a str| cell.split_once('>').unwrap().1.split('<').next().unwrap();
        cells.map(value).collect()
    }

    #[tokio::test]
    async fn spend_and_paid_ratios_are_shown_if_an_app_has_costs() {
        let dashboard = TestDashboard::start().await;
        let owner = dashboard.sign_in_as(Role::Owner).await;
        let at = NOW.minus(DAY * 20);
        let (app, click) = app_with_click(&dashboard, &owner, at).await;
        let without = owner.get("/portfolio?range=30d").await.text;
        assert!(without.contains(">Clicks</th>") && !without.contains("Spend"));
        pay(&dashboard, &click, "25").await;
        add_cost(&owner, &app, "2026-09-01", "10").await;
        let (other, _) = app_with_click(&dashboard, &owner, at).await;
        let text = owner.get("/portfolio?range=30d").await.text;
        let heads = ["Spend", "Installs", "CPI (paid)", "Net revenue"];
        for head in heads {
            assert!(text.contains(&format!(">{head}</th>")), "{head}: {text}");
        }
        let expected = ["$10.00", "0", "–", "$25.00", "2.50", "1"];
        assert_eq!(row(&text, &app), expected, "{text}");
        assert_eq!(row(&text, ">Total<"), expected, "{text}");
        assert_eq!(row(&text, &other), ["$0.00", "0", "–", "$0.00", "–", "0"]);
        let test = owner.get("/portfolio?range=30d&environment=test").await;
        assert!(!test.text.contains("Spend"), "{}", test.text);
    }

    #[tokio::test]
    async fn an_app_whose_earlier_period_is_incomplete_is_not_compared() {
        let dashboard = TestDashboard::start().await;
        let owner = dashboard.sign_in_as(Role::Owner).await;
        let (old, _) = app_with_click(&dashboard, &owner, NOW.minus(DAY * 40)).await;
        let (new, _) = app_with_click(&dashboard, &owner, NOW.minus(DAY * 10)).await;
        let text = owner.get("/portfolio?range=7d").await.text;
        let says = |app: &str| {
            let mut rows = text.split("<tr").filter(|row| row.contains(app));
            let row = rows.next().unwrap();
            row.contains("nothing is compared: data begins on 11 Sep 2026")
        };
        assert!(says(&new) && !says(&old), "{text}");
        assert!(text.contains("compared with the previous period"));
        let alone = owner.get("/portfolio?range=7d&compare=none").await.text;
        assert!(!alone.contains("compared"), "{alone}");
        let year = owner.get("/portfolio?range=7d&compare=year").await.text;
        assert!(year.contains("compared with the previous year"));
    }
}
