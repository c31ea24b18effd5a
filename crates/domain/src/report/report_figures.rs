//! Figures with their ad cost, and the ratios between them.

use super::Figures;
use crate::attribution::CreditedNetwork;
use crate::vocabulary::money::{Amount, MICROS_PER_UNIT};

/// Figures with their ad cost, where the cost is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportFigures {
    /// The figures.
    pub figures: Figures,
    /// Ad cost in millionths of a US dollar; `None` if unknown.
    pub cost: Option<i64>,
    /// Part of the net revenue that no ad or link is credited with, in millionths of a US dollar;
    /// `None` if the figures were read without their network.
    pub organic_net: Option<i64>,
}

/// Returns whether figures of a credited network are paid. Organic figures, and those without a
/// credit, are not.
pub fn is_paid_network(network: &str) -> bool {
    !network.is_empty() && network != CreditedNetwork::Organic.as_str()
}

impl ReportFigures {
    /// Adds `other`. The cost of the sum is unknown if either cost is, and so is the organic
    /// revenue.
    pub fn add(&mut self, other: &Self) {
        self.figures.add(&other.figures, 1);
        self.cost = sum(self.cost, other.cost);
        self.organic_net = sum(self.organic_net, other.organic_net);
    }

    /// Adds figures of a credited network; `None` if the network is unknown.
    pub fn add_network(&mut self, network: Option<&str>, figures: &Figures) {
        self.figures.add(figures, 1);
        let organic = |network| {
            if is_paid_network(network) {
                0
            } else {
                figures.net_micros()
            }
        };
        let organic = network.map(organic);
        self.organic_net = sum(self.organic_net, organic);
    }

    /// Returns zero figures with a known cost and a known organic revenue of zero.
    pub fn zero() -> Self {
        Self {
            figures: Figures::default(),
            cost: Some(0),
            organic_net: Some(0),
        }
    }

    /// Returns installs per click.
    pub fn conversion_rate(&self) -> Option<Amount> {
        let Figures {
            installs, clicks, ..
        } = self.figures;
        ratio(installs.saturating_mul(MICROS_PER_UNIT), clicks)
    }

    /// Returns net revenue per install.
    pub fn arpu(&self) -> Option<Amount> {
        ratio(self.figures.net_micros(), self.figures.installs)
    }

    /// Returns the installs that an ad or a link is credited with.
    pub const fn paid_installs(&self) -> i64 {
        self.figures
            .installs
            .saturating_sub(self.figures.organic_installs)
    }

    /// Returns the net revenue that an ad or a link is credited with; `None` if unknown.
    pub fn paid_net(&self) -> Option<i64> {
        let organic = self.organic_net?;
        Some(self.figures.net_micros().saturating_sub(organic))
    }

    /// Returns the cost per paid install: cost ÷ (installs − organic installs). Both are in every
    /// roll-up, so the result is exact for any grouping that has a cost.
    pub fn paid_cpi(&self) -> Option<Amount> {
        let cost = self.cost.filter(|cost| *cost > 0)?;
        ratio(cost, self.paid_installs())
    }

    /// Returns the net revenue of paid installs per dollar of cost: (net revenue − net revenue of
    /// the network `organic` and of events without a network) ÷ cost. Costs are known by network
    /// and campaign only, and both roll-ups with campaigns have the network, so the result is exact
    /// wherever a cost is known.
    pub fn paid_roas(&self) -> Option<Amount> {
        share(self.paid_net()?, self.cost?)
    }

    /// Returns the blended cost per install: cost ÷ all installs.
    pub fn cpi(&self) -> Option<Amount> {
        let cost = self.cost.filter(|cost| *cost > 0)?;
        ratio(cost, self.figures.installs)
    }

    /// Returns the blended net revenue per dollar of cost, including organic revenue.
    pub fn roas(&self) -> Option<Amount> {
        share(self.figures.net_micros(), self.cost?)
    }
}

fn sum(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    Some(one?.saturating_add(other?))
}

/// Returns `part` per unit of `whole`.
pub fn share(part: i64, whole: i64) -> Option<Amount> {
    let scaled = i128::from(part) * i128::from(MICROS_PER_UNIT);
    quotient(scaled, i128::from(whole))
}

/// Divides millionths by a number and rounds to the nearest; `None` if `by` is not positive.
pub fn ratio(micros: i64, by: i64) -> Option<Amount> {
    quotient(i128::from(micros), i128::from(by))
}

/// Like [`ratio`], for numbers that do not fit an `i64`.
pub fn quotient(micros: i128, by: i128) -> Option<Amount> {
    if by <= 0 {
        return None;
    }
    let half = if micros < 0 { -by / 2 } else { by / 2 };
    let rounded = (micros + half) / by;
    i64::try_from(rounded).ok().map(Amount::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn network(installs: i64, organic_installs: i64, revenue_micros: i64) -> Figures {
        Figures {
            installs,
            organic_installs,
            revenue_micros,
            ..Figures::default()
        }
    }

    const PAID: (Option<&str>, i64, i64, i64) = (Some("network_a"), 4, 0, 30_000_000);
    const ORGANIC: (Option<&str>, i64, i64, i64) = (Some("organic"), 6, 6, 50_000_000);
    const UNCREDITED: (Option<&str>, i64, i64, i64) = (Some(""), 0, 0, 7_000_000);
    const UNKNOWN: (Option<&str>, i64, i64, i64) = (None, 1, 0, 1_000_000);

    /// Cost is $20. Expected: blended CPI, paid CPI, blended ROAS, paid ROAS.
    #[rstest]
    #[case::paid_only(&[PAID], [Some("5"), Some("5"), Some("1.5"), Some("1.5")])]
    #[case::organic_only(&[ORGANIC], [Some("3.333333"), None, Some("2.5"), Some("0")])]
    #[case::mixed(&[PAID, ORGANIC], [Some("2"), Some("5"), Some("4"), Some("1.5")])]
    #[case::without_credit(&[PAID, UNCREDITED], [Some("5"), Some("5"), Some("1.85"), Some("1.5")])]
    #[case::unknown_network(&[PAID, UNKNOWN], [Some("4"), Some("4"), Some("1.55"), None])]
    fn organic_figures_never_change_paid_ratios(
        #[case] networks: &[(Option<&str>, i64, i64, i64)],
        #[case] expected: [Option<&str>; 4],
    ) {
        let mut row = ReportFigures {
            cost: Some(20_000_000),
            ..ReportFigures::zero()
        };
        for (name, installs, organic, revenue) in networks {
            row.add_network(*name, &network(*installs, *organic, *revenue));
        }
        let found = [row.cpi(), row.paid_cpi(), row.roas(), row.paid_roas()];
        let found = found.map(|ratio| ratio.map(|ratio| ratio.to_string()));
        assert_eq!(found, expected.map(|text| text.map(str::to_owned)));
        row.cost = None;
        assert_eq!((row.paid_cpi(), row.paid_roas()), (None, None));
    }

    #[test]
    fn ratios_round_once_and_never_divide_by_zero() {
        let written = |micros, by| ratio(micros, by).map(|amount| amount.to_string());
        assert_eq!(written(1_000_000, 3).as_deref(), Some("0.333333"));
        assert_eq!(written(2_000_000, 3).as_deref(), Some("0.666667"));
        assert_eq!(written(-2_000_000, 3).as_deref(), Some("-0.666667"));
        assert_eq!(written(5, 0), None);
        assert_eq!(written(5, -1), None);
    }
}
