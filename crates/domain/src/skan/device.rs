//! The document for one device: the configuration, exchange rates, and the device's events that
//! only the server knows.
//!
//! The key for this endpoint ships inside the app. The document therefore contains no names and no
//! data about other devices.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::event::EventSource;
use crate::exchange::{ImportedRates, RateValue, cross_rates};
use crate::skan::configuration::Configuration;
use crate::skan::document::{Condition, ConversionValue, Document, INSTALL_EVENT, LockOn, Window};
use crate::skan::evaluate::{ServerEvents, WINDOW_ENDS, convert};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;

/// Sum of a device's events with the same name, source and window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSum {
    /// Event source.
    pub source: EventSource,
    /// Event name.
    pub name: String,
    /// Postback window.
    pub window: u8,
    /// Number of events.
    pub count: i64,
    /// Counted revenue in US dollars.
    pub usd: Amount,
}

/// The document for a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceDocument {
    /// The configuration with its enabled windows only.
    pub configuration: Configuration,
    /// Rates: units of the document's currency per unit of the other currency.
    pub rates: Vec<(Currency, RateValue)>,
    /// The device's events that only the server knows.
    pub server: Vec<ServerEvents>,
}

/// Data to look up before a device document can be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredData {
    /// Whether exchange rates are required: a condition has an amount.
    pub needs_rates: bool,
    /// Whether the device's events are required: a window is enabled.
    pub needs_events: bool,
}

impl RequiredData {
    /// Returns which data must be looked up for a document.
    pub fn of(document: &Document) -> Self {
        let events = document.enabled && enabled_windows(document).next().is_some();
        let amounts = |one: &Condition| one.min_revenue.is_some() || one.max_revenue.is_some();
        Self {
            needs_rates: events && enabled_conditions(document).any(amounts),
            needs_events: events,
        }
    }
}

/// Returns the document for a device if it requires no lookup.
pub fn document_without_lookup(configuration: &Configuration, day: Day) -> Option<DeviceDocument> {
    let required = RequiredData::of(&configuration.document);
    let needs_nothing = !required.needs_rates && !required.needs_events;
    needs_nothing.then(|| {
        let (configuration, no_rates) = (configuration.clone(), ImportedRates::default());
        build_device_document(configuration, day, &no_rates, &[])
    })
}

/// Returns the end of each window for a device first seen at `first_seen_at`.
pub fn window_ends(first_seen_at: Timestamp) -> [Timestamp; 3] {
    WINDOW_ENDS.map(|end: Duration| first_seen_at.plus(end))
}

/// Builds the document for a device.
pub fn build_device_document(
    mut configuration: Configuration,
    day: Day,
    imported: &ImportedRates,
    sums: &[EventSum],
) -> DeviceDocument {
    configuration
        .document
        .windows
        .retain(|window| window.enabled);
    let document = &configuration.document;
    let required = RequiredData::of(document);
    let rates = if required.needs_rates {
        cross_rates(document.currency, day, imported)
    } else {
        Vec::new()
    };
    let server = if required.needs_events {
        server_events(document, &rates, sums)
    } else {
        Vec::new()
    };
    DeviceDocument {
        configuration,
        rates,
        server,
    }
}

/// Returns the relevant events that the device did not send itself. If the device sends events with
/// a name in a window, events with the same name from other sources are skipped as duplicates: an
/// app that tracks purchases may have a billing provider, too.
fn server_events(
    document: &Document,
    rates: &[(Currency, RateValue)],
    sums: &[EventSum],
) -> Vec<ServerEvents> {
    let relevant = relevant_events(document);
    let sent: BTreeSet<(&str, u8)> = sums
        .iter()
        .filter(|sum| sum.source == EventSource::Sdk)
        .map(|sum| (sum.name.as_str(), sum.window))
        .collect();
    let mut found: BTreeMap<(&str, u8), (i64, i64)> = BTreeMap::new();
    for sum in sums {
        let key = (sum.name.as_str(), sum.window);
        if sum.source == EventSource::Sdk || sent.contains(&key) || !relevant.contains(key.0) {
            continue;
        }
        let revenue = convert(sum.usd, Currency::USD, document.currency, rates);
        let (count, micros) = found.entry(key).or_default();
        *count = count.saturating_add(sum.count);
        *micros = micros.saturating_add(revenue.map_or(0, Amount::micros));
    }
    let event = |((name, window), (count, micros)): ((&str, u8), (i64, i64))| ServerEvents {
        event: name.to_owned(),
        window,
        count,
        revenue: Amount::from_micros(micros),
    };
    found.into_iter().map(event).collect()
}

fn enabled_windows(document: &Document) -> impl Iterator<Item = &Window> {
    document.windows.iter().filter(|window| window.enabled)
}

fn enabled_conditions(document: &Document) -> impl Iterator<Item = &Condition> {
    let values = enabled_windows(document).flat_map(|window: &Window| &window.values);
    values.flat_map(|value: &ConversionValue| &value.conditions)
}

/// Returns the events in conditions and locks, except the install, which the device counts itself.
fn relevant_events(document: &Document) -> BTreeSet<&str> {
    let locks = enabled_windows(document).filter_map(|window| match &window.lock_on {
        Some(LockOn::Event(event)) => Some(event.as_str()),
        _ => None,
    });
    let counted = enabled_conditions(document).map(|condition| condition.event.as_str());
    counted
        .chain(locks)
        .filter(|event| *event != INSTALL_EVENT)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skan::samples::{document, on, value, window};

    const DAY: Day = Day::from_days(30_000);

    fn sum(source: EventSource, name: &str, window: u8, count: i64, dollars: i64) -> EventSum {
        EventSum {
            source,
            name: name.to_owned(),
            window,
            count,
            usd: Amount::from_micros(dollars * 1_000_000),
        }
    }

    fn configuration(document: Document) -> Configuration {
        Configuration {
            document,
            version: 3,
            revision: 5,
            updated_at: None,
        }
    }

    fn device_document(document: Document, sums: &[EventSum]) -> DeviceDocument {
        let imported = ImportedRates::default();
        build_device_document(configuration(document), DAY, &imported, sums)
    }

    fn paid() -> Document {
        document(&[window(
            0,
            &[
                value("Paid", Some(40), &[on("purchase").from(50_000_000)]),
                value("Install", Some(0), &[on("install").at_least(1)]),
            ],
        )])
    }

    #[test]
    fn returns_relevant_events_that_the_device_did_not_send() {
        use EventSource::{Billing, Sdk, Web};
        let sums = [
            sum(Billing, "purchase", 0, 2, 30),
            sum(Web, "purchase", 0, 1, 10),
            sum(Billing, "purchase", 1, 1, 5),
            sum(Sdk, "purchase", 1, 1, 5),
            sum(Billing, "refund", 0, 1, 0),
            sum(Billing, "install", 0, 1, 0),
            sum(Sdk, "open", 0, 9, 0),
        ];
        let expected = [ServerEvents {
            event: "purchase".to_owned(),
            window: 0,
            count: 3,
            revenue: Amount::from_micros(40_000_000),
        }];
        assert_eq!(device_document(paid(), &sums).server, expected);
    }

    #[test]
    fn rates_are_included_only_if_a_condition_has_an_amount() {
        let euro = |device_document: &DeviceDocument| {
            let mut codes = device_document
                .rates
                .iter()
                .map(|(currency, _)| currency.as_str());
            codes.any(|code| code == "EUR")
        };
        assert!(
            euro(&device_document(paid(), &[])),
            "the built-in rates include EUR"
        );
        let counts = document(&[window(
            0,
            &[value("Paid", Some(40), &[on("purchase").at_least(1)])],
        )]);
        assert_eq!(device_document(counts, &[]).rates, []);
    }

    #[test]
    fn only_a_document_without_data_needs_no_lookup() {
        assert_eq!(document_without_lookup(&configuration(paid()), DAY), None);
        let mut off = paid();
        off.enabled = false;
        let found = document_without_lookup(&configuration(off.clone()), DAY);
        assert_eq!(found, Some(device_document(off, &[])));
    }

    #[test]
    fn a_disabled_document_or_window_returns_no_data() {
        let sums = [sum(EventSource::Billing, "purchase", 0, 2, 30)];
        let mut off = paid();
        off.enabled = false;
        let off = device_document(off, &sums);
        assert_eq!((off.rates, off.server), (vec![], vec![]));
        let mut closed = paid();
        closed.windows[0].enabled = false;
        let closed = device_document(closed, &sums);
        assert_eq!(closed.configuration.document.windows, []);
        assert_eq!((closed.rates, closed.server), (vec![], vec![]));
    }
}
