//! JSON from the currency API at <https://github.com/fawazahmed0/exchange-api>: the rates for one
//! day, per euro or dollar.
//!
//! ```json
//! {"date": "2026-09-29", "usd": {"aed": 3.6725, "btc": 0.0000091, "vnd": 25947.76804973}}
//! ```
//!
//! The file also contains crypto tokens and retired currencies; only current ISO 4217 currencies
//! are read. Numbers keep their exact digits, which floats would lose.

use super::collect::{RateCollector, day};
use super::{FileLocation, ParseError, Rate, RateBase};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tributary_domain::exchange::{RATE_DECIMALS_MAX, SECOND_SOURCE};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;

#[derive(Deserialize)]
struct Document<'a> {
    date: String,
    #[serde(borrow, default)]
    usd: Option<BTreeMap<Cow<'a, str>, &'a RawValue>>,
    #[serde(borrow, default)]
    eur: Option<BTreeMap<Cow<'a, str>, &'a RawValue>>,
}

/// Fields that distinguish this format from Frankfurter's, which has a `base`.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow, default)]
    base: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usd: Option<&'a RawValue>,
    #[serde(borrow, default)]
    eur: Option<&'a RawValue>,
}

/// Returns whether the text has this format.
pub(super) fn is_currency_api(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|outline: Outline<'_>| {
        outline.base.is_none() && (outline.usd.is_some() || outline.eur.is_some())
    })
}

pub(super) fn parse(text: &str, today: Day) -> Result<Vec<Rate>, ParseError> {
    let document: Document<'_> = serde_json::from_str(text).map_err(|error| {
        FileLocation::Line(error.line()).error(format!("unexpected JSON: {error}"))
    })?;
    let at = |name: &str| FileLocation::Field(name.to_owned());
    let day = day(&document.date).map_err(|problem| at("date").error(problem))?;
    let (name, base, figures) = match (document.usd, document.eur) {
        (Some(figures), None) => ("usd", RateBase::Usd, figures),
        (None, Some(figures)) => ("eur", RateBase::Eur, figures),
        _ => return Err(at("usd").error("must have rates under either usd or eur")),
    };
    let mut collector = RateCollector::new(base, SECOND_SOURCE, today);
    collector
        .check_day(day)
        .map_err(|problem| at("date").error(problem))?;
    for (code, units) in figures {
        if let Ok(currency) = Currency::parse(&code) {
            collector
                .add(day, currency.as_str(), without_excess(units.get()))
                .map_err(|problem| at(name).error(problem))?;
        }
    }
    Ok(collector.into_rates())
}

/// Cuts off excess decimals. A number with an exponent is left as it is and rejected later.
fn without_excess(number: &str) -> &str {
    let Some(point) = number.find('.') else {
        return number;
    };
    match number.get(..=point + RATE_DECIMALS_MAX) {
        Some(cut) if number.bytes().all(|byte| !byte.is_ascii_alphabetic()) => cut,
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error_of, rate_lines};
    use rstest::rstest;

    #[rstest]
    #[case::against_the_dollar(
        r#"{"date":"2024-03-18","usd":{"aed":3.6725,"vnd":24730.5}}"#,
        &["2024-03-18 AED 3.6725/USD currency-api", "2024-03-18 VND 24730.5/USD currency-api"],
    )]
    #[case::against_the_euro(
        r#"{"date":"2024-03-18","eur":{"aed":4.0012}}"#,
        &["2024-03-18 AED 4.0012/EUR currency-api"],
    )]
    #[case::tokens_and_retired_currencies_are_skipped(
        r#"{"date":"2024-03-18","usd":{"1inch":9.9,"btc":1e-5,"hrk":6.9,"xau":0.0004,"sar":3.75}}"#,
        &["2024-03-18 SAR 3.75/USD currency-api"],
    )]
    #[case::base_among_them(
        r#"{"date":"2024-03-18","usd":{"usd":1,"sar":3.75}}"#,
        &["2024-03-18 SAR 3.75/USD currency-api"],
    )]
    #[case::more_digits_than_a_float(
        r#"{"date":"2024-03-18","usd":{"irr":900719925.4740993019}}"#,
        &["2024-03-18 IRR 900719925.474099301/USD currency-api"],
    )]
    fn parses_valid_files(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(rate_lines(text), expected);
    }

    #[rstest]
    #[case::date(
        "{\"date\":\"today\",\"usd\":{}}",
        "field date: a date must have the form 2024-03-18"
    )]
    #[case::of_the_future(
        r#"{"date":"2099-01-01","usd":{"sar":3.75}}"#,
        "field date: 2099-01-01 is later than tomorrow, 2024-06-02; correct the date, or this machine's clock"
    )]
    #[case::exponent(
        r#"{"date":"2024-03-18","usd":{"sar":3.7500000000001e0}}"#,
        "field usd: SAR: must be a decimal number, for example 1.0872"
    )]
    #[case::negative(
        r#"{"date":"2024-03-18","usd":{"sar":-3.75}}"#,
        "field usd: SAR: must be a decimal number, for example 1.0872"
    )]
    #[case::zero(
        r#"{"date":"2024-03-18","usd":{"sar":0.0000000001}}"#,
        "field usd: SAR: must be greater than 0 and at most 1000000000"
    )]
    #[case::base_is_not_itself(
        r#"{"date":"2024-03-18","usd":{"usd":2}}"#,
        "field usd: USD against itself must be 1"
    )]
    #[case::both(
        r#"{"date":"2024-03-18","usd":{},"eur":{}}"#,
        "field usd: must have rates under either usd or eur"
    )]
    #[case::no_currency(
        r#"{"date":"2024-03-18","usd":{"btc":0.00001}}"#,
        "the file has no rates"
    )]
    fn reports_errors_with_their_field(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(error_of(text), expected);
    }
}
