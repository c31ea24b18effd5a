//! The validated document.

use crate::vocabulary::currency::Currency;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::money::Amount;
use std::collections::BTreeSet;

/// Number of Apple's postback windows; a document has at most one entry for each.
pub const WINDOWS_MAX: usize = 3;
/// Highest window index; windows count from 0.
pub const WINDOW_INDEX_MAX: u8 = 2;
/// The only window whose postback contains a fine value.
pub const FINE_VALUE_WINDOW: u8 = 0;
/// Maximum number of values per window. Higher than the 64 fine values, because an "or" of two
/// conditions takes two entries with the same fine value.
pub const VALUES_PER_WINDOW_MAX: usize = 128;
/// Largest fine value; Apple reserves six bits.
pub const FINE_VALUE_MAX: u8 = 63;
/// Maximum length of a value's name in characters.
pub const VALUE_NAME_CHARS_MAX: usize = 50;
/// Minimum number of conditions per value. A value without conditions would always apply.
pub const CONDITIONS_PER_VALUE_MIN: usize = 1;
/// Maximum number of conditions per value.
pub const CONDITIONS_PER_VALUE_MAX: usize = 3;
/// Maximum length of an event name in a condition, in characters.
pub const EVENT_CHARS_MAX: usize = 100;
/// Event that the SDK counts itself: once, at first launch, in window 0.
pub const INSTALL_EVENT: &str = "install";

/// The part of a configuration that a PUT replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Whether devices use the document.
    pub enabled: bool,
    /// Currency of all thresholds.
    pub currency: Currency,
    /// Whether postbacks signed with Apple's development key are counted.
    pub accept_test_signals: bool,
    /// Windows by index, each at most once. A missing window is disabled.
    pub windows: Vec<Window>,
}

impl Document {
    /// Returns the document of an app that was never configured.
    pub const fn disabled() -> Self {
        Self {
            enabled: false,
            currency: Currency::USD,
            accept_test_signals: false,
            windows: Vec::new(),
        }
    }

    /// Returns the names of the events in conditions and locks, including those of disabled windows.
    pub fn event_names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for window in &self.windows {
            if let Some(LockOn::Event(name)) = &window.lock_on {
                names.insert(name.clone());
            }
            let conditions = window.values.iter().flat_map(|value| &value.conditions);
            names.extend(conditions.map(|condition| condition.event.clone()));
        }
        names
    }
}

/// Values reported to Apple in one postback window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Window index: 0, 1 or 2.
    pub index: u8,
    /// Whether the window is used. A disabled window sets nothing and inherits nothing.
    pub enabled: bool,
    /// Condition that ends the window early, besides a value with `lock`.
    pub lock_on: Option<LockOn>,
    /// Values in order of priority: the first whose conditions all hold wins.
    pub values: Vec<ConversionValue>,
}

/// Condition that ends a window early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockOn {
    /// Reaching this fine value; window 0 only.
    FineValue(u8),
    /// Reaching this coarse value.
    CoarseValue(CoarseValue),
    /// This event.
    Event(String),
}

/// A conversion value and its conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionValue {
    /// Name for people; unique in its window.
    pub name: String,
    /// Fine value: 0–63 in window 0, absent in the other windows. Several conversion values may use
    /// the same fine value.
    pub fine_value: Option<u8>,
    /// Coarse value, which Apple reports instead if too few people installed the app.
    pub coarse_value: CoarseValue,
    /// Whether reaching the value ends the window.
    pub lock: bool,
    /// Conditions, which must all hold.
    pub conditions: Vec<Condition>,
}

/// Apple's three coarse values, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoarseValue {
    /// Lowest.
    Low,
    /// Middle.
    Medium,
    /// Highest.
    High,
}

crate::keywords! {
    CoarseValue[3] {
        Low => "low",
        Medium => "medium",
        High => "high",
    }
}

impl CoarseValue {
    /// Parses Apple's keyword; case matters.
    pub fn read(text: &str) -> Result<Self, Problem> {
        Self::parse(text).ok_or_else(|| {
            Problem::new(FaultCode::UnknownValue, "Must be one of low, medium, high.")
        })
    }
}

/// Bounds on the count and revenue of one event. All given bounds must hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// Event name, standard or custom.
    pub event: String,
    /// Minimum count, inclusive.
    pub min_count: Option<i64>,
    /// Maximum count, inclusive.
    pub max_count: Option<i64>,
    /// Minimum revenue, inclusive.
    pub min_revenue: Option<Amount>,
    /// Maximum revenue, exclusive, so that neighbouring ranges can share a bound.
    pub max_revenue: Option<Amount>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::low("low", Ok(CoarseValue::Low))]
    #[case::medium("medium", Ok(CoarseValue::Medium))]
    #[case::high("high", Ok(CoarseValue::High))]
    #[case::other_case("High", Err(FaultCode::UnknownValue))]
    #[case::none_is_not_a_coarse_value("none", Err(FaultCode::UnknownValue))]
    #[case::empty("", Err(FaultCode::UnknownValue))]
    fn parses_coarse_values(#[case] text: &str, #[case] expected: Result<CoarseValue, FaultCode>) {
        assert_eq!(
            CoarseValue::read(text).map_err(|problem| problem.code),
            expected
        );
    }

    #[test]
    fn coarse_values_round_trip() {
        for value in CoarseValue::ALL {
            assert_eq!(CoarseValue::parse(value.as_str()), Some(value));
        }
    }

    #[test]
    fn the_number_of_windows_matches_the_highest_index() {
        assert_eq!(usize::from(WINDOW_INDEX_MAX) + 1, WINDOWS_MAX);
    }

    #[test]
    fn names_the_events_of_conditions_and_locks() {
        let condition = Condition {
            event: "level".to_owned(),
            min_count: None,
            max_count: None,
            min_revenue: None,
            max_revenue: None,
        };
        let value = ConversionValue {
            name: "Level".to_owned(),
            fine_value: Some(1),
            coarse_value: CoarseValue::Low,
            lock: false,
            conditions: vec![condition],
        };
        let window = |index, lock_on, values| Window {
            index,
            enabled: index == 0,
            lock_on,
            values,
        };
        let document = Document {
            windows: vec![
                window(0, Some(LockOn::Event("boss".to_owned())), vec![value]),
                window(1, Some(LockOn::FineValue(3)), Vec::new()),
            ],
            ..Document::disabled()
        };
        let expected = ["boss", "level"].map(str::to_owned);
        assert_eq!(document.event_names(), BTreeSet::from(expected));
    }
}
