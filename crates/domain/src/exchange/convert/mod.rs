//! Converts amounts to US dollars with integers, one division and one rounding.

use crate::exchange::imported::{EUR, newer};
use crate::exchange::rate::NANOS_PER_UNIT;
use crate::exchange::{FIXED_SOURCE, ImportedRates, Rate, RateBase, RateValue, legacy_currencies};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::money::Amount;
use std::cmp::Ordering;

/// Decimals of the stored human-readable rate.
pub const EXCHANGED_RATE_DECIMALS: usize = 15;
/// Source name for amounts that were in dollars already.
pub const IDENTITY_SOURCE: &str = "identity";
/// Separator between two source names.
const SOURCE_SEPARATOR: &str = "+";

/// An amount in US dollars with its rate. Stored with the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedAmount {
    /// Amount in USD.
    pub usd: Amount,
    /// Day of the currency's rate. For a currency with a fixed rate it is the day of the dollar's
    /// rate; for dollars it is the day of the event.
    pub rate_day: Day,
    /// Dollars per unit of the currency, rounded to [`EXCHANGED_RATE_DECIMALS`] for display. `usd`
    /// is computed from the published rates, so it may differ in the last digits from the amount
    /// times this rate.
    pub rate: String,
    /// Source of the rates: one name, or two joined by `+`.
    pub source: String,
}

/// Converts an amount at a day's rate. Returns `None` if there is no rate or the result overflows.
pub fn exchange(
    amount: Amount,
    currency: Currency,
    day: Day,
    imported: &ImportedRates,
) -> Option<ConvertedAmount> {
    let price = DollarPrice::of(currency, day, imported)?;
    let usd = price.convert(i128::from(amount.micros()))?;
    Some(ConvertedAmount {
        usd: Amount::from_micros(i64::try_from(usd).ok()?),
        rate_day: price.day,
        rate: price.text()?,
        source: price.sources.join(SOURCE_SEPARATOR),
    })
}

/// Dollars per unit of a currency, as a fraction. The numerator is at most 10^18 and the
/// denominator at most 10^36, so an `i128` holds the numerator times any amount.
pub(super) struct DollarPrice {
    dollars: i128,
    units: i128,
    day: Day,
    sources: Vec<String>,
}

impl DollarPrice {
    pub(super) fn of(currency: Currency, day: Day, imported: &ImportedRates) -> Option<Self> {
        if currency == Currency::USD {
            return Some(Self {
                dollars: 1,
                units: 1,
                day,
                sources: vec![IDENTITY_SOURCE.to_owned()],
            });
        }
        if currency.as_str() == EUR {
            return Self::of_euro(day, imported);
        }
        if let Some(units) = legacy_currencies::fixed_units(currency, day) {
            let euro = Self::of_euro(day, imported)?;
            // A fixed rate has no day, so the day of the dollar's rate is recorded.
            let rate = Rate {
                currency,
                day: euro.day,
                base: RateBase::Eur,
                units,
                source: FIXED_SOURCE.to_owned(),
            };
            return Some(euro.divided_by(rate));
        }
        let rate = imported.latest(currency, day)?;
        match rate.base {
            RateBase::Usd => Some(Self::against_dollar(rate)),
            RateBase::Eur => Some(Self::of_euro(rate.day, imported)?.divided_by(rate)),
        }
    }

    /// Returns the dollar price of a euro. Two equivalent rates can give this price: dollars per
    /// euro, published by the European Central Bank, and euros per dollar, from sources with the
    /// dollar as base.
    fn of_euro(day: Day, imported: &ImportedRates) -> Option<Self> {
        let dollars = imported.latest(Currency::USD, day);
        let euros = imported.latest(Currency::from_stored(EUR)?, day);
        let rate = newer(dollars, euros)?;
        if rate.base == RateBase::Usd {
            return Some(Self::against_dollar(rate));
        }
        Some(Self {
            dollars: nanos(rate.units),
            units: i128::from(NANOS_PER_UNIT),
            day: rate.day,
            sources: vec![rate.source],
        })
    }

    fn against_dollar(rate: Rate) -> Self {
        Self {
            dollars: i128::from(NANOS_PER_UNIT),
            units: nanos(rate.units),
            day: rate.day,
            sources: vec![rate.source],
        }
    }

    /// Returns the price of a unit, given the price of a euro and the units per euro.
    fn divided_by(self, rate: Rate) -> Self {
        // Cancels the factor of a billion, which would overflow with large amounts.
        let (dollars, units) = if self.units == i128::from(NANOS_PER_UNIT) {
            (self.dollars, nanos(rate.units))
        } else {
            let dollars = self.dollars * i128::from(NANOS_PER_UNIT);
            (dollars, self.units * nanos(rate.units))
        };
        let mut sources = vec![rate.source];
        sources.extend(self.sources);
        sources.dedup();
        Self {
            dollars,
            units,
            day: rate.day,
            sources,
        }
    }

    /// Converts a number of units to dollars, rounded half to even.
    pub(super) fn convert(&self, number: i128) -> Option<i128> {
        let product = number.checked_mul(self.dollars)?;
        let (whole, rest) = (
            product.div_euclid(self.units),
            product.rem_euclid(self.units),
        );
        Some(match rest.cmp(&(self.units - rest)) {
            Ordering::Less => whole,
            Ordering::Equal => whole + whole.rem_euclid(2),
            Ordering::Greater => whole + 1,
        })
    }

    fn text(&self) -> Option<String> {
        let one = 10_i128.checked_pow(u32::try_from(EXCHANGED_RATE_DECIMALS).ok()?)?;
        let scaled = self.convert(one)?;
        let (whole, fraction) = (scaled / one, scaled % one);
        let text = format!("{whole}.{fraction:0EXCHANGED_RATE_DECIMALS$}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        Some(text.to_owned())
    }
}

fn nanos(value: RateValue) -> i128 {
    i128::from(value.nanos())
}

#[cfg(test)]
mod tests;
