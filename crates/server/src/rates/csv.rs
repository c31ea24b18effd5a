//! Exchange rates in two CSV formats.
//!
//! The European Central Bank's files have a column per currency: the history (newest first, a
//! trailing comma on each line, `N/A` for missing rates) and the daily file (`18 March 2024`,
//! spaces after commas). Files written by operators have one rate per line, with the header
//! `date,currency,perEur` or `date,currency,perUsd`.
//!
//! No cell contains a comma, so quotes are simply stripped.

use super::collect::{RateCollector, currency, day};
use super::{ECB_SOURCE, FILE_SOURCE, FileLocation, ParseError, Rate, RateBase};
use tributary_domain::vocabulary::day::Day;

/// First cell of every header.
const DATE: &str = "date";
/// Values for a rate that was not published.
const MISSING: [&str; 2] = ["", "N/A"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A line's cells and location.
struct CsvLine<'a> {
    location: FileLocation,
    cells: Vec<&'a str>,
}

pub(super) fn parse(text: &str, today: Day) -> Result<Vec<Rate>, ParseError> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| CsvLine {
            location: FileLocation::Line(index + 1),
            cells: line.split(',').map(cell).collect(),
        });
    let header = lines.next().ok_or(ParseError::NoRates)?;
    let names = without_last_comma(header.cells);
    match names.as_slice() {
        [date, rest @ ..] if date.eq_ignore_ascii_case(DATE) => match rest {
            [code, base] if code.eq_ignore_ascii_case("currency") => {
                let base = if base.eq_ignore_ascii_case("perEur") {
                    RateBase::Eur
                } else if base.eq_ignore_ascii_case("perUsd") {
                    RateBase::Usd
                } else {
                    return Err(ParseError::UnknownFormat);
                };
                parse_long(RateCollector::new(base, FILE_SOURCE, today), lines)
            }
            codes => {
                for code in codes {
                    currency(code).map_err(|problem| header.location.clone().error(problem))?;
                }
                let collector = RateCollector::new(RateBase::Eur, ECB_SOURCE, today);
                parse_wide(collector, codes, lines)
            }
        },
        _ => Err(ParseError::UnknownFormat),
    }
}

fn cell(text: &str) -> &str {
    text.trim().trim_matches('"').trim()
}

/// Drops the empty cell after the bank's trailing comma.
fn without_last_comma(mut cells: Vec<&str>) -> Vec<&str> {
    if cells.last() == Some(&"") {
        cells.pop();
    }
    cells
}

/// Returns a line's cells. There must be as many as in the header.
fn expect_cells(line: CsvLine<'_>, count: usize) -> Result<Vec<&str>, ParseError> {
    let cells = if line.cells.len() > count {
        without_last_comma(line.cells)
    } else {
        line.cells
    };
    if cells.len() == count {
        return Ok(cells);
    }
    let problem = format!("{} cells, but the header has {count}", cells.len());
    Err(line.location.error(problem))
}

fn parse_wide<'a>(
    mut collector: RateCollector,
    codes: &[&str],
    lines: impl Iterator<Item = CsvLine<'a>>,
) -> Result<Vec<Rate>, ParseError> {
    for line in lines {
        let location = line.location.clone();
        let to_error = |problem| location.clone().error(problem);
        let cells = expect_cells(line, codes.len() + 1)?;
        let (date, rates) = cells.split_first().unwrap_or((&"", &[]));
        let day = long_date(date)
            .map_or_else(|| day(date), Ok)
            .map_err(to_error)?;
        for (code, rate) in codes.iter().zip(rates) {
            if !MISSING.contains(rate) {
                collector.add(day, code, rate).map_err(to_error)?;
            }
        }
    }
    Ok(collector.into_rates())
}

/// Parses a file written by an operator. Such files are typed by hand, so lower-case codes are
/// accepted.
fn parse_long<'a>(
    mut collector: RateCollector,
    lines: impl Iterator<Item = CsvLine<'a>>,
) -> Result<Vec<Rate>, ParseError> {
    for line in lines {
        let location = line.location.clone();
        let added = match expect_cells(line, 3)?.as_slice() {
            [date, code, rate] => {
                let code = code.to_ascii_uppercase();
                day(date).and_then(|day| collector.add(day, &code, rate))
            }
            _ => Ok(()),
        };
        added.map_err(|problem| location.error(problem))?;
    }
    Ok(collector.into_rates())
}

/// Parses `18 March 2024`.
fn long_date(text: &str) -> Option<Day> {
    let mut words = text.split_ascii_whitespace();
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let index = MONTHS.iter().position(|name| *name == month)?;
    let month = i64::try_from(index).ok()? + 1;
    let date = Day::from_date(year.parse().ok()?, month, day.parse().ok()?);
    date.filter(|_| words.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error_of, rate_lines};
    use rstest::rstest;

    #[rstest]
    #[case::history(
        "Date,USD,JPY,CYP,\n2024-03-18,1.0872,162.43,N/A,\n2024-03-15,1.0890,N/A,N/A,\n",
        &[
            "2024-03-18 USD 1.0872/EUR ecb",
            "2024-03-18 JPY 162.43/EUR ecb",
            "2024-03-15 USD 1.089/EUR ecb",
        ],
    )]
    #[case::daily(
        "Date, USD, JPY, \n18 March 2024, 1.0872, 162.43, \n",
        &["2024-03-18 USD 1.0872/EUR ecb", "2024-03-18 JPY 162.43/EUR ecb"],
    )]
    #[case::day_of_one_digit("Date, USD, \n04 May 2024, 1.08, \n", &["2024-05-04 USD 1.08/EUR ecb"])]
    #[case::empty_is_missing("Date,USD,JPY\n2024-03-18,1.08,\n", &["2024-03-18 USD 1.08/EUR ecb"])]
    #[case::no_comma_at_the_end(
        "Date,USD,JPY,\n2024-03-18,1.08,162\n",
        &["2024-03-18 USD 1.08/EUR ecb", "2024-03-18 JPY 162/EUR ecb"],
    )]
    #[case::other_line_ends("\u{feff}\r\nDate,USD,\r\n\r\n2024-03-18,1.08,\r\n", &["2024-03-18 USD 1.08/EUR ecb"])]
    #[case::operators_own(
        "date,currency,perEur\n2024-03-18,UAH,42.6\n2024-03-15,UAH,42.1\n",
        &["2024-03-18 UAH 42.6/EUR file", "2024-03-15 UAH 42.1/EUR file"],
    )]
    #[case::against_the_dollar(
        "Date, Currency, perusd\n2024-03-18, UAH, 39.2\n2024-03-18, USD, 1\n",
        &["2024-03-18 UAH 39.2/USD file"],
    )]
    #[case::in_small_letters(
        "date,currency,perEur\n2024-03-18,usd,1.0872\n2024-03-18,Uah,42.6\n",
        &["2024-03-18 USD 1.0872/EUR file", "2024-03-18 UAH 42.6/EUR file"],
    )]
    #[case::up_to_tomorrow(
        "date,currency,perEur\n2024-06-01,UAH,42.6\n2024-06-02,UAH,42.7\n",
        &["2024-06-01 UAH 42.6/EUR file", "2024-06-02 UAH 42.7/EUR file"],
    )]
    #[case::none_of_a_later_day(
        "Date,USD,\n2024-06-03,N/A,\n2024-05-31,1.08,\n",
        &["2024-05-31 USD 1.08/EUR ecb"],
    )]
    #[case::quotes(
        "\"date\",\"currency\",\"perEur\"\n\"2024-03-18\",\"UAH\",\"42.6\"\n",
        &["2024-03-18 UAH 42.6/EUR file"],
    )]
    fn parses_valid_files(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(rate_lines(text), expected);
    }

    #[rstest]
    #[case::no_date(
        "Date,USD,\n18.03.2024,1.08,\n",
        "line 2: a date must have the form 2024-03-18"
    )]
    #[case::no_such_day(
        "Date,USD,\n31 April 2024,1.08,\n",
        "line 2: a date must have the form 2024-03-18"
    )]
    #[case::zero(
        "Date,USD,\n\n2024-03-18,0,\n",
        "line 3: USD: must be greater than 0 and at most 1000000000"
    )]
    #[case::ten_decimals(
        "Date,USD,\n2024-03-18,1.0000000001,\n",
        "line 2: USD: must have at most 9 decimals"
    )]
    #[case::decimal_comma(
        "Date,USD,\n2024-03-18,1,08,\n",
        "line 2: 3 cells, but the header has 2"
    )]
    #[case::too_few(
        "Date,USD,JPY,CHF,\n2024-03-18,1.08,\n",
        "line 2: 3 cells, but the header has 4"
    )]
    #[case::no_currency(
        "Date,USD,Yen,\n2024-03-18,1.08,2,\n",
        "line 1: a currency must be three capital letters, for example USD"
    )]
    #[case::hole_in_the_header(
        "Date,USD,,JPY,\n2024-03-18,1,,2,\n",
        "line 1: a currency must be three capital letters, for example USD"
    )]
    #[case::same_day_twice(
        "Date,USD,\n2024-03-18,1,\n18 March 2024,1,\n",
        "line 3: USD occurs twice for 2024-03-18"
    )]
    #[case::same_column_twice(
        "Date,USD,USD,\n2024-03-18,1,1,\n",
        "line 2: USD occurs twice for 2024-03-18"
    )]
    #[case::own_without_rate(
        "date,currency,perEur\n2024-03-18,UAH,\n",
        "line 2: UAH: must be a decimal number, for example 1.0872"
    )]
    #[case::own_with_long_date(
        "date,currency,perEur\n18 March 2024,UAH,42\n",
        "line 2: a date must have the form 2024-03-18"
    )]
    #[case::own_twice_in_any_letters(
        "date,currency,perEur\n2024-03-18,UAH,42\n2024-03-18,uah,42\n",
        "line 3: UAH occurs twice for 2024-03-18"
    )]
    #[case::own_without_a_code(
        "date,currency,perEur\n2024-03-18,hryvnia,42\n",
        "line 2: a currency must be three capital letters, for example USD"
    )]
    #[case::the_banks_in_small_letters(
        "Date,usd,\n2024-03-18,1.08,\n",
        "line 1: a currency must be three capital letters, for example USD"
    )]
    #[case::own_of_the_future(
        "date,currency,perEur\n2024-03-18,USD,1.08\n2099-01-01,USD,1.5\n",
        "line 3: 2099-01-01 is later than tomorrow, 2024-06-02; correct the date, or this machine's clock"
    )]
    #[case::the_day_after_tomorrow(
        "Date,USD,\n3 June 2024,1.08,\n",
        "line 2: 2024-06-03 is later than tomorrow, 2024-06-02; correct the date, or this machine's clock"
    )]
    #[case::header_alone("date,currency,perEur\n", "the file has no rates")]
    #[case::none_published("Date,USD,\n2024-03-18,N/A,\n", "the file has no rates")]
    #[case::no_columns("Date\n2024-03-18\n", "the file has no rates")]
    fn reports_errors_with_their_line(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(error_of(text), expected);
    }

    #[rstest]
    #[case::semicolons("date;currency;perEur\n2024-03-18;UAH;42\n")]
    #[case::other_base("date,currency,perGbp\n2024-03-18,UAH,42\n")]
    #[case::other_order("currency,date,perEur\nUAH,2024-03-18,42\n")]
    #[case::no_header("2024-03-18,UAH,42\n")]
    #[case::prose("These are my rates.\n")]
    fn rejects_unknown_formats(#[case] text: &str) {
        assert!(error_of(text).starts_with("unknown exchange rate format"));
    }
}
