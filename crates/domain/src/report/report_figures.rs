//! Figures beside what ads cost, and what one is for each of the other.

use super::Figures;
use crate::vocabulary::money::{Amount, MICROS_PER_UNIT};

/// Figures, and what ads cost, where that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportFigures {
    /// What was counted.
    pub figures: Figures,
    /// What ads cost, in millionths of a dollar.
    pub cost: Option<i64>,
}

impl ReportFigures {
    /// Adds others. What cannot be told of a part cannot be told of all.
    pub fn add(&mut self, other: &Self) {
        self.figures.add(&other.figures, 1);
        self.cost = match (self.cost, other.cost) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            _ => None,
        };
    }

    /// Nothing, with a cost of nothing.
    pub fn zero() -> Self {
        Self {
            figures: Figures::default(),
            cost: Some(0),
        }
    }

    /// Installs for each click.
    pub fn conversion_rate(&self) -> Option<Amount> {
        let Figures {
            installs, clicks, ..
        } = self.figures;
        ratio(installs.saturating_mul(MICROS_PER_UNIT), clicks)
    }

    /// Net revenue for each install.
    pub fn arpu(&self) -> Option<Amount> {
        ratio(self.figures.net_micros(), self.figures.installs)
    }

    /// Cost of each install.
    pub fn cpi(&self) -> Option<Amount> {
        let cost = self.cost.filter(|cost| *cost > 0)?;
        ratio(cost, self.figures.installs)
    }

    /// Net revenue for each dollar of cost.
    pub fn roas(&self) -> Option<Amount> {
        share(self.figures.net_micros(), self.cost?)
    }
}

/// One amount for each unit of another.
pub fn share(part: i64, whole: i64) -> Option<Amount> {
    let scaled = i128::from(part) * i128::from(MICROS_PER_UNIT);
    quotient(scaled, i128::from(whole))
}

/// Millionths divided by a number, rounded to the nearest; nothing where there is nothing to divide by.
pub fn ratio(micros: i64, by: i64) -> Option<Amount> {
    quotient(i128::from(micros), i128::from(by))
}

/// As [`ratio`], for numbers that an `i64` does not hold.
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
    fn ratios_are_rounded_once_and_never_divide_by_nothing() {
        let written = |micros, by| ratio(micros, by).map(|amount| amount.to_string());
        assert_eq!(written(1_000_000, 3).as_deref(), Some("0.333333"));
        assert_eq!(written(2_000_000, 3).as_deref(), Some("0.666667"));
        assert_eq!(written(-2_000_000, 3).as_deref(), Some("-0.666667"));
        assert_eq!(written(5, 0), None);
        assert_eq!(written(5, -1), None);
    }
}
