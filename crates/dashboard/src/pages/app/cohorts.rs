//! `GET /apps/{app}/cohorts` — devices' retention and revenue by install date.

use crate::access::ReportContext;
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::network_label::NetworkLabel;
use crate::pages::app::group_label;
use crate::query::UrlQuery;
use crate::range::PageDateRange;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::collections::BTreeMap;
use tributary_domain::access::resource::CohortsRead;
use tributary_domain::report::TimeUnit;
use tributary_domain::report::cohort::{CohortDimension, CohortFigures, CohortReportQuery};
use tributary_domain::report::range::Span;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;

/// Days since install that the table shows.
const AGES: [u8; 9] = [0, 1, 2, 3, 7, 14, 30, 60, 90];
/// Maximum number of rows to read. There is one row per cohort and day since install.
const ROWS_MAX: u32 = 100_000;
/// Maximum rows on the page.
const ROWS_SHOWN_MAX: usize = 500;
/// Number of heat-map colours.
const HEATS: i64 = 5;
const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1_000;

#[derive(Template)]
#[template(path = "cohorts.html")]
struct CohortsPage {
    shell: Shell,
    range: PageDateRange,
    query: UrlQuery,
    form: FormState,
    rows: Vec<Row>,
    is_money: bool,
    by: Option<&'static str>,
}

impl CohortsPage {
    fn presets(&self) -> Vec<(&'static str, &'static str)> {
        PageDateRange::presets()
    }

    fn with_range(&self, word: &str) -> String {
        PageDateRange::with_preset(&self.query, word)
    }

    /// Returns the fields that the form keeps for other reports.
    fn kept(&self) -> Vec<(&str, &str)> {
        self.shell.kept_fields(&["range", "from", "to"])
    }

    fn groups(&self) -> Vec<(&'static str, &'static str)> {
        let dimensions = CohortDimension::ALL.iter().map(|one| one.as_str());
        let dimensions = dimensions.map(|word| (word, group_label(word)));
        std::iter::once(("", "None")).chain(dimensions).collect()
    }

    fn ages(&self) -> [u8; 9] {
        AGES
    }
}

struct Row {
    label: String,
    /// Value of the second dimension.
    value: String,
    /// Identifier shown beside a network's name; otherwise empty.
    value_id: &'static str,
    installs: String,
    cells: Vec<Cell>,
}

/// A table cell: one cohort on one day since install.
struct Cell {
    text: String,
    heat: i64,
}

/// Returns the share of active devices in tenths of a percent.
fn retained(at: i64, installs: i64) -> i64 {
    i64::try_from(i128::from(at) * 1_000 / i128::from(installs.max(1))).unwrap_or(0)
}

/// Returns the net revenue per install, up to and including a day since install.
fn per_install(ages: &BTreeMap<u8, CohortFigures>, age: u8, installs: i64) -> i64 {
    let sum: i64 = ages
        .range(..=age)
        .map(|(_, figures)| figures.revenue_micros - figures.refunded_micros)
        .sum();
    sum / installs.max(1)
}

/// One cohort's figures by day since install.
type Ages = BTreeMap<u8, CohortFigures>;

/// Returns the value of a cell: tenths of a percent, or millionths of a dollar.
fn value(ages: &Ages, age: u8, is_money: bool) -> i64 {
    let installs = installs(ages);
    if is_money {
        per_install(ages, age, installs)
    } else {
        retained(ages.get(&age).map_or(0, |one| one.devices), installs)
    }
}

fn installs(ages: &Ages) -> i64 {
    ages.get(&0).map_or(0, |one| one.devices)
}

/// Returns whether all devices in the cohort have reached this day since install.
fn is_reached(span: &Span, age: u8, now: Timestamp) -> bool {
    let (_, until) = span.period;
    until.as_millis() + i64::from(age) * MILLIS_PER_DAY <= now.as_millis() || age == 0
}

fn cells(ages: &Ages, span: &Span, now: Timestamp, is_money: bool, highest: i64) -> Vec<Cell> {
    let cell = |age: &u8| {
        if !is_reached(span, *age, now) {
            return Cell {
                text: String::new(),
                heat: 0,
            };
        }
        let value = value(ages, *age, is_money);
        Cell {
            text: if is_money {
                text::usd(Amount::from_micros(value))
            } else {
                format!("{}.{} %", value / 10, value % 10)
            },
            heat: (value * HEATS / highest.max(1)).clamp(0, HEATS),
        }
    };
    AGES.iter().map(cell).collect()
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<CohortsRead>,
) -> Result<Response, Failure> {
    let app = context.app()?;
    let (query, now) = (&context.query, handles.runtime.now());
    let range = PageDateRange::of(query, now, &app.timezone);
    let unit = match query.get("interval") {
        Some("day") => TimeUnit::Day,
        Some("month") => TimeUnit::Month,
        _ => TimeUnit::Week,
    };
    let is_money = query.get("show") == Some("revenue");
    let by = query.get("by").and_then(CohortDimension::parse);
    let spans = range.spans(Some(unit));
    let question = CohortReportQuery {
        periods: spans.iter().map(|span| span.period).collect(),
        group_by: by,
        age_max: AGES[AGES.len() - 1],
        rows_max: ROWS_MAX,
    };
    let reader = context.authorized.analytics_access();
    let found = handles.store.cohorts(&reader, app.id, question);
    let mut cohorts: BTreeMap<(usize, String), Ages> = BTreeMap::new();
    for row in found.await? {
        let ages = cohorts.entry((row.period, row.value)).or_default();
        ages.entry(row.age).or_default().add(&row.figures, 1);
    }
    let values = cohorts
        .values()
        .flat_map(|ages| AGES.iter().map(|age| value(ages, *age, is_money)));
    let highest = values.max().unwrap_or(0);
    let by_network = by.map(CohortDimension::as_str) == Some("network");
    let row = |((period, value), ages): (&(usize, String), &Ages)| {
        let network = by_network.then(|| NetworkLabel::parse(value)).flatten();
        let value = if value.is_empty() { "none" } else { value };
        Row {
            label: spans[*period].label.clone(),
            value: network.map_or(value, |network| network.name).to_owned(),
            value_id: network.map_or("", |network| network.id),
            installs: text::count(installs(ages)),
            cells: cells(ages, &spans[*period], now, is_money, highest),
        }
    };
    let page = CohortsPage {
        rows: cohorts.iter().take(ROWS_SHOWN_MAX).map(row).collect(),
        by: by.map(|dimension| group_label(dimension.as_str())),
        shell: context.shell(Section::Cohorts),
        form: FormState::default()
            .with("interval", unit.as_str())
            .with("by", by.map_or("", CohortDimension::as_str))
            .with("show", if is_money { "revenue" } else { "retention" }),
        query: query.clone(),
        range,
        is_money,
    };
    Ok(context.page(&page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revenue_accumulates_with_age() {
        let figures = |revenue_micros, refunded_micros| CohortFigures {
            devices: 1,
            revenue_micros,
            refunded_micros,
        };
        let ages = BTreeMap::from([(0, figures(10, 0)), (1, figures(20, 0)), (7, figures(0, 6))]);
        assert_eq!(per_install(&ages, 0, 2), 5);
        assert_eq!(per_install(&ages, 3, 2), 15);
        assert_eq!(per_install(&ages, 30, 2), 12);
        assert_eq!(retained(1, 3), 333);
    }
}
