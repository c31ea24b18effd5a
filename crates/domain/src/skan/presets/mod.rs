//! Preset documents for common needs, as a starting point.
//!
//! A preset only generates values. The result is an ordinary document and goes through the same
//! [`validate()`].

use std::collections::HashSet;

use crate::skan::document::{
    CONDITIONS_PER_VALUE_MAX, CoarseValue, Document, FINE_VALUE_MAX, FINE_VALUE_WINDOW,
    INSTALL_EVENT, VALUE_NAME_CHARS_MAX, WINDOW_INDEX_MAX,
};
use crate::skan::draft::{Draft, DraftCondition, DraftValue, DraftWindow};
use crate::skan::validate::validate;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::field_input::FieldInput;
use crate::vocabulary::money::{Amount, MICROS_PER_UNIT};

/// Maximum number of events that six bits can distinguish.
pub const BIT_EVENTS_MAX: usize = 6;
/// Maximum number of steps: every fine value except the one for the install alone.
pub const STEPS_MAX: usize = FINE_VALUE_MAX as usize;
/// Name of the value that the install alone reaches.
const INSTALL_NAME: &str = "Install";

/// Kind of preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresetKind {
    /// [`Preset::RevenueBuckets`].
    RevenueBuckets,
    /// [`Preset::EventBits`].
    EventBits,
    /// [`Preset::Funnel`].
    Funnel,
}

/// Default lower bounds.
const BOUNDS_DEFAULT: [i64; 6] = [1, 5, 10, 20, 50, 100];

crate::keywords! {
    PresetKind[3] {
        RevenueBuckets => "revenue_buckets",
        EventBits => "event_bits",
        Funnel => "funnel",
    }
}

impl PresetKind {
    /// Returns the default events.
    const fn events(self) -> &'static [&'static str] {
        match self {
            Self::RevenueBuckets => &["purchase"],
            Self::EventBits => &[
                "view_content",
                "add_to_cart",
                "sign_up",
                "start_trial",
                "subscribe",
                "purchase",
            ],
            Self::Funnel => &["sign_up", "start_trial", "subscribe", "purchase"],
        }
    }

    /// Returns a preset of this kind, with the given or the default events and bounds.
    pub fn preset(self, events: Option<Vec<String>>, bounds: Option<Vec<Amount>>) -> Preset {
        let defaults = || {
            self.events()
                .iter()
                .map(|name| (*name).to_owned())
                .collect()
        };
        let events: Vec<String> = events.unwrap_or_else(defaults);
        match self {
            Self::RevenueBuckets => Preset::RevenueBuckets {
                event: events.into_iter().next().unwrap_or_default(),
                bounds: bounds.unwrap_or_else(|| {
                    let units = BOUNDS_DEFAULT.into_iter();
                    units
                        .map(|units| Amount::from_micros(units * MICROS_PER_UNIT))
                        .collect()
                }),
            },
            Self::EventBits => Preset::EventBits { events },
            Self::Funnel => Preset::Funnel { events },
        }
    }
}

/// What the values of a document distinguish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preset {
    /// How much was paid: one value per revenue range of an event. Each range extends from its
    /// bound to the next bound.
    RevenueBuckets {
        /// Event whose revenue counts.
        event: String,
        /// Lower bounds, ascending.
        bounds: Vec<Amount>,
    },
    /// How far a person got: one value per event, the last one highest.
    Funnel {
        /// Stages, first to last.
        events: Vec<String>,
    },
    /// Which events happened: the first counts 1, the second 2, the third 4, and the value is their
    /// sum.
    ///
    /// A value has at most three conditions, so combinations of more events cannot be expressed. A
    /// device with more events gets the value for the three events with the highest weight, so
    /// every event that the value stands for did happen.
    EventBits {
        /// Events, least important first.
        events: Vec<String>,
    },
}

/// Returns a preset's document for all three windows. The document is disabled.
pub fn document(preset: &Preset, currency: Currency) -> Result<Document, Faults> {
    let mut faults = Faults::new();
    let steps = steps(preset, &mut faults);
    if !faults.is_empty() {
        return Err(faults);
    }
    let windows = (FINE_VALUE_WINDOW..=WINDOW_INDEX_MAX).map(|index| {
        FieldInput::Value(DraftWindow {
            index: FieldInput::Value(i64::from(index)),
            enabled: FieldInput::Value(true),
            lock_on: FieldInput::Absent,
            values: FieldInput::Value(values(&steps, index)),
        })
    });
    let draft = Draft {
        enabled: FieldInput::Value(false),
        currency: FieldInput::Value(currency),
        accept_test_signals: FieldInput::Value(false),
        windows: FieldInput::Value(windows.collect()),
    };
    validate(draft, &mut faults).ok_or(faults)
}

/// A fine value and its conditions.
struct Step {
    name: String,
    fine: u8,
    conditions: Vec<DraftCondition>,
}

/// Returns the steps of a preset, highest first.
fn steps(preset: &Preset, faults: &mut Faults) -> Vec<Step> {
    match preset {
        Preset::RevenueBuckets { event, bounds } => {
            faults.check("bounds", check_bounds(bounds));
            revenue_steps(event, bounds)
        }
        Preset::Funnel { events } => {
            faults.check("events", check_events(events, STEPS_MAX));
            let stages = (1..=FINE_VALUE_MAX).zip(events).map(|(fine, event)| Step {
                name: shortened(event),
                fine,
                conditions: vec![at_least_once(event)],
            });
            let mut stages: Vec<Step> = stages.collect();
            stages.reverse();
            stages
        }
        Preset::EventBits { events } => {
            faults.check("events", check_events(events, BIT_EVENTS_MAX));
            bit_steps(events)
        }
    }
}

fn check_bounds(bounds: &[Amount]) -> Result<(), Problem> {
    check_length(bounds.len(), STEPS_MAX)?;
    let is_ascending = bounds.windows(2).all(|pair| pair[0] < pair[1]);
    let is_positive = bounds.first().is_none_or(|first| *first > Amount::ZERO);
    if is_ascending && is_positive {
        return Ok(());
    }
    let message = "Must be in ascending order, and greater than 0.";
    Err(Problem::new(FaultCode::OutOfRange, message))
}

fn check_events(events: &[String], max: usize) -> Result<(), Problem> {
    check_length(events.len(), max)?;
    let distinct: HashSet<&str> = events.iter().map(String::as_str).collect();
    if distinct.len() < events.len() {
        let message = "Must not contain duplicate events.";
        return Err(Problem::new(FaultCode::Duplicate, message));
    }
    if distinct.contains(INSTALL_EVENT) {
        let message = "Must not contain `install`, because every device has it.";
        return Err(Problem::new(FaultCode::NotAllowed, message));
    }
    Ok(())
}

fn check_length(length: usize, max: usize) -> Result<(), Problem> {
    if length == 0 {
        return Err(Problem::new(
            FaultCode::TooShort,
            "Must have at least 1 item.",
        ));
    }
    if length > max {
        let message = format!("Must have at most {max} items.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    Ok(())
}

fn revenue_steps(event: &str, bounds: &[Amount]) -> Vec<Step> {
    let uppers = bounds.iter().skip(1).copied().map(Some).chain([None]);
    let ranges = (1..=FINE_VALUE_MAX).zip(bounds.iter().copied().zip(uppers));
    let mut steps: Vec<Step> = ranges
        .map(|(fine, (min, max))| Step {
            name: max.map_or_else(|| format!("{min} or more"), |max| format!("{min} to {max}")),
            fine,
            conditions: vec![DraftCondition {
                event: FieldInput::Value(event.to_owned()),
                min_revenue: FieldInput::Value(min),
                max_revenue: max.map_or(FieldInput::Absent, FieldInput::Value),
                ..DraftCondition::default()
            }],
        })
        .collect();
    steps.reverse();
    steps
}

fn bit_steps(events: &[String]) -> Vec<Step> {
    let set = |fine: u8| {
        let bits = (0..BIT_EVENTS_MAX).zip(events);
        let chosen = bits.filter(move |(bit, _)| fine >> bit & 1 == 1);
        chosen.map(|(_, event)| event.as_str()).collect::<Vec<_>>()
    };
    let all = (1..=FINE_VALUE_MAX).rev().filter(|fine| {
        let named = set(*fine).len();
        // Bits beyond the last event are not used.
        named == fine.count_ones() as usize && named <= CONDITIONS_PER_VALUE_MAX
    });
    all.map(|fine| {
        let chosen = set(fine);
        let name = chosen.join(" + ");
        Step {
            name: if name.chars().count() > VALUE_NAME_CHARS_MAX {
                format!("Value {fine}")
            } else {
                name
            },
            fine,
            conditions: chosen.into_iter().map(at_least_once).collect(),
        }
    })
    .collect()
}

/// Returns the condition that an event happened at least once.
fn at_least_once(event: impl AsRef<str>) -> DraftCondition {
    DraftCondition {
        event: FieldInput::Value(event.as_ref().to_owned()),
        min_count: FieldInput::Value(1),
        ..DraftCondition::default()
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(VALUE_NAME_CHARS_MAX).collect()
}

/// Returns the values of a window: the steps and, in window 0, the install last. Fine values in the
/// lower third get the coarse value low, those in the upper third high.
fn values(steps: &[Step], window: u8) -> Vec<FieldInput<DraftValue>> {
    let highest = steps.iter().map(|step| step.fine).max().unwrap_or(1);
    let first = window == FINE_VALUE_WINDOW;
    let value = |name: &str, fine: u8, conditions: Vec<DraftCondition>| {
        FieldInput::Value(DraftValue {
            name: FieldInput::Value(name.to_owned()),
            fine_value: if first {
                FieldInput::Value(i64::from(fine))
            } else {
                FieldInput::Absent
            },
            coarse_value: FieldInput::Value(coarse(fine, highest).as_str().to_owned()),
            lock: FieldInput::Absent,
            conditions: FieldInput::Value(conditions.into_iter().map(FieldInput::Value).collect()),
        })
    };
    let reached = steps
        .iter()
        .map(|step| value(&step.name, step.fine, step.conditions.clone()));
    let install = first.then(|| value(INSTALL_NAME, 0, vec![at_least_once(INSTALL_EVENT)]));
    reached.chain(install).collect()
}

fn coarse(fine: u8, highest: u8) -> CoarseValue {
    let (fine, highest) = (u16::from(fine), u16::from(highest));
    if fine == highest || fine * 3 > highest * 2 {
        CoarseValue::High
    } else if fine * 3 > highest {
        CoarseValue::Medium
    } else {
        CoarseValue::Low
    }
}

#[cfg(test)]
mod tests;
