//! Ad costs per day, network and campaign: entered by people, or imported from the network.

use crate::attribution::CreditedNetwork;
use crate::exchange::{ConvertedAmount, ImportedRates, exchange};
use crate::integration::is_network_name;
use crate::refusal::Refusal;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::money::Amount;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of costs per request, enough for a month of a hundred campaigns.
pub const COSTS_MAX: usize = 5_000;

/// Where a cost comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CostOrigin {
    /// Entered by a person or through the REST API.
    Manual,
    /// Imported from the network's cost report.
    Imported,
}

crate::keywords! {
    CostOrigin {
        Manual => "manual",
        Imported => "imported",
    }
}

/// Ad cost of a campaign on one day. The day is as reported by the ad network; costs per hour are
/// unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// Day.
    pub day: Day,
    /// Network that was paid.
    pub network: CreditedNetwork,
    /// Campaign id; empty for costs without a campaign.
    pub campaign: String,
    /// Amount as entered.
    pub amount: Amount,
    /// Currency of the amount.
    pub currency: Currency,
    /// Where the cost comes from.
    pub origin: CostOrigin,
}

/// Key of a cost: its day, then a digest of network, campaign and origin. Costs are listed in key
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CostKey([u8; 16]);

impl CostKey {
    /// Returns the stored form.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the lowest key of a day.
    pub const fn first_of(day: Day) -> Self {
        let mut bytes = [0; 16];
        // Flipping the sign bit makes days before 1970 sort before later ones.
        let [a, b, c, d] = (day.as_days() ^ i32::MIN).to_be_bytes();
        (bytes[0], bytes[1], bytes[2], bytes[3]) = (a, b, c, d);
        Self(bytes)
    }
}

impl Cost {
    /// Returns the key of the cost.
    pub fn key(&self) -> CostKey {
        let mut key = CostKey::first_of(self.day);
        // Keys of manual costs are older than imports, so they contain no origin.
        let origin = match self.origin {
            CostOrigin::Manual => "",
            CostOrigin::Imported => "\0imported",
        };
        let text = format!("{}\0{}{origin}", self.network.as_str(), self.campaign);
        let digest = Digest::of(text.as_bytes());
        key.0[4..].copy_from_slice(&digest.as_bytes()[..12]);
        key
    }
}

/// Parses the network that was paid. Rejects `organic`, which has no cost.
pub fn parse_paid_network(text: &str) -> Result<CreditedNetwork, Problem> {
    let found = CreditedNetwork::parse(text).filter(|one| *one != CreditedNetwork::Organic);
    found.ok_or_else(|| {
        let message =
            "Must be one of network_a, network_b, network_c, network_d, apple_ads, other.";
        Problem::new(FaultCode::UnknownValue, message)
    })
}

/// Parses the network of a row in a table: its name as people write it, such as `google` for Google
/// Ads, or its id.
pub fn parse_named_network(text: &str) -> Result<CreditedNetwork, Problem> {
    let named = CreditedNetwork::PAID
        .into_iter()
        .find(|one| is_network_name(text, one.name()));
    named.map_or_else(|| parse_paid_network(text), Ok)
}

/// Parses a cost. Rejects negative amounts.
pub fn parse_paid_amount(text: &str) -> Result<Amount, Problem> {
    let amount = Amount::parse_text(text)?;
    if amount < Amount::ZERO {
        return Err(Problem::new(FaultCode::OutOfRange, "Must not be negative."));
    }
    Ok(amount)
}

/// A stored cost with its amount in US dollars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCost {
    /// The cost as entered.
    pub cost: Cost,
    /// Amount in US dollars.
    pub usd: Amount,
    /// Day of the exchange rate.
    pub rate_day: Day,
    /// Whether reports include the cost; see [`ImportedDays`].
    pub is_counted: bool,
}

impl StoredCost {
    /// Combines a cost with its converted amount.
    pub fn of(cost: Cost, exchanged: &ConvertedAmount) -> Self {
        Self {
            cost,
            usd: exchanged.usd,
            rate_day: exchanged.rate_day,
            is_counted: true,
        }
    }
}

/// The days and networks with imported costs. They decide which costs count.
///
/// On a day with imported costs of a network, only these count for the network: the network knows
/// what it charged, and its report covers all campaigns. So a manual cost, with or without a
/// campaign, is never added to imported ones. It stays stored, and counts again if the imported costs
/// of its day are removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportedDays<'a>(BTreeSet<(Day, &'a str)>);

impl<'a> ImportedDays<'a> {
    /// Collects the days and networks of imported costs.
    pub fn of(costs: impl IntoIterator<Item = (Day, &'a str, CostOrigin)>) -> Self {
        let costs = costs.into_iter();
        let imported = costs.filter(|(_, _, origin)| *origin == CostOrigin::Imported);
        Self(imported.map(|(day, network, _)| (day, network)).collect())
    }

    /// Returns whether reports include a cost.
    pub fn counts(&self, day: Day, network: &str, origin: CostOrigin) -> bool {
        origin == CostOrigin::Imported || !self.0.contains(&(day, network))
    }
}

/// Changes to the stored costs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CostChange {
    /// Costs to remove.
    pub removed: Vec<CostKey>,
    /// Costs to insert or replace.
    pub stored: Vec<StoredCost>,
}

impl CostChange {
    /// Converts costs to US dollars. Refuses the whole request if one currency has no rate. A cost
    /// of zero removes the stored cost. If several entries have the same day, network and campaign,
    /// the last one wins.
    pub fn of(costs: &[Cost], rates: &ImportedRates) -> Result<Self, Refusal> {
        let (mut last, mut without_rate) = (BTreeMap::new(), Vec::new());
        for (index, cost) in costs.iter().enumerate() {
            match exchange(cost.amount, cost.currency, cost.day, rates) {
                Some(exchanged) => {
                    last.insert(cost.key(), StoredCost::of(cost.clone(), &exchanged));
                }
                None => without_rate.push(index),
            }
        }
        if !without_rate.is_empty() {
            return Err(missing_rates(&without_rate));
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

/// Returns the refusal for costs without an exchange rate, given their indexes in the request.
fn missing_rates(indexes: &[usize]) -> Refusal {
    let mut faults = Faults::new();
    let message = "No exchange rate for this currency. Send the amount in USD.";
    for index in indexes {
        let problem = Problem::new(FaultCode::UnknownValue, message);
        faults.add(format!("costs[{index}].currency"), problem);
    }
    Refusal::Invalid(faults)
}

/// Filter for listing costs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CostFilter {
    /// First day.
    pub from: Option<Day>,
    /// Last day.
    pub to: Option<Day>,
    /// Network.
    pub network: Option<CreditedNetwork>,
    /// Campaign id.
    pub campaign: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn cost(day: i32, campaign: &str) -> Cost {
        Cost {
            day: Day::from_days(day),
            network: CreditedNetwork::AppleAds,
            campaign: campaign.to_owned(),
            amount: Amount::from_micros(1),
            currency: Currency::from_stored("USD").unwrap(),
            origin: CostOrigin::Manual,
        }
    }

    #[test]
    fn keys_sort_by_day_and_differ_by_campaign() {
        let keys = [-1, 0, 1, 20_000].map(|day| cost(day, "a").key());
        assert!(keys.is_sorted());
        assert_ne!(cost(0, "a").key(), cost(0, "b").key());
        let imported = Cost {
            origin: CostOrigin::Imported,
            ..cost(0, "a")
        };
        assert_ne!(imported.key(), cost(0, "a").key());
        assert!(CostKey::first_of(Day::from_days(1)) < cost(1, "a").key());
        assert!(cost(0, "a").key() < CostKey::first_of(Day::from_days(1)));
    }

    #[test]
    fn the_last_cost_of_a_campaign_wins_and_zero_removes_it() {
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

    #[rstest]
    #[case::manual_alone(&[(1, "network_a", "manual")], &[true])]
    #[case::imported_wins(
        &[(1, "network_a", "manual"), (1, "network_a", "imported")],
        &[false, true]
    )]
    #[case::another_day_or_network(
        &[(1, "network_a", "manual"), (2, "network_a", "imported"), (1, "network_b", "imported")],
        &[true, true, true]
    )]
    #[case::several_campaigns(
        &[(1, "network_a", "imported"), (1, "network_a", "imported"), (1, "network_a", "manual")],
        &[true, true, false]
    )]
    fn imported_and_manual_costs_of_a_day_are_never_added(
        #[case] rows: &[(i32, &'static str, &str)],
        #[case] expected: &[bool],
    ) {
        let rows: Vec<(Day, &str, CostOrigin)> = rows
            .iter()
            .map(|(day, network, origin)| {
                let origin = CostOrigin::parse(origin).unwrap();
                (Day::from_days(*day), *network, origin)
            })
            .collect();
        let days = ImportedDays::of(rows.iter().copied());
        let counted = rows
            .iter()
            .map(|(day, network, origin)| days.counts(*day, network, *origin));
        assert_eq!(counted.collect::<Vec<_>>(), expected);
    }

    /// A change: a manual upload, or a pull that replaces the imported costs of a day.
    #[derive(Debug, Clone)]
    enum Step {
        Upload(Cost),
        Pull(i32, Vec<Cost>),
    }

    fn apply(steps: &[Step]) -> i64 {
        let mut stored: BTreeMap<CostKey, Cost> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Upload(cost) => {
                    stored.insert(cost.key(), cost.clone());
                }
                Step::Pull(day, costs) => {
                    stored.retain(|_, one| {
                        one.origin == CostOrigin::Manual || one.day != Day::from_days(*day)
                    });
                    stored.extend(costs.iter().map(|cost| (cost.key(), cost.clone())));
                }
            }
        }
        let of = |cost: &Cost| (cost.day, cost.network.as_str(), cost.origin);
        let days = ImportedDays::of(stored.values().map(of));
        let counted = stored
            .values()
            .filter(|one| days.counts(one.day, one.network.as_str(), one.origin));
        counted.map(|cost| cost.amount.micros()).sum()
    }

    proptest! {
        /// Each day has one pull and any number of uploads for different campaigns; pulls and
        /// uploads commute.
        #[test]
        fn the_order_of_pulls_and_uploads_does_not_change_the_sum(
            (steps, shuffled) in proptest::collection::btree_map((0..3_i32, 0..4_u8), 1..1_000_i64, 0..12)
                .prop_map(|amounts| {
                    let cost = |day, campaign: u8, micros, origin| Cost {
                        amount: Amount::from_micros(micros),
                        origin,
                        ..cost(day, &campaign.to_string())
                    };
                    let uploads = amounts.iter().map(|((day, campaign), micros)| {
                        Step::Upload(cost(*day, *campaign, *micros, CostOrigin::Manual))
                    });
                    let pulls = (0..2).map(|day| {
                        let of = amounts.iter().filter(|((of, _), _)| *of == day);
                        let costs = of.map(|((day, campaign), micros)| {
                            cost(*day, *campaign, micros * 7, CostOrigin::Imported)
                        });
                        Step::Pull(day, costs.collect())
                    });
                    uploads.chain(pulls).collect::<Vec<_>>()
                })
                .prop_flat_map(|steps| (Just(steps.clone()), Just(steps).prop_shuffle()))
        ) {
            prop_assert_eq!(apply(&steps), apply(&shuffled));
            // A repeated pull replaces the earlier one.
            let twice: Vec<Step> = shuffled.iter().chain(&steps).cloned().collect();
            prop_assert_eq!(apply(&twice), apply(&steps));
        }
    }

    #[test]
    fn finds_networks_by_name_and_by_id() {
        let cases = [
            ("Meta", "network_a"),
            ("google", "network_b"),
            ("Google Ads", "network_b"),
            ("network_c", "network_c"),
            ("APPLE ADS", "apple_ads"),
            ("apple", "apple_ads"),
            ("Other", "other"),
        ];
        for (text, id) in cases {
            let found = parse_named_network(text).map(CreditedNetwork::as_str);
            assert_eq!(found.ok(), Some(id), "{text}");
        }
    }

    #[test]
    fn rejects_organic_costs_and_negative_amounts() {
        assert!(parse_paid_network("network_a").is_ok() && parse_paid_network("apple_ads").is_ok());
        assert!(parse_paid_network("organic").is_err() && parse_paid_network("").is_err());
        assert!(parse_named_network("Organic").is_err() && parse_named_network("").is_err());
        assert!(parse_paid_amount("0").is_ok() && parse_paid_amount("-0.01").is_err());
    }
}
