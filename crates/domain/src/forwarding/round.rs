//! A round of a queue: the batches that go out, and the parts that refused batches are taken apart into.
//!
//! A round hands out requests until every delivery has a verdict. Each batch has one request under way at a time and
//! travels with it, so that [`Round::judge`] sees everything that is known about the batch.

use super::conversion::Conversion;
use super::delivery::DeliveryAttempt;
use super::isolation::{self, RefusedRequest, accepted_since};
use super::judge::AttemptResponse;
use super::lifecycle::{AttemptResult, DeliveryProgress};
use super::queue::QueueState;
use super::ruling::Ruling;
use super::status_check::StatusCheck;
use crate::integration::Network;
use crate::vocabulary::time::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

/// Batches of one integration under way at the same time.
pub const BATCHES_IN_FLIGHT: usize = 4;

/// An event on its way to a network.
#[derive(Debug, Clone)]
pub struct OutgoingEvent {
    /// What the network may know.
    pub conversion: Conversion,
    /// How far its delivery is.
    pub progress: DeliveryProgress,
    /// Attempts of earlier rounds that are kept.
    pub earlier_attempts: Vec<DeliveryAttempt>,
    /// Attempts of this round.
    pub attempts: Vec<DeliveryAttempt>,
}

/// An event of a round that is over.
#[derive(Debug, Clone)]
pub struct RoundResult {
    /// The event.
    pub event: OutgoingEvent,
    /// Result of the last request that it was in; nothing: something stopped the queue before it had one.
    pub result: Option<AttemptResult>,
}

/// A request to be sent: a batch, or a part of one.
#[derive(Debug, Clone)]
pub struct BatchPart {
    /// Its events.
    pub events: Vec<OutgoingEvent>,
    /// The refused request that it is a half of, by its place in [`Batch::splits`].
    half_of: Option<usize>,
}

impl BatchPart {
    /// Events of one request that is not half of a refused one.
    pub(super) const fn new(events: Vec<OutgoingEvent>) -> Self {
        Self {
            events,
            half_of: None,
        }
    }

    /// Returns what the network may know about its events.
    pub fn conversions(&self) -> Vec<Conversion> {
        let conversion = |event: &OutgoingEvent| event.conversion.clone();
        self.events.iter().map(conversion).collect()
    }
}

/// A refused request that was sent again in halves.
#[derive(Debug, Clone)]
struct Split {
    code: String,
    /// Code that the first half was refused with.
    first_half: Option<String>,
}

/// Events that are sent together, with what is known about the parts that were sent.
#[derive(Debug, Clone)]
pub struct DeliveryBatch {
    size: usize,
    pub(super) waiting: VecDeque<BatchPart>,
    splits: Vec<Split>,
    /// Whether the network accepted any of its events.
    pub(super) accepted_some: bool,
    /// Events that were refused alone; they are decided after the rest was sent.
    pub(super) refused_alone: Vec<(BatchPart, AttemptResponse)>,
}

impl DeliveryBatch {
    /// A batch that was not sent yet. Halves it until no part is too long for a request.
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

    /// Sends both halves of a request that was too large, after the parts that wait already.
    pub(super) fn split(&mut self, part: BatchPart) {
        self.waiting.extend(halves(part.events, part.half_of));
    }

    /// The same for a request that was refused without naming an event. Whether both halves fail is known before
    /// either is taken apart.
    pub(super) fn split_refused(&mut self, part: BatchPart, code: &str) {
        self.splits.push(Split {
            code: code.to_owned(),
            first_half: None,
        });
        let half_of = Some(self.splits.len() - 1);
        self.waiting.extend(halves(part.events, half_of));
    }

    /// Notes the code that a half was refused with.
    pub(super) fn note_refused(&mut self, part: &BatchPart, code: &str) {
        if let Some(split) = part.half_of.and_then(|place| self.splits.get_mut(place)) {
            split.first_half = Some(code.to_owned());
        }
    }

    /// Returns what is known about a refused part.
    pub(super) fn refusal<'a>(
        &'a self,
        queue: &QueueState,
        part: &BatchPart,
        answer: &'a AttemptResponse,
    ) -> RefusedRequest<'a> {
        let split = part.half_of.and_then(|place| self.splits.get(place));
        let since =
            |event: &OutgoingEvent| accepted_since(queue, &answer.code, &event.earlier_attempts);
        RefusedRequest {
            events: part.events.len(),
            code: &answer.code,
            blames_event: answer.ruling == Ruling::InvalidEvent,
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

/// A request that is under way, with the batch that it is a part of.
#[derive(Debug)]
pub struct RoundRequest {
    pub(super) batch: DeliveryBatch,
    /// The events that it carries.
    pub part: BatchPart,
}

/// What holds for every request of a round.
#[derive(Debug, Clone, Copy)]
pub struct RoundTerms {
    /// To which network.
    pub network: Network,
    /// Whether the network looks at the events and keeps nothing.
    pub validates_only: bool,
}

/// When something is decided, and a random number for the waits that follow from it.
#[derive(Debug, Clone, Copy)]
pub struct DecisionContext {
    /// The time.
    pub now: Timestamp,
    /// Any number.
    pub random: u64,
}

/// A round of a queue.
#[derive(Debug)]
pub struct Round {
    /// State of the queue.
    pub queue: QueueState,
    pub(super) terms: RoundTerms,
    ready: VecDeque<DeliveryBatch>,
    in_flight: usize,
    /// Events that are over for this round.
    pub results: Vec<RoundResult>,
    /// Requests to be asked about later.
    pub checks: Vec<StatusCheck>,
    /// The network asked for a slower pace: so long was the longest of its requests.
    pub slow_down: Option<Duration>,
}

impl Round {
    /// A round of batches that were not sent yet.
    pub fn new(queue: QueueState, terms: RoundTerms, batches: Vec<DeliveryBatch>) -> Self {
        Self {
            queue,
            terms,
            ready: batches.into(),
            in_flight: 0,
            results: Vec::new(),
            checks: Vec::new(),
            slow_down: None,
        }
    }

    /// Returns the next request to send, unless enough are under way. Once the server stops, or something concerns
    /// the whole queue, the events that were not sent yet are left as they are.
    pub fn next_request(
        &mut self,
        is_stopping: bool,
        moment: DecisionContext,
    ) -> Option<RoundRequest> {
        if is_stopping || self.queue.has_to_wait() {
            while let Some(batch) = self.ready.pop_front() {
                self.end(batch, moment);
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

    /// Takes a batch back after one of its requests was answered.
    pub(super) fn take_back(&mut self, batch: DeliveryBatch, moment: DecisionContext) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if batch.waiting.is_empty() {
            self.end(batch, moment);
        } else {
            self.ready.push_front(batch);
        }
    }

    /// Ends a batch: leaves what was not sent, and decides about the events that were refused alone.
    fn end(&mut self, mut batch: DeliveryBatch, moment: DecisionContext) {
        let unsent = batch.waiting.drain(..).flat_map(|part| part.events);
        let unsent = unsent.map(|event| RoundResult {
            event,
            result: None,
        });
        self.results.extend(unsent);
        for (part, answer) in std::mem::take(&mut batch.refused_alone) {
            self.decide_alone(&batch, part, &answer, moment);
        }
    }
}
