//! Imported rates that a conversion requires, and how a store loads them.
//!
//! The rate of the event's UTC day applies, else the latest one before it.
//!
//! A rate against the euro requires the dollar rate of *its own* day, or the latest one before that
//! day. That day may be earlier than the event's day. The next query therefore depends on earlier
//! results, so this module, not the store, decides what to query:
//!
//! ```text
//! let mut rates = ImportedRates::default();
//! while let Some(query) = rates.next_query(currency, day) {
//!     let rate = SELECT … WHERE currency = query.currency AND day <= query.day
//!                ORDER BY day DESC LIMIT 1;
//!     rates.record_result(query, rate);
//! }
//! exchange(amount, currency, day, &rates)
//! ```
//!
//! There are at most three queries, and none for US dollars. For a currency that the euro replaced,
//! only the euro's dollar rate is queried.

use crate::exchange::{Rate, RateBase, legacy_currencies, snapshot};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;

/// The European Central Bank's base currency.
pub(super) const EUR: &str = RateBase::Eur.as_str();

/// Returns the currencies whose rates give the euro's price in dollars: USD per euro or, from
/// sources with the dollar as base, EUR per dollar.
pub fn euro_rate_currencies() -> impl Iterator<Item = Currency> {
    [Some(Currency::USD), Currency::from_stored(EUR)]
        .into_iter()
        .flatten()
}

/// Query for a currency's latest imported rate at or before a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateQuery {
    /// The currency.
    pub currency: Currency,
    /// The last day to consider.
    pub day: Day,
}

/// Query results from a store.
#[derive(Debug, Clone, Default)]
pub struct ImportedRates(Vec<(RateQuery, Option<Rate>)>);

impl ImportedRates {
    /// Returns the next query needed to convert the currency on the day; `None` when none is
    /// missing.
    pub fn next_query(&self, currency: Currency, day: Day) -> Option<RateQuery> {
        let mut queries = Vec::new();
        let mut against_euro = None;
        if currency.as_str() == EUR || legacy_currencies::fixed_units(currency, day).is_some() {
            against_euro = Some(day);
        } else if currency != Currency::USD {
            queries.push(RateQuery { currency, day });
            against_euro = self
                .latest(currency, day)
                .filter(|rate| rate.base == RateBase::Eur)
                .map(|rate| rate.day);
        }
        if let Some(day) = against_euro {
            queries.extend(euro_rate_currencies().map(|currency| RateQuery { currency, day }));
        }
        queries
            .into_iter()
            .find(|query| !self.0.iter().any(|(answered, _)| answered == query))
    }

    /// Records the store's result for a query.
    pub fn record_result(&mut self, query: RateQuery, rate: Option<Rate>) {
        self.0.push((query, rate));
    }

    /// Runs all queries needed to convert amounts in these currencies on these days.
    pub fn gather<E>(
        wanted: impl IntoIterator<Item = (Currency, Day)>,
        mut store: impl FnMut(RateQuery) -> Result<Option<Rate>, E>,
    ) -> Result<Self, E> {
        let mut rates = Self::default();
        for (currency, day) in wanted {
            while let Some(query) = rates.next_query(currency, day) {
                let rate = store(query)?;
                rates.record_result(query, rate);
            }
        }
        Ok(rates)
    }

    /// Returns the latest rate at or before the day, imported or from the snapshot. On the same day
    /// the import wins.
    pub(super) fn latest(&self, currency: Currency, day: Day) -> Option<Rate> {
        let wanted = RateQuery { currency, day };
        let imported = self
            .0
            .iter()
            .filter(|(query, _)| *query == wanted)
            .find_map(|(_, rate)| rate.clone())
            .filter(|rate| !rate.is_against_itself());
        let compiled_in = snapshot::latest(currency, day);
        newer(imported, compiled_in)
    }
}

/// Returns the rate of the later day; the first one if the days are equal.
pub(super) fn newer(first: Option<Rate>, second: Option<Rate>) -> Option<Rate> {
    match (first, second) {
        (Some(first), Some(second)) if second.day > first.day => Some(second),
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::RateValue;
    use rstest::rstest;

    fn rate(currency: &str, base: RateBase, day: &str) -> Rate {
        Rate {
            currency: Currency::from_stored(currency).unwrap(),
            day: Day::parse(day).unwrap(),
            base,
            units: RateValue::ONE,
            source: "file".to_owned(),
        }
    }

    /// Lists the queries for an amount on 2024-03-20, given the store's only rate.
    fn queries_for(currency: &str, stored: Option<Rate>) -> Vec<String> {
        let currency = Currency::from_stored(currency).unwrap();
        let mut queries = Vec::new();
        let store = |query: RateQuery| {
            queries.push(format!("{} {}", query.currency.as_str(), query.day));
            let fits = |rate: &Rate| rate.currency == query.currency && rate.day <= query.day;
            Ok::<_, ()>(stored.clone().filter(fits))
        };
        ImportedRates::gather([(currency, Day::parse("2024-03-20").unwrap())], store).unwrap();
        queries
    }

    #[rstest]
    #[case::dollars("USD", None, &[])]
    #[case::euros("EUR", None, &["USD 2024-03-20", "EUR 2024-03-20"])]
    #[case::in_the_snapshot(
        "JPY", None, &["JPY 2024-03-20", "USD 2024-03-20", "EUR 2024-03-20"],
    )]
    #[case::in_the_second_snapshot("RUB", None, &["RUB 2024-03-20"])]
    #[case::replaced_by_the_euro("HRK", None, &["USD 2024-03-20", "EUR 2024-03-20"])]
    #[case::not_replaced_yet(
        "BGN", None, &["BGN 2024-03-20", "USD 2024-03-20", "EUR 2024-03-20"],
    )]
    #[case::unknown("CLF", None, &["CLF 2024-03-20"])]
    #[case::imported_against_the_euro(
        "CLF",
        Some(rate("CLF", RateBase::Eur, "2024-02-01")),
        &["CLF 2024-03-20", "USD 2024-02-01", "EUR 2024-02-01"],
    )]
    #[case::imported_against_the_dollar(
        "CLF", Some(rate("CLF", RateBase::Usd, "2024-02-01")), &["CLF 2024-03-20"],
    )]
    #[case::older_than_the_snapshot(
        "JPY",
        Some(rate("JPY", RateBase::Usd, "2024-03-19")),
        &["JPY 2024-03-20", "USD 2024-03-20", "EUR 2024-03-20"],
    )]
    #[case::as_new_as_the_snapshot(
        "JPY", Some(rate("JPY", RateBase::Usd, "2024-03-20")), &["JPY 2024-03-20"],
    )]
    fn which_rates_are_queried(
        #[case] currency: &str,
        #[case] stored: Option<Rate>,
        #[case] expected: &[&str],
    ) {
        assert_eq!(queries_for(currency, stored), expected);
    }

    #[test]
    fn gathering_stops_at_the_first_error() {
        let mut times = 0;
        let found = ImportedRates::gather(
            [(Currency::from_stored(EUR).unwrap(), Day::from_days(0))],
            |_| {
                times += 1;
                Err("unavailable")
            },
        );
        assert_eq!((found.err(), times), (Some("unavailable"), 1));
    }
}
