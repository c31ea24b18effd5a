//! Applies a network's response to the events in a request, their batch and the queue.
//!
//! A network may reject a whole request because of one bad event. If the response names that event,
//! the others are resent at once. Otherwise the request is split in halves until the bad event is
//! alone or [`super::isolation`] decides that no event is at fault. These attempts are recorded but
//! do not count as retries.

use super::delivery::{AttemptVerdict, DeliveryAttempt};
use super::isolation::{IsolationStep, next_isolation_step};
use super::lifecycle::AttemptResult;
use super::queue_change::QueueChange;
use super::retry::{DELAY_MAX, DELAY_MIN, clamp_requested_wait};
use super::round::{
    BatchPart, DecisionContext, DeliveryBatch, OutgoingEvent, Round, RoundRequest, RoundResult,
};
use super::ruling::{NetworkPace, RetryAdvice, Ruling};
use super::status_check::StatusCheck;
use crate::integration::Network;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// The event alone exceeds the network's size limit.
const TOO_LARGE: &str = "too_large";

/// Result of a request to a network.
#[derive(Debug, Clone)]
pub struct AttemptResponse {
    /// When the request was sent.
    pub sent_at: Timestamp,
    /// Duration of the request.
    pub duration: Duration,
    /// HTTP status of the response, if there was one.
    pub status: Option<u16>,
    /// What the response means for the request.
    pub ruling: Ruling,
    /// The network's error code, or the HTTP status if it sent none.
    pub code: String,
    /// The network's message on one line, without secrets and personal data.
    pub message: Option<String>,
    /// Rate limit requested by the network.
    pub pace: Option<NetworkPace>,
    /// Wait requested by the network.
    pub retry_after: Option<Duration>,
    /// The network's id for the request.
    pub request_id: Option<String>,
}

impl AttemptResponse {
    fn attempt(&self, verdict: AttemptVerdict, refusal: Option<&str>) -> DeliveryAttempt {
        DeliveryAttempt {
            at: self.sent_at,
            status: self.status,
            duration_ms: u32::try_from(self.duration.as_millis()).unwrap_or(u32::MAX),
            verdict,
            answer: self.message.clone(),
            refusal: refusal.map(str::to_owned),
        }
    }
}

impl Round {
    /// Applies the response to a request. If the network throttles requests, returns how long all
    /// accounts that share the quota must wait.
    pub fn judge(
        &mut self,
        request: RoundRequest,
        response: &AttemptResponse,
        context: DecisionContext,
    ) -> Option<Duration> {
        let RoundRequest { mut batch, part } = request;
        if response.pace == Some(NetworkPace::Slow) {
            self.slow_down = self.slow_down.max(Some(response.duration));
        }
        let mut throttled = None;
        match &response.ruling {
            Ruling::Delivered => self.deliver(&mut batch, part.events, response, context),
            Ruling::DeliveredExcept { failed } => {
                let (failed_events, rest) = partition_events(part.events, failed);
                self.settle(failed_events, response, AttemptVerdict::Terminal);
                if !rest.is_empty() {
                    self.deliver(&mut batch, rest, response, context);
                }
            }
            Ruling::TooLarge if part.events.len() == 1 => {
                self.fail_alone(part.events, response, TOO_LARGE, context);
            }
            Ruling::TooLarge => batch.split(with_attempt(part, response, None)),
            Ruling::Rejected { named } if !named.is_empty() => {
                self.fail_named(&mut batch, named, part, response, context);
            }
            Ruling::Rejected { .. } | Ruling::InvalidEvent => {
                self.isolate(&mut batch, part, response, context);
            }
            Ruling::Retry(retry) => {
                throttled = self.back_off(response, *retry, context);
                let result = self.result(AttemptVerdict::Retry, response, *retry);
                self.record(part.events, response, &result, None);
            }
            Ruling::Unknown => {
                self.back_off(response, RetryAdvice::default(), context);
                self.settle(part.events, response, AttemptVerdict::Unknown);
            }
            Ruling::Pause | Ruling::TokenRefused => {
                self.change_queue(QueueChange::Stopped {
                    at: context.now,
                    code: response.code.clone(),
                    message: response.message.clone(),
                });
                self.settle(part.events, response, AttemptVerdict::Pause);
            }
        }
        self.take_back(batch, context);
        throttled
    }

    fn deliver(
        &mut self,
        batch: &mut DeliveryBatch,
        events: Vec<OutgoingEvent>,
        response: &AttemptResponse,
        context: DecisionContext,
    ) {
        batch.accepted_some = true;
        self.change_queue(QueueChange::Accepted { at: context.now });
        if let Some(NetworkPace::Wait(wait_requested)) = response.pace {
            let until = context.now.plus(clamp_requested_wait(wait_requested));
            self.change_queue(QueueChange::WaitRequested { until });
        }
        let checks_status = self.terms.network == Network::B && !self.terms.validates_only;
        if let Some(request) = response.request_id.clone().filter(|_| checks_status) {
            let deliveries = events.iter().map(|event| event.conversion.delivery);
            let check = StatusCheck::new(request, response.sent_at, deliveries.collect());
            self.checks.push(check);
        }
        self.settle(events, response, AttemptVerdict::Delivered);
    }

    /// Handles a request that was rejected because of named events. These events fail, and the
    /// others are resent.
    fn fail_named(
        &mut self,
        batch: &mut DeliveryBatch,
        named: &[usize],
        part: BatchPart,
        response: &AttemptResponse,
        context: DecisionContext,
    ) {
        if part.events.len() == 1 {
            return self.fail_alone(part.events, response, &response.code, context);
        }
        let (failed_events, rest) = partition_events(part.events, named);
        self.settle(failed_events, response, AttemptVerdict::Terminal);
        if !rest.is_empty() {
            let rest = with_attempt(BatchPart::new(rest), response, None);
            batch.waiting.push_front(rest);
        }
    }

    /// Handles a request that was rejected without naming an event.
    fn isolate(
        &mut self,
        batch: &mut DeliveryBatch,
        part: BatchPart,
        response: &AttemptResponse,
        context: DecisionContext,
    ) {
        if part.events.len() == 1 {
            batch.note_refused(&part, &response.code);
            batch.refused_alone.push((part, response.clone()));
            return;
        }
        let step = next_isolation_step(&batch.refusal(&self.queue, &part, response));
        batch.note_refused(&part, &response.code);
        if step == IsolationStep::Hold {
            return self.hold(part.events, response, context);
        }
        let part = with_attempt(part, response, Some(&response.code));
        batch.split_refused(part, &response.code);
    }

    /// Decides whether to fail or hold an event that was rejected in a request of its own. Called
    /// after the rest of its batch was sent.
    pub(super) fn decide_alone(
        &mut self,
        batch: &DeliveryBatch,
        part: BatchPart,
        response: &AttemptResponse,
        context: DecisionContext,
    ) {
        match next_isolation_step(&batch.refusal(&self.queue, &part, response)) {
            IsolationStep::Fail if batch.accepted_some => {
                self.settle(part.events, response, AttemptVerdict::Terminal);
            }
            IsolationStep::Fail => self.fail_alone(part.events, response, &response.code, context),
            IsolationStep::Hold | IsolationStep::Split => self.hold(part.events, response, context),
        }
    }

    /// Holds rejected events and backs off the queue.
    fn hold(
        &mut self,
        events: Vec<OutgoingEvent>,
        response: &AttemptResponse,
        context: DecisionContext,
    ) {
        let earlier_rejections = match events.as_slice() {
            [one] => Some(one.progress.attempts_made),
            _ => None,
        };
        let held = QueueChange::Held {
            at: context.now,
            code: response.code.clone(),
            message: response.message.clone(),
            earlier_rejections,
            random: context.random,
        };
        let verdict = if self.change_queue(held) {
            AttemptVerdict::Pause
        } else {
            AttemptVerdict::Retry
        };
        let result = self.result(verdict, response, RetryAdvice::default());
        self.record(events, response, &result, Some(&response.code));
    }

    /// Fails a single event. Pauses the queue if this happens too often in a row.
    fn fail_alone(
        &mut self,
        events: Vec<OutgoingEvent>,
        response: &AttemptResponse,
        code: &str,
        context: DecisionContext,
    ) {
        let failed = QueueChange::FailedAlone {
            at: context.now,
            code: code.to_owned(),
            message: response.message.clone(),
        };
        if self.change_queue(failed) {
            return self.settle(events, response, AttemptVerdict::Pause);
        }
        let result = AttemptResult {
            code: Some(code.to_owned()),
            ..self.result(AttemptVerdict::Terminal, response, RetryAdvice::default())
        };
        self.record(events, response, &result, None);
    }

    /// Backs off the queue after a failed request. If the network throttles requests, returns how
    /// long all accounts that share the quota must wait.
    fn back_off(
        &mut self,
        response: &AttemptResponse,
        retry: RetryAdvice,
        context: DecisionContext,
    ) -> Option<Duration> {
        let mut wait = response.retry_after;
        if let Some(NetworkPace::Wait(wait_requested)) = response.pace {
            wait = wait.max(Some(wait_requested));
        }
        if retry.throttled {
            wait = wait.max(retry.at_least);
        }
        if retry.needs_longest_wait {
            wait = wait.max(Some(DELAY_MAX));
        }
        self.change_queue(QueueChange::Failed {
            at: context.now,
            wait,
            random: context.random,
        });
        retry
            .throttled
            .then(|| clamp_requested_wait(wait.unwrap_or(DELAY_MIN)))
    }

    fn result(
        &self,
        verdict: AttemptVerdict,
        response: &AttemptResponse,
        retry: RetryAdvice,
    ) -> AttemptResult {
        let longest = retry.needs_longest_wait.then_some(DELAY_MAX);
        let requested = response.retry_after.map(clamp_requested_wait);
        AttemptResult {
            sent_at: response.sent_at,
            verdict,
            code: Some(response.code.clone()),
            may_be_processed: retry.may_be_processed,
            at_least: retry.at_least.max(longest).max(requested),
            validated_only: self.terms.validates_only,
        }
    }

    /// Records the same verdict for all events, with the default wait.
    fn settle(
        &mut self,
        events: Vec<OutgoingEvent>,
        response: &AttemptResponse,
        verdict: AttemptVerdict,
    ) {
        let result = self.result(verdict, response, RetryAdvice::default());
        self.record(events, response, &result, None);
    }

    fn record(
        &mut self,
        events: Vec<OutgoingEvent>,
        response: &AttemptResponse,
        result: &AttemptResult,
        refusal: Option<&str>,
    ) {
        let attempt = response.attempt(result.verdict, refusal);
        self.results.extend(events.into_iter().map(|mut event| {
            event.attempts.push(attempt.clone());
            RoundResult {
                event,
                result: Some(result.clone()),
            }
        }));
    }
}

/// Adds an attempt to events that are resent at once.
fn with_attempt(
    mut part: BatchPart,
    response: &AttemptResponse,
    refusal: Option<&str>,
) -> BatchPart {
    let attempt = response.attempt(AttemptVerdict::Retry, refusal);
    for event in &mut part.events {
        event.attempts.push(attempt.clone());
    }
    part
}

/// Returns the events at these indexes, and the others.
fn partition_events(
    events: Vec<OutgoingEvent>,
    indexes: &[usize],
) -> (Vec<OutgoingEvent>, Vec<OutgoingEvent>) {
    let (mut at_indexes, mut others) = (Vec::new(), Vec::new());
    for (index, event) in events.into_iter().enumerate() {
        if indexes.contains(&index) {
            at_indexes.push(event);
        } else {
            others.push(event);
        }
    }
    (at_indexes, others)
}

#[cfg(test)]
mod tests;
