//! What ads cost: told by people, by day, network and campaign.

use crate::attribution::CreditedNetwork;
use crate::exchange::{ConvertedAmount, ImportedRates, exchange};
use crate::refusal::Refusal;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::money::Amount;
use std::collections::BTreeMap;

/// Costs of one request. A month of a hundred campaigns a day has fewer.
pub const COSTS_MAX: usize = 5_000;

/// What the ads of a campaign cost on a day. The day is the ad network's own; nothing is known about its hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// On which day.
    pub day: Day,
    /// Whom it was paid to.
    pub network: CreditedNetwork,
    /// The campaign's id; empty for what belongs to no campaign.
    pub campaign: String,
    /// As it was told.
    pub amount: Amount,
    /// Of which currency.
    pub currency: Currency,
}

/// What stands for the day, network and campaign of a cost. It begins with the day, so that costs are listed in
/// its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CostKey([u8; 16]);

impl CostKey {
    /// As stored.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Where the costs of a day begin.
    pub const fn first_of(day: Day) -> Self {
        let mut bytes = [0; 16];
        // Days before 1970 are negative; with the highest bit turned they sort like numbers.
        let [a, b, c, d] = (day.as_days() ^ i32::MIN).to_be_bytes();
        (bytes[0], bytes[1], bytes[2], bytes[3]) = (a, b, c, d);
        Self(bytes)
    }
}

impl Cost {
    /// What stands for its day, network and campaign.
    pub fn key(&self) -> CostKey {
        let mut key = CostKey::first_of(self.day);
        let text = format!("{}\0{}", self.network.as_str(), self.campaign);
        let digest = Digest::of(text.as_bytes());
        key.0[4..].copy_from_slice(&digest.as_bytes()[..12]);
        key
    }
}

/// Reads the network that ads were paid at. Nobody pays for organic installs.
pub fn parse_paid_network(text: &str) -> Result<CreditedNetwork, Problem> {
    let found = CreditedNetwork::parse(text).filter(|one| *one != CreditedNetwork::Organic);
    found.ok_or_else(|| {
        let message =
            "Must be one of network_a, network_b, network_c, network_d, apple_ads, other.";
        Problem::new(FaultCode::UnknownValue, message)
    })
}

/// Reads an amount that was paid.
pub fn parse_paid_amount(text: &str) -> Result<Amount, Problem> {
    let amount = Amount::parse_text(text)?;
    if amount < Amount::ZERO {
        return Err(Problem::new(FaultCode::OutOfRange, "Must not be negative."));
    }
    Ok(amount)
}

/// A cost that is stored, with its dollars by the rate of its day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCost {
    /// What was told.
    pub cost: Cost,
    /// In dollars.
    pub usd: Amount,
    /// The day of the rate.
    pub rate_day: Day,
}

impl StoredCost {
    /// A cost with what its day's rate made of it.
    pub fn of(cost: Cost, exchanged: &ConvertedAmount) -> Self {
        Self {
            cost,
            usd: exchanged.usd,
            rate_day: exchanged.rate_day,
        }
    }
}

/// What storing costs changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CostChange {
    /// Costs that are removed.
    pub removed: Vec<CostKey>,
    /// Costs that are stored.
    pub stored: Vec<StoredCost>,
}

impl CostChange {
    /// Exchanges costs, and refuses all when one has no rate. A cost of zero removes. Of several for one day, network and
    /// campaign the last one counts.
    pub fn of(costs: &[Cost], rates: &ImportedRates) -> Result<Self, Refusal> {
        let (mut last, mut without_rate) = (BTreeMap::new(), Vec::new());
        for (place, cost) in costs.iter().enumerate() {
            match exchange(cost.amount, cost.currency, cost.day, rates) {
                Some(exchanged) => {
                    last.insert(cost.key(), StoredCost::of(cost.clone(), &exchanged));
                }
                None => without_rate.push(place),
            }
        }
        if !without_rate.is_empty() {
            return Err(unexchangeable(&without_rate));
        }
        let mut change = Self::default();
        for (key, stored) in last {
            if stored.cost.amount == Amount::ZERO {
                change.removed.push(key);
            } else {
                change.stored.push(stored);
            }
        }
        Ok(change)
    }
}

/// What is said of costs whose currencies have no rate, by their places among those that were sent.
fn unexchangeable(places: &[usize]) -> Refusal {
    let mut faults = Faults::new();
    let message = "There is no exchange rate for this currency; send the amount in USD.";
    for place in places {
        let problem = Problem::new(FaultCode::UnknownValue, message);
        faults.add(format!("costs[{place}].currency"), problem);
    }
    Refusal::Invalid(faults)
}

/// Which costs are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CostFilter {
    /// Not before this day.
    pub from: Option<Day>,
    /// Not after this day.
    pub to: Option<Day>,
    /// Of this network.
    pub network: Option<CreditedNetwork>,
    /// Of this campaign.
    pub campaign: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(day: i32, campaign: &str) -> Cost {
        Cost {
            day: Day::from_days(day),
            network: CreditedNetwork::AppleAds,
            campaign: campaign.to_owned(),
            amount: Amount::from_micros(1),
            currency: Currency::from_stored("USD").unwrap(),
        }
    }

    #[test]
    fn keys_sort_by_day_and_tell_campaigns_apart() {
        let keys = [-1, 0, 1, 20_000].map(|day| cost(day, "a").key());
        assert!(keys.is_sorted());
        assert_ne!(cost(0, "a").key(), cost(0, "b").key());
        assert!(CostKey::first_of(Day::from_days(1)) < cost(1, "a").key());
        assert!(cost(0, "a").key() < CostKey::first_of(Day::from_days(1)));
    }

    #[test]
    fn the_last_cost_of_a_campaign_counts_and_zero_removes() {
        let of = |campaign: &str, micros| Cost {
            amount: Amount::from_micros(micros),
            ..cost(20_000, campaign)
        };
        let rates = ImportedRates::default();
        let costs = [of("a", 1), of("b", 5), of("a", 0), of("b", 7)];
        let change = CostChange::of(&costs, &rates).unwrap();
        assert_eq!(change.removed, [of("a", 0).key()]);
        let stored: Vec<&Cost> = change.stored.iter().map(|one| &one.cost).collect();
        assert_eq!(stored, [&of("b", 7)]);
        assert_eq!(CostChange::of(&[], &rates), Ok(CostChange::default()));
    }

    #[test]
    fn nobody_pays_for_nothing_or_gets_money_back() {
        assert!(parse_paid_network("network_a").is_ok() && parse_paid_network("apple_ads").is_ok());
        assert!(parse_paid_network("organic").is_err() && parse_paid_network("").is_err());
        assert!(parse_paid_amount("0").is_ok() && parse_paid_amount("-0.01").is_err());
    }
}
