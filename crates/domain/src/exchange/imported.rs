//! The facts about imported rates that a conversion needs, and how a store gathers them.
//!
//! The rate of the event's UTC day counts, else the latest before it.
//!
//! A rate against the euro needs the dollar's rate of *its own* day, or the latest before it. With a rate
//! that is older than the event, the dollar's rate of the event's day would be the wrong one. So
//! what to ask for next depends on what was answered, and the rule asks, not the store:
//!
//! ```text
//! let mut rates = ImportedRates::default();
//! while let Some(question) = rates.next_question(currency, day) {
//!     let rate = SELECT … WHERE currency = question.currency AND day <= question.day
//!                ORDER BY day DESC LIMIT 1;
//!     rates.answer(question, rate);
//! }
//! exchange(amount, currency, day, &rates)
//! ```
//!
//! There are at most three questions, and none for US dollars. About a currency that the euro has replaced
//! nothing is asked but what a euro was worth on the event's day.

use crate::exchange::{Rate, RateBase, legacy_currencies, snapshot};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;

/// The currency that the European Central Bank counts against.
pub(super) const EUR: &str = RateBase::Eur.as_str();

/// The currencies whose rates tell what a euro is worth in dollars: dollars per euro or, from a source that
/// counts against the dollar, euros per dollar.
pub fn euro_rate_currencies() -> impl Iterator<Item = Currency> {
    [Some(Currency::USD), Currency::from_stored(EUR)]
        .into_iter()
        .flatten()
}

/// What a store is asked for: the latest imported rate of the currency at or before the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateQuery {
    /// Of which currency.
    pub currency: Currency,
    /// At or before which day.
    pub day: Day,
}

/// What a store answered.
#[derive(Debug, Clone, Default)]
pub struct ImportedRates(Vec<(RateQuery, Option<Rate>)>);

impl ImportedRates {
    /// What else must be known to convert an amount of the currency on the day; `None` when all is.
    pub fn next_query(&self, currency: Currency, day: Day) -> Option<RateQuery> {
        let mut questions = Vec::new();
        let mut against_euro = None;
        if currency.as_str() == EUR || legacy_currencies::fixed_units(currency, day).is_some() {
            against_euro = Some(day);
        } else if currency != Currency::USD {
            questions.push(RateQuery { currency, day });
            against_euro = self
                .latest(currency, day)
                .filter(|rate| rate.base == RateBase::Eur)
                .map(|rate| rate.day);
        }
        if let Some(day) = against_euro {
            questions.extend(euro_rate_currencies().map(|currency| RateQuery { currency, day }));
        }
        questions
            .into_iter()
            .find(|question| !self.0.iter().any(|(answered, _)| answered == question))
    }

    /// Notes what the store has: a rate, or none.
    pub fn record_result(&mut self, question: RateQuery, rate: Option<Rate>) {
        self.0.push((question, rate));
    }

    /// Asks for everything that is needed to convert amounts of these currencies on these days.
    pub fn gather<E>(
        wanted: impl IntoIterator<Item = (Currency, Day)>,
        mut store: impl FnMut(RateQuery) -> Result<Option<Rate>, E>,
    ) -> Result<Self, E> {
        let mut rates = Self::default();
        for (currency, day) in wanted {
            while let Some(question) = rates.next_query(currency, day) {
                let rate = store(question)?;
                rates.record_result(question, rate);
            }
        }
        Ok(rates)
    }

    /// The latest rate of the currency at or before the day, be it imported or of the snapshot. What the
    /// snapshot has for the same day gives way.
    pub(super) fn latest(&self, currency: Currency, day: Day) -> Option<Rate> {
        let asked = RateQuery { currency, day };
        let imported = self
            .0
            .iter()
            .filter(|(question, _)| *question == asked)
            .find_map(|(_, rate)| rate.clone())
            .filter(|rate| !rate.is_against_itself());
        let compiled_in = snapshot::latest(currency, day);
        newer(imported, compiled_in)
    }
}

/// The rate of the later day; the first where the days are the same.
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

    /// Which questions are asked about an amount on 2024-03-20, when the store has this.
    fn asked(currency: &str, stored: Option<Rate>) -> Vec<String> {
        let currency = Currency::from_stored(currency).unwrap();
        let mut asked = Vec::new();
        let store = |question: RateQuery| {
            asked.push(format!("{} {}", question.currency.as_str(), question.day));
            let fits = |rate: &Rate| rate.currency == question.currency && rate.day <= question.day;
            Ok::<_, ()>(stored.clone().filter(fits))
        };
        ImportedRates::gather([(currency, Day::parse("2024-03-20").unwrap())], store).unwrap();
        asked
    }

    #[rstest]
    #[case::dollars("USD", None, &[])]
    #[case::euros("EUR", None, &["USD 2024-03-20", "EUR 2024-03-20"])]
    #[case::known_to_the_snapshot(
        "JPY", None, &["JPY 2024-03-20", "USD 2024-03-20", "EUR 2024-03-20"],
    )]
    #[case::known_to_the_second_snapshot("RUB", None, &["RUB 2024-03-20"])]
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
    fn what_is_asked(
        #[case] currency: &str,
        #[case] stored: Option<Rate>,
        #[case] expected: &[&str],
    ) {
        assert_eq!(asked(currency, stored), expected);
    }

    #[test]
    fn a_failing_store_is_not_asked_again() {
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
