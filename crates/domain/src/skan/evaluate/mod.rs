//! Which number a device hands to Apple.
//!
//! The device decides, offline, because only the device may call Apple. This is what it computes, so
//! that the server can try a document out; the SDKs do the same, and `sdk/tables/conversion_values.json`
//! holds all of them to it.
//!
//! One function: [`evaluate`]. It is called at first launch, at every tracked event and at every
//! fetch of the document, with the state it gave back the last time.

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

/// When the windows end, from first launch: 2, 7 and 35 days.
pub const WINDOW_ENDS: [Duration; 3] = [
    Duration::from_hours(48),
    Duration::from_hours(168),
    Duration::from_hours(840),
];
/// How old a document may be and still decide anything: 7 days.
pub const DOCUMENT_AGE_MAX: Duration = Duration::from_hours(168);

/// What a device was given, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedDocument {
    /// The configuration.
    pub document: Document,
    /// Units of the document's currency per unit of the other.
    pub rates: Vec<(Currency, RateValue)>,
    /// Events of this device that only the server knows: totals, which replace those of the fetch
    /// before.
    pub server: Vec<ServerEvents>,
    /// When it was fetched, from first launch.
    pub fetched_at: Duration,
    /// How old it may become and still decide.
    pub max_age: Duration,
}

/// Events that the billing provider told the server, and the device did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEvents {
    /// Their name.
    pub event: String,
    /// In which window they fell.
    pub window: u8,
    /// How many.
    pub count: i64,
    /// Their sum, in the document's currency.
    pub revenue: Amount,
}

/// An event that the app tracked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedEvent {
    /// Its name.
    pub name: String,
    /// What it brought.
    pub revenue: Option<(Amount, Currency)>,
}

/// A call to Apple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Update {
    /// In which window it is made.
    pub window: u8,
    /// The fine value; 0 after window 0, where Apple ignores it.
    pub fine: u8,
    /// The coarse value.
    pub coarse: CoarseValue,
    /// Whether it ends the window.
    pub lock: bool,
}

impl Update {
    /// What registers an install where no value holds: Apple's windows start with the first call.
    const fn registering(window: u8) -> Self {
        Self {
            window,
            fine: 0,
            coarse: CoarseValue::Low,
            lock: false,
        }
    }
}

/// What a device remembers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkanDeviceState {
    /// The window of the counters.
    pub window: u8,
    /// What was tracked in it.
    pub counters: Counters,
    /// What was tracked in it while there was no document to decide by.
    pub pending_events: Vec<TrackedEvent>,
    /// The last call to Apple.
    pub last_update: Option<Update>,
}

/// What came of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// To be given back the next time.
    pub state: SkanDeviceState,
    /// The call to make now, if any.
    pub update: Option<Update>,
}

/// The window that a moment after first launch falls in; none once all have ended.
pub fn window_at(since_first_launch: Duration) -> Option<u8> {
    let ended = WINDOW_ENDS.iter().filter(|end| since_first_launch >= **end);
    u8::try_from(ended.count())
        .ok()
        .filter(|window| usize::from(*window) < WINDOW_ENDS.len())
}

/// Decides what to tell Apple: at first launch and at a fetch without an event, else with the one
/// just tracked.
///
/// The first call is made whatever the document says, and even without one.
pub fn evaluate(
    held: Option<&CachedDocument>,
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
    // A clock that went back opens no window again.
    if window > state.window {
        let sent = state.last_update;
        state = SkanDeviceState {
            window,
            last_update: sent,
            ..SkanDeviceState::default()
        };
    }
    state.pending_events.extend(event.cloned());
    let usable = held.filter(|held| !is_stale(held, since_first_launch));
    if let Some(held) = usable {
        for event in std::mem::take(&mut state.pending_events) {
            state.counters.add(&event, held);
        }
    }
    let update = usable.and_then(|held| decide(held, &state));
    let update = match (update, state.last_update) {
        (None, None) => Some(Update::registering(state.window)),
        (update, sent) => update.filter(|update| is_worth_a_call(*update, sent)),
    };
    state.last_update = update.or(state.last_update);
    Evaluation { state, update }
}

/// The calls that a device would make which holds a document from its first launch on, each with the
/// number of the evaluation: 0 is the first launch, 1 the first event. For trying a document out; whoever
/// does not want it to grow too old meanwhile gives it a `max_age` without end.
pub fn replay(held: &CachedDocument, events: &[(Duration, TrackedEvent)]) -> Vec<(usize, Update)> {
    let launch = (Duration::ZERO, None);
    let events = events.iter().map(|(at, event)| (*at, Some(event)));
    let mut state = SkanDeviceState::default();
    let mut calls = Vec::new();
    for (position, (at, event)) in std::iter::once(launch).chain(events).enumerate() {
        let evaluated = evaluate(Some(held), &state, at, event);
        state = evaluated.state;
        calls.extend(evaluated.update.map(|update| (position, update)));
    }
    calls
}

fn is_stale(held: &CachedDocument, since_first_launch: Duration) -> bool {
    since_first_launch.saturating_sub(held.fetched_at) > held.max_age
}

/// The first value, in order, whose conditions all hold.
fn decide(held: &CachedDocument, state: &SkanDeviceState) -> Option<Update> {
    let document = &held.document;
    let mut windows = document.windows.iter().filter(|one| one.enabled);
    let window = windows.find(|one| document.enabled && one.index == state.window)?;
    let count = |event: &str| state.counters.total(event, state.window, held);
    let holds = |value: &&ConversionValue| {
        let mut conditions = value.conditions.iter();
        conditions.all(|condition| count(&condition.event).meets(condition))
    };
    let value = window.values.iter().find(holds)?;
    let locks = value.lock || locked_by(window, value, |event| count(event).count > 0);
    Some(Update {
        window: state.window,
        fine: value.fine_value.unwrap_or(0),
        coarse: value.coarse_value,
        lock: locks,
    })
}

fn locked_by(window: &Window, value: &ConversionValue, happened: impl Fn(&str) -> bool) -> bool {
    match &window.lock_on {
        None => false,
        Some(LockOn::FineValue(fine)) => value.fine_value == Some(*fine),
        Some(LockOn::CoarseValue(coarse)) => value.coarse_value == *coarse,
        Some(LockOn::Event(event)) => happened(event),
    }
}

/// Not in a window that is locked, not a lower fine value, and nothing that changes nothing.
fn is_worth_a_call(update: Update, sent: Option<Update>) -> bool {
    let Some(sent) = sent.filter(|sent| sent.window == update.window) else {
        return true;
    };
    let lowers = update.window == FINE_VALUE_WINDOW && update.fine < sent.fine;
    !sent.lock && !lowers && update != sent
}

#[cfg(test)]
mod tests;
