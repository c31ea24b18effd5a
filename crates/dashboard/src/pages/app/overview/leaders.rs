//! The top values of each dimension.

use super::load::{FigureReader, RangeFigures, sums};
use crate::analysis::{AnalysisBar, Obstacle};
use crate::metric::{ComparedFigure, Metric, Unit};
use crate::value_names::ValueNames;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tributary_domain::report::{Dimension, ReportFigures, Spend, StatsRow};

/// Rows per table.
const TOP_ROWS: usize = 8;
/// Columns with and without costs, and for events.
const COST_COLUMNS: [&str; 5] = ["cost", "installs", "paidCpi", "netRevenue", "paidRoas"];
const COLUMNS: [&str; 4] = ["clicks", "installs", "payingDevices", "netRevenue"];
const EVENT_COLUMNS: [&str; 2] = ["events", "netRevenue"];

/// A top-list table.
pub(super) struct TopList {
    pub(super) title: &'static str,
    pub(super) word: &'static str,
    pub(super) heads: Vec<&'static str>,
    pub(super) rows: Vec<TopListRow>,
    /// Number of further values.
    pub(super) more: usize,
    /// Whether the figures are known with these filters.
    pub(super) is_available: bool,
    /// Ways to a list that is available.
    pub(super) obstacle: Option<Obstacle>,
}

pub(super) struct TopListRow {
    pub(super) name: String,
    /// Id of a value that is shown by its name; otherwise empty.
    pub(super) id: String,
    /// Query that filters by this value.
    pub(super) filter: String,
    /// Id of the link, if the row is one.
    pub(super) link: Option<String>,
    /// Figures, each with that of the compared range.
    pub(super) figures: Vec<(String, Option<ComparedFigure>)>,
    /// Width of the bar behind the name, in thousandths of the first row's.
    pub(super) width: i64,
}

/// The top lists, and all values that occur, as suggestions for filters.
pub(super) struct Leaders {
    pub(super) lists: Vec<TopList>,
    pub(super) values: Vec<(Dimension, Vec<(String, String)>)>,
}

/// Rows by campaign and network; by link; by country and platform; and by event name. `None` if the
/// filters do not allow the combination, or if its figures are not complete yet.
pub(super) struct LeaderRows {
    pub(super) campaigns: Option<Vec<StatsRow>>,
    pub(super) links: Option<Vec<StatsRow>>,
    pub(super) places: Option<Vec<StatsRow>>,
    pub(super) names: Option<Vec<StatsRow>>,
    pub(super) value_names: ValueNames,
}

/// Keeps one value of each row, and optionally the network after it.
pub(super) fn pick(rows: Option<&Vec<StatsRow>>, places: &[usize]) -> Option<Vec<StatsRow>> {
    let row = |row: &StatsRow| StatsRow {
        period: 0,
        values: places
            .iter()
            .map(|place| row.values[*place].clone())
            .collect(),
        figures: row.figures,
    };
    Some(rows?.iter().map(row).collect())
}

/// Returns the values of one dimension, most important first.
fn ranked(
    rows: BTreeMap<String, ReportFigures>,
    dimension: Dimension,
) -> Vec<(String, ReportFigures)> {
    let mut rows: Vec<_> = rows
        .into_iter()
        .filter(|(value, _)| !value.is_empty())
        .collect();
    rows.sort_by_key(|(_, row)| {
        let one = &row.figures;
        Reverse(match dimension {
            Dimension::Event => (one.events, 0, 0),
            _ => (one.net_micros(), one.installs, one.clicks),
        })
    });
    rows
}

fn table(
    title: &'static str,
    dimension: Dimension,
    rows: &[(String, ReportFigures)],
    before: Option<&BTreeMap<String, ReportFigures>>,
    bar: &AnalysisBar,
    names: &ValueNames,
) -> TopList {
    let has_costs = rows
        .iter()
        .any(|(_, row)| row.cost.is_some_and(|cost| cost > 0));
    let columns: &[&str] = match dimension {
        Dimension::Event => &EVENT_COLUMNS,
        _ if has_costs => &COST_COLUMNS,
        _ => &COLUMNS,
    };
    let columns = Metric::select(columns);
    let weight = |row: &ReportFigures| match dimension {
        Dimension::Event => row.figures.events,
        _ => row.figures.net_micros().max(0),
    };
    let heaviest = rows
        .iter()
        .map(|(_, row)| weight(row))
        .max()
        .unwrap_or(0)
        .max(1);
    let row = |(value, row): &(String, ReportFigures)| TopListRow {
        name: names.label(dimension, value),
        id: names.id(dimension, value),
        filter: bar.filtered(dimension, value),
        link: (dimension == Dimension::Link).then(|| value.clone()),
        figures: columns
            .iter()
            .map(|one| {
                let before = before.and_then(|before| before.get(value));
                let compared = before
                    .and_then(|before| ComparedFigure::of(one, before, row, Unit::write_brief));
                (one.write_brief(row), compared)
            })
            .collect(),
        width: i64::try_from(i128::from(weight(row)) * 1_000 / i128::from(heaviest)).unwrap_or(0),
    };
    TopList {
        title,
        word: dimension.as_str(),
        heads: columns.iter().map(|one| one.label).collect(),
        rows: rows.iter().take(TOP_ROWS).map(row).collect(),
        more: rows.len().saturating_sub(TOP_ROWS),
        is_available: true,
        obstacle: bar.obstacle(&[dimension]),
    }
}

/// Gives the values of either range a row in the other one: a network that brought something before
/// and nothing now is worth a row. `has_costs` says for each range whether its costs are known.
fn complete(
    now: &mut Vec<(String, ReportFigures)>,
    before: &mut BTreeMap<String, ReportFigures>,
    has_costs: (bool, bool),
) {
    let nothing = |has_costs: bool| ReportFigures {
        cost: has_costs.then_some(0),
        ..ReportFigures::zero()
    };
    let is_new = |value: &&String| !value.is_empty() && now.iter().all(|(one, _)| one != *value);
    let gone: Vec<String> = before.keys().filter(is_new).cloned().collect();
    for (value, _) in now.iter() {
        let row = before.entry(value.clone());
        row.or_insert_with(|| nothing(has_costs.1));
    }
    now.extend(gone.into_iter().map(|value| (value, nothing(has_costs.0))));
}

/// Builds the top lists.
pub(super) fn leaders(
    reader: &FigureReader<'_>,
    figures: &RangeFigures,
    rows: &LeaderRows,
) -> Leaders {
    let spend = figures.spend.as_ref();
    let ranked = |rows: Option<Vec<StatsRow>>, dimension: Dimension, spend: Option<&Spend>| {
        let is_available = rows.is_some();
        let days = &reader.bar.range.days;
        let rows = sums(reader, days, rows.unwrap_or_default(), &[dimension], spend);
        (dimension, is_available, ranked(rows, dimension))
    };
    // Other lists have too many values to read those of another range.
    let compared = reader.bar.range.compared.as_ref();
    let before = compared.zip(figures.by_network_before.clone());
    let mut before = before.map(|(compared, rows)| {
        let spend = figures.spend_before.as_ref();
        sums(reader, &compared.days, rows, &[Dimension::Network], spend)
    });
    let (network, is_available, mut networks) =
        ranked(figures.by_network.clone(), Dimension::Network, spend);
    if let Some(before) = &mut before {
        let costs = (spend.is_some(), figures.spend_before.is_some());
        complete(&mut networks, before, costs);
    }
    let networks = (network, is_available, networks);
    let before_of =
        |dimension: Dimension| before.as_ref().filter(|_| dimension == Dimension::Network);
    let places = rows.places.as_ref();
    let lists = [
        ("Networks", networks),
        (
            "Campaigns",
            ranked(rows.campaigns.clone(), Dimension::Campaign, spend),
        ),
        ("Links", ranked(rows.links.clone(), Dimension::Link, None)),
        (
            "Countries",
            ranked(pick(places, &[0]), Dimension::Country, None),
        ),
        (
            "Platforms",
            ranked(pick(places, &[1]), Dimension::Platform, None),
        ),
        (
            "Events",
            ranked(pick(rows.names.as_ref(), &[0]), Dimension::Event, None),
        ),
    ];
    let names = &rows.value_names;
    let value = |dimension, (value, _): &(String, ReportFigures)| {
        (value.clone(), names.label(dimension, value))
    };
    Leaders {
        values: lists
            .iter()
            .map(|(_, (dimension, _, rows))| {
                let values = rows.iter().map(|row| value(*dimension, row));
                (*dimension, values.collect())
            })
            .collect(),
        lists: lists
            .iter()
            .map(|(title, (dimension, is_available, rows))| TopList {
                is_available: *is_available,
                ..table(
                    title,
                    *dimension,
                    rows,
                    before_of(*dimension),
                    reader.bar,
                    names,
                )
            })
            .collect(),
    }
}
