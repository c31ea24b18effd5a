//! What the clients know: the requests they have to send, and the outcome of each.

use crate::scenario::{Element, Keys, Request, Scenario};
use std::collections::{BTreeMap, BTreeSet};

/// Kind of a recorded thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Click,
    Install,
    SdkEvent,
    WebEvent,
    Notification,
}

/// Names something that the server records once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) kind: Kind,
    pub(crate) keys: Keys,
    pub(crate) id: String,
}

impl Key {
    pub(crate) fn new(kind: Kind, keys: Keys, id: impl Into<String>) -> Self {
        let id = id.into();
        Self { kind, keys, id }
    }
}

/// What the clients know about a thing. The numbers are those of the requests, which differ in
/// their content.
#[derive(Debug, Clone, Default)]
pub(crate) struct Knowledge {
    /// Requests that were acknowledged.
    pub(crate) acknowledged: BTreeSet<u32>,
    /// Requests that may have been processed.
    pub(crate) unknown: BTreeSet<u32>,
    /// How often the answer said that it was new.
    pub(crate) new: u32,
}

/// The outcome of one request for one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Acknowledged; `is_new` if the answer says so.
    Acknowledged { is_new: bool },
    /// Refused by a rule.
    Refused,
    /// Refused until something else happens.
    RefusedForNow,
    /// No answer, or an answer that the result is unknown.
    Unknown,
}

/// Where a client is in its list of requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientState {
    /// Requests to send, in order.
    pub(crate) waiting: Vec<u32>,
    /// Requests to send again.
    pub(crate) again: Vec<u32>,
    /// The request that is under way.
    pub(crate) current: Option<u32>,
    /// How often a request was sent without a final answer.
    pub(crate) attempts: BTreeMap<u32, u32>,
}

/// Counts of requests by their outcome.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OutcomeCounts {
    pub(crate) acknowledged: u64,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
}

/// The clients' knowledge.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) requests: BTreeMap<u32, Request>,
    pub(crate) clients: Vec<ClientState>,
    pub(crate) things: BTreeMap<Key, Knowledge>,
    /// Click ids of acknowledged taps.
    pub(crate) click_ids: BTreeMap<u32, String>,
    /// Erased devices.
    pub(crate) erased: BTreeSet<String>,
    pub(crate) counts: OutcomeCounts,
    /// Answers that no rule allows.
    pub(crate) unexpected: Vec<String>,
}

impl Ledger {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let mut clients = vec![ClientState::default(); scenario.clients];
        let mut requests = BTreeMap::new();
        for (number, element) in &scenario.elements {
            if let Element::Request { client, request } = element {
                requests.insert(*number, request.clone());
                clients[*client].waiting.insert(0, *number);
            }
        }
        Self {
            requests,
            clients,
            things: BTreeMap::new(),
            click_ids: BTreeMap::new(),
            erased: BTreeSet::new(),
            counts: OutcomeCounts::default(),
            unexpected: Vec::new(),
        }
    }

    /// Puts the requests that were under way when the process ended back into their lists, except
    /// taps: a second tap would be a second click.
    pub(crate) fn note_process_end(&mut self) {
        let requests = &self.requests;
        let is_tap = |number: &u32| matches!(requests.get(number), Some(Request::Tap { .. }));
        for client in &mut self.clients {
            let current = client.current.take().filter(|number| !is_tap(number));
            client.again.extend(current);
        }
    }

    /// Notes that a request is sent, which may record this thing.
    pub(crate) fn sent(&mut self, number: u32, key: &Key) {
        let known = self.things.entry(key.clone()).or_default();
        known.unknown.insert(number);
    }

    /// Notes the outcome of a request. `earlier_unknown` tells whether an earlier attempt may have
    /// been processed.
    pub(crate) fn answered(
        &mut self,
        number: u32,
        key: &Key,
        outcome: Outcome,
        earlier_unknown: bool,
    ) {
        let known = self.things.entry(key.clone()).or_default();
        match outcome {
            Outcome::Acknowledged { is_new } => {
                known.acknowledged.insert(number);
                known.new += u32::from(is_new);
                self.counts.acknowledged += 1;
            }
            Outcome::Refused | Outcome::RefusedForNow => {
                if !earlier_unknown {
                    known.unknown.remove(&number);
                }
                self.counts.refused += 1;
            }
            Outcome::Unknown => self.counts.unknown += 1,
        }
    }

    /// Returns whether an earlier attempt of this request may have been processed.
    pub(crate) fn may_be_processed(&self, number: u32, key: &Key) -> bool {
        let known = self.things.get(key);
        known.is_some_and(|known| known.unknown.contains(&number))
    }
}
