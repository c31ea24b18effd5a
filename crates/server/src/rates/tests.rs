//! Tests for all formats, and with the sample files next to the repository.

use super::*;
use rstest::rstest;
use std::io::Write as _;
use std::path::Path;
use tributary_domain::exchange::{ImportedRates, exchange};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::money::Amount;

/// Today's date in these tests.
pub(super) fn today() -> Day {
    Day::parse("2024-06-01").unwrap()
}

/// Returns the rates in a file, formatted as `2024-03-18 USD 1.0872/EUR ecb`.
pub(super) fn rate_lines(text: &str) -> Vec<String> {
    let rates = parse(text.as_bytes(), today()).unwrap();
    rates.iter().map(line).collect()
}

/// Returns the error message for a file.
pub(super) fn error_of(text: &str) -> String {
    parse(text.as_bytes(), today()).unwrap_err().to_string()
}

fn line(rate: &Rate) -> String {
    let (currency, base) = (rate.currency.as_str(), rate.base.as_str());
    format!(
        "{} {currency} {}/{base} {}",
        rate.day, rate.units, rate.source
    )
}

#[rstest]
#[case::empty(b"", ParseError::NoRates)]
#[case::blank(b" \r\n\t", ParseError::NoRates)]
#[case::zip(b"PK\x03\x04\x14\x00rest", ParseError::Compressed)]
#[case::empty_zip(b"PK\x05\x06\x00\x00rest", ParseError::Compressed)]
#[case::gzip(b"\x1f\x8b\x08\x00rest", ParseError::Compressed)]
#[case::latin_1(b"Date,USD\nf\xfcnf,1\n", ParseError::NotText { location: FileLocation::Line(2) })]
#[case::list(b"[1]", ParseError::UnknownFormat)]
fn rejects_files_without_rates(#[case] content: &[u8], #[case] expected: ParseError) {
    assert_eq!(parse(content, today()), Err(expected));
}

#[test]
fn the_error_for_a_compressed_file_says_what_to_do() {
    let message = parse(b"PK\x03\x04", today()).unwrap_err().to_string();
    assert!(message.contains("unzip it first"), "{message}");
}

#[test]
fn limits_the_file_size() {
    let mut content = b"date,currency,perEur\n2024-03-18,UAH,42\n".to_vec();
    content.resize(RATES_FILE_BYTES_MAX, b' ');
    assert_eq!(parse(&content, today()).map(|rates| rates.len()), Ok(1));
    content.push(b' ');
    assert_eq!(parse(&content, today()), Err(ParseError::TooLarge));
}

/// Reads a third-party sample that is not part of the repository. If it is missing, a note is
/// written directly to standard error, because the test harness would capture it.
fn sample(name: &str) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/fx");
    if !folder.is_dir() {
        let message = "NOT TESTED: the sample exchange rate files are missing at";
        writeln!(std::io::stderr(), "\n{message} {}\n", folder.display()).unwrap();
        return None;
    }
    Some(std::fs::read(folder.join(name)).unwrap())
}

/// Converts an amount to dollars with the rates for 2024-03-18.
fn usd(rates: &[Rate], amount: &str, currency: &str) -> String {
    let (currency, day) = (
        Currency::parse(currency).unwrap(),
        Day::parse("2024-03-18").unwrap(),
    );
    let imported = ImportedRates::gather([(currency, day)], |question| {
        let known = rates
            .iter()
            .filter(|rate| rate.currency == question.currency);
        let known = known.filter(|rate| rate.day <= question.day);
        Ok::<_, ()>(known.max_by_key(|rate| rate.day).cloned())
    });
    let amount = Amount::parse(amount).unwrap();
    let found = exchange(amount, currency, day, &imported.unwrap()).unwrap();
    assert_eq!((found.rate_day, found.source.as_str()), (day, ECB_SOURCE));
    found.usd.to_string()
}

#[rstest]
#[case::xml("ecb_daily.xml", 4)]
#[case::csv("ecb_hist.csv", 22)]
fn parses_the_samples(#[case] name: &str, #[case] count: usize) {
    let Some(content) = sample(name) else {
        return;
    };
    let rates = parse(&content, today()).unwrap();
    assert_eq!(rates.len(), count);
    assert_eq!(line(&rates[0]), "2024-03-18 USD 1.0872/EUR ecb");
    assert_eq!(usd(&rates, "1000", "JPY"), "6.693345");
    assert_eq!(usd(&rates, "9.99", "GBP"), "12.711251");
}
