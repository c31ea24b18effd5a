//! The JSON of the currency API at <https://github.com/fawazahmed0/exchange-api>: the rates of one day, against the
//! euro or the dollar.
//!
//! ```json
//! {"date": "2026-09-29", "usd": {"aed": 3.6725, "btc": 0.0000091, "vnd": 25947.76804973}}
//! ```
//!
//! The file also has tokens and retired currencies; only current currencies of ISO 4217 are read. Numbers are taken by
//! their digits: a float would not hold them.

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

/// The fields that tell this form from that of Frankfurter, which has a `base`.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow, default)]
    base: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usd: Option<&'a RawValue>,
    #[serde(borrow, default)]
    eur: Option<&'a RawValue>,
}

/// Whether a text has this form.
pub(super) fn is_currency_api(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|outline: Outline<'_>| {
        outline.base.is_none() && (outline.usd.is_some() || outline.eur.is_some())
    })
}

pub(super) fn parse(text: &str, today: Day) -> Result<Vec<Rate>, ParseError> {
    let document: Document<'_> = serde_json::from_str(text).map_err(|error| {
        FileLocation::Line(error.line()).error(format!("not as expected: {error}"))
    })?;
    let at = |name: &str| FileLocation::Field(name.to_owned());
    let day = day(&document.date).map_err(|problem| at("date").error(problem))?;
    let (name, base, figures) = match (document.usd, document.eur) {
        (Some(figures), None) => ("usd", RateBase::Usd, figures),
        (None, Some(figures)) => ("eur", RateBase::Eur, figures),
        _ => return Err(at("usd").error("must have figures under either usd or eur")),
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

/// Cuts decimals that no rate keeps. A number with an exponent stays as it is, and is refused later.
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
    fn what_is_read(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(rate_lines(text), expected);
    }

    #[rstest]
    #[case::date(
        "{\"date\":\"today\",\"usd\":{}}",
        "field date: a date must read like 2024-03-18"
    )]
    #[case::of_the_future(
        r#"{"date":"2099-01-01","usd":{"sar":3.75}}"#,
        "field date: 2099-01-01 is later than tomorrow, 2024-06-02; correct the date, or the clock of this machine"
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
        "field usd: SAR: must be more than 0 and at most 1000000000"
    )]
    #[case::base_is_not_itself(
        r#"{"date":"2024-03-18","usd":{"usd":2}}"#,
        "field usd: USD against itself must be 1"
    )]
    #[case::both(
        r#"{"date":"2024-03-18","usd":{},"eur":{}}"#,
        "field usd: must have figures under either usd or eur"
    )]
    #[case::no_currency(
        r#"{"date":"2024-03-18","usd":{"btc":0.00001}}"#,
        "the file has no rates"
    )]
    fn what_is_wrong(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(error_of(text), expected);
    }
}
