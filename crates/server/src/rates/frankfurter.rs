//! JSON from Frankfurter, version 1: the rates for one day.
//!
//! ```json
//! {"amount": 1.0, "base": "USD", "date": "2024-03-18", "rates": {"EUR": 0.92}}
//! ```
//!
//! Numbers keep their exact digits, which floats would lose.

use super::collect::{RateCollector, day};
use super::{FRANKFURTER_SOURCE, FileLocation, ParseError, Rate, RateBase};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tributary_domain::exchange::RateValue;
use tributary_domain::vocabulary::day::Day;

#[derive(Deserialize)]
struct FrankfurterResponse<'a> {
    #[serde(borrow)]
    amount: Option<&'a RawValue>,
    base: String,
    date: String,
    #[serde(borrow)]
    rates: BTreeMap<String, &'a RawValue>,
}

pub(super) fn parse(text: &str, today: Day) -> Result<Vec<Rate>, ParseError> {
    let document: FrankfurterResponse<'_> = serde_json::from_str(text).map_err(|error| {
        FileLocation::Line(error.line()).error(format!("unexpected JSON: {error}"))
    })?;
    let at = |name: &str| FileLocation::Field(name.to_owned());
    let amount = document.amount.map(|amount| RateValue::parse(amount.get()));
    if amount.is_some_and(|amount| amount != Ok(RateValue::ONE)) {
        return Err(at("amount").error("must be 1"));
    }
    let base = RateBase::parse(&document.base)
        .ok_or_else(|| at("base").error("rates must be against EUR or USD"))?;
    let day = day(&document.date).map_err(|problem| at("date").error(problem))?;
    let mut collector = RateCollector::new(base, FRANKFURTER_SOURCE, today);
    collector
        .check_day(day)
        .map_err(|problem| at("date").error(problem))?;
    for (code, units) in document.rates {
        collector
            .add(day, &code, units.get())
            .map_err(|problem| at("rates").error(problem))?;
    }
    Ok(collector.into_rates())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error_of, rate_lines};
    use rstest::rstest;

    #[rstest]
    #[case::against_the_dollar(
        r#"{"amount":1.0,"base":"USD","date":"2024-03-18","rates":{"EUR":0.91979,"JPY":149.4}}"#,
        &["2024-03-18 EUR 0.91979/USD frankfurter", "2024-03-18 JPY 149.4/USD frankfurter"],
    )]
    #[case::against_the_euro(
        r#"{"amount":1,"base":"EUR","date":"2024-03-18","rates":{"USD":1.0872}}"#,
        &["2024-03-18 USD 1.0872/EUR frankfurter"],
    )]
    #[case::more_digits_than_a_float(
        r#" { "base": "EUR", "date": "2024-03-18", "rates": { "IDR": 900719925.474099301 } }"#,
        &["2024-03-18 IDR 900719925.474099301/EUR frankfurter"],
    )]
    #[case::base_among_them(
        r#"{"base":"EUR","date":"2024-03-18","rates":{"EUR":1.0,"USD":1.0872},"more":[]}"#,
        &["2024-03-18 USD 1.0872/EUR frankfurter"],
    )]
    fn parses_valid_files(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(rate_lines(text), expected);
    }

    #[rstest]
    #[case::hundred(
        r#"{"amount":100.0,"base":"EUR","date":"2024-03-18","rates":{"USD":108.72}}"#,
        "field amount: must be 1"
    )]
    #[case::other_base(
        r#"{"base":"GBP","date":"2024-03-18","rates":{"USD":1.27}}"#,
        "field base: rates must be against EUR or USD"
    )]
    #[case::no_date(
        r#"{"base":"EUR","date":"today","rates":{"USD":1.27}}"#,
        "field date: a date must have the form 2024-03-18"
    )]
    #[case::of_the_future(
        r#"{"base":"EUR","date":"2099-01-01","rates":{"USD":1.27}}"#,
        "field date: 2099-01-01 is later than tomorrow, 2024-06-02; correct the date, or this machine's clock"
    )]
    #[case::text(
        r#"{"base":"EUR","date":"2024-03-18","rates":{"USD":"1.27"}}"#,
        "field rates: USD: must be a decimal number, for example 1.0872"
    )]
    #[case::several_days(
        r#"{"base":"EUR","date":"2024-03-18","rates":{"2024-03-18":{"USD":1.27}}}"#,
        "field rates: a currency must be three capital letters, for example USD"
    )]
    #[case::base_is_not_itself(
        r#"{"base":"EUR","date":"2024-03-18","rates":{"EUR":2}}"#,
        "field rates: EUR against itself must be 1"
    )]
    #[case::nothing(
        r#"{"base":"EUR","date":"2024-03-18","rates":{"EUR":1}}"#,
        "the file has no rates"
    )]
    fn reports_errors_with_their_field(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(error_of(text), expected);
    }

    #[rstest]
    #[case::a_field_is_missing(
        "{\n\"base\":\"EUR\",\"rates\":{}}",
        "line 2: unexpected JSON: missing field `date`"
    )]
    #[case::not_json("{\n\nbase", "line 3: unexpected JSON: key must be a string")]
    fn rejects_other_json(#[case] text: &str, #[case] start: &str) {
        let found = error_of(text);
        assert!(found.starts_with(start), "{found}");
    }
}
