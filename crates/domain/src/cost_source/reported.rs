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

/// Converts a report to costs. Rows of the same day, campaign and currency are added up, because a
/// page that shifted may repeat a campaign's part. Rows without spend are dropped.
pub fn imported_costs(network: Network, rows: Vec<ReportedCost>) -> Vec<Cost> {
    let mut sums: BTreeMap<(Day, String, Currency), i64> = BTreeMap::new();
    for row in rows {
        let sum = sums
            .entry((row.day, row.campaign, row.currency))
            .or_default();
        *sum = sum.saturating_add(row.amount.micros());
    }
    let costs = sums.into_iter().filter(|(_, micros)| *micros > 0);
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

    #[test]
    fn rows_of_a_campaign_are_added_and_rows_without_spend_dropped() {
        let row = |campaign: &str, micros| ReportedCost {
            day: Day::from_days(1),
            campaign: campaign.to_owned(),
            amount: Amount::from_micros(micros),
            currency: Currency::USD,
        };
        let costs = imported_costs(Network::B, vec![row("a", 5), row("b", 0), row("a", 7)]);
        let found: Vec<(&str, i64)> = costs
            .iter()
            .map(|cost| (&*cost.campaign, cost.amount.micros()))
            .collect();
        assert_eq!(found, [("a", 12)]);
        assert!(costs.iter().all(|cost| cost.origin == CostOrigin::Imported));
    }
}
