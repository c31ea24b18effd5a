//! Cross rates into one currency, for devices that convert amounts themselves.

use crate::exchange::convert::DollarPrice;
use crate::exchange::rate::NANOS_PER_UNIT;
use crate::exchange::{ImportedRates, RateValue};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;

/// Precision of prices. It gives the weakest currency nine significant digits, and an `i128` can
/// still hold a billion times any price.
const FRACTIONS_PER_DOLLAR: i128 = 1_000_000_000_000_000_000;

/// Returns units of `into` per unit of each other currency on a day, to the nearest billionth.
/// Leaves out currencies that have no rate or are worth less than a billionth. The result is empty
/// if `into` has no rate.
pub fn cross_rates(
    into: Currency,
    day: Day,
    imported: &ImportedRates,
) -> Vec<(Currency, RateValue)> {
    let price = |currency| DollarPrice::of(currency, day, imported)?.convert(FRACTIONS_PER_DOLLAR);
    let Some(one) = price(into).filter(|price| *price > 0) else {
        return Vec::new();
    };
    let others = Currency::all().filter(|currency| *currency != into);
    let rate = |currency| {
        let nanos = price(currency)?.checked_mul(i128::from(NANOS_PER_UNIT))?;
        let nearest = (nanos + one / 2) / one;
        RateValue::from_nanos(i64::try_from(nearest).ok()?)
    };
    others
        .filter_map(|currency| Some((currency, rate(currency)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Rate, RateBase};

    fn currency(code: &str) -> Currency {
        Currency::from_stored(code).unwrap()
    }

    /// Returns the cross rates, given imported rates as units per base.
    fn rates(into: &str, imported: &[(&str, RateBase, &str)]) -> Vec<(String, String)> {
        let day = Day::parse("2030-01-02").unwrap();
        let mut rates_so_far = ImportedRates::default();
        for target in Currency::all() {
            while let Some(query) = rates_so_far.next_query(target, day) {
                let found = imported
                    .iter()
                    .find(|(code, _, _)| *code == query.currency.as_str());
                let rate = found.map(|(_, base, units)| Rate {
                    currency: query.currency,
                    day: query.day,
                    base: *base,
                    units: RateValue::parse(units).unwrap(),
                    source: "file".to_owned(),
                });
                rates_so_far.record_result(query, rate);
            }
        }
        cross_rates(currency(into), day, &rates_so_far)
            .into_iter()
            .map(|(currency, rate)| (currency.as_str().to_owned(), rate.to_string()))
            .collect()
    }

    fn rate_of(rates: &[(String, String)], code: &str) -> Option<String> {
        let found = rates.iter().find(|(currency, _)| currency == code);
        found.map(|(_, rate)| rate.clone())
    }

    #[test]
    fn cross_rates_are_units_per_other_currency() {
        let imported = [
            ("USD", RateBase::Eur, "1.25"),
            ("JPY", RateBase::Eur, "200"),
            ("KWD", RateBase::Usd, "0.3"),
            ("UAH", RateBase::Usd, "40"),
        ];
        let dollars = rates("USD", &imported);
        assert_eq!(rate_of(&dollars, "EUR").as_deref(), Some("1.25"));
        assert_eq!(rate_of(&dollars, "JPY").as_deref(), Some("0.00625"));
        assert_eq!(rate_of(&dollars, "KWD").as_deref(), Some("3.333333333"));
        assert_eq!(rate_of(&dollars, "USD"), None, "not against itself");
        assert_eq!(rate_of(&dollars, "CLF"), None, "no source has it");
        let yen = rates("JPY", &imported);
        assert_eq!(rate_of(&yen, "EUR").as_deref(), Some("200"));
        assert_eq!(rate_of(&yen, "USD").as_deref(), Some("160"));
        assert_eq!(rate_of(&yen, "UAH").as_deref(), Some("4"));
    }

    #[test]
    fn a_currency_without_a_rate_has_no_cross_rates() {
        assert_eq!(rates("CLF", &[]), []);
    }
}
