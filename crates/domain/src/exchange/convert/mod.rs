//! The conversion: whole numbers, one division, one rounding.

use crate::exchange::imported::{EUR, newer};
use crate::exchange::rate::NANOS_PER_UNIT;
use crate::exchange::{FIXED_SOURCE, ImportedRates, Rate, RateBase, RateValue, legacy_currencies};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::money::Amount;
use std::cmp::Ordering;

/// Decimals of the rate that is kept for people to read.
pub const EXCHANGED_RATE_DECIMALS: usize = 15;
/// What the source reads where nothing had to be converted.
pub const IDENTITY_SOURCE: &str = "identity";
/// Between the names of two sources.
const SOURCE_SEPARATOR: &str = "+";

/// An amount in US dollars, and how it came about. Stored with the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedAmount {
    /// The dollars.
    pub usd: Amount,
    /// The day of the currency's rate; of the dollar's, where the currency's is fixed; of the event, where
    /// it was dollars.
    pub rate_day: Day,
    /// Dollars per 1 unit of the currency, rounded to [`EXCHANGED_RATE_DECIMALS`], for people. The dollars
    /// came from the rates as published and need not be this product to the last digit.
    pub rate: String,
    /// Where the rates came from: one name, or two with a `+` between them.
    pub source: String,
}

/// What an amount was worth on a day; `None` where no rate is known, or where the dollars do not fit.
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

/// Dollars per unit of a currency, as a fraction. The upper number is at most 10^18 and the lower 10^36, so
/// that an `i128` holds the upper one times any amount.
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
            // A fixed rate is as good on any day. Which day it was shows in the dollar's.
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

    /// Euros have two rates that tell the same: dollars per euro, which the European Central Bank
    /// publishes, and euros per dollar, which a source that counts against the dollar has.
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

    /// The price of one of the units that share the price of one euro.
    fn divided_by(self, rate: Rate) -> Self {
        // Billionths above and below cancel out. Left in, they would not fit with large amounts.
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

    /// A number of units in dollars, rounded half to even.
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
