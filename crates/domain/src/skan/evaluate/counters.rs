//! How often, and for how much.

use std::collections::BTreeMap;

use crate::exchange::RateValue;
use crate::skan::document::{Condition, FINE_VALUE_WINDOW, INSTALL_EVENT};
use crate::skan::evaluate::{CachedDocument, TrackedEvent};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::money::Amount;

/// One event in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// How many.
    pub count: i64,
    /// Their sum, in the document's currency.
    pub revenue: Amount,
}

impl Counter {
    /// Whether the bounds of a condition all hold: counts between them, revenue from the lower one to
    /// just below the upper one.
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

/// The events of a window, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters(pub BTreeMap<String, Counter>);

impl Counters {
    /// Counts an event. Its revenue is converted once, now; without a rate it brings none.
    pub(super) fn add(&mut self, event: &TrackedEvent, held: &CachedDocument) {
        let revenue = event.revenue.and_then(|(amount, currency)| {
            convert(amount, currency, held.document.currency, &held.rates)
        });
        let counter = self.0.entry(event.name.clone()).or_default();
        *counter = counter.plus(1, revenue.unwrap_or(Amount::ZERO));
    }

    /// What the device counted, what only the server knows, and the install.
    pub(super) fn total(&self, event: &str, window: u8, held: &CachedDocument) -> Counter {
        let own = self.0.get(event).copied().unwrap_or_default();
        let installs = i64::from(event == INSTALL_EVENT && window == FINE_VALUE_WINDOW);
        held.server
            .iter()
            .filter(|one| one.event == event && one.window == window)
            .fold(own.plus(installs, Amount::ZERO), |sum, one| {
                sum.plus(one.count, one.revenue)
            })
    }
}

/// An amount in another currency, rounded to the nearest millionth, halves away from zero; by rates that are units of
/// that other one.
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
