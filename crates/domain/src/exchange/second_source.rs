//! The second source of daily rates, for currencies that the first source does not publish.
//!
//! The first source is `rates.url`, by default the European Central Bank. Its rates and the
//! operator's imports take precedence; the second source never replaces them. A rate from the
//! second source that differs too much from the last known rate is rejected, and the last known
//! rate stays in use.

use crate::exchange::imported::newer;
use crate::exchange::{Rate, RateBase, RateQuery, SECOND_SNAPSHOT_DAY, STALE_AFTER_DAYS, snapshot};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;

/// Source name of a rate that the second source published.
pub const SECOND_SOURCE: &str = "currency-api";

/// Factor by which a rate may rise or fall per day since the last known rate. The largest real
/// change in recent years was a factor of 2.2 in a day: the Argentine peso in December 2023. Such a
/// change is accepted on the second day.
pub const JUMP_FACTOR_PER_DAY: i128 = 2;
/// Largest accepted factor, however old the last known rate is. A redenomination (often 100 or
/// 1,000 to 1) exceeds this factor, so the operator has to import the new rate once.
pub const JUMP_FACTOR_MAX: i128 = 16;

/// Decision about one rate from the second source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateReview {
    /// Store the rate.
    Accept,
    /// The first source or an import covers the currency.
    Covered,
    /// The rate differs too much from the last known rate.
    Jump,
}

/// Returns the currencies that are fetched from the second source: all current ones that the
/// European Central Bank does not publish.
pub fn second_source_currencies() -> impl Iterator<Item = Currency> {
    Currency::all().filter(|currency| !is_of_first(*currency))
}

fn is_of_first(currency: Currency) -> bool {
    let bases = [RateBase::Eur, RateBase::Usd];
    bases.iter().any(|base| base.as_str() == currency.as_str())
        || snapshot::is_published_by_bank(currency)
}

/// Returns the query for [`review`]: the latest imported rate up to the new rate's day.
pub fn review_query(new_rate: &Rate) -> RateQuery {
    RateQuery {
        currency: new_rate.currency,
        day: new_rate.day,
    }
}

/// Decides whether to accept a new rate. `imported` is the latest imported rate for the same
/// currency up to the new rate's day.
pub fn review(new_rate: &Rate, imported: Option<Rate>) -> RateReview {
    if is_of_first(new_rate.currency) {
        return RateReview::Covered;
    }
    let compiled_in = snapshot::latest(new_rate.currency, new_rate.day);
    let Some(known) = newer(imported.clone(), compiled_in) else {
        return RateReview::Accept;
    };
    // Until an import is stale, it takes precedence even over a newer snapshot.
    let is_current = |rate: &Rate| new_rate.day.days_since(rate.day) <= STALE_AFTER_DAYS;
    if imported.is_some_and(|rate| rate.source != SECOND_SOURCE && is_current(&rate)) {
        return RateReview::Covered;
    }
    if is_jump(new_rate, &known) {
        RateReview::Jump
    } else {
        RateReview::Accept
    }
}

/// Compares rates without regard to their base: the limit is far wider than the difference between
/// euro and dollar.
fn is_jump(new_rate: &Rate, known: &Rate) -> bool {
    let days = new_rate.day.days_since(known.day).max(1);
    let mut factor = JUMP_FACTOR_PER_DAY;
    for _ in 1..days {
        if factor >= JUMP_FACTOR_MAX {
            break;
        }
        factor *= JUMP_FACTOR_PER_DAY;
    }
    let factor = factor.min(JUMP_FACTOR_MAX);
    let (new, old) = (
        i128::from(new_rate.units.nanos()),
        i128::from(known.units.nanos()),
    );
    new > old * factor || old > new * factor
}

/// Returns the latest day with a rate from the second source, given the latest imported rates of
/// [`second_source_currencies`].
pub fn latest_second_day(imported: &[Rate]) -> Day {
    let days = imported
        .iter()
        .filter(|rate| rate.source == SECOND_SOURCE)
        .map(|rate| rate.day);
    days.fold(SECOND_SNAPSHOT_DAY, Day::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::RateValue;
    use rstest::rstest;

    /// Parses a line such as `2026-10-01 AED 3.6725/USD file`.
    fn rate(line: &str) -> Rate {
        let words: Vec<&str> = line.split(' ').collect();
        let (units, base) = words[2].split_once('/').unwrap();
        Rate {
            day: Day::parse(words[0]).unwrap(),
            currency: Currency::from_stored(words[1]).unwrap(),
            units: RateValue::parse(units).unwrap(),
            base: RateBase::parse(base).unwrap(),
            source: words[3].to_owned(),
        }
    }

    #[rstest]
    #[case::nothing_imported("2026-09-30 AED 3.6725/USD", None, RateReview::Accept)]
    #[case::published_by_the_bank("2026-09-30 JPY 150/USD", None, RateReview::Covered)]
    #[case::the_euro("2026-09-30 EUR 0.9/USD", None, RateReview::Covered)]
    #[case::the_dollar("2026-09-30 USD 1.1/EUR", None, RateReview::Covered)]
    #[case::no_longer_published_by_the_bank("2026-09-30 RUB 85/USD", None, RateReview::Accept)]
    #[case::unknown_currency("2026-09-30 CLF 0.02/USD", None, RateReview::Accept)]
    #[case::its_own_of_the_day_before(
        "2026-10-02 AED 3.7/USD",
        Some("2026-10-01 AED 3.6725/USD currency-api"),
        RateReview::Accept
    )]
    #[case::its_own_of_the_same_day(
        "2026-10-02 AED 3.7/USD",
        Some("2026-10-02 AED 3.6725/USD currency-api"),
        RateReview::Accept
    )]
    #[case::imported_for_that_day(
        "2026-10-02 AED 3.7/USD",
        Some("2026-10-02 AED 3.6725/USD file"),
        RateReview::Covered
    )]
    #[case::imported_a_week_ago(
        "2026-10-08 AED 3.7/USD",
        Some("2026-10-01 AED 3.6725/USD ecb"),
        RateReview::Covered
    )]
    #[case::imported_longer_ago(
        "2026-10-09 AED 3.7/USD",
        Some("2026-10-01 AED 3.6725/USD file"),
        RateReview::Accept
    )]
    #[case::twice_as_much_in_a_day(
        "2026-10-02 NGN 2000/USD",
        Some("2026-10-01 NGN 1000/USD currency-api"),
        RateReview::Accept
    )]
    #[case::more_than_twice_in_a_day(
        "2026-10-02 NGN 2000.01/USD",
        Some("2026-10-01 NGN 1000/USD currency-api"),
        RateReview::Jump
    )]
    #[case::half_in_a_day(
        "2026-10-02 NGN 500/USD",
        Some("2026-10-01 NGN 1000/USD currency-api"),
        RateReview::Accept
    )]
    #[case::less_than_half_in_a_day(
        "2026-10-02 NGN 499.99/USD",
        Some("2026-10-01 NGN 1000/USD currency-api"),
        RateReview::Jump
    )]
    #[case::corrected_on_the_same_day(
        "2026-10-01 NGN 2001/USD",
        Some("2026-10-01 NGN 1000/USD currency-api"),
        RateReview::Jump
    )]
    #[case::four_times_in_two_days(
        "2026-10-03 NGN 4000/USD",
        Some("2026-10-01 NGN 1000/USD currency-api"),
        RateReview::Accept
    )]
    #[case::sixteen_times_in_four_days(
        "2026-10-05 NGN 16000/USD",
        Some("2026-10-01 NGN 1000/USD currency-api"),
        RateReview::Accept
    )]
    #[case::more_is_never_accepted(
        "2027-10-05 NGN 16001/USD",
        Some("2026-10-01 NGN 1000/USD currency-api"),
        RateReview::Jump
    )]
    #[case::a_token_of_the_same_name("2026-09-30 MNT 0.69372624/USD", None, RateReview::Jump)]
    #[case::far_from_an_old_import(
        "2026-10-20 AED 367.25/USD",
        Some("2026-10-01 AED 4.3/EUR file"),
        RateReview::Jump
    )]
    #[case::as_large_as_they_get(
        "2026-10-02 LBP 1000000000/USD",
        Some("2026-10-01 LBP 0.000000001/USD file"),
        RateReview::Covered
    )]
    fn rates_of_the_second_source_are_reviewed(
        #[case] new_rate: &str,
        #[case] imported: Option<&str>,
        #[case] expected: RateReview,
    ) {
        let new_rate = rate(&format!("{new_rate} {SECOND_SOURCE}"));
        assert_eq!(review(&new_rate, imported.map(rate)), expected);
    }

    #[test]
    fn the_second_source_covers_currencies_the_bank_does_not_publish() {
        let codes: Vec<_> = second_source_currencies()
            .map(|currency| currency.as_str().to_owned())
            .collect();
        assert_eq!(codes.len(), 135);
        for of_first in ["USD", "EUR", "GBP", "JPY", "ISK"] {
            assert!(!codes.iter().any(|code| code == of_first), "{of_first}");
        }
    }

    #[rstest]
    #[case::nothing_imported(&[], "2026-09-29")]
    #[case::older_than_the_snapshot(&["2026-01-01 AED 3.6725/USD currency-api"], "2026-09-29")]
    #[case::newest_counts(
        &["2026-10-01 AED 3.6725/USD currency-api", "2026-10-02 NGN 1300/USD currency-api"],
        "2026-10-02",
    )]
    #[case::imports_do_not_count(&["2026-10-01 AED 3.6725/USD file"], "2026-09-29")]
    fn latest_day_of_the_second_source(#[case] imported: &[&str], #[case] expected: &str) {
        let imported: Vec<Rate> = imported.iter().map(|line| rate(line)).collect();
        assert_eq!(latest_second_day(&imported).to_string(), expected);
    }
}
