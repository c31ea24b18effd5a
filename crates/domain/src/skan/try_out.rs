//! Playing a device that does certain things, to see which numbers it hands to Apple.

use super::decode::{DecodedValue, ReportedValue, Version, decode};
use super::document::{Document, FINE_VALUE_WINDOW};
use super::evaluate::{
    CachedDocument, DOCUMENT_AGE_MAX, SkanDeviceState, TrackedEvent, Update, evaluate,
};
use crate::exchange::RateValue;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Events of one try-out.
pub const TRY_OUT_EVENTS_MAX: usize = 1_000;
/// Seconds after the first launch: a little more than the 35 days that the windows last.
pub const TRY_OUT_SECONDS_MAX: i64 = 40 * 24 * 60 * 60;

/// Something that a device is to have done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedEvent {
    /// The event.
    pub name: String,
    /// When, from the first launch.
    pub after_seconds: i64,
    /// What it brought.
    pub amount: Option<Amount>,
    /// In which currency; the document's where nobody says.
    pub currency: Option<Currency>,
}

/// A call to Apple that it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedCall {
    /// When, from the first launch.
    pub after_seconds: i64,
    /// What brought it about; nothing for the first launch.
    pub event: Option<String>,
    /// The call.
    pub update: Update,
    /// The values of the document that have its number.
    pub names: Vec<String>,
}

/// Plays the device: the first launch, then the deeds in the order of their time. The document is played as if it were
/// switched on.
pub fn simulate(
    mut document: Document,
    rates: Vec<(Currency, RateValue)>,
    mut deeds: Vec<SimulatedEvent>,
) -> Vec<SimulatedCall> {
    document.enabled = true;
    let mut held = CachedDocument {
        document,
        rates,
        server: Vec::new(),
        fetched_at: Duration::ZERO,
        max_age: DOCUMENT_AGE_MAX,
    };
    let first = evaluate(
        Some(&held),
        &SkanDeviceState::default(),
        Duration::ZERO,
        None,
    );
    let mut state = first.state;
    let first = first
        .update
        .map(|update| call(update, 0, None, &held.document));
    let mut calls: Vec<SimulatedCall> = first.into_iter().collect();
    deeds.sort_by_key(|deed| deed.after_seconds);
    for deed in deeds {
        let since = Duration::from_secs(u64::try_from(deed.after_seconds).unwrap_or(0));
        // As if the device had just asked for it.
        held.fetched_at = since;
        let currency = deed.currency.unwrap_or(held.document.currency);
        let tracked = TrackedEvent {
            name: deed.name,
            revenue: deed.amount.map(|amount| (amount, currency)),
        };
        let next = evaluate(Some(&held), &state, since, Some(&tracked));
        state = next.state;
        let made = |update| {
            call(
                update,
                deed.after_seconds,
                Some(&tracked.name),
                &held.document,
            )
        };
        calls.extend(next.update.map(made));
    }
    calls
}

fn call(
    update: Update,
    after_seconds: i64,
    event: Option<&str>,
    document: &Document,
) -> SimulatedCall {
    let version = Version {
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
            DecodedValue::Decoded(reading) => reading.names().map(str::to_owned).collect(),
            _ => Vec::new(),
        },
    }
}
