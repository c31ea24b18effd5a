//! What one network has received: its books.

mod conversions;
mod requests;

pub(crate) use conversions::{AcceptedEvent, Dedup, RecordedConversion};
pub(crate) use requests::{RecordedBody, RefusalRecord, RequestRecord};

use conversions::{Conversions, CountResult};
use requests::RecentRequests;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reasons that are counted apart; reasons are the networks' own codes, of which there are few.
const REASONS_MAX: usize = 200;

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) conversions: usize,
    pub(crate) payloads: usize,
}

/// The figures of a network.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Totals {
    /// Requests of any kind, refused and faulty ones included.
    pub(crate) requests: u64,
    /// Events in requests that were accepted as live ones.
    pub(crate) events_received: u64,
    /// Distinct conversions: what the advertiser sees.
    pub(crate) counted: u64,
    /// Received again inside the window, and dropped.
    pub(crate) duplicates: u64,
    /// Received again with another amount (`network_b` only).
    pub(crate) restated: u64,
    /// Events in refused requests, and those discarded afterwards.
    pub(crate) refused: u64,
    /// Requests that were refused.
    pub(crate) refused_requests: u64,
    /// The same by reason.
    pub(crate) refused_by_reason: BTreeMap<String, u64>,
    /// Events under a test code. On `network_a` they are among the counted ones as well.
    pub(crate) test: u64,
    /// Events that were only to be validated.
    pub(crate) validated: u64,
}

/// The books of a network.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) totals: Totals,
    conversions: Conversions,
    recent: RecentRequests,
}

impl Ledger {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            totals: Totals::default(),
            conversions: Conversions::new(bounds),
            recent: RecentRequests::default(),
        }
    }

    /// Takes in one live event.
    pub(crate) fn receive(&mut self, account: &Arc<str>, event: AcceptedEvent, now: i64) {
        self.totals.events_received += 1;
        match self.conversions.receive(account, event, now) {
            CountResult::Counted => self.totals.counted += 1,
            CountResult::Duplicate => self.totals.duplicates += 1,
            CountResult::Restated => self.totals.restated += 1,
        }
    }

    /// Notes events that were turned away.
    pub(crate) fn refuse(&mut self, reason: &str, events: u64) {
        self.totals.refused += events;
        let reasons = &mut self.totals.refused_by_reason;
        if reasons.len() < REASONS_MAX || reasons.contains_key(reason) {
            *reasons.entry(reason.to_owned()).or_default() += events.max(1);
        }
    }

    /// Notes a request and how it was answered.
    pub(crate) fn note(&mut self, line: RequestRecord, refusal: Option<RefusalRecord>) {
        self.totals.requests += 1;
        if let Some(refusal) = refusal {
            self.totals.refused_requests += 1;
            self.refuse(&refusal.reason, refusal.events);
            self.recent.refuse(refusal);
        }
        self.recent.note(line);
    }

    /// Conversions, the latest first.
    pub(crate) fn conversions(&self) -> impl Iterator<Item = &RecordedConversion> {
        self.conversions.latest()
    }

    /// Requests, the latest first.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &RequestRecord> {
        self.recent.requests()
    }

    /// Refusals, the latest first.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = &RefusalRecord> {
        self.recent.refusals()
    }
}
