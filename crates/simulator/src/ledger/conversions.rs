//! The conversions that a network has accepted, each counted once.
//!
//! They stand in the order of arrival; a map leads from what makes a conversion the same to its place. The oldest
//! go first when there are too many, and payloads go long before.

use super::Bounds;
use crate::network::SimulatedNetwork;
use crate::validation::ReceivedMoney;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

/// How a network treats an id that it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dedup {
    /// The first wins, for so many milliseconds.
    Window(i64),
    /// The last overwrites the amount, at any time.
    Restate,
}

/// An event that passed all checks.
#[derive(Debug)]
pub(crate) struct AcceptedEvent {
    pub(crate) name: Box<str>,
    /// Without one, nothing can be told apart, and all are counted.
    pub(crate) id: Option<Box<str>>,
    pub(crate) money: Option<ReceivedMoney>,
    pub(crate) dedup: Dedup,
    pub(crate) payload: Value,
}

/// A conversion in the books.
#[derive(Debug)]
pub(crate) struct RecordedConversion {
    pub(crate) account: Arc<str>,
    pub(crate) name: Box<str>,
    pub(crate) id: Option<Box<str>>,
    pub(crate) money: Option<ReceivedMoney>,
    pub(crate) first_received: i64,
    pub(crate) last_received: i64,
    /// How often it came.
    pub(crate) times: u32,
    /// How often it was counted: more than once when it came again after the window.
    pub(crate) counted: u32,
    /// Since when the window runs.
    window_from: i64,
    /// The last one that came, as long as it is kept.
    pub(crate) payload: Option<Value>,
}

impl RecordedConversion {
    /// Its amount in major units, with the currency.
    pub(crate) fn money_text(&self, network: SimulatedNetwork) -> Option<String> {
        let money = self.money.as_ref()?;
        Some(match network {
            SimulatedNetwork::NetworkD => money.minor_units_text(),
            _ => money.text(),
        })
    }
}

/// What became of an event.
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
    /// The number of the first of the list.
    first: u64,
    known: HashMap<Box<str>, u64>,
    /// Numbers of conversions with payloads, the oldest first.
    with_payload: VecDeque<u64>,
    /// For looking up without allocating.
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
            // The lengths keep "ab" + "c" apart from "a" + "bc". Writing to a string cannot fail.
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
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.list.get_mut(place).map(|(_, conversion)| conversion)
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

    fn books(conversions: usize, payloads: usize) -> (Conversions, Arc<str>) {
        let bounds = Bounds {
            conversions,
            payloads,
        };
        (Conversions::new(bounds), Arc::from("1"))
    }

    #[test]
    fn the_same_id_is_counted_once_inside_the_window_and_again_after_it() {
        let (mut books, account) = books(10, 10);
        let mut at = |now| books.receive(&account, event("Lead", "x", WINDOW, 1), now);
        assert_eq!(at(0), CountResult::Counted);
        assert_eq!(at(1_000), CountResult::Duplicate);
        assert_eq!(at(1_001), CountResult::Counted);
        assert_eq!(at(2_001), CountResult::Duplicate);
        let one = books.latest().next().expect("a conversion");
        assert_eq!((one.times, one.counted, one.last_received), (4, 2, 2_001));
    }

    #[test]
    fn name_account_and_id_tell_conversions_apart() {
        let (mut books, account) = books(10, 10);
        let other: Arc<str> = Arc::from("2");
        for (account, name, id) in [
            (&account, "ab", "c"),
            (&account, "a", "bc"),
            (&other, "ab", "c"),
            (&account, "ab", ""),
            (&account, "ab", ""),
        ] {
            let received = books.receive(account, event(name, id, WINDOW, 1), 0);
            assert_eq!(received, CountResult::Counted, "{account} {name} {id}");
        }
    }

    #[test]
    fn a_restatement_overwrites_the_amount_and_counts_nothing() {
        let (mut books, account) = books(10, 10);
        let mut with = |amount| books.receive(&account, event("1", "x", Dedup::Restate, amount), 0);
        assert_eq!(with(1), CountResult::Counted);
        assert_eq!(with(1), CountResult::Duplicate);
        assert_eq!(with(2), CountResult::Restated);
        let one = books.latest().next().and_then(|one| one.money.clone());
        assert_eq!(one.expect("money").text(), "2 USD");
    }

    #[test]
    fn memory_is_bounded_and_payloads_go_first() {
        let (mut books, account) = books(5, 2);
        for number in 0..8 {
            let id = number.to_string();
            books.receive(&account, event("Lead", &id, WINDOW, 1), 0);
        }
        let ids: Vec<_> = books.latest().filter_map(|one| one.id.as_deref()).collect();
        assert_eq!(ids, ["7", "6", "5", "4", "3"]);
        let kept = books.latest().filter(|one| one.payload.is_some()).count();
        assert_eq!((kept, books.known.len()), (2, 5));
        let again =
            |books: &mut Conversions, id| books.receive(&account, event("Lead", id, WINDOW, 1), 0);
        assert_eq!(again(&mut books, "3"), CountResult::Duplicate);
        assert_eq!(again(&mut books, "2"), CountResult::Counted, "forgotten");
    }
}
