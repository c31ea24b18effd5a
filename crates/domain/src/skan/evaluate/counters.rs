//! Event counters: count and revenue.

use std::collections::BTreeMap;

use crate::exchange::RateValue;
use crate::skan::document::{Condition, FINE_VALUE_WINDOW, INSTALL_EVENT};
use crate::skan::evaluate::{CachedDocument, TrackedEvent};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::money::Amount;

/// Counter for one event in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// Number of events.
    pub count: i64,
    /// Revenue in the document's currency.
    pub revenue: Amount,
}

impl Counter {
    /// Returns whether all bounds of a condition hold. The maximum revenue is exclusive, all other
    /// bounds are inclusive.
    pub(super) fn meets(self, condition: &Condition) -> bool {
        condition.min_count.is_none_or(|min| self.count >= min)
            && condition.max_count.is_none_or(|max| self.count <= max)
            && condition.min_revenue.is_none_or(|min| self.revenue >= min)
            && condition.max_revenue.is_none_or(|max| self.revenue < max)
    }

    fn plus(self, count: i64, revenue: Amount) -> Self {
        let micros = self.revenue.micros().saturating_add(revenue.micros());
        Self {
            count: self.count.saturating_add(count),
            revenue: Amount::from_micros(micros),
        }
    }
}

/// Counters for a window, by event name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters(pub BTreeMap<String, Counter>);

impl Counters {
    /// Counts an event. Its revenue is converted once, now; without a rate it counts as zero.
    pub(super) fn add(&mut self, event: &TrackedEvent, cached: &CachedDocument) {
        let revenue = event.revenue.and_then(|(amount, currency)| {
            convert(amount, currency, cached.document.currency, &cached.rates)
        });
        let counter = self.0.entry(event.name.clone()).or_default();
        *counter = counter.plus(1, revenue.unwrap_or(Amount::ZERO));
    }

    /// Returns the sum of the device's own counter, the server's events, and the install.
    pub(super) fn total(&self, event: &str, window: u8, cached: &CachedDocument) -> Counter {
        let own = self.0.get(event).copied().unwrap_or_default();
        let installs = i64::from(event == INSTALL_EVENT && window == FINE_VALUE_WINDOW);
        cached
            .server
            .iter()
            .filter(|one| one.event == event && one.window == window)
            .fold(own.plus(installs, Amount::ZERO), |sum, one| {
                sum.plus(one.count, one.revenue)
            })
    }
}

/// Converts an amount, rounded to the nearest millionth, halves away from zero. `rates` are units
/// of `into` per unit of the other currency.
pub(in crate::skan) fn convert(
    amount: Amount,
    currency: Currency,
    into: Currency,
    rates: &[(Currency, RateValue)],
) -> Option<Amount> {
    if currency == into {
        return Some(amount);
    }
    let (_, rate) = rates.iter().find(|(code, _)| *code == currency)?;
    let unit = i128::from(RateValue::ONE.nanos());
    let product = i128::from(amount.micros()) * i128::from(rate.nanos());
    let half = unit / 2 * product.signum();
    let micros = i64::try_from((product + half) / unit).ok()?;
    Some(Amount::from_micros(micros))
}
