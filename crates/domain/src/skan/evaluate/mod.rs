//! Computes which conversion value a device reports to Apple.
//!
//! The device chooses the value offline, because only the device may call Apple. This module
//! computes the same result, so that the server can try out a document. The SDKs contain the same
//! logic, and `sdk/tables/conversion_values.json` tests all implementations.
//!
//! [`evaluate`] is called at first launch, at every tracked event and at every fetch of the
//! document, with the state that it returned last.

mod counters;

use std::time::Duration;

use crate::exchange::RateValue;
use crate::skan::document::{
    CoarseValue, ConversionValue, Document, FINE_VALUE_WINDOW, LockOn, Window,
};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::money::Amount;

pub(super) use counters::convert;
pub use counters::{Counter, Counters};

/// Ends of the windows since first launch: 2, 7 and 35 days.
pub const WINDOW_ENDS: [Duration; 3] = [
    Duration::from_hours(48),
    Duration::from_hours(168),
    Duration::from_hours(840),
];
/// Maximum age of a usable document: 7 days.
pub const DOCUMENT_AGE_MAX: Duration = Duration::from_hours(168);

/// The document that a device has cached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedDocument {
    /// The document.
    pub document: Document,
    /// Rates: units of the document's currency per unit of the other currency.
    pub rates: Vec<(Currency, RateValue)>,
    /// Totals of this device's events that only the server knows. They replace the totals from the
    /// previous fetch.
    pub server: Vec<ServerEvents>,
    /// Time of the fetch since first launch.
    pub fetched_at: Duration,
    /// Maximum age at which the document may be used.
    pub max_age: Duration,
}

/// Events that reached the server from elsewhere, such as a billing provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEvents {
    /// Event name.
    pub event: String,
    /// Postback window.
    pub window: u8,
    /// Number of events.
    pub count: i64,
    /// Revenue in the document's currency.
    pub revenue: Amount,
}

/// An event that the app tracked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedEvent {
    /// Event name.
    pub name: String,
    /// Revenue with its currency.
    pub revenue: Option<(Amount, Currency)>,
}

/// A call to Apple's conversion value API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversionValueUpdate {
    /// Window in which the call is made.
    pub window: u8,
    /// Fine value; 0 after window 0, where Apple ignores it.
    pub fine: u8,
    /// Coarse value.
    pub coarse: CoarseValue,
    /// Whether the call ends the window.
    pub lock: bool,
}

impl ConversionValueUpdate {
    /// Returns the call that registers an install when the conditions of no value hold. It is made
    /// because Apple's windows start with the first call.
    const fn registration(window: u8) -> Self {
        Self {
            window,
            fine: 0,
            coarse: CoarseValue::Low,
            lock: false,
        }
    }
}

/// State that a device keeps between evaluations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkanDeviceState {
    /// Window of the counters.
    pub window: u8,
    /// Events counted in this window.
    pub counters: Counters,
    /// Events tracked in this window while no usable document was available.
    pub pending_events: Vec<TrackedEvent>,
    /// Last call to Apple.
    pub last_update: Option<ConversionValueUpdate>,
}

/// Result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// State to pass to the next evaluation.
    pub state: SkanDeviceState,
    /// Call to make now, if any.
    pub update: Option<ConversionValueUpdate>,
}

/// Returns the window at a time since first launch; `None` after the end of the last window.
pub fn window_at(since_first_launch: Duration) -> Option<u8> {
    let ended = WINDOW_ENDS.iter().filter(|end| since_first_launch >= **end);
    u8::try_from(ended.count())
        .ok()
        .filter(|window| usize::from(*window) < WINDOW_ENDS.len())
}

/// Decides which call to make to Apple. `event` is the event just tracked; `None` at first launch
/// and at a fetch.
///
/// The first call is always made, whatever the document says and even without a document.
pub fn evaluate(
    cached: Option<&CachedDocument>,
    state: &SkanDeviceState,
    since_first_launch: Duration,
    event: Option<&TrackedEvent>,
) -> Evaluation {
    let mut state = state.clone();
    let Some(window) = window_at(since_first_launch) else {
        return Evaluation {
            state,
            update: None,
        };
    };
    // A clock set back does not reopen a window.
    if window > state.window {
        let sent = state.last_update;
        state = SkanDeviceState {
            window,
            last_update: sent,
            ..SkanDeviceState::default()
        };
    }
    state.pending_events.extend(event.cloned());
    let usable = cached.filter(|cached| !is_stale(cached, since_first_launch));
    if let Some(cached) = usable {
        for event in std::mem::take(&mut state.pending_events) {
            state.counters.add(&event, cached);
        }
    }
    let update = usable.and_then(|cached| decide(cached, &state));
    let update = match (update, state.last_update) {
        (None, None) => Some(ConversionValueUpdate::registration(state.window)),
        (update, sent) => update.filter(|update| is_worth_a_call(*update, sent)),
    };
    state.last_update = update.or(state.last_update);
    Evaluation { state, update }
}

/// Returns the calls made by a device that has the document from first launch on. Each call has the
/// index of its evaluation: 0 is the first launch, 1 the first event. Use a large `max_age` if the
/// document should not expire during the replay.
pub fn replay(
    cached: &CachedDocument,
    events: &[(Duration, TrackedEvent)],
) -> Vec<(usize, ConversionValueUpdate)> {
    let launch = (Duration::ZERO, None);
    let events = events.iter().map(|(at, event)| (*at, Some(event)));
    let mut state = SkanDeviceState::default();
    let mut calls = Vec::new();
    for (position, (at, event)) in std::iter::once(launch).chain(events).enumerate() {
        let evaluation = evaluate(Some(cached), &state, at, event);
        state = evaluation.state;
        calls.extend(evaluation.update.map(|update| (position, update)));
    }
    calls
}

fn is_stale(cached: &CachedDocument, since_first_launch: Duration) -> bool {
    since_first_launch.saturating_sub(cached.fetched_at) > cached.max_age
}

/// Returns the update for the first value, in order, whose conditions all hold.
fn decide(cached: &CachedDocument, state: &SkanDeviceState) -> Option<ConversionValueUpdate> {
    let document = &cached.document;
    let mut windows = document.windows.iter().filter(|one| one.enabled);
    let window = windows.find(|one| document.enabled && one.index == state.window)?;
    let count = |event: &str| state.counters.total(event, state.window, cached);
    let holds = |value: &&ConversionValue| {
        let mut conditions = value.conditions.iter();
        conditions.all(|condition| count(&condition.event).meets(condition))
    };
    let value = window.values.iter().find(holds)?;
    let locks = value.lock || is_locked_by(window, value, |event| count(event).count > 0);
    Some(ConversionValueUpdate {
        window: state.window,
        fine: value.fine_value.unwrap_or(0),
        coarse: value.coarse_value,
        lock: locks,
    })
}

fn is_locked_by(window: &Window, value: &ConversionValue, happened: impl Fn(&str) -> bool) -> bool {
    match &window.lock_on {
        None => false,
        Some(LockOn::FineValue(fine)) => value.fine_value == Some(*fine),
        Some(LockOn::CoarseValue(coarse)) => value.coarse_value == *coarse,
        Some(LockOn::Event(event)) => happened(event),
    }
}

/// Returns whether an update is worth a call: it differs from the last one, the window is not
/// locked and the fine value does not decrease.
fn is_worth_a_call(update: ConversionValueUpdate, sent: Option<ConversionValueUpdate>) -> bool {
    let Some(sent) = sent.filter(|sent| sent.window == update.window) else {
        return true;
    };
    let lowers = update.window == FINE_VALUE_WINDOW && update.fine < sent.fine;
    !sent.lock && !lowers && update != sent
}

#[cfg(test)]
mod tests;
