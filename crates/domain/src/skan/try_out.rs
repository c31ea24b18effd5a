//! Simulates a device, to see which values it reports to Apple.

use super::decode::{DecodedValue, DocumentVersion, ReportedValue, decode};
use super::document::{Document, FINE_VALUE_WINDOW};
use super::evaluate::{
    CachedDocument, ConversionValueUpdate, DOCUMENT_AGE_MAX, SkanDeviceState, TrackedEvent,
    evaluate,
};
use crate::exchange::RateValue;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Maximum number of events per simulation.
pub const TRY_OUT_EVENTS_MAX: usize = 1_000;
/// Latest event, in seconds after first launch: a little more than the 35 days of the windows.
pub const TRY_OUT_SECONDS_MAX: i64 = 40 * 24 * 60 * 60;

/// An event on the simulated device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedEvent {
    /// Event name.
    pub name: String,
    /// Seconds since first launch.
    pub after_seconds: i64,
    /// Revenue, if any.
    pub amount: Option<Amount>,
    /// Currency of the revenue; by default the document's.
    pub currency: Option<Currency>,
}

/// A resulting call to Apple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedCall {
    /// Seconds since first launch.
    pub after_seconds: i64,
    /// Event that caused the call; `None` for the first launch.
    pub event: Option<String>,
    /// The call.
    pub update: ConversionValueUpdate,
    /// Names of the document's values that match.
    pub names: Vec<String>,
}

/// Simulates the first launch and then the events in chronological order. The document is treated
/// as enabled.
pub fn simulate(
    mut document: Document,
    rates: Vec<(Currency, RateValue)>,
    mut events: Vec<SimulatedEvent>,
) -> Vec<SimulatedCall> {
    document.enabled = true;
    let mut cached = CachedDocument {
        document,
        rates,
        server: Vec::new(),
        fetched_at: Duration::ZERO,
        max_age: DOCUMENT_AGE_MAX,
    };
    let first = evaluate(
        Some(&cached),
        &SkanDeviceState::default(),
        Duration::ZERO,
        None,
    );
    let mut state = first.state;
    let first = first
        .update
        .map(|update| call(update, 0, None, &cached.document));
    let mut calls: Vec<SimulatedCall> = first.into_iter().collect();
    events.sort_by_key(|event| event.after_seconds);
    for event in events {
        let since = Duration::from_secs(u64::try_from(event.after_seconds).unwrap_or(0));
        // As if the device had just fetched the document.
        cached.fetched_at = since;
        let currency = event.currency.unwrap_or(cached.document.currency);
        let tracked = TrackedEvent {
            name: event.name,
            revenue: event.amount.map(|amount| (amount, currency)),
        };
        let next = evaluate(Some(&cached), &state, since, Some(&tracked));
        state = next.state;
        let to_call = |update| {
            call(
                update,
                event.after_seconds,
                Some(&tracked.name),
                &cached.document,
            )
        };
        calls.extend(next.update.map(to_call));
    }
    calls
}

fn call(
    update: ConversionValueUpdate,
    after_seconds: i64,
    event: Option<&str>,
    document: &Document,
) -> SimulatedCall {
    let version = DocumentVersion {
        number: 0,
        applies_from: Timestamp::from_millis(0),
        document: document.clone(),
    };
    let reported = if update.window == FINE_VALUE_WINDOW {
        ReportedValue::Fine(update.fine)
    } else {
        ReportedValue::Coarse(update.coarse)
    };
    let decoded = decode(
        reported,
        update.window,
        Timestamp::from_millis(0),
        &[version],
    );
    SimulatedCall {
        after_seconds,
        event: event.map(str::to_owned),
        update,
        names: match &decoded {
            DecodedValue::Decoded(interpretation) => {
                interpretation.names().map(str::to_owned).collect()
            }
            _ => Vec::new(),
        },
    }
}
