//! Links as CSV: a header row with field names, then one link per row.
//!
//! A row is read like the form for a new link, so both have the same rules.

use crate::Form;
use crate::link::read_new_form;
use csv::{ReaderBuilder, StringRecord, Trim};
use tributary_domain::integration::Network;
use tributary_domain::link::{BULK_LINKS_MAX, LinkDraft};
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};

/// The columns, in any order and upper or lower case. Only `name` is required.
pub const LINK_COLUMNS: [&str; 26] = [
    "name",
    "network",
    "type",
    "destinationUrl",
    "slug",
    "folder",
    "tags",
    "active",
    "test",
    "iosUrl",
    "androidUrl",
    "fallbackUrl",
    "passParams",
    "deepLink",
    "customData",
    "campaign.id",
    "campaign.name",
    "campaign.adsetId",
    "campaign.adsetName",
    "campaign.adId",
    "campaign.adName",
    "utm.source",
    "utm.medium",
    "utm.campaign",
    "utm.term",
    "utm.content",
];

/// A row, with all its faults.
pub struct LinkCsvRow {
    /// Line in the text, from 1.
    pub line: usize,
    /// The values by column.
    pub values: Form,
    /// The link; `None` if the row has faults.
    pub draft: Option<LinkDraft>,
    /// Faults by column.
    pub faults: Faults,
}

/// Reads the rows. A fault in the header row or in the number of rows rejects the whole text.
pub fn read_link_csv(text: &str) -> Result<Vec<LinkCsvRow>, Problem> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .delimiter(separator(text, 1))
        .from_reader(text.as_bytes())
        // Reading text from memory cannot fail.
        .into_records()
        .map_while(Result::ok);
    let header = lines.next();
    let columns = columns(&header.unwrap_or_default())?;
    let is_blank = |line: &StringRecord| line.iter().all(str::is_empty);
    let lines: Vec<StringRecord> = lines
        .filter(|line| !is_blank(line))
        .take(BULK_LINKS_MAX + 1)
        .collect();
    if lines.is_empty() || lines.len() > BULK_LINKS_MAX {
        let message = format!("Must have a header row and 1 to {BULK_LINKS_MAX} further rows.");
        return Err(Problem::new(FaultCode::OutOfRange, message));
    }
    Ok(lines
        .iter()
        .map(|line| read_row(text, &columns, line))
        .collect())
}

/// Returns the separator of a spreadsheet: the one that the first lines contain most often.
pub(crate) fn separator(text: &str, lines: usize) -> u8 {
    let filled = text.lines().filter(|line| !line.is_empty());
    let bytes = filled.take(lines).flat_map(str::bytes);
    let count = |separator: &u8| bytes.clone().filter(|byte| byte == separator).count();
    // The last of several equal ones wins.
    [b'\t', b';', b',']
        .into_iter()
        .max_by_key(count)
        .unwrap_or(b',')
}

fn columns(header: &StringRecord) -> Result<Vec<&'static str>, Problem> {
    let mut found: Vec<&'static str> = Vec::new();
    for name in header {
        let mut known = LINK_COLUMNS.into_iter();
        let column = known.find(|column| column.eq_ignore_ascii_case(name));
        let Some(column) = column.filter(|column| !found.contains(column)) else {
            let known = LINK_COLUMNS.join(", ");
            let message =
                format!("The header row may contain only these columns, each once: {known}.");
            return Err(Problem::new(FaultCode::UnknownField, message));
        };
        found.push(column);
    }
    if !found.contains(&"name") {
        let message = "The header row must contain the column name.";
        return Err(Problem::new(FaultCode::Required, message));
    }
    Ok(found)
}

fn read_row(text: &str, columns: &[&'static str], line: &StringRecord) -> LinkCsvRow {
    let given = columns.iter().zip(line.iter());
    let mut values: Vec<(String, String)> = given
        .map(|(column, value)| ((*column).to_owned(), value.to_owned()))
        .collect();
    let mut faults = Faults::new();
    if line.len() > columns.len() {
        let message = "Must not have more values than the header row has columns. Put values that \
                       contain the separator in double quotes.";
        faults.add("row", Problem::new(FaultCode::InvalidFormat, message));
    }
    for (column, default) in [("active", true), ("test", false)] {
        if let Some(problem) = tick(&mut values, column, default) {
            faults.add(column, problem);
        }
    }
    replace_network_name(&mut values);
    let values = Form::of(values);
    let (read, found) = values.read(read_new_form);
    for fault in &found {
        let problem = Problem::new(fault.code, fault.message.clone());
        faults.add(fault.field.clone(), problem);
    }
    let draft = read.filter(|_| faults.is_empty());
    LinkCsvRow {
        line: line_number(text, line),
        values,
        draft: draft.map(|(name, slug, change)| LinkDraft { name, slug, change }),
        faults,
    }
}

/// Returns the line on which a row begins. The reader's own number is one too low after `\r\n`, because
/// it reads the `\n` with the next row.
fn line_number(text: &str, line: &StringRecord) -> usize {
    let start = line.position().map_or(0, csv::Position::byte);
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let before = text.get(..start).unwrap_or_default();
    let rest = text.get(start..).unwrap_or_default();
    let breaks = rest.len() - rest.trim_start_matches(['\r', '\n']).len();
    let skipped = &rest[..breaks];
    1 + before.matches('\n').count() + skipped.matches('\n').count()
}

/// Replaces the value of a column with that of a form's checkbox.
fn tick(values: &mut Vec<(String, String)>, column: &str, default: bool) -> Option<Problem> {
    let place = values.iter().position(|(named, _)| named == column);
    let given = place.map(|place| values.remove(place).1.to_ascii_lowercase());
    let is_ticked = match given.as_deref().unwrap_or_default() {
        "" => default,
        "true" | "yes" | "1" => true,
        "false" | "no" | "0" => false,
        _ => {
            let message = "Must be true or false.";
            return Some(Problem::new(FaultCode::UnknownValue, message));
        }
    };
    if is_ticked {
        values.push((column.to_owned(), "on".to_owned()));
    }
    None
}

/// Replaces a network's name by its id, which the form reads.
fn replace_network_name(values: &mut [(String, String)]) {
    let network = values.iter_mut().find(|(column, _)| column == "network");
    if let Some((_, value)) = network
        && let Some(named) = Network::parse_named(value)
    {
        named.as_str().clone_into(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use tributary_domain::vocabulary::change::Change;

    fn faults(row: &LinkCsvRow) -> Vec<&str> {
        row.faults
            .iter()
            .map(|fault| fault.field.as_str())
            .collect()
    }

    #[test]
    fn reads_quoted_values_in_any_order_of_columns() {
        let text = "\u{feff}Slug,NAME,tags,active,utm.source,destinationUrl,type\r\n\
                    one,\"Spring, \"\"social\"\"\",\"a, b\",,x,https://e.com/,web_funnel\r\n\
                    ,,,,,,\r\n\
                    \r\n\
                    ,\"Two\nlines\",,FALSE,,,\n\
                    ,Three,,no,,,";
        let rows = read_link_csv(text)
            .map_err(|problem| problem.message)
            .unwrap();
        assert_eq!(
            rows.iter().map(|row| row.line).collect::<Vec<_>>(),
            [2, 5, 7]
        );
        assert_eq!(faults(&rows[1]), ["name"], "a name is one line");
        let first = rows[0].draft.as_ref().unwrap();
        assert_eq!(first.name.as_str(), "Spring, \"social\"");
        assert_eq!(first.slug.as_ref().unwrap().as_str(), "one");
        let Change::Set(tags) = &first.change.tags else {
            panic!("tags are set");
        };
        assert_eq!(tags, &["a", "b"]);
        let Change::Set(url) = &first.change.destination_url else {
            panic!("the destination is set");
        };
        assert_eq!(url.as_str(), "https://e.com/?utm_source=x");
        assert!(matches!(first.change.active, Change::Set(true)));
        let second = rows[2].draft.as_ref().unwrap();
        assert!(second.slug.is_none());
        assert!(matches!(second.change.active, Change::Set(false)));
    }

    #[test]
    fn links_are_test_links_only_if_the_row_says_so() {
        let text = "name,test,type,destinationUrl\nA,yes,web_funnel,http://localhost:3000/\nB,,,\nC,perhaps,,";
        let rows = read_link_csv(text)
            .map_err(|problem| problem.message)
            .unwrap();
        let is_test = rows[..2]
            .iter()
            .map(|row| &row.draft.as_ref().unwrap().change.is_test);
        let is_test: Vec<bool> = is_test
            .map(|change| matches!(change, Change::Set(true)))
            .collect();
        assert_eq!(is_test, [true, false]);
        assert_eq!(faults(&rows[2]), ["test"]);
    }

    #[rstest]
    #[case::comma("name,slug\nA,one")]
    #[case::semicolon("name;slug\nA;one")]
    #[case::tab("name\tslug\nA\tone")]
    fn reads_the_separators_of_spreadsheets(#[case] text: &str) {
        let rows = read_link_csv(text)
            .map_err(|problem| problem.message)
            .unwrap();
        let draft = rows[0].draft.as_ref().unwrap();
        assert_eq!(draft.slug.as_ref().unwrap().as_str(), "one");
    }

    #[test]
    fn every_row_lists_all_its_faults() {
        let text =
            "name,slug,network,active\nA,No Slug,nobody,maybe\nB,b-c,network_a,true\n,x\nC,ddd,,,,";
        let rows = read_link_csv(text)
            .map_err(|problem| problem.message)
            .unwrap();
        let mut first = faults(&rows[0]);
        first.sort_unstable();
        assert_eq!(first, ["active", "network", "slug"]);
        assert!(rows[0].draft.is_none());
        assert!(rows[1].draft.is_some());
        assert_eq!(faults(&rows[2]), ["name", "slug"]);
        assert_eq!(faults(&rows[3]), ["row"]);
    }

    #[test]
    fn networks_have_names_and_ids() {
        let text = "name,network\nA,meta\nB,Google\nC,network_c\nD,";
        let rows = read_link_csv(text).unwrap();
        let networks: Vec<Change<Network>> = rows
            .iter()
            .map(|row| row.draft.as_ref().unwrap().change.network.clone())
            .collect();
        let named = [Network::A, Network::B, Network::C].map(Change::Set);
        assert_eq!(networks[..3], named);
        assert!(!matches!(networks[3], Change::Set(_)));
    }

    #[rstest]
    #[case::empty("", FaultCode::Required)]
    #[case::no_name("slug\none", FaultCode::Required)]
    #[case::unknown_column("name,color\nA,red", FaultCode::UnknownField)]
    #[case::repeated_column("name,Name\nA,B", FaultCode::UnknownField)]
    #[case::no_rows("name\n", FaultCode::OutOfRange)]
    fn the_header_row_is_checked(#[case] text: &str, #[case] expected: FaultCode) {
        let refused = read_link_csv(text).map(|rows| rows.len());
        assert_eq!(refused.map_err(|problem| problem.code), Err(expected));
    }

    #[test]
    fn the_number_of_rows_is_limited() {
        let rows = |count: usize| format!("name\n{}", "A\n".repeat(count));
        assert!(read_link_csv(&rows(BULK_LINKS_MAX)).is_ok());
        assert!(read_link_csv(&rows(BULK_LINKS_MAX + 1)).is_err());
    }

    proptest! {
        #[test]
        fn nothing_panics(text in ".*") {
            let _any_outcome_is_fine = read_link_csv(&text).is_ok();
            let _any_outcome_is_fine = read_link_csv(&format!("name,slug,tags\n{text}")).is_ok();
        }
    }
}
