//! Figures with their ad cost, and the ratios between them.

use super::Figures;
use crate::vocabulary::money::{Amount, MICROS_PER_UNIT};

/// Figures with their ad cost, where the cost is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportFigures {
    /// The figures.
    pub figures: Figures,
    /// Ad cost in millionths of a US dollar; `None` if unknown.
    pub cost: Option<i64>,
}

impl ReportFigures {
    /// Adds `other`. The cost of the sum is unknown if either cost is.
    pub fn add(&mut self, other: &Self) {
        self.figures.add(&other.figures, 1);
        self.cost = match (self.cost, other.cost) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            _ => None,
        };
    }

    /// Returns zero figures with a known cost of zero.
    pub fn zero() -> Self {
        Self {
            figures: Figures::default(),
            cost: Some(0),
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

    /// Returns the cost per install.
    pub fn cpi(&self) -> Option<Amount> {
        let cost = self.cost.filter(|cost| *cost > 0)?;
        ratio(cost, self.figures.installs)
    }

    /// Returns net revenue per dollar of cost.
    pub fn roas(&self) -> Option<Amount> {
        share(self.figures.net_micros(), self.cost?)
    }
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
