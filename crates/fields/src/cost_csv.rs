//! Costs as CSV: Tributary's own columns, or an export from a network's ad manager. Values may be
//! separated by commas, semicolons or tabs.

use crate::link_csv::separator;
use csv::{ReaderBuilder, StringRecord, Trim};
use tributary_domain::report::cost::parse_named_network;
use tributary_domain::report::cost_table::{
    CostColumns, CostTableChoice, HEADER_ROWS_MAX, TableCosts,
};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::Faults;

/// Tributary's own columns, in the order of lines without a header row.
const OWN_ORDER: [&str; 5] = ["day", "network", "campaign", "amount", "currency"];

/// A table of costs whose columns were found.
#[derive(Debug)]
pub struct CostCsv {
    /// The columns.
    pub columns: CostColumns,
    /// The header row.
    pub header: Vec<String>,
    /// The rows below the header row.
    pub rows: Vec<Vec<String>>,
    /// The line of each row, from 1.
    lines: Vec<u64>,
}

/// Decodes a file. Google Ads exports UTF-16 for spreadsheets, with a byte order mark. Returns `None`
/// if the file is not text.
pub fn decode_csv(bytes: &[u8]) -> Option<String> {
    let Some(units) = bytes.strip_prefix(&[0xff, 0xfe]) else {
        return String::from_utf8(bytes.to_vec()).ok();
    };
    let (pairs, rest) = units.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    rest.is_empty()
        .then(|| String::from_utf16(&units).ok())
        .flatten()
}

impl CostCsv {
    /// Finds the columns. Faults in the header row are named `body`, or by the choice that is
    /// missing.
    pub fn open(text: &str, choice: &CostTableChoice) -> Result<Self, Faults> {
        let (mut rows, mut lines) = rows(text);
        let (index, columns) = CostColumns::find(&rows, choice)?;
        let below = rows.split_off(index + 1);
        Ok(Self {
            columns,
            header: rows.pop().unwrap_or_default(),
            rows: below,
            lines: lines.split_off(index + 1),
        })
    }

    /// Same as [`Self::open`], but lines in the order of Tributary's own columns need no header
    /// row.
    pub fn open_lines(text: &str, choice: &CostTableChoice) -> Result<Self, Faults> {
        let (rows, lines) = rows(text);
        if !rows.first().is_some_and(|row| is_own_line(row)) {
            return Self::open(text, choice);
        }
        let header: Vec<String> = OWN_ORDER.map(str::to_owned).to_vec();
        let (_, columns) = CostColumns::find(std::slice::from_ref(&header), choice)?;
        Ok(Self {
            columns,
            header,
            rows,
            lines,
        })
    }

    /// Returns the row that is most likely the header row of an unknown table: the first of the
    /// widest rows.
    pub fn likely_header(text: &str) -> Vec<String> {
        let (mut rows, _) = rows(text);
        rows.truncate(HEADER_ROWS_MAX);
        let widest = rows.iter().map(Vec::len).max().unwrap_or_default();
        let header = rows.into_iter().find(|row| row.len() == widest);
        header.unwrap_or_default()
    }

    /// Reads the rows. Faults are named by row, such as `costs[0].day`.
    pub fn read(&self, faults: &mut Faults) -> TableCosts {
        let path = |number: usize| format!("costs[{number}]");
        self.columns.read(&self.rows, path, faults)
    }

    /// Reads the rows. Faults are named by line, such as `Line 3.day`.
    pub fn read_lines(&self, faults: &mut Faults) -> TableCosts {
        let path = |number: usize| {
            let line = self.lines.get(number).copied().unwrap_or_default();
            format!("Line {line}")
        };
        self.columns.read(&self.rows, path, faults)
    }
}

/// Returns whether a row has values in Tributary's own order, some of which may be wrong.
fn is_own_line(row: &[String]) -> bool {
    let cell = |index: usize| row.get(index).map_or("", String::as_str);
    let has_network = row.len() == OWN_ORDER.len() && parse_named_network(cell(1)).is_ok();
    has_network || Day::parse(cell(0)).is_ok()
}

/// Splits a text into the rows that are not blank, with their lines.
fn rows(text: &str) -> (Vec<Vec<String>>, Vec<u64>) {
    let text = text.trim_start_matches('\u{feff}');
    let records = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .delimiter(separator(text, HEADER_ROWS_MAX))
        .from_reader(text.as_bytes())
        // Reading text from memory cannot fail.
        .into_records()
        .map_while(Result::ok);
    let is_blank = |record: &StringRecord| record.iter().all(str::is_empty);
    records
        .filter(|record| !is_blank(record))
        .map(|record| {
            let line = record.position().map_or(0, csv::Position::line);
            (record.iter().map(str::to_owned).collect(), line)
        })
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn faults(text: &str) -> Vec<String> {
        let mut faults = Faults::new();
        match CostCsv::open(text, &CostTableChoice::default()) {
            Ok(table) => {
                table.read(&mut faults);
            }
            Err(found) => faults = found,
        }
        faults.iter().map(|fault| fault.field.clone()).collect()
    }

    #[test]
    fn accepts_columns_in_any_order_and_quoted_fields() {
        let text = "\u{feff}Amount,day,network,campaign\r\n\"1,212.50\",2026-01-01,network_a,\"a \"\"b\"\", c\"\r\n\r\n2,2026-01-02,other,";
        let mut faults = Faults::new();
        let table = CostCsv::open(text, &CostTableChoice::default()).unwrap();
        let found = table.read(&mut faults);
        assert!(faults.is_empty(), "{faults}");
        let found: Vec<(String, &str, String)> = found
            .costs
            .iter()
            .map(|cost| {
                (
                    cost.amount.to_string(),
                    cost.campaign.as_str(),
                    cost.day.to_string(),
                )
            })
            .collect();
        let expected = [
            ("1212.5".to_owned(), "a \"b\", c", "2026-01-01".to_owned()),
            ("2".to_owned(), "", "2026-01-02".to_owned()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn faults_are_named_by_row() {
        let text = "day,network,amount\n2026-13-01,nobody,-1\n2026-01-01,other\n2026-01-01,other,1";
        assert_eq!(
            faults(text),
            [
                "costs[0].day",
                "costs[0].network",
                "costs[0].amount",
                "costs[1]"
            ]
        );
        assert_eq!(faults(""), ["body"]);
        assert_eq!(faults("day,network,amount\n"), ["costs"]);
        assert_eq!(faults("day,network\n"), ["body"]);
        assert_eq!(faults("day,network,amount,secret\n"), ["body"]);
    }

    #[rstest]
    #[case::one("2026-11-01, network_a, 238, 12.50, USD", Ok(1))]
    #[case::with_a_header(
        "day,network,campaign,amount,currency\n2026-11-01,apple_ads,,3,EUR\n",
        Ok(1)
    )]
    #[case::tabs(
        "2026-11-01\tnetwork_b\tx\t1,212.50\tEUR\n2026-11-02\tnetwork_b\tx\t3\tEUR",
        Ok(2)
    )]
    #[case::semicolons("2026-11-01;network_b;x;1.212,50;EUR", Ok(1))]
    #[case::names("2026-11-01,Meta,x,3,EUR\n2026-11-01,apple ads,,3,EUR", Ok(2))]
    #[case::nothing("", Err(1))]
    #[case::organic("2026-11-01,organic,,3,EUR", Err(1))]
    #[case::everything_wrong("2026-11-01,nobody,,-3,XXX", Err(3))]
    #[case::no_day("yesterday,network_a,,1,USD", Err(1))]
    #[case::too_few("2026-11-01,network_a", Err(1))]
    fn lines_need_no_header(#[case] text: &str, #[case] expected: Result<usize, usize>) {
        let mut faults = Faults::new();
        let read = CostCsv::open_lines(text, &CostTableChoice::default())
            .map(|table| table.read_lines(&mut faults).costs.len());
        let faults = read.as_ref().err().unwrap_or(&faults);
        let found = if faults.is_empty() {
            Ok(read.unwrap_or_default())
        } else {
            Err(faults.iter().count())
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn line_numbers_count_skipped_lines() {
        let text = "Campaign report\n\n\nDay,Campaign,Currency code,Cost\n2026-11-01,a,EUR,x\n";
        let mut faults = Faults::new();
        let table = CostCsv::open_lines(text, &CostTableChoice::default()).unwrap();
        table.read_lines(&mut faults);
        assert_eq!(faults.iter().next().unwrap().field, "Line 5.amount");
    }

    #[test]
    fn decodes_utf_8_and_utf_16() {
        let utf_16: Vec<u8> = "\u{feff}Day\tCost"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(decode_csv(&utf_16).as_deref(), Some("Day\tCost"));
        assert_eq!(decode_csv("é".as_bytes()).as_deref(), Some("é"));
        for broken in [&b"\xff"[..], b"\xff\xfe\x00", b"\xff\xfe\x00\xd8"] {
            assert_eq!(decode_csv(broken), None);
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in ".*", bytes: Vec<u8>) {
            faults(&text);
            faults(&format!("day,network,amount\n{text}"));
            faults(&format!("Day,Campaign,Currency code,Cost\n{text}"));
            let _any = decode_csv(&bytes);
        }
    }
}
