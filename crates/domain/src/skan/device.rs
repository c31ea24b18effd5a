//! What one device is given to decide by: the document, the rates of the day, and what only the server knows of it.
//!
//! The key that it is asked for with ships inside the app. So there are no names in it, and nothing of anybody else.

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

/// The events of a device with the same name, from the same source and in the same window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSum {
    /// Where they came from.
    pub source: EventSource,
    /// Their name.
    pub name: String,
    /// In which window they fell.
    pub window: u8,
    /// How many.
    pub count: i64,
    /// What counts of their money, in US dollars.
    pub usd: Amount,
}

/// What a device is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceDocument {
    /// The configuration, with its enabled windows only.
    pub configuration: Configuration,
    /// Units of the document's currency per unit of the other.
    pub rates: Vec<(Currency, RateValue)>,
    /// Events of the device that only the server knows.
    pub server: Vec<ServerEvents>,
}

/// What must be looked up before a document can be given away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredData {
    /// Rates: where an amount decides anything.
    pub needs_rates: bool,
    /// Events of a device: where there is a window in which anything is decided.
    pub needs_events: bool,
}

impl RequiredData {
    /// What a document asks for.
    pub fn of(document: &Document) -> Self {
        let events = document.enabled && windows(document).next().is_some();
        let amounts = |one: &Condition| one.min_revenue.is_some() || one.max_revenue.is_some();
        Self {
            needs_rates: events && conditions(document).any(amounts),
            needs_events: events,
        }
    }
}

/// When the windows of a device end that was first seen at a moment.
pub fn window_ends(first_seen_at: Timestamp) -> [Timestamp; 3] {
    WINDOW_ENDS.map(|end: Duration| first_seen_at.plus(end))
}

/// Puts together what a device is given.
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
    let wanted = RequiredData::of(document);
    let rates = if wanted.needs_rates {
        cross_rates(document.currency, day, imported)
    } else {
        Vec::new()
    };
    let server = if wanted.needs_events {
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

/// What the device cannot know: of the events that decide anything those that it did not send itself. Of a name that it
/// sends, what others say is the same once more: an app that tracks its purchases has a billing provider, too.
fn server_events(
    document: &Document,
    rates: &[(Currency, RateValue)],
    sums: &[EventSum],
) -> Vec<ServerEvents> {
    let asked = asked_events(document);
    let sent: BTreeSet<(&str, u8)> = sums
        .iter()
        .filter(|sum| sum.source == EventSource::Sdk)
        .map(|sum| (sum.name.as_str(), sum.window))
        .collect();
    let mut found: BTreeMap<(&str, u8), (i64, i64)> = BTreeMap::new();
    for sum in sums {
        let key = (sum.name.as_str(), sum.window);
        if sum.source == EventSource::Sdk || sent.contains(&key) || !asked.contains(key.0) {
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

fn windows(document: &Document) -> impl Iterator<Item = &Window> {
    document.windows.iter().filter(|window| window.enabled)
}

fn conditions(document: &Document) -> impl Iterator<Item = &Condition> {
    let values = windows(document).flat_map(|window: &Window| &window.values);
    values.flat_map(|value: &ConversionValue| &value.conditions)
}

/// The events that decide anything, but for the install, which the device counts by itself.
fn asked_events(document: &Document) -> BTreeSet<&str> {
    let locks = windows(document).filter_map(|window| match &window.lock_on {
        Some(LockOn::Event(event)) => Some(event.as_str()),
        _ => None,
    });
    let counted = conditions(document).map(|condition| condition.event.as_str());
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

    fn given(document: Document, sums: &[EventSum]) -> DeviceDocument {
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
    fn only_what_decides_and_what_the_device_did_not_send() {
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
        assert_eq!(given(paid(), &sums).server, expected);
    }

    #[test]
    fn rates_are_for_documents_that_ask_for_amounts() {
        let euro = |given: &DeviceDocument| {
            let mut codes = given.rates.iter().map(|(currency, _)| currency.as_str());
            codes.any(|code| code == "EUR")
        };
        assert!(euro(&given(paid(), &[])), "the snapshot has it");
        let counts = document(&[window(
            0,
            &[value("Paid", Some(40), &[on("purchase").at_least(1)])],
        )]);
        assert_eq!(given(counts, &[]).rates, []);
    }

    #[test]
    fn a_disabled_document_or_window_gives_nothing_away() {
        let sums = [sum(EventSource::Billing, "purchase", 0, 2, 30)];
        let mut off = paid();
        off.enabled = false;
        let off = given(off, &sums);
        assert_eq!((off.rates, off.server), (vec![], vec![]));
        let mut closed = paid();
        closed.windows[0].enabled = false;
        let closed = given(closed, &sums);
        assert_eq!(closed.configuration.document.windows, []);
        assert_eq!((closed.rates, closed.server), (vec![], vec![]));
    }
}
