//! A network's accepted conversions, each counted once.
//!
//! Conversions are stored in order of arrival, with an index by deduplication key. When there are
//! too many, the oldest are dropped; payloads are dropped much earlier.

use super::Bounds;
use crate::network::SimulatedNetwork;
use crate::validation::ReceivedMoney;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

/// How a network handles an id that it has already received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dedup {
    /// The first event counts; duplicates are ignored for this many milliseconds.
    Window(i64),
    /// The last event overwrites the amount, no matter how much later it arrives.
    Restate,
}

/// An event that passed all checks.
#[derive(Debug)]
pub(crate) struct AcceptedEvent {
    pub(crate) name: Box<str>,
    /// Deduplication id. Events without an id are always counted.
    pub(crate) id: Option<Box<str>>,
    pub(crate) money: Option<ReceivedMoney>,
    pub(crate) dedup: Dedup,
    pub(crate) payload: Value,
}

/// A recorded conversion.
#[derive(Debug)]
pub(crate) struct RecordedConversion {
    pub(crate) account: Arc<str>,
    pub(crate) name: Box<str>,
    pub(crate) id: Option<Box<str>>,
    pub(crate) money: Option<ReceivedMoney>,
    pub(crate) first_received: i64,
    pub(crate) last_received: i64,
    /// How often the conversion was received.
    pub(crate) times: u32,
    /// How often the conversion was counted. More than once if it arrived again after the
    /// deduplication window.
    pub(crate) counted: u32,
    /// Start of the deduplication window.
    window_from: i64,
    /// The last payload, unless it was dropped.
    pub(crate) payload: Option<Value>,
}

impl RecordedConversion {
    /// Formats the amount in major units with its currency.
    pub(crate) fn money_text(&self, network: SimulatedNetwork) -> Option<String> {
        let money = self.money.as_ref()?;
        Some(match network {
            SimulatedNetwork::NetworkD => money.minor_units_text(),
            _ => money.text(),
        })
    }
}

/// How an event was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountResult {
    Counted,
    Duplicate,
    Restated,
}

#[derive(Debug)]
pub(super) struct Conversions {
    bounds: Bounds,
    list: VecDeque<(Option<Box<str>>, RecordedConversion)>,
    /// Number of the first conversion in the list.
    first: u64,
    known: HashMap<Box<str>, u64>,
    /// Numbers of conversions with payloads, oldest first.
    with_payload: VecDeque<u64>,
    /// Reused buffer for lookups.
    key: String,
}

impl Conversions {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            list: VecDeque::new(),
            first: 0,
            known: HashMap::new(),
            with_payload: VecDeque::new(),
            key: String::new(),
        }
    }

    pub(super) fn receive(
        &mut self,
        account: &Arc<str>,
        event: AcceptedEvent,
        now: i64,
    ) -> CountResult {
        if let Some(id) = &event.id {
            self.key.clear();
            // The lengths distinguish "ab" + "c" from "a" + "bc". Writing to a `String` cannot
            // fail.
            let (from, name) = (account.len(), event.name.len());
            write!(self.key, "{from}:{name}:{account}{}{id}", event.name).unwrap_or_default();
            if let Some(&number) = self.known.get(self.key.as_str()) {
                return self.receive_again(number, event, now);
            }
        }
        let key = event
            .id
            .is_some()
            .then(|| Box::<str>::from(self.key.as_str()));
        let number = self.first + self.list.len() as u64;
        if let Some(key) = &key {
            self.known.insert(key.clone(), number);
        }
        let conversion = RecordedConversion {
            account: Arc::clone(account),
            name: event.name,
            id: event.id,
            money: event.money,
            first_received: now,
            last_received: now,
            times: 1,
            counted: 1,
            window_from: now,
            payload: None,
        };
        self.list.push_back((key, conversion));
        self.keep_payload(number, event.payload);
        self.drop_oldest();
        CountResult::Counted
    }

    fn receive_again(&mut self, number: u64, event: AcceptedEvent, now: i64) -> CountResult {
        let Some(known) = self.at(number) else {
            return CountResult::Duplicate;
        };
        known.times = known.times.saturating_add(1);
        known.last_received = now;
        let received = match event.dedup {
            Dedup::Restate if known.money == event.money => CountResult::Duplicate,
            Dedup::Restate => {
                known.money = event.money;
                CountResult::Restated
            }
            Dedup::Window(window) if now.saturating_sub(known.window_from) <= window => {
                CountResult::Duplicate
            }
            Dedup::Window(_) => {
                known.window_from = now;
                known.counted = known.counted.saturating_add(1);
                CountResult::Counted
            }
        };
        self.keep_payload(number, event.payload);
        received
    }

    fn at(&mut self, number: u64) -> Option<&mut RecordedConversion> {
        let position = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.list
            .get_mut(position)
            .map(|(_, conversion)| conversion)
    }

    fn keep_payload(&mut self, number: u64, payload: Value) {
        let Some(conversion) = self.at(number) else {
            return;
        };
        if conversion.payload.replace(payload).is_none() {
            self.with_payload.push_back(number);
        }
        while self.with_payload.len() > self.bounds.payloads {
            let oldest = self.with_payload.pop_front();
            if let Some(conversion) = oldest.and_then(|oldest| self.at(oldest)) {
                conversion.payload = None;
            }
        }
    }

    fn drop_oldest(&mut self) {
        while self.list.len() > self.bounds.conversions {
            if let Some((Some(key), _)) = self.list.pop_front() {
                self.known.remove(&key);
            }
            self.first += 1;
        }
    }

    pub(super) fn latest(&self) -> impl Iterator<Item = &RecordedConversion> {
        self.list.iter().rev().map(|(_, conversion)| conversion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const WINDOW: Dedup = Dedup::Window(1_000);

    fn event(name: &str, id: &str, dedup: Dedup, amount: u64) -> AcceptedEvent {
        let currency = crate::validation::IsoCurrency::parse("USD", false).expect("a currency");
        AcceptedEvent {
            name: name.into(),
            id: (!id.is_empty()).then(|| id.into()),
            money: Some(ReceivedMoney {
                amount: amount.into(),
                currency,
            }),
            dedup,
            payload: json!({"id": id}),
        }
    }

    fn ledger(conversions: usize, payloads: usize) -> (Conversions, Arc<str>) {
        let bounds = Bounds {
            conversions,
            payloads,
        };
        (Conversions::new(bounds), Arc::from("1"))
    }

    #[test]
    fn deduplicates_within_the_window() {
        let (mut ledger, account) = ledger(10, 10);
        let mut at = |now| ledger.receive(&account, event("Lead", "x", WINDOW, 1), now);
        assert_eq!(at(0), CountResult::Counted);
        assert_eq!(at(1_000), CountResult::Duplicate);
        assert_eq!(at(1_001), CountResult::Counted);
        assert_eq!(at(2_001), CountResult::Duplicate);
        let one = ledger.latest().next().expect("a conversion");
        assert_eq!((one.times, one.counted, one.last_received), (4, 2, 2_001));
    }

    #[test]
    fn deduplicates_by_account_name_and_id() {
        let (mut ledger, account) = ledger(10, 10);
        let other: Arc<str> = Arc::from("2");
        for (account, name, id) in [
            (&account, "ab", "c"),
            (&account, "a", "bc"),
            (&other, "ab", "c"),
            (&account, "ab", ""),
            (&account, "ab", ""),
        ] {
            let received = ledger.receive(account, event(name, id, WINDOW, 1), 0);
            assert_eq!(received, CountResult::Counted, "{account} {name} {id}");
        }
    }

    #[test]
    fn a_restatement_overwrites_the_amount_and_counts_nothing() {
        let (mut ledger, account) = ledger(10, 10);
        let mut with =
            |amount| ledger.receive(&account, event("1", "x", Dedup::Restate, amount), 0);
        assert_eq!(with(1), CountResult::Counted);
        assert_eq!(with(1), CountResult::Duplicate);
        assert_eq!(with(2), CountResult::Restated);
        let one = ledger.latest().next().and_then(|one| one.money.clone());
        assert_eq!(one.expect("money").text(), "2 USD");
    }

    #[test]
    fn drops_payloads_first_and_then_conversions() {
        let (mut ledger, account) = ledger(5, 2);
        for number in 0..8 {
            let id = number.to_string();
            ledger.receive(&account, event("Lead", &id, WINDOW, 1), 0);
        }
        let ids: Vec<_> = ledger
            .latest()
            .filter_map(|one| one.id.as_deref())
            .collect();
        assert_eq!(ids, ["7", "6", "5", "4", "3"]);
        let kept = ledger.latest().filter(|one| one.payload.is_some()).count();
        assert_eq!((kept, ledger.known.len()), (2, 5));
        let again = |ledger: &mut Conversions, id| {
            ledger.receive(&account, event("Lead", id, WINDOW, 1), 0)
        };
        assert_eq!(again(&mut ledger, "3"), CountResult::Duplicate);
        assert_eq!(again(&mut ledger, "2"), CountResult::Counted, "dropped");
    }
}
