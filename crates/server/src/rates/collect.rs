//! Checks that apply to rates in every file format.

use std::collections::HashSet;
use tributary_domain::exchange::{Rate, RateBase, RateValue};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;

/// Collects rates in file order.
pub(super) struct RateCollector {
    base: RateBase,
    source: &'static str,
    /// Latest plausible day: tomorrow, for clocks ahead of UTC. Rates for later days cannot be
    /// known yet, and would count as fresh until those days.
    day_max: Day,
    rates: Vec<Rate>,
    seen: HashSet<(Currency, Day)>,
}

impl RateCollector {
    pub(super) fn new(base: RateBase, source: &'static str, today: Day) -> Self {
        Self {
            base,
            source,
            day_max: today.following(),
            rates: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Checks that rates for this day can already be known.
    pub(super) fn check_day(&self, day: Day) -> Result<(), String> {
        if day <= self.day_max {
            return Ok(());
        }
        let tomorrow = self.day_max;
        Err(format!(
            "{day} is later than tomorrow, {tomorrow}; correct the date, or this \
             machine's clock"
        ))
    }

    /// Adds a rate, or returns what is wrong with it.
    pub(super) fn add(&mut self, day: Day, code: &str, units: &str) -> Result<(), String> {
        self.check_day(day)?;
        let currency = currency(code)?;
        let units = RateValue::parse(units)
            .map_err(|problem| format!("{code}: {}", uncapitalised(&problem.message)))?;
        let rate = Rate {
            currency,
            day,
            base: self.base,
            units,
            source: self.source.to_owned(),
        };
        if !self.seen.insert((currency, day)) {
            return Err(format!("{code} occurs twice for {day}"));
        }
        if !rate.is_against_itself() {
            self.rates.push(rate);
        } else if units != RateValue::ONE {
            return Err(format!("{code} against itself must be 1"));
        }
        Ok(())
    }

    pub(super) fn into_rates(self) -> Vec<Rate> {
        self.rates
    }
}

/// Parses a currency code. Retired codes are accepted, because history files contain many.
pub(super) fn currency(code: &str) -> Result<Currency, String> {
    Currency::from_stored(code)
        .ok_or_else(|| "a currency must be three capital letters, for example USD".to_owned())
}

/// Parses a date such as `2024-03-18`.
pub(super) fn day(text: &str) -> Result<Day, String> {
    Day::parse(text).map_err(|_| "a date must have the form 2024-03-18".to_owned())
}

/// Turns a sentence into a clause: `Must be 1.` becomes `must be 1`.
fn uncapitalised(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}
