//! XML from the European Central Bank: daily, ninety days, or the whole history.
//!
//! ```xml
//! <gesmes:Envelope …><Cube><Cube time='2024-03-18'><Cube currency='USD' rate='1.0872'/></Cube></Cube>…
//! ```
//!
//! Namespace prefixes and elements other than `Cube` are ignored. Entities are not resolved,
//! because dates, codes and numbers do not need them.

use super::collect::{RateCollector, day};
use super::{ECB_SOURCE, FileLocation, ParseError, Rate, RateBase};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use tributary_domain::vocabulary::day::Day;

const ROOT: &str = "Envelope";
const CUBE: &str = "Cube";

pub(super) fn parse(text: &str, today: Day) -> Result<Vec<Rate>, ParseError> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut collector = RateCollector::new(RateBase::Eur, ECB_SOURCE, today);
    // Day that applies within each open element.
    let mut open: Vec<Option<Day>> = Vec::new();
    let mut in_envelope = false;
    loop {
        let start = line(text, reader.buffer_position());
        let event = reader.read_event().map_err(|error| {
            line(text, reader.error_position())().error(format!("not well-formed XML: {error}"))
        })?;
        match event {
            Event::Start(element) => {
                in_envelope |= element.local_name().as_ref() == ROOT;
                if !in_envelope {
                    return Err(ParseError::UnknownFormat);
                }
                let outer = open.last().copied().flatten();
                let inner = read_element(&element, outer, &mut collector);
                open.push(inner.map_err(|problem| start().error(problem))?);
            }
            Event::End(_) => {
                open.pop();
            }
            Event::Eof if open.is_empty() => return Ok(collector.into_rates()),
            Event::Eof => return Err(start().error("the file is truncated")),
            _ => {}
        }
    }
}

/// Returns the line that contains an offset, counted only when needed.
fn line(text: &str, offset: u64) -> impl Fn() -> FileLocation {
    move || {
        FileLocation::at(
            text.as_bytes(),
            usize::try_from(offset).unwrap_or(usize::MAX),
        )
    }
}

/// Adds the element's rate, if it has one. Returns the day that applies within the element.
fn read_element(
    element: &BytesStart,
    outer: Option<Day>,
    collector: &mut RateCollector,
) -> Result<Option<Day>, String> {
    if element.local_name().as_ref() != CUBE {
        return Ok(outer);
    }
    let (mut time, mut currency, mut rate) = (None, None, None);
    for attribute in element.attributes() {
        let attribute = attribute.map_err(|error| format!("not well-formed XML: {error}"))?;
        match attribute.key.local_name().as_ref() {
            "time" => time = Some(attribute.value),
            "currency" => currency = Some(attribute.value),
            "rate" => rate = Some(attribute.value),
            _ => {}
        }
    }
    let inner = time.map(|time| day(&time)).transpose()?.or(outer);
    match (currency, rate, inner) {
        (None, None, _) => {}
        (Some(currency), Some(rate), Some(day)) => collector.add(day, &currency, &rate)?,
        (Some(_), Some(_), None) => return Err("a rate without a day".to_owned()),
        (Some(_), None, _) => return Err("a currency without a rate".to_owned()),
        (None, Some(_), _) => return Err("a rate without a currency".to_owned()),
    }
    Ok(inner)
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::{error_of, rate_lines, today};
    use rstest::rstest;

    /// Wraps lines in an envelope. In the result, the lines start on line 3.
    fn envelope(lines: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <gesmes:Envelope xmlns:gesmes=\"http://www.gesmes.org/xml/2002-08-01\">\n\
             {lines}\n</gesmes:Envelope>"
        )
    }

    #[rstest]
    #[case::single_quotes(
        "<Cube><Cube time='2024-03-18'><Cube currency='USD' rate='1.0872'/></Cube></Cube>",
        &["2024-03-18 USD 1.0872/EUR ecb"],
    )]
    #[case::double_quotes(
        r#"<Cube><Cube time="2024-03-18"><Cube rate="1.0872" currency="USD" /></Cube></Cube>"#,
        &["2024-03-18 USD 1.0872/EUR ecb"],
    )]
    #[case::prefixes(
        "<e:Cube><e:Cube time='2024-03-18'><e:Cube currency='USD' rate='1.0872'/></e:Cube></e:Cube>",
        &["2024-03-18 USD 1.0872/EUR ecb"],
    )]
    #[case::open_elements(
        "<Cube time='2024-03-18'><Cube currency='USD' rate='1.08'></Cube><Cube currency='JPY' \
         rate='162.43'></Cube></Cube>",
        &["2024-03-18 USD 1.08/EUR ecb", "2024-03-18 JPY 162.43/EUR ecb"],
    )]
    #[case::days(
        "<Cube><Cube time='2024-03-18'><Cube currency='USD' rate='1.08'/></Cube><Cube \
         time='2024-03-15'><Cube currency='USD' rate='1.09'/></Cube></Cube>",
        &["2024-03-18 USD 1.08/EUR ecb", "2024-03-15 USD 1.09/EUR ecb"],
    )]
    #[case::retired_and_unknown(
        "<Cube time='2005-03-18'><Cube currency='SIT' rate='239.7'/><Cube currency='QQQ' rate='1'/></Cube>",
        &["2005-03-18 SIT 239.7/EUR ecb", "2005-03-18 QQQ 1/EUR ecb"],
    )]
    #[case::other_elements(
        "<!-- <Cube --><name rate='x'>Bank</name><Cube time='2024-03-18' \
         multiplier='1'><note>?</note><Cube currency='USD' rate='1.08'/></Cube>",
        &["2024-03-18 USD 1.08/EUR ecb"],
    )]
    fn parses_valid_files(#[case] lines: &str, #[case] expected: &[&str]) {
        assert_eq!(rate_lines(&envelope(lines)), expected);
    }

    #[rstest]
    #[case::no_number(
        "<Cube time='2024-03-18'>\n<Cube currency='USD' rate='N/A'/></Cube>",
        "line 4: USD: must be a decimal number, for example 1.0872"
    )]
    #[case::entity(
        "<Cube time='2024-03-18'>\n\n<Cube currency='USD' rate='&one;'/></Cube>",
        "line 5: USD: must be a decimal number, for example 1.0872"
    )]
    #[case::no_currency(
        "<Cube time='2024-03-18'><Cube currency='usd' rate='1.08'/></Cube>",
        "line 3: a currency must be three capital letters, for example USD"
    )]
    #[case::no_date(
        "<Cube time='18 March 2024'><Cube currency='USD' rate='1.08'/></Cube>",
        "line 3: a date must have the form 2024-03-18"
    )]
    #[case::of_the_future(
        "<Cube time='2099-01-01'>\n<Cube currency='USD' rate='1.08'/></Cube>",
        "line 4: 2099-01-01 is later than tomorrow, 2024-06-02; correct the date, or this machine's clock"
    )]
    #[case::outside_of_a_day(
        "<Cube time='2024-03-18'></Cube>\n<Cube currency='USD' rate='1.08'/>",
        "line 4: a rate without a day"
    )]
    #[case::half_a_rate(
        "<Cube time='2024-03-18'><Cube currency='USD'/></Cube>",
        "line 3: a currency without a rate"
    )]
    #[case::the_other_half(
        "<Cube time='2024-03-18'><Cube rate='1.08'/></Cube>",
        "line 3: a rate without a currency"
    )]
    #[case::twice(
        "<Cube time='2024-03-18'><Cube currency='USD' rate='1.08'/>\n\
         <Cube currency='USD' rate='1.09'/></Cube>",
        "line 4: USD occurs twice for 2024-03-18"
    )]
    #[case::nothing(
        "<Cube><Cube time='2024-03-18'></Cube></Cube>",
        "the file has no rates"
    )]
    fn reports_errors_with_their_line(#[case] lines: &str, #[case] expected: &str) {
        assert_eq!(error_of(&envelope(lines)), expected);
    }

    #[test]
    fn rejects_truncated_files() {
        let whole = envelope("<Cube time='2024-03-18'><Cube currency='USD' rate='1.08'/></Cube>");
        for length in 1..whole.len() {
            assert!(
                parse(&whole.as_bytes()[..length], today()).is_err(),
                "{length}"
            );
        }
    }

    #[test]
    fn rejects_html() {
        let page = "<!doctype html><html><body><p>Please log in<br></body></html>";
        assert!(error_of(page).starts_with("unknown exchange rate format"));
    }
}
