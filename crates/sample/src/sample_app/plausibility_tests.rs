//! Checks that the sample could be a real app's data.

use super::tests::app;
use super::{SampleAction, SampleApp};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::event::web::WebEventKind;
use tributary_domain::vocabulary::money::Amount;

/// Micros of a cent.
const CENT: i64 = 10_000;
/// The revenue limit per event, in dollars.
const LIMIT: i64 = 2_000_000_000;

fn actions(app: &SampleApp) -> impl Iterator<Item = SampleAction> {
    (0..app.days).flat_map(|day| app.day(day).into_iter().flatten())
}

/// Returns the names of the events by device.
fn names_by_device(app: &SampleApp) -> BTreeMap<String, BTreeSet<String>> {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for action in actions(app) {
        if let SampleAction::Configure(open) = &action {
            names.entry(open.device.as_str().to_owned()).or_default();
        }
        if let SampleAction::Events(sent) = action {
            let device = sent.0.device.as_str().to_owned();
            let its = names.entry(device).or_default();
            its.extend(sent.1.into_iter().map(|event| event.name));
        }
    }
    names
}

#[test]
fn few_devices_pay_and_more_begin_a_trial() {
    let names = names_by_device(&app(1));
    let percent = |wanted: &[&str]| {
        let has = |its: &&BTreeSet<String>| wanted.iter().any(|name| its.contains(*name));
        100 * names.values().filter(has).count() / names.len()
    };
    let (payers, triers) = (
        percent(&["purchase", "subscribe"]),
        percent(&["start_trial"]),
    );
    assert!((4..=15).contains(&payers), "{payers} % pay");
    assert!((8..=30).contains(&triers), "{triers} % begin a trial");
    assert_eq!(percent(&["qualified_trial"]), 0, "the setting is off");
}

#[test]
fn a_device_pays_in_the_currency_of_its_country() {
    let app = app(1);
    let mut currencies: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut payments, mut over_limit) = (0, 0);
    for action in actions(&app) {
        let SampleAction::Events(sent) = action else {
            continue;
        };
        for event in sent.1 {
            let Some(amount) = event.revenue else {
                continue;
            };
            let currency = event.currency.expect("a currency").as_str().to_owned();
            payments += 1;
            // Amounts over the limit are in dollars, for every country.
            if currency == "USD" && amount.micros() > LIMIT {
                over_limit += 1;
                continue;
            }
            let device = sent.0.device.as_str().to_owned();
            currencies.entry(device).or_default().insert(currency);
        }
    }
    assert!(
        currencies.values().all(|its| its.len() == 1),
        "{currencies:?}"
    );
    let all: BTreeSet<&String> = currencies.values().flatten().collect();
    assert_eq!(all.len(), 4, "{all:?}");
    assert!(
        over_limit * 50 < payments,
        "{over_limit} of {payments} are over the limit"
    );
}

#[test]
fn most_visitors_of_the_website_do_not_buy_and_refunds_are_whole_cents() {
    let app = app(1);
    let (mut visits, mut purchases, mut refunds) = (0, 0, 0);
    for action in actions(&app) {
        match action {
            SampleAction::Click(click) if click.link == app.funnel => visits += 1,
            SampleAction::Web(event) => {
                purchases += u32::from(event.kind == WebEventKind::Purchase);
                refunds += u32::from(event.kind == WebEventKind::Refund);
                let micros = event.amount.map_or(0, Amount::micros);
                assert_eq!(micros % CENT, 0, "{:?}", event.amount);
                assert!(!event.device.as_str().ends_with("-0000000000000000"));
            }
            _ => {}
        }
    }
    assert!(refunds > 0 && purchases > 0);
    assert!(
        visits >= 10 * purchases,
        "{visits} visits, {purchases} purchases"
    );
}
