//! Net revenue of the replayed days as the overview counts it: also payments of earlier installs and
//! on websites. Other rules change it by what the replayed installs have brought in, because only
//! these move, and all their payments are in the period.

use super::WhatIfRow;
use super::report::UNKNOWN;
use crate::report::{OTHER, ReportFigures, StatsRow, is_paid_network, share};
use crate::vocabulary::money::Amount;
use std::collections::{BTreeMap, BTreeSet};

impl WhatIfRow {
    /// Returns the net revenue of the period under the other rules; `None` if unknown.
    pub fn period_net_then(&self) -> Option<i64> {
        let net = |of: &ReportFigures| of.figures.net_micros();
        let moved = net(&self.then).saturating_sub(net(&self.now));
        Some(self.period_net?.saturating_add(moved))
    }

    /// Returns the net revenue of the period per dollar of cost.
    pub fn period_roas(&self) -> Option<Amount> {
        share(self.period_net?, self.now.cost?)
    }

    /// Returns the net revenue of the period under the other rules, per dollar of cost.
    pub fn period_roas_then(&self) -> Option<Amount> {
        share(self.period_net_then()?, self.then.cost?)
    }

    /// Returns whether the row's installs are credited to an ad or a link. Those whose new credit is
    /// not known may be organic.
    pub(super) fn is_paid(&self) -> bool {
        is_paid_network(&self.network) && self.network != UNKNOWN
    }
}

/// Adds the net revenue of the period to the rows of networks and campaigns. `reported` are the
/// app's figures by network and campaign. A network without installs in the period gets a row.
/// Returns the net revenue without a credit, which belongs to no row.
pub(super) fn add_period_net(
    networks: &mut Vec<WhatIfRow>,
    campaigns: &mut [WhatIfRow],
    reported: &[StatsRow],
    has_costs: bool,
) -> i64 {
    let mut by_network: BTreeMap<&str, i64> = BTreeMap::new();
    let mut by_campaign: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    // Networks with campaigns whose figures count under `(other)`.
    let mut capped: BTreeSet<&str> = BTreeSet::new();
    for row in reported {
        let [network, campaign] = row.values.as_slice() else {
            continue;
        };
        let net = row.figures.net_micros();
        for sum in [
            by_network.entry(network).or_default(),
            by_campaign.entry((network, campaign)).or_default(),
        ] {
            *sum = sum.saturating_add(net);
        }
        if campaign == OTHER {
            capped.insert(network);
        }
    }
    for row in campaigns {
        let found = by_campaign.get(&(row.network.as_str(), row.campaign.as_str()));
        let is_known = !capped.contains(row.network.as_str());
        row.period_net = found.copied().or_else(|| is_known.then_some(0));
    }
    let uncredited = by_network.remove("").unwrap_or(0);
    for row in networks.iter_mut() {
        row.period_net = Some(by_network.remove(row.network.as_str()).unwrap_or(0));
    }
    let nothing = ReportFigures {
        cost: has_costs.then_some(0),
        ..ReportFigures::zero()
    };
    let missing = by_network.into_iter().filter(|(_, net)| *net != 0);
    networks.extend(missing.map(|(network, net)| WhatIfRow {
        network: network.to_owned(),
        now: nothing,
        then: nothing,
        period_net: Some(net),
        ..WhatIfRow::default()
    }));
    networks.sort_by(|one, other| one.network.cmp(&other.network));
    uncredited
}
