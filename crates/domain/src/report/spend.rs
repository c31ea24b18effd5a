//! Ad costs in a report. Costs are known per day, network and campaign only.

use super::cost::{CostOrigin, ImportedDays};
use super::range::Span;
use super::{Dimension, ReportFigures, ReportQuery, StatsRow, TimeUnit};
use crate::access::Environment;
use crate::vocabulary::day::Day;
use std::collections::BTreeMap;

/// Ad cost for one day, network and campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostSum {
    /// Day.
    pub day: Day,
    /// Network that was paid.
    pub network: String,
    /// Campaign id; empty if there is none.
    pub campaign: String,
    /// Cost in millionths of a US dollar.
    pub usd_micros: i64,
    /// Where the cost comes from.
    pub origin: CostOrigin,
}

/// Returns the costs that count. Imported and manual costs are never added together.
pub fn counted_costs(costs: Vec<CostSum>) -> Vec<CostSum> {
    let days = ImportedDays::of(costs.iter().map(|one| (one.day, &*one.network, one.origin)));
    let counts = |cost: &CostSum| days.counts(cost.day, &cost.network, cost.origin);
    let counted: Vec<bool> = costs.iter().map(counts).collect();
    let counted = costs.into_iter().zip(counted);
    counted
        .filter_map(|(cost, counts)| counts.then_some(cost))
        .collect()
}

/// An app's costs in a range.
#[derive(Debug, Default)]
pub struct Spend(Vec<CostSum>);

impl FromIterator<CostSum> for Spend {
    fn from_iter<I: IntoIterator<Item = CostSum>>(sums: I) -> Self {
        Self(sums.into_iter().collect())
    }
}

impl Spend {
    /// Returns whether costs are known for the rows that a query returns.
    pub fn is_available_for(
        environment: Environment,
        unit: Option<TimeUnit>,
        query: &ReportQuery,
    ) -> bool {
        let known = [Dimension::Network, Dimension::Campaign];
        let named = query.dimensions();
        environment == Environment::Live
            && unit != Some(TimeUnit::Hour)
            && named.iter().all(|dimension| known.contains(dimension))
    }

    /// Returns the total in millionths of a US dollar.
    pub fn total(&self) -> i64 {
        self.0.iter().map(|cost| cost.usd_micros).sum()
    }

    /// Returns the costs that match a query: span index, values and amount.
    pub fn rows(&self, spans: &[Span], query: &ReportQuery) -> Vec<(usize, Vec<String>, i64)> {
        let fits = |cost: &&CostSum| {
            let filters = query.filters.iter();
            filters
                .clone()
                .all(|(dimension, wanted)| value(cost, *dimension) == wanted)
        };
        let row = |cost: &CostSum| {
            let values = query
                .group_by
                .iter()
                .map(|one| value(cost, *one).to_owned());
            let span = span_of(spans, cost.day)?;
            Some((span, values.collect(), cost.usd_micros))
        };
        self.0.iter().filter(fits).filter_map(row).collect()
    }
}

/// Key of a report row: span index and dimension values.
pub type ReportRowKey = (usize, Vec<String>);

/// Joins figures and costs into rows. A cost without figures gets its own row. Without dimensions
/// every span gets a row, even an empty one. With costs, the figures come from
/// [`ReportQuery::split_by_network`], so that paid figures are known.
pub fn report_rows(
    found: Vec<StatsRow>,
    query: &ReportQuery,
    spans: &[Span],
    spend: Option<&Spend>,
) -> BTreeMap<ReportRowKey, ReportFigures> {
    let nothing = ReportFigures {
        cost: spend.map(|_| 0),
        ..ReportFigures::zero()
    };
    let mut rows: BTreeMap<ReportRowKey, ReportFigures> = BTreeMap::new();
    if query.group_by.is_empty() {
        rows.extend((0..spans.len()).map(|span| ((span, Vec::new()), nothing)));
    }
    for mut row in found {
        let network = query.network_of(&row.values).map(str::to_owned);
        row.values.truncate(query.group_by.len());
        let row_sum = rows.entry((row.period, row.values)).or_insert(nothing);
        row_sum.add_network(network.as_deref(), &row.figures);
    }
    for (span, values, cost) in spend.iter().flat_map(|spend| spend.rows(spans, query)) {
        let row_sum = rows.entry((span, values)).or_insert(nothing);
        row_sum.cost = row_sum.cost.map(|sum| sum.saturating_add(cost));
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

    fn query(by: &[Dimension]) -> ReportQuery {
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
            origin: CostOrigin::Manual,
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
    fn a_cost_without_figures_is_a_row_and_other_days_are_dropped() {
        let found = vec![installs(0, "network_a", 3)];
        let by_network = query(&[Dimension::Network]);
        let rows = report_rows(found, &by_network, &days(), Some(&spend()));
        let read: Vec<(usize, &str, i64, Option<i64>)> = rows
            .iter()
            .map(|((span, values), row)| (*span, &*values[0], row.figures.installs, row.cost))
            .collect();
        let expected = [(0, "network_a", 3, Some(5)), (1, "network_b", 0, Some(7))];
        assert_eq!(read, expected);
    }

    fn earned(network: &str, revenue_micros: i64) -> StatsRow {
        StatsRow {
            period: 0,
            values: vec![network.to_owned()],
            figures: Figures {
                revenue_micros,
                ..Figures::default()
            },
        }
    }

    #[test]
    fn paid_revenue_is_exact_whether_the_network_is_grouped_filtered_or_added() {
        let found = || vec![earned("network_a", 3), earned("organic", 4), earned("", 5)];
        let net = |rows: BTreeMap<ReportRowKey, ReportFigures>| {
            let row = |row: &ReportFigures| (row.figures.net_micros(), row.paid_net());
            rows.values().map(row).collect::<Vec<_>>()
        };
        let spans = &days()[..1];
        let no_spend = Spend::default();
        let added = query(&[]);
        assert_eq!(added.split_by_network().group_by, [Dimension::Network]);
        let rows = report_rows(found(), &added, spans, Some(&no_spend));
        assert_eq!(net(rows), [(12, Some(3))]);
        let grouped = query(&[Dimension::Network]);
        assert_eq!(grouped.split_by_network(), grouped);
        let rows = report_rows(found(), &grouped, spans, Some(&no_spend));
        assert_eq!(net(rows), [(5, Some(0)), (3, Some(3)), (4, Some(0))]);
        let mut filtered = query(&[]);
        filtered.filters = vec![(Dimension::Network, "network_a".to_owned())];
        assert_eq!(filtered.split_by_network(), filtered);
        let without = StatsRow {
            values: Vec::new(),
            ..earned("", 3)
        };
        let rows = report_rows(vec![without.clone()], &filtered, spans, Some(&no_spend));
        assert_eq!(net(rows), [(3, Some(3))]);
        let rows = report_rows(vec![without], &added, spans, Some(&no_spend));
        assert_eq!(net(rows), [(3, None)], "the network is unknown");
    }

    #[test]
    fn empty_days_are_rows_and_without_spend_the_cost_is_unknown() {
        let rows = report_rows(Vec::new(), &query(&[]), &days(), None);
        assert_eq!(rows.len(), 2);
        assert!(rows.values().all(|row| row.cost.is_none()));
    }

    #[test]
    fn costs_are_known_by_day_network_and_campaign_only() {
        let available = |environment, unit, by: &[Dimension]| {
            Spend::is_available_for(environment, unit, &query(by))
        };
        assert!(available(
            Environment::Live,
            Some(TimeUnit::Day),
            &[Dimension::Campaign]
        ));
        assert!(!available(Environment::Test, Some(TimeUnit::Day), &[]));
        assert!(!available(Environment::Live, Some(TimeUnit::Hour), &[]));
        assert!(!available(Environment::Live, None, &[Dimension::Link]));
    }
}
