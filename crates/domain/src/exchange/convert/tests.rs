use super::*;
use crate::exchange::SNAPSHOT_SOURCE;
use proptest::prelude::*;
use rstest::rstest;

/// A store's imported rates.
struct Store(Vec<Rate>);

impl Store {
    /// Parses lines such as `2024-03-18 JPY 162.43/EUR file`.
    fn of(lines: &[&str]) -> Self {
        let rates = lines.iter().map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let (units, base) = words[2].split_once('/').unwrap();
            Rate {
                day: Day::parse(words[0]).unwrap(),
                currency: Currency::from_stored(words[1]).unwrap(),
                units: RateValue::parse(units).unwrap(),
                base: RateBase::parse(base).unwrap(),
                source: words[3].to_owned(),
            }
        });
        Self(rates.collect())
    }

    /// Rates from the reference examples, which differ from the built-in snapshot.
    fn samples() -> Self {
        Self::of(&[
            "2024-03-18 USD 1.0872/EUR ecb",
            "2024-03-18 JPY 162.43/EUR ecb",
            "2024-03-18 GBP 0.85445/EUR ecb",
        ])
    }

    fn exchange(&self, money: &str, day: &str) -> Option<ConvertedAmount> {
        let (amount, currency) = money.split_once(' ').unwrap();
        let (amount, currency) = (
            Amount::parse(amount).unwrap(),
            Currency::from_stored(currency),
        );
        let (currency, day) = (currency.unwrap(), Day::parse(day).unwrap());
        let imported = ImportedRates::gather([(currency, day)], |query| {
            let known = self.0.iter().filter(|rate| rate.currency == query.currency);
            let known = known.filter(|rate| rate.day <= query.day);
            Ok::<_, ()>(known.max_by_key(|rate| rate.day).cloned())
        });
        exchange(amount, currency, day, &imported.unwrap())
    }

    /// Formats the result as `usd rate_day source`; empty if there is no rate.
    fn summary(&self, money: &str, day: &str) -> String {
        let summary = |found: ConvertedAmount| {
            let ConvertedAmount {
                usd,
                rate_day,
                source,
                ..
            } = found;
            format!("{usd} {rate_day} {source}")
        };
        self.exchange(money, day).map(summary).unwrap_or_default()
    }
}

#[rstest]
#[case::yen("1000 JPY", "6.693345 2024-03-18 ecb")]
#[case::pounds("9.99 GBP", "12.711251 2024-03-18 ecb")]
#[case::euros("9.99 EUR", "10.861128 2024-03-18 ecb")]
#[case::dollars("9.99 USD", "9.99 2024-03-18 identity")]
#[case::refunded("-9.99 GBP", "-12.711251 2024-03-18 ecb")]
#[case::nothing("0 GBP", "0 2024-03-18 ecb")]
#[case::compiled_in("9.99 CHF", "11.27843 2024-03-18 ecb-snapshot+ecb")]
#[case::never_published("9.99 CLF", "")]
#[case::largest("999999999999.999999 GBP", "1272397448651.17912 2024-03-18 ecb")]
fn converts_with_imported_rates(#[case] money: &str, #[case] expected: &str) {
    assert_eq!(Store::samples().summary(money, "2024-03-18"), expected);
}

#[rstest]
#[case::yen("1000 JPY", "0.006693344825463")]
#[case::pounds("9.99 GBP", "1.272397448651179")]
#[case::euros("9.99 EUR", "1.0872")]
#[case::dollars("9.99 USD", "1")]
fn the_stored_rate(#[case] money: &str, #[case] expected: &str) {
    let found = Store::samples().exchange(money, "2024-03-18");
    assert_eq!(found.unwrap().rate, expected);
}

#[rstest]
#[case::before_any_rate("1 GBP", "2021-12-31", "")]
#[case::euros_before_any_rate("1 EUR", "2021-12-31", "")]
#[case::dollars_need_none("1 USD", "2021-12-31", "1 2021-12-31 identity")]
#[case::that_day("1 EUR", "2024-03-18", "1.0892 2024-03-18 ecb-snapshot")]
#[case::a_sunday("1 EUR", "2024-03-17", "1.0892 2024-03-15 ecb-snapshot")]
#[case::after_the_last("1 EUR", "2040-01-01", "1.1551 2026-09-14 ecb-snapshot")]
// 117.201 roubles and 1.1162 dollars per euro, both on 2022-03-01.
#[case::long_ended("100 RUB", "2024-03-01", "0.952381 2022-03-01 ecb-snapshot")]
#[case::before_the_second_source("100 AED", "2024-03-01", "")]
#[case::gold_has_no_rate("1 XAU", "2026-11-16", "")]
fn converts_with_the_snapshot_only(#[case] money: &str, #[case] day: &str, #[case] expected: &str) {
    assert_eq!(Store(Vec::new()).summary(money, day), expected);
}

/// App store currencies for which the European Central Bank publishes no rate.
#[rstest]
#[case("100 AED", "27.229408")]
#[case("100 SAR", "26.666667")]
#[case("100 TWD", "3.139461")]
#[case("100 VND", "0.003854")]
#[case("100 CLP", "0.103334")]
#[case("100 COP", "0.029683")]
#[case("100 PEN", "29.273919")]
#[case("100 EGP", "1.921222")]
#[case("100 NGN", "0.075406")]
#[case("100 KZT", "0.226637")]
#[case("100 PKR", "0.360834")]
#[case("100 QAR", "27.472527")]
#[case("100 KWD", "323.926508")]
#[case("100 UAH", "2.225982")]
fn the_second_snapshot_covers_other_store_currencies(#[case] money: &str, #[case] usd: &str) {
    let expected = format!("{usd} 2026-09-29 currency-api-snapshot");
    assert_eq!(Store(Vec::new()).summary(money, "2026-11-16"), expected);
}

#[rstest]
#[case::newer_import_of_the_second_source(
    "2026-10-01 AED 4/USD currency-api",
    "2026-10-01 currency-api"
)]
#[case::older_one(
    "2026-09-01 AED 4/USD currency-api",
    "2026-09-29 currency-api-snapshot"
)]
#[case::import_of_the_same_day("2026-09-29 AED 4/USD file", "2026-09-29 file")]
fn imports_override_the_second_snapshot(#[case] line: &str, #[case] expected: &str) {
    let summary = Store::of(&[line]).summary("4 AED", "2026-11-16");
    assert!(summary.ends_with(expected), "{summary}");
}

#[rstest]
#[case::kuna_before_the_euro("100 HRK", "2022-12-31", "14.152458 2022-12-30 ecb-snapshot")]
#[case::kuna_on_the_first_day("100 HRK", "2023-01-01", "14.156215 2022-12-30 fixed+ecb-snapshot")]
#[case::kuna_later("100 HRK", "2024-03-18", "14.456168 2024-03-18 fixed+ecb-snapshot")]
#[case::kuna_on_a_sunday("100 HRK", "2024-03-17", "14.456168 2024-03-15 fixed+ecb-snapshot")]
#[case::lev_before_the_euro("100 BGN", "2025-12-31", "60.077718 2025-12-31 ecb-snapshot")]
#[case::lev_on_the_first_day("100 BGN", "2026-01-01", "60.076796 2025-12-31 fixed+ecb-snapshot")]
#[case::lev_on_a_sunday("100 BGN", "2026-01-04", "59.928521 2026-01-02 fixed+ecb-snapshot")]
#[case::lev_after_the_last_dollar(
    "100 BGN",
    "2040-01-01",
    "59.059325 2026-09-14 fixed+ecb-snapshot"
)]
#[case::ended_without_the_euro("100 RUB", "2024-03-01", "0.952381 2022-03-01 ecb-snapshot")]
fn currencies_replaced_by_the_euro(#[case] money: &str, #[case] day: &str, #[case] expected: &str) {
    assert_eq!(Store(Vec::new()).summary(money, day), expected);
}

#[rstest]
#[case::dollars_per_euro("2024-03-17 USD 1.5/EUR file", "10 2024-03-17 fixed+file")]
#[case::euros_per_dollar("2024-03-16 EUR 0.5/USD file", "13.333333 2024-03-16 fixed+file")]
#[case::of_an_older_day("2024-03-14 USD 2/EUR file", "7.261333 2024-03-15 fixed+ecb-snapshot")]
#[case::of_the_currency_itself(
    "2024-03-17 HRK 1/EUR file",
    "7.261333 2024-03-15 fixed+ecb-snapshot"
)]
fn imports_do_not_override_fixed_rates(#[case] line: &str, #[case] expected: &str) {
    assert_eq!(
        Store::of(&[line]).summary("50.23 HRK", "2024-03-17"),
        expected
    );
}

#[rstest]
#[case::import_wins_on_its_day(
    &["2024-03-18 USD 2/EUR file"], "1 EUR", "2 2024-03-18 file",
)]
#[case::older_import_loses(
    &["2024-03-15 USD 2/EUR file"], "1 EUR", "1.0892 2024-03-18 ecb-snapshot",
)]
#[case::import_of_tomorrow_is_not_for_today(
    &["2024-03-19 USD 2/EUR file"], "1 EUR", "1.0892 2024-03-18 ecb-snapshot",
)]
#[case::against_the_dollar(
    &["2024-03-18 UAH 39/USD file"], "78 UAH", "2 2024-03-18 file",
)]
#[case::old_but_the_only_one(
    &["2021-01-04 CLF 28/USD file"], "56 CLF", "2 2021-01-04 file",
)]
#[case::dollar_of_the_same_old_day(
    &[
        "2024-02-01 CLF 40/EUR file",
        "2024-02-01 USD 1.1/EUR ecb",
        "2024-03-18 USD 1.5/EUR ecb",
    ],
    "40 CLF", "1.1 2024-02-01 file+ecb",
)]
#[case::dollar_of_the_latest_day_before(
    &[
        "2021-02-06 CLF 40/EUR file",
        "2021-02-05 USD 1.1/EUR file",
        "2021-02-08 USD 1.5/EUR file",
    ],
    "40 CLF", "1.1 2021-02-06 file",
)]
#[case::no_dollar_that_old(
    &["2021-02-05 CLF 40/EUR file"], "40 CLF", "",
)]
#[case::euros_per_dollar_of_the_same_day(
    &["2024-03-18 EUR 0.8/USD file"], "1 EUR", "1.0892 2024-03-18 ecb-snapshot",
)]
#[case::across_euros_per_dollar(
    &["2021-02-05 CLF 40/EUR file", "2021-02-05 EUR 0.8/USD other"],
    "40 CLF", "1.25 2021-02-05 file+other",
)]
#[case::against_itself_is_ignored(
    &["2024-03-18 USD 7/USD file"], "1 EUR", "1.0892 2024-03-18 ecb-snapshot",
)]
fn the_latest_rate_applies(#[case] lines: &[&str], #[case] money: &str, #[case] expected: &str) {
    assert_eq!(Store::of(lines).summary(money, "2024-03-18"), expected);
}

#[rstest]
#[case::dollars_per_euro("2024-03-16 USD 2/EUR file", "2 2024-03-16 file")]
#[case::euros_per_dollar("2024-03-16 EUR 0.5/USD file", "2 2024-03-16 file")]
fn an_imported_weekend_rate_applies(#[case] line: &str, #[case] expected: &str) {
    assert_eq!(Store::of(&[line]).summary("1 EUR", "2024-03-17"), expected);
}

#[rstest]
#[case::half_down_to_even("0.000001 XAA", "0")]
#[case::half_up_to_even("0.000003 XAA", "0.000002")]
#[case::half_down_to_even_again("0.000005 XAA", "0.000002")]
#[case::negative_half("-0.000003 XAA", "-0.000002")]
#[case::negative_half_to_nothing("-0.000001 XAA", "0")]
#[case::less_than_half("0.000001 XBB", "0")]
#[case::more_than_half("0.000002 XBB", "0.000001")]
fn rounding(#[case] money: &str, #[case] expected: &str) {
    let lines = ["2024-03-18 XAA 2/USD file", "2024-03-18 XBB 3/USD file"];
    let found = Store::of(&lines).exchange(money, "2024-03-18").unwrap();
    assert_eq!(found.usd.to_string(), expected);
}

#[rstest]
#[case::just_fits("9223372036.854775 XAA", Some("9223372036854.775"))]
#[case::overflows("9223372036.854776 XAA", None)]
#[case::far_too_much("999999999999 XBB", None)]
#[case::next_to_nothing("99999999999 XCC", Some("0"))]
fn results_out_of_range_are_none(#[case] money: &str, #[case] expected: Option<&str>) {
    let lines = [
        "2024-03-18 XAA 0.001/USD file",
        "2024-03-18 XBB 0.000000001/EUR file",
        "2024-03-18 XCC 1000000000/EUR file",
        "2024-03-18 USD 0.000000001/EUR file",
    ];
    let lines = if money.ends_with("XBB") {
        &lines[..3]
    } else {
        &lines
    };
    let found = Store::of(lines).exchange(money, "2024-03-18");
    assert_eq!(
        found.map(|found| found.usd.to_string()).as_deref(),
        expected
    );
}

#[test]
fn the_source_is_named_once() {
    let found = Store(Vec::new()).exchange("1 GBP", "2024-03-18").unwrap();
    assert_eq!(found.source, SNAPSHOT_SOURCE);
}

fn price(dollars: i64, units: i64) -> DollarPrice {
    DollarPrice {
        dollars: dollars.into(),
        units: units.into(),
        day: Day::from_days(0),
        sources: Vec::new(),
    }
}

const NANOS: std::ops::RangeInclusive<i64> = 1..=1_000_000_000_000_000_000;

proptest! {
    #[test]
    fn a_refund_undoes_its_payment(micros in any::<i64>(), one in NANOS, other in NANOS) {
        let shared = Rate {
            currency: Currency::USD,
            day: Day::from_days(0),
            base: RateBase::Eur,
            units: RateValue::from_nanos(one).unwrap(),
            source: String::new(),
        };
        let across_euros_per_dollar = price(NANOS_PER_UNIT, other).divided_by(shared);
        for price in [price(one, other), across_euros_per_dollar] {
            let paid = price.convert(micros.into());
            prop_assert!(paid.is_some() && price.text().is_some());
            prop_assert_eq!(paid, price.convert(-i128::from(micros)).map(|usd| -usd));
        }
    }
}
