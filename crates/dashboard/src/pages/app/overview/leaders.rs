//! The top networks, campaigns and links.

use crate::failure::Failure;
use crate::network_label::NetworkLabel;
use crate::range::PageDateRange;
use crate::state::DashboardHandles;
use crate::text;
use std::collections::BTreeMap;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::{Dimension, Figures, ReportQuery, StatsRow};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::money::Amount;

/// Rows per table.
const TOP_ROWS: usize = 8;
/// Maximum rows to read. Rows are sorted here, so more are read than shown.
const ROWS_READ_MAX: u32 = 50_000;

/// A top-list table.
pub(super) struct TopList {
    pub(super) title: &'static str,
    pub(super) word: &'static str,
    pub(super) rows: Vec<TopListRow>,
}

pub(super) struct TopListRow {
    pub(super) name: String,
    pub(super) value: String,
    /// Identifier shown beside a network's name; otherwise empty.
    pub(super) id: &'static str,
    pub(super) clicks: String,
    pub(super) installs: String,
    pub(super) purchases: String,
    pub(super) revenue: String,
}

/// Loads the figures for the whole range, grouped by these dimensions.
pub(super) async fn figures_by(
    handles: &DashboardHandles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    range: &PageDateRange,
    by: &[Dimension],
) -> Result<Vec<StatsRow>, Failure> {
    let question = ReportQuery {
        periods: vec![range.whole()],
        group_by: by.to_vec(),
        filters: Vec::new(),
        rows_max: ROWS_READ_MAX,
    };
    Ok(handles.store.stats(caller, app, question).await?)
}

/// Returns the top values of one dimension, by revenue, then installs, then clicks.
pub(super) fn leaders(rows: &[StatsRow], place: usize) -> Vec<(String, Figures)> {
    let mut sums: BTreeMap<&String, Figures> = BTreeMap::new();
    let named = |row: &&StatsRow| !row.values[place].is_empty();
    for row in rows.iter().filter(named) {
        sums.entry(&row.values[place])
            .or_default()
            .add(&row.figures, 1);
    }
    let sums = sums.into_iter();
    let mut leaders: Vec<(String, Figures)> =
        sums.map(|(value, one)| (value.clone(), one)).collect();
    leaders.sort_by_key(|(_, one)| std::cmp::Reverse((one.net_micros(), one.installs, one.clicks)));
    leaders.truncate(TOP_ROWS);
    leaders
}

pub(super) fn table(
    title: &'static str,
    word: &'static str,
    rows: Vec<(String, Figures)>,
    names: &BTreeMap<String, String>,
) -> TopList {
    let is_network = word == Dimension::Network.as_str();
    let label = |value: &str| NetworkLabel::parse(value).filter(|_| is_network);
    let row = |(value, figures): (String, Figures)| TopListRow {
        name: names.get(&value).cloned().unwrap_or_else(|| value.clone()),
        id: label(&value).map_or("", |label| label.id),
        value,
        clicks: text::count(figures.clicks),
        installs: text::count(figures.installs),
        purchases: text::count(figures.purchases),
        revenue: text::usd(Amount::from_micros(figures.net_micros())),
    };
    TopList {
        title,
        word,
        rows: rows.into_iter().map(row).collect(),
    }
}

/// Loads the links' names by id.
pub(crate) async fn link_names(
    handles: &DashboardHandles,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    values: impl Iterator<Item = &String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let links: Vec<LinkId> = values
        .filter_map(|value| LinkId::parse(value).ok())
        .collect();
    if links.is_empty() {
        return Ok(BTreeMap::new());
    }
    let names = handles.store.link_names(caller, app, links).await?;
    Ok(names
        .into_iter()
        .map(|(link, name)| (link.to_string(), name))
        .collect())
}
