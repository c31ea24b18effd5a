//! Costs as a network reports them.

use crate::attribution::CreditedNetwork;
use crate::integration::Network;
use crate::report::cost::{Cost, CostOrigin};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::money::Amount;
use std::collections::BTreeMap;

/// One row of a network's cost report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedCost {
    /// Day in the account's time zone.
    pub day: Day,
    /// Campaign id.
    pub campaign: String,
    /// Amount.
    pub amount: Amount,
    /// The account's currency.
    pub currency: Currency,
}

/// Converts a report to costs. A report has one row per campaign and day. If the list shifts between
/// two pages, a row may be sent twice: the last one counts, and they are never added up. Rows
/// without spend are dropped.
pub fn imported_costs(network: Network, rows: Vec<ReportedCost>) -> Vec<Cost> {
    let mut amounts: BTreeMap<(Day, String, Currency), i64> = BTreeMap::new();
    for row in rows {
        let key = (row.day, row.campaign, row.currency);
        amounts.insert(key, row.amount.micros());
    }
    let costs = amounts.into_iter().filter(|(_, micros)| *micros > 0);
    costs
        .map(|((day, campaign, currency), micros)| Cost {
            day,
            network: CreditedNetwork::Ad(network),
            campaign,
            amount: Amount::from_micros(micros),
            currency,
            origin: CostOrigin::Imported,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::one_row_each(&[("a", 5), ("b", 7)], &[("a", 5), ("b", 7)])]
    #[case::without_spend(&[("a", 5), ("b", 0)], &[("a", 5)])]
    #[case::repeated_on_the_next_page(&[("a", 5), ("b", 7), ("a", 5)], &[("a", 5), ("b", 7)])]
    #[case::changed_between_two_pages(&[("a", 5), ("b", 7), ("a", 6)], &[("a", 6), ("b", 7)])]
    #[case::removed_between_two_pages(&[("a", 5), ("a", 0)], &[])]
    fn a_repeated_row_is_never_added(
        #[case] rows: &[(&str, i64)],
        #[case] expected: &[(&str, i64)],
    ) {
        let row = |(campaign, micros): &(&str, i64)| ReportedCost {
            day: Day::from_days(1),
            campaign: (*campaign).to_owned(),
            amount: Amount::from_micros(*micros),
            currency: Currency::USD,
        };
        let costs = imported_costs(Network::B, rows.iter().map(row).collect());
        let found: Vec<(&str, i64)> = costs
            .iter()
            .map(|cost| (&*cost.campaign, cost.amount.micros()))
            .collect();
        assert_eq!(found, expected);
        assert!(costs.iter().all(|cost| cost.origin == CostOrigin::Imported));
    }

    #[test]
    fn rows_of_other_days_stay_apart() {
        let row = |day| ReportedCost {
            day: Day::from_days(day),
            campaign: "a".to_owned(),
            amount: Amount::from_micros(5),
            currency: Currency::USD,
        };
        assert_eq!(imported_costs(Network::C, vec![row(1), row(2)]).len(), 2);
    }
}
