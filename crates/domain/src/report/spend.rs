//! What ads cost, in a report. Costs are told by day, network and campaign; whatever else figures are told apart by,
//! nobody knows the cost of.

use super::range::Span;
use super::{Dimension, ReportFigures, ReportQuery, StatsRow, TimeUnit};
use crate::access::Environment;
use crate::vocabulary::day::Day;
use std::collections::BTreeMap;

/// What ads cost, by what costs are told by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostSum {
    /// On which day.
    pub day: Day,
    /// Whom it was paid to.
    pub network: String,
    /// The campaign's id; empty where it belongs to none.
    pub campaign: String,
    /// In millionths of a dollar.
    pub usd_micros: i64,
}

/// The costs of an app in a range.
#[derive(Debug, Default)]
pub struct Spend(Vec<CostSum>);

impl FromIterator<CostSum> for Spend {
    fn from_iter<I: IntoIterator<Item = CostSum>>(sums: I) -> Self {
        Self(sums.into_iter().collect())
    }
}

impl Spend {
    /// Whether the rows of a question have a cost each.
    pub fn is_available_for(
        environment: Environment,
        unit: Option<TimeUnit>,
        question: &ReportQuery,
    ) -> bool {
        let told = [Dimension::Network, Dimension::Campaign];
        let named = question.dimensions();
        environment == Environment::Live
            && unit != Some(TimeUnit::Hour)
            && named.iter().all(|dimension| told.contains(dimension))
    }

    /// All of them together.
    pub fn total(&self) -> i64 {
        self.0.iter().map(|cost| cost.usd_micros).sum()
    }

    /// Those that fit a question: in which span, under which values, how much.
    pub fn rows(&self, spans: &[Span], question: &ReportQuery) -> Vec<(usize, Vec<String>, i64)> {
        let fits = |cost: &&CostSum| {
            let filters = question.filters.iter();
            filters
                .clone()
                .all(|(dimension, wanted)| value(cost, *dimension) == wanted)
        };
        let row = |cost: &CostSum| {
            let values = question
                .group_by
                .iter()
                .map(|one| value(cost, *one).to_owned());
            let span = span_of(spans, cost.day)?;
            Some((span, values.collect(), cost.usd_micros))
        };
        self.0.iter().filter(fits).filter_map(row).collect()
    }
}

/// Which span, and the values of a row.
pub type ReportRowKey = (usize, Vec<String>);

/// The figures and costs of each row. Money that was spent is a row of its own where nothing came of it; a span
/// that is told apart by nothing else is a row even where nothing was.
pub fn report_rows(
    found: Vec<StatsRow>,
    question: &ReportQuery,
    spans: &[Span],
    spend: Option<&Spend>,
) -> BTreeMap<ReportRowKey, ReportFigures> {
    let nothing = spend.map_or_else(ReportFigures::default, |_| ReportFigures::zero());
    let mut rows: BTreeMap<ReportRowKey, ReportFigures> = BTreeMap::new();
    if question.group_by.is_empty() {
        rows.extend((0..spans.len()).map(|span| ((span, Vec::new()), nothing)));
    }
    for row in found {
        let place = rows.entry((row.period, row.values)).or_insert(nothing);
        place.figures.add(&row.figures, 1);
    }
    for (span, values, cost) in spend.iter().flat_map(|spend| spend.rows(spans, question)) {
        let place = rows.entry((span, values)).or_insert(nothing);
        place.cost = place.cost.map(|sum| sum.saturating_add(cost));
    }
    rows
}

fn value(cost: &CostSum, dimension: Dimension) -> &str {
    match dimension {
        Dimension::Campaign => &cost.campaign,
        _ => &cost.network,
    }
}

fn span_of(spans: &[Span], day: Day) -> Option<usize> {
    spans
        .iter()
        .position(|span| (span.from..=span.to).contains(&day))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Figures;
    use crate::report::range::DayRange;
    use crate::vocabulary::timezone::Timezone;

    fn days() -> Vec<Span> {
        let range = DayRange {
            from: Day::from_days(0),
            to: Day::from_days(1),
            zone: Timezone::UTC,
        };
        range.split(Some(TimeUnit::Day))
    }

    fn question(by: &[Dimension]) -> ReportQuery {
        ReportQuery {
            periods: Vec::new(),
            group_by: by.to_vec(),
            filters: Vec::new(),
            rows_max: 10,
        }
    }

    fn spend() -> Spend {
        let cost = |day, network: &str, usd_micros| CostSum {
            day: Day::from_days(day),
            network: network.to_owned(),
            campaign: String::new(),
            usd_micros,
        };
        [
            cost(0, "network_a", 5),
            cost(1, "network_b", 7),
            cost(2, "network_a", 9),
        ]
        .into_iter()
        .collect()
    }

    fn installs(period: usize, network: &str, installs: i64) -> StatsRow {
        StatsRow {
            period,
            values: vec![network.to_owned()],
            figures: Figures {
                installs,
                ..Figures::default()
            },
        }
    }

    #[test]
    fn money_that_brought_nothing_is_a_row_and_other_days_are_none() {
        let found = vec![installs(0, "network_a", 3)];
        let by_network = question(&[Dimension::Network]);
        let rows = report_rows(found, &by_network, &days(), Some(&spend()));
        let read: Vec<(usize, &str, i64, Option<i64>)> = rows
            .iter()
            .map(|((span, values), row)| (*span, &*values[0], row.figures.installs, row.cost))
            .collect();
        let expected = [(0, "network_a", 3, Some(5)), (1, "network_b", 0, Some(7))];
        assert_eq!(read, expected);
    }

    #[test]
    fn days_without_anything_are_rows_and_without_spend_nobody_knows_a_cost() {
        let rows = report_rows(Vec::new(), &question(&[]), &days(), None);
        assert_eq!(rows.len(), 2);
        assert!(rows.values().all(|row| row.cost.is_none()));
    }

    #[test]
    fn costs_are_told_by_day_network_and_campaign_alone() {
        let told = |environment, unit, by: &[Dimension]| {
            Spend::is_available_for(environment, unit, &question(by))
        };
        assert!(told(
            Environment::Live,
            Some(TimeUnit::Day),
            &[Dimension::Campaign]
        ));
        assert!(!told(Environment::Test, Some(TimeUnit::Day), &[]));
        assert!(!told(Environment::Live, Some(TimeUnit::Hour), &[]));
        assert!(!told(Environment::Live, None, &[Dimension::Link]));
    }
}
