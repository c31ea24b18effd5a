//! Tables of costs from the networks' ad managers.

use super::*;
use rstest::rstest;

/// Splits a table at line ends and `|`.
fn rows(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect();
    text.lines().map(cells).collect()
}

/// Reads a table. Returns its layout and costs, and the fields with faults.
fn read(text: &str, choice: &CostTableChoice) -> (Vec<String>, Vec<String>) {
    let rows = rows(text);
    let named = |faults: &Faults| faults.iter().map(|fault| fault.field.clone()).collect();
    let (header, columns) = match CostColumns::find(&rows, choice) {
        Ok(found) => found,
        Err(faults) => return (Vec::new(), named(&faults)),
    };
    let mut faults = Faults::new();
    let path = |number: usize| format!("costs[{number}]");
    let table = columns.read(&rows[header + 1..], path, &mut faults);
    let shown = |cost: &Cost| {
        format!(
            "{} {} {} {} {}",
            cost.day,
            cost.network.as_str(),
            cost.campaign,
            cost.amount,
            cost.currency.as_str()
        )
    };
    let mut found: Vec<String> = vec![format!("{:?} -{}", columns.layout, table.skipped)];
    found.extend(table.costs.iter().map(shown));
    (found, named(&faults))
}

#[rstest]
#[case::meta(
    "Campaign name|Day|Campaign ID|Amount spent (EUR)|Impressions|Reporting starts|Reporting ends\n\
     |||1212.5|9|2026-11-01|2026-11-02\n\
     Brand|2026-11-01|238|1200|5|2026-11-01|2026-11-01\n\
     Total War|2026-11-02|239|12.5|4|2026-11-02|2026-11-02",
    &["Meta -1", "2026-11-01 network_a 238 1200 EUR", "2026-11-02 network_a 239 12.5 EUR"]
)]
#[case::meta_without_ids_for_one_day(
    "Reporting starts|Reporting ends|Campaign name|Amount spent (USD)\n\
     2026-11-01|2026-11-01|Brand|1,212.50",
    &["Meta -0", "2026-11-01 network_a Brand 1212.5 USD"]
)]
#[case::google_ads(
    "Campaign report\n\
     November 1, 2026 - November 2, 2026\n\
     Day|Campaign|Campaign ID|Currency code|Cost\n\
     2026-11-01|Brand|777|USD|1,212\n\
     2026-11-02|Brand|777|USD|3.10\n\
     Total: Campaigns||||1,215.10\n\
     Total: Account||||1,215.10",
    &["GoogleAds -2", "2026-11-01 network_b 777 1212 USD", "2026-11-02 network_b 777 3.1 USD"]
)]
#[case::tiktok(
    "Campaign name|Campaign ID|By Day|Cost|Currency\n\
     Spark|18|2026-11-01 00:00:00|5.00|USD\n\
     Spark|18|2026-11-02|0.00|USD\n\
     Total of 2 results|-|-|5.00|USD",
    &["TikTok -1", "2026-11-01 network_c 18 5 USD", "2026-11-02 network_c 18 0 USD"]
)]
#[case::several_ad_sets_are_added_up(
    "Day|Campaign ID|Ad set name|Amount spent (USD)\n\
     2026-11-01|238|a|1.25\n2026-11-01|238|b|\n2026-11-01|238|c|2.5",
    &["Meta -0", "2026-11-01 network_a 238 3.75 USD"]
)]
fn reads_the_exports_of_the_networks(#[case] text: &str, #[case] expected: &[&str]) {
    let (found, faults) = read(text, &CostTableChoice::default());
    assert_eq!(
        (found, faults),
        (expected.iter().map(ToString::to_string).collect(), vec![])
    );
}

#[rstest]
#[case::network_and_currency("Date|Spend\n2026-11-01|1", &["network", "currency"])]
#[case::several_days(
    "Reporting starts|Reporting ends|Amount spent (USD)\n2026-11-01|2026-11-30|5",
    &["costs[0].day"]
)]
#[case::contradicting_symbol("Day|Amount spent (USD)\n2026-11-01|€5.00", &["costs[0].amount"])]
#[case::ambiguous("Day|Amount spent (USD)\n2026-11-01|1,212", &["costs[0].amount"])]
#[case::other_dates("Day|Amount spent (USD)\n11/01/2026|5", &["costs[0].day"])]
#[case::two_currencies(
    "Day|Campaign|Currency code|Cost\n2026-11-01|a|USD|1\n2026-11-01|a|EUR|1",
    &["costs[1]"]
)]
#[case::too_much(
    "Day|Campaign|Currency code|Cost\n2026-11-01|a|USD|999999999999\n2026-11-01|a|USD|999999999999",
    &["costs[1]"]
)]
#[case::only_totals("Day|Campaign|Currency code|Cost\nTotal||USD|5", &["costs"])]
#[case::no_header("one|two\nthree|four", &["body"])]
fn faults_name_what_is_missing(#[case] text: &str, #[case] expected: &[&str]) {
    let (_, faults) = read(text, &CostTableChoice::default());
    assert_eq!(faults, expected);
}

#[test]
fn the_sender_names_columns_network_and_currency() {
    let text = "Datum|Kampagne|Ausgaben|Cost\n2026-11-01|Brand|1.212,50|9";
    let choice = CostTableChoice {
        network: Some(CreditedNetwork::Other),
        currency: Some(Currency::USD),
        day_column: Some("datum".to_owned()),
        campaign_column: Some("Kampagne".to_owned()),
        amount_column: Some("Ausgaben ".to_owned()),
        currency_column: None,
    };
    let (found, faults) = read(text, &choice);
    assert_eq!(found, ["Other -0", "2026-11-01 other Brand 1212.5 USD"]);
    assert_eq!(faults, Vec::<String>::new());
    let without = CostTableChoice {
        campaign_column: Some(String::new()),
        ..choice.clone()
    };
    let (found, _) = read(text, &without);
    assert_eq!(found, ["Other -0", "2026-11-01 other  1212.5 USD"]);
    let unknown = CostTableChoice {
        campaign_column: Some("Kampagnen".to_owned()),
        currency_column: Some("Währung".to_owned()),
        ..choice
    };
    let (_, faults) = read(text, &unknown);
    assert_eq!(faults, ["campaignColumn", "currencyColumn"]);
}

#[test]
fn a_chosen_network_replaces_the_network_column_of_an_export() {
    let text = "Day|Campaign|Network|Currency code|Cost\n2026-11-01|a|Google search|USD|1";
    let (found, _) = read(text, &CostTableChoice::default());
    assert_eq!(found, ["GoogleAds -0", "2026-11-01 network_b a 1 USD"]);
}
