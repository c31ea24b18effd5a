//! The columns of an exported file, shown for confirmation before its costs are stored.

use crate::network_label::NetworkLabel;
use crate::text;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::integration::Network;
use tributary_domain::report::cost::{COSTS_MAX, Cost, parse_paid_network};
use tributary_domain::report::cost_table::{ColumnOr, CostColumns, CostLayout, CostTableChoice};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_fields::Form;
use tributary_fields::cost_csv::CostCsv;

/// Costs shown before saving.
const PREVIEW_ROWS: usize = 5;
/// Value of the choice "no campaign", because an empty value means "not chosen".
const NO_CAMPAIGN: &str = "(none)";

/// A select element of the confirmation.
pub(super) struct ColumnChoice {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// Pairs of value and label.
    pub(super) options: Vec<(String, String)>,
    pub(super) selected: String,
    pub(super) fault: Option<String>,
}

/// One cost in the preview.
pub(super) struct PreviewRow {
    pub(super) day: String,
    pub(super) network: NetworkLabel,
    pub(super) campaign: String,
    pub(super) amount: String,
}

/// The columns of an export.
pub(super) struct Mapping {
    /// The program that wrote the file.
    pub(super) program: &'static str,
    pub(super) choices: Vec<ColumnChoice>,
    pub(super) preview: Vec<PreviewRow>,
    /// Number of costs.
    pub(super) costs: usize,
    /// Number of rows with totals.
    pub(super) skipped: usize,
    /// Whether the costs can be saved with these columns.
    pub(super) is_complete: bool,
}

/// What was submitted.
pub(super) enum Upload {
    /// Costs to store.
    Costs(Vec<Cost>),
    /// An export whose columns have to be confirmed or chosen.
    Unconfirmed(Faults, Mapping),
    /// Lines that cannot be read.
    Faulty(Faults),
}

/// Reads the submitted lines. Costs of an export are returned only once its columns are confirmed.
pub(super) fn read_upload(form: &Form) -> Upload {
    let text = form.field("costs");
    let mut faults = Faults::new();
    let choice = read_choice(form, &mut faults);
    let opened = CostCsv::open_lines(&text, &choice);
    let table = match opened {
        Ok(table) => table,
        Err(found) => return unopened(&text, form, &found),
    };
    let found = table.read_lines(&mut faults);
    if found.costs.len() > COSTS_MAX {
        let message = format!("Must contain at most {COSTS_MAX} costs.");
        faults.add("costs", Problem::new(FaultCode::TooLong, message));
    }
    let is_confirmed = !form.field("confirmed").is_empty();
    if !table.columns.is_export() || (is_confirmed && faults.is_empty()) {
        return if faults.is_empty() {
            Upload::Costs(found.costs)
        } else {
            Upload::Faulty(faults)
        };
    }
    let mapping = Mapping {
        program: table.columns.layout.name(),
        choices: choices(&table.header, form, Some(&table.columns), &faults),
        preview: found.costs.iter().take(PREVIEW_ROWS).map(preview).collect(),
        costs: found.costs.len(),
        skipped: found.skipped,
        is_complete: faults.is_empty(),
    };
    Upload::Unconfirmed(faults, mapping)
}

/// Offers the columns of a table whose header row leaves something open.
fn unopened(text: &str, form: &Form, found: &Faults) -> Upload {
    let mut faults = Faults::new();
    for fault in found {
        // The page has no body, only the field with the lines.
        let field = if fault.field == "body" {
            "costs"
        } else {
            &fault.field
        };
        faults.add(field, Problem::new(fault.code, fault.message.clone()));
    }
    let header = CostCsv::likely_header(text);
    if header.len() < 2 {
        return Upload::Faulty(faults);
    }
    let mapping = Mapping {
        program: CostLayout::Other.name(),
        choices: choices(&header, form, None, &faults),
        preview: Vec::new(),
        costs: 0,
        skipped: 0,
        is_complete: false,
    };
    Upload::Unconfirmed(faults, mapping)
}

fn read_choice(form: &Form, faults: &mut Faults) -> CostTableChoice {
    let filled = |name: &str| Some(form.field(name)).filter(|text| !text.is_empty());
    let network = filled("network").map(|text| parse_paid_network(&text));
    let currency = filled("currency").map(|text| Currency::parse(&text));
    let campaign = filled("campaignColumn");
    CostTableChoice {
        network: faults.check("network", network.transpose()).flatten(),
        currency: faults.check("currency", currency.transpose()).flatten(),
        day_column: filled("dayColumn"),
        campaign_column: campaign.map(|name| {
            if name == NO_CAMPAIGN {
                String::new()
            } else {
                name
            }
        }),
        amount_column: filled("amountColumn"),
        currency_column: None,
    }
}

fn choices(
    header: &[String],
    form: &Form,
    columns: Option<&CostColumns>,
    faults: &Faults,
) -> Vec<ColumnChoice> {
    let of_header = |first: Option<(&str, &str)>| {
        let first = first.map(|(value, label)| (value.to_owned(), label.to_owned()));
        let names = header.iter().filter(|name| !name.is_empty());
        first
            .into_iter()
            .chain(names.map(|name| (name.clone(), name.clone())))
            .collect::<Vec<_>>()
    };
    let selected = |name: &str, found: Option<String>| {
        let chosen = form.field(name);
        if chosen.is_empty() {
            found.unwrap_or_default()
        } else {
            chosen
        }
    };
    let header_of = |index: Option<usize>| header.get(index?).cloned();
    let fault = |name: &str| {
        let mut faults = faults.iter();
        let found = faults.find(|fault| fault.field == name);
        found.map(|fault| fault.message.clone())
    };
    let choice = |name, label, options, found| ColumnChoice {
        name,
        label,
        options,
        selected: selected(name, found),
        fault: fault(name),
    };
    let open = Some(("", "Choose…"));
    let campaign = columns
        .map(|columns| header_of(columns.campaign).unwrap_or_else(|| NO_CAMPAIGN.to_owned()));
    let network = columns.and_then(|columns| match columns.network {
        ColumnOr::Value(network) => Some(network.as_str().to_owned()),
        ColumnOr::Column(_) => None,
    });
    let day = columns.and_then(|columns| header_of(Some(columns.day)));
    let amount = columns.and_then(|columns| header_of(Some(columns.amount)));
    vec![
        choice("network", "Network", networks(columns), network),
        choice("dayColumn", "Column with the day", of_header(open), day),
        choice(
            "campaignColumn",
            "Column with the campaign",
            of_header(Some((
                NO_CAMPAIGN,
                "No campaign: the cost of the whole network",
            ))),
            campaign,
        ),
        choice(
            "amountColumn",
            "Column with the amount",
            of_header(open),
            amount,
        ),
        currency_choice(header, form, columns, fault("currency")),
    ]
}

/// Returns the choice of a currency. An empty value means the column or header of the file.
fn currency_choice(
    header: &[String],
    form: &Form,
    columns: Option<&CostColumns>,
    fault: Option<String>,
) -> ColumnChoice {
    let first = match columns.map(|columns| &columns.currency) {
        Some(ColumnOr::Column(index)) => {
            let name = header.get(*index).map_or("", String::as_str);
            format!("As in the column {name}")
        }
        Some(ColumnOr::Value(currency)) => format!("{}, as in the file", currency.as_str()),
        None => "Choose…".to_owned(),
    };
    let codes = Currency::all().map(|code| (code.as_str().to_owned(), code.as_str().to_owned()));
    ColumnChoice {
        name: "currency",
        label: "Currency",
        options: std::iter::once((String::new(), first))
            .chain(codes)
            .collect(),
        selected: form.field("currency"),
        fault,
    }
}

fn networks(columns: Option<&CostColumns>) -> Vec<(String, String)> {
    let from_column = columns.is_some_and(|one| matches!(one.network, ColumnOr::Column(_)));
    let first = if from_column {
        "As in the column Network"
    } else {
        "Choose…"
    };
    let named =
        |network: CreditedNetwork, name: &str| (network.as_str().to_owned(), name.to_owned());
    let ads = Network::ALL.into_iter();
    std::iter::once((String::new(), first.to_owned()))
        .chain(ads.map(|network| named(CreditedNetwork::Ad(network), network.name())))
        .chain([
            named(CreditedNetwork::AppleAds, "Apple Ads"),
            named(CreditedNetwork::Other, "Another network"),
        ])
        .collect()
}

fn preview(cost: &Cost) -> PreviewRow {
    PreviewRow {
        day: cost.day.to_string(),
        network: NetworkLabel::credited(cost.network),
        campaign: cost.campaign.clone(),
        amount: text::money(cost.amount, cost.currency),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> Form {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Form::of(fields.iter().map(owned).collect())
    }

    const EXPORT: &str =
        "Day,Campaign,Currency code,Cost\n2026-11-01,a,EUR,\"1,212.50\"\nTotal,,,5";

    #[test]
    fn own_lines_need_no_confirmation() {
        let upload = read_upload(&form(&[("costs", "2026-11-01,network_a,238,1212.50,USD")]));
        assert!(matches!(upload, Upload::Costs(costs) if costs.len() == 1));
        let upload = read_upload(&form(&[("costs", "2026-11-01,nobody,238,1,USD")]));
        assert!(matches!(upload, Upload::Faulty(_)));
    }

    #[test]
    fn an_export_is_stored_once_its_columns_are_confirmed() {
        let Upload::Unconfirmed(faults, mapping) = read_upload(&form(&[("costs", EXPORT)])) else {
            panic!("the columns must be confirmed");
        };
        assert!(faults.is_empty() && mapping.is_complete);
        assert_eq!((mapping.costs, mapping.skipped), (1, 1));
        let selected: Vec<&str> = mapping.choices.iter().map(|one| &*one.selected).collect();
        assert_eq!(selected, ["network_b", "Day", "Campaign", "Cost", ""]);
        let confirmed = [
            ("costs", EXPORT),
            ("confirmed", "yes"),
            ("network", "network_b"),
            ("campaignColumn", NO_CAMPAIGN),
        ];
        let Upload::Costs(costs) = read_upload(&form(&confirmed)) else {
            panic!("the columns are confirmed");
        };
        assert_eq!(costs[0].campaign, "");
        assert_eq!(costs[0].amount.to_string(), "1212.5");
    }

    #[test]
    fn a_table_that_leaves_something_open_offers_its_columns() {
        let text = "Datum,Spend\n2026-11-01,5";
        let upload = read_upload(&form(&[("costs", text), ("dayColumn", "Datum")]));
        let Upload::Unconfirmed(faults, mapping) = upload else {
            panic!("network and currency are missing");
        };
        let fields: Vec<&str> = faults.iter().map(|fault| &*fault.field).collect();
        assert_eq!(fields, ["network", "currency"]);
        assert!(!mapping.is_complete && mapping.choices[0].fault.is_some());
        assert_eq!(mapping.choices[1].selected, "Datum");
    }
}
