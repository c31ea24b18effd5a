//! Costs as CSV: the columns `day,network,campaign,amount,currency` in any order. `campaign` and
//! `currency` are optional.

use super::fields::{campaign, cost};
use ::csv::{ReaderBuilder, StringRecord, Trim};
use tributary_domain::report::cost::{COSTS_MAX, Cost, parse_paid_amount, parse_paid_network};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};

/// Content type for CSV.
pub(super) const CONTENT_TYPE: &str = "text/csv";

const COLUMNS: [&str; 5] = ["day", "network", "campaign", "amount", "currency"];

/// Reads the rows. Faults are named by row, such as `costs[0].day`.
pub(super) fn read(text: &str, faults: &mut Faults) -> Vec<Cost> {
    let mut lines = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .from_reader(text.as_bytes())
        // Reading text from memory cannot fail.
        .into_records()
        .map_while(Result::ok);
    let Some(columns) = lines.next().and_then(|header| columns(&header, faults)) else {
        if faults.is_empty() {
            let message = "Must begin with a header row.";
            faults.add("body", Problem::new(FaultCode::Required, message));
        }
        return Vec::new();
    };
    let mut costs = Vec::new();
    for (number, line) in lines.filter(|line| !is_blank(line)).enumerate() {
        if number > COSTS_MAX || faults.is_full() {
            break;
        }
        if line.len() != columns.len() {
            let message = format!("Must have {} fields, like the header row.", columns.len());
            let problem = Problem::new(FaultCode::InvalidFormat, message);
            faults.add(format!("costs[{number}]"), problem);
            continue;
        }
        let field = |name: &str| {
            let index = columns.iter().position(|column| *column == name)?;
            line.get(index)
        };
        let path = |name: &str| format!("costs[{number}].{name}");
        let filled = |name: &str| field(name).filter(|text| !text.is_empty());
        let day = faults.check(&path("day"), Day::parse(field("day").unwrap_or_default()));
        let network = field("network").unwrap_or_default();
        let network = faults.check(&path("network"), parse_paid_network(network));
        let amount = parse_paid_amount(field("amount").unwrap_or_default());
        let amount = faults.check(&path("amount"), amount);
        let id = campaign(field("campaign").unwrap_or_default());
        let id = faults.check(&path("campaign"), id);
        let currency = filled("currency").map(Currency::parse).transpose();
        let currency = faults.check(&path("currency"), currency).flatten();
        costs.extend(cost(day, network, id, amount, currency));
    }
    if costs.is_empty() && faults.is_empty() {
        let problem = Problem::new(FaultCode::Required, "Must contain at least one cost.");
        faults.add("costs", problem);
    }
    costs
}

fn is_blank(line: &StringRecord) -> bool {
    line.len() == 1 && line.iter().all(str::is_empty)
}

/// Reads the header row.
fn columns(header: &StringRecord, faults: &mut Faults) -> Option<Vec<&'static str>> {
    let mut found = Vec::new();
    for name in header {
        let name = name.to_ascii_lowercase();
        let column = COLUMNS.into_iter().find(|column| *column == name);
        let Some(column) = column.filter(|column| !found.contains(column)) else {
            let message = format!(
                "The header row may contain only {}, each once.",
                COLUMNS.join(", ")
            );
            faults.add("body", Problem::new(FaultCode::UnknownField, message));
            return None;
        };
        found.push(column);
    }
    for required in ["day", "network", "amount"] {
        if !found.contains(&required) {
            let message = format!("The header row must contain the column {required}.");
            faults.add("body", Problem::new(FaultCode::Required, message));
        }
    }
    faults.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn faults(text: &str) -> Vec<String> {
        let mut faults = Faults::new();
        read(text, &mut faults);
        faults.iter().map(|fault| fault.field.clone()).collect()
    }

    #[test]
    fn accepts_columns_in_any_order_and_quoted_fields() {
        let text = "\u{feff}Amount,day,network,campaign\r\n\"1.50\",2026-01-01,network_a,\"a \"\"b\"\", c\"\r\n\r\n2,2026-01-02,other,";
        let mut faults = Faults::new();
        let costs = read(text, &mut faults);
        assert!(faults.is_empty(), "{faults}");
        let found: Vec<(String, &str, String)> = costs
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
            ("1.5".to_owned(), "a \"b\", c", "2026-01-01".to_owned()),
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

    proptest! {
        #[test]
        fn nothing_panics(text in ".*") {
            faults(&text);
            faults(&format!("day,network,amount\n{text}"));
        }
    }
}
