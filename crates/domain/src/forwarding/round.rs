//! A round of a queue: the batches to send, and the parts that rejected batches are split into.
//!
//! A round yields requests until every delivery has a verdict. Each batch has at most one request
//! in flight. The batch is passed along with the request, so that [`Round::judge`] sees all
//! evidence about the batch.

use super::conversion::Conversion;
use super::delivery::DeliveryAttempt;
use super::isolation::{self, RefusedRequest, accepted_since};
use super::judge::AttemptResponse;
use super::lifecycle::{AttemptResult, DeliveryProgress};
use super::queue::QueueState;
use super::queue_change::QueueChange;
use super::ruling::Ruling;
use super::status_check::StatusCheck;
use crate::integration::Network;
use crate::vocabulary::time::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

/// Number of concurrent batches per integration.
pub const BATCHES_IN_FLIGHT: usize = 4;

/// An event to send to a network.
#[derive(Debug, Clone)]
pub struct OutgoingEvent {
    /// Data that the network may receive.
    pub conversion: Conversion,
    /// Progress of its delivery.
    pub progress: DeliveryProgress,
    /// Stored attempts from earlier rounds.
    pub earlier_attempts: Vec<DeliveryAttempt>,
    /// Attempts in this round.
    pub attempts: Vec<DeliveryAttempt>,
}

/// Result of a round for one event.
#[derive(Debug, Clone)]
pub struct RoundResult {
    /// The event.
    pub event: OutgoingEvent,
    /// Result of the event's last request; `None` if the queue stopped before the event was sent.
    pub result: Option<AttemptResult>,
}

/// Events in one request: a batch or a part of one.
#[derive(Debug, Clone)]
pub struct BatchPart {
    /// Events in this part.
    pub events: Vec<OutgoingEvent>,
    /// Index of the rejected request in [`DeliveryBatch::splits`], if this part is half of one.
    half_of: Option<usize>,
}

impl BatchPart {
    /// Creates a part that is not half of a rejected request.
    pub(super) const fn new(events: Vec<OutgoingEvent>) -> Self {
        Self {
            events,
            half_of: None,
        }
    }

    /// Returns the conversions to send.
    pub fn conversions(&self) -> Vec<Conversion> {
        let conversion = |event: &OutgoingEvent| event.conversion.clone();
        self.events.iter().map(conversion).collect()
    }
}

/// A rejected request that was resent in halves.
#[derive(Debug, Clone)]
struct Split {
    code: String,
    /// Code that the first half was rejected with.
    first_half: Option<String>,
}

/// Events sent together, with the evidence from the parts sent so far.
#[derive(Debug, Clone)]
pub struct DeliveryBatch {
    size: usize,
    pub(super) waiting: VecDeque<BatchPart>,
    splits: Vec<Split>,
    /// Whether the network accepted any event in the batch.
    pub(super) accepted_some: bool,
    /// Events that were rejected in a request of their own. What happens to them is decided after
    /// the rest of the batch was sent.
    pub(super) refused_alone: Vec<(BatchPart, AttemptResponse)>,
}

impl DeliveryBatch {
    /// Creates a batch and splits it until every part fits into a request.
    pub fn new(events: Vec<OutgoingEvent>, is_too_long: impl Fn(&[Conversion]) -> bool) -> Self {
        let mut batch = Self {
            size: events.len(),
            waiting: VecDeque::new(),
            splits: Vec::new(),
            accepted_some: false,
            refused_alone: Vec::new(),
        };
        let mut parts = VecDeque::from([BatchPart::new(events)]);
        while let Some(part) = parts.pop_front() {
            if part.events.len() > 1 && is_too_long(&part.conversions()) {
                parts.extend(halves(part.events, None));
            } else {
                batch.waiting.push_back(part);
            }
        }
        batch
    }

    /// Splits a request that was too large. The halves are sent after the batch's other waiting
    /// parts.
    pub(super) fn split(&mut self, part: BatchPart) {
        self.waiting.extend(halves(part.events, part.half_of));
    }

    /// Splits a request that was rejected without naming an event. Both halves are tried before
    /// either is split further.
    pub(super) fn split_refused(&mut self, part: BatchPart, code: &str) {
        self.splits.push(Split {
            code: code.to_owned(),
            first_half: None,
        });
        let half_of = Some(self.splits.len() - 1);
        self.waiting.extend(halves(part.events, half_of));
    }

    /// Records the code that a half was rejected with.
    pub(super) fn note_refused(&mut self, part: &BatchPart, code: &str) {
        if let Some(split) = part.half_of.and_then(|index| self.splits.get_mut(index)) {
            split.first_half = Some(code.to_owned());
        }
    }

    /// Returns the evidence about a rejected part.
    pub(super) fn refusal<'a>(
        &'a self,
        queue: &QueueState,
        part: &BatchPart,
        response: &'a AttemptResponse,
    ) -> RefusedRequest<'a> {
        let split = part.half_of.and_then(|index| self.splits.get(index));
        let since =
            |event: &OutgoingEvent| accepted_since(queue, &response.code, &event.earlier_attempts);
        RefusedRequest {
            events: part.events.len(),
            code: &response.code,
            blames_event: response.ruling == Ruling::InvalidEvent,
            whole_code: split.map(|split| split.code.as_str()),
            other_half_code: split.and_then(|split| split.first_half.as_deref()),
            batch: isolation::BatchEvidence {
                events: self.size,
                accepted_some: self.accepted_some,
                refused_alone: u32::try_from(self.refused_alone.len()).unwrap_or(u32::MAX),
                accepted_since: part.events.iter().any(since),
            },
        }
    }
}

fn halves(mut events: Vec<OutgoingEvent>, half_of: Option<usize>) -> [BatchPart; 2] {
    let second = events.split_off(events.len() / 2);
    [events, second].map(|events| BatchPart { events, half_of })
}

/// A request in flight, with its batch.
#[derive(Debug)]
pub struct RoundRequest {
    pub(super) batch: DeliveryBatch,
    /// The events in the request.
    pub part: BatchPart,
}

/// Settings that apply to every request in a round.
#[derive(Debug, Clone, Copy)]
pub struct RoundSettings {
    /// The destination network.
    pub network: Network,
    /// Whether the network only validates events and stores nothing.
    pub validates_only: bool,
}

/// Time of a decision, and a random number for back-off.
#[derive(Debug, Clone, Copy)]
pub struct DecisionContext {
    /// The current time.
    pub now: Timestamp,
    /// Any random number.
    pub random: u64,
}

/// A round of a queue.
#[derive(Debug)]
pub struct Round {
    /// State of the queue, as far as this node knows it.
    pub queue: QueueState,
    /// Changes to the state since the round began.
    pub changes: Vec<QueueChange>,
    pub(super) terms: RoundSettings,
    ready: VecDeque<DeliveryBatch>,
    in_flight: usize,
    /// Results of events that are finished in this round.
    pub results: Vec<RoundResult>,
    /// Requests whose status must be checked later.
    pub checks: Vec<StatusCheck>,
    /// How long to wait before the next round, if the network asked us to slow down: the duration
    /// of the slowest request whose response asked for it.
    pub slow_down: Option<Duration>,
}

impl Round {
    /// Creates a round of batches.
    pub fn new(queue: QueueState, terms: RoundSettings, batches: Vec<DeliveryBatch>) -> Self {
        Self {
            queue,
            changes: Vec::new(),
            terms,
            ready: batches.into(),
            in_flight: 0,
            results: Vec::new(),
            checks: Vec::new(),
            slow_down: None,
        }
    }

    /// Returns the next request, unless enough are in flight. When the server shuts down or the
    /// queue has to wait, no further request is sent and unsent events stay due.
    pub fn next_request(
        &mut self,
        is_stopping: bool,
        context: DecisionContext,
    ) -> Option<RoundRequest> {
        if is_stopping || self.queue.has_to_wait() {
            while let Some(batch) = self.ready.pop_front() {
                self.end(batch, context);
            }
        }
        if self.in_flight >= BATCHES_IN_FLIGHT {
            return None;
        }
        let mut batch = self.ready.pop_front()?;
        let part = batch.waiting.pop_front()?;
        self.in_flight += 1;
        Some(RoundRequest { batch, part })
    }

    /// Changes the state of the queue. Returns whether the change requires a pause.
    pub(super) fn change_queue(&mut self, change: QueueChange) -> bool {
        let pauses = self.queue.apply(&change);
        self.changes.push(change);
        pauses
    }

    /// Takes a batch back after the response to one of its requests.
    pub(super) fn take_back(&mut self, batch: DeliveryBatch, context: DecisionContext) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if batch.waiting.is_empty() {
            self.end(batch, context);
        } else {
            self.ready.push_front(batch);
        }
    }

    /// Ends a batch: unsent events get no result and stay due. Decides what happens to events that
    /// were rejected in a request of their own.
    fn end(&mut self, mut batch: DeliveryBatch, context: DecisionContext) {
        let unsent = batch.waiting.drain(..).flat_map(|part| part.events);
        let unsent = unsent.map(|event| RoundResult {
            event,
            result: None,
        });
        self.results.extend(unsent);
        for (part, response) in std::mem::take(&mut batch.refused_alone) {
            self.decide_alone(&batch, part, &response, context);
        }
    }
}
