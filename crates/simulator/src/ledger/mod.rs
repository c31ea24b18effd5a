//! Ledger of what one network received.

mod conversions;
mod requests;

pub(crate) use conversions::{AcceptedEvent, Dedup, RecordedConversion};
pub(crate) use requests::{RecordedBody, RefusalRecord, RequestRecord};

use conversions::{Conversions, CountResult};
use requests::RecentRequests;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of distinct reasons. Reasons are the networks' codes, of which there are few.
const REASONS_MAX: usize = 200;

/// Limits on what is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) conversions: usize,
    pub(crate) payloads: usize,
}

/// A network's totals.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Totals {
    /// All requests, including rejected and faulty requests.
    pub(crate) requests: u64,
    /// Events in accepted live requests.
    pub(crate) events_received: u64,
    /// Distinct conversions, as the advertiser sees them.
    pub(crate) counted: u64,
    /// Events received again within the deduplication window and ignored.
    pub(crate) duplicates: u64,
    /// Events received again with another amount (`network_b` only).
    pub(crate) restated: u64,
    /// Events in rejected requests, and events discarded later.
    pub(crate) refused: u64,
    /// Rejected requests.
    pub(crate) refused_requests: u64,
    /// Rejected events by reason.
    pub(crate) refused_by_reason: BTreeMap<String, u64>,
    /// Events with a test code. `network_a` also counts them as conversions.
    pub(crate) test: u64,
    /// Events that were only validated.
    pub(crate) validated: u64,
}

/// A network's ledger.
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

    /// Records an accepted live event.
    pub(crate) fn receive(&mut self, account: &Arc<str>, event: AcceptedEvent, now: i64) {
        self.totals.events_received += 1;
        match self.conversions.receive(account, event, now) {
            CountResult::Counted => self.totals.counted += 1,
            CountResult::Duplicate => self.totals.duplicates += 1,
            CountResult::Restated => self.totals.restated += 1,
        }
    }

    /// Records rejected events.
    pub(crate) fn refuse(&mut self, reason: &str, events: u64) {
        self.totals.refused += events;
        let reasons = &mut self.totals.refused_by_reason;
        if reasons.len() < REASONS_MAX || reasons.contains_key(reason) {
            *reasons.entry(reason.to_owned()).or_default() += events.max(1);
        }
    }

    /// Records a request and its result.
    pub(crate) fn note(&mut self, line: RequestRecord, refusal: Option<RefusalRecord>) {
        self.totals.requests += 1;
        if let Some(refusal) = refusal {
            self.totals.refused_requests += 1;
            self.refuse(&refusal.reason, refusal.events);
            self.recent.refuse(refusal);
        }
        self.recent.note(line);
    }

    /// Returns conversions, latest first.
    pub(crate) fn conversions(&self) -> impl Iterator<Item = &RecordedConversion> {
        self.conversions.latest()
    }

    /// Returns requests, latest first.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &RequestRecord> {
        self.recent.requests()
    }

    /// Returns refusals, latest first.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = &RefusalRecord> {
        self.recent.refusals()
    }
}
