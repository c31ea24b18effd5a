//! What an answer means for the events of its request, for their batch and for the queue.
//!
//! The networks refuse a whole request for one bad event. Where the answer names it, the others are sent again at once;
//! where it does not, halves are, until the culprit is alone or [`super::isolation`] says that no event is to blame.
//! Isolation attempts are recorded and do not count as retries.

use super::delivery::{AttemptVerdict, DeliveryAttempt};
use super::isolation::{IsolationStep, next_isolation_step};
use super::lifecycle::AttemptResult;
use super::queue::SYSTEMATIC_REJECTION;
use super::retry::{DELAY_MAX, DELAY_MIN, clamp_requested_wait};
use super::round::{
    BatchPart, DecisionContext, DeliveryBatch, OutgoingEvent, Round, RoundRequest, RoundResult,
};
use super::ruling::{NetworkPace, RetryAdvice, Ruling};
use super::status_check::StatusCheck;
use crate::integration::Network;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Too large for the network even by itself.
const TOO_LARGE: &str = "too_large";

/// What came of a request.
#[derive(Debug, Clone)]
pub struct AttemptResponse {
    /// When the request left.
    pub sent_at: Timestamp,
    /// How long it took.
    pub duration: Duration,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// What is to be done about the request.
    pub ruling: Ruling,
    /// The network's code; the status where it gave none.
    pub code: String,
    /// The network's words in a line, cleaned of secrets and personal data.
    pub message: Option<String>,
    /// How fast to go on.
    pub pace: Option<NetworkPace>,
    /// How long the network asked to wait.
    pub retry_after: Option<Duration>,
    /// What the network knows the request by.
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
    /// Judges the answer to a request. Returns how long all accounts that share a quota with this one have to wait, if
    /// the network says that there were too many requests.
    pub fn judge(
        &mut self,
        request: RoundRequest,
        answer: &AttemptResponse,
        moment: DecisionContext,
    ) -> Option<Duration> {
        let RoundRequest { mut batch, part } = request;
        if answer.pace == Some(NetworkPace::Slow) {
            self.slow_down = self.slow_down.max(Some(answer.duration));
        }
        let mut throttled = None;
        match &answer.ruling {
            Ruling::Delivered => self.deliver(&mut batch, part.events, answer, moment),
            Ruling::DeliveredExcept { failed } => {
                let (bad, rest) = partition_events(part.events, failed);
                self.settle(bad, answer, AttemptVerdict::Terminal);
                if !rest.is_empty() {
                    self.deliver(&mut batch, rest, answer, moment);
                }
            }
            Ruling::TooLarge if part.events.len() == 1 => {
                self.fail_alone(part.events, answer, TOO_LARGE, moment);
            }
            Ruling::TooLarge => batch.split(with_attempt(part, answer, None)),
            Ruling::Rejected { named } if !named.is_empty() => {
                self.fail_named(&mut batch, named, part, answer, moment);
            }
            Ruling::Rejected { .. } | Ruling::InvalidEvent => {
                self.isolate(&mut batch, part, answer, moment);
            }
            Ruling::Retry(retry) => {
                throttled = self.back_off(answer, *retry, moment);
                let result = self.result(AttemptVerdict::Retry, answer, *retry);
                self.record(part.events, answer, &result, None);
            }
            Ruling::Unknown => {
                self.back_off(answer, RetryAdvice::default(), moment);
                self.settle(part.events, answer, AttemptVerdict::Unknown);
            }
            Ruling::Pause | Ruling::TokenRefused => {
                let words = answer.message.clone();
                self.queue.pause(moment.now, &answer.code, words);
                self.settle(part.events, answer, AttemptVerdict::Pause);
            }
        }
        self.take_back(batch, moment);
        throttled
    }

    fn deliver(
        &mut self,
        batch: &mut DeliveryBatch,
        events: Vec<OutgoingEvent>,
        answer: &AttemptResponse,
        moment: DecisionContext,
    ) {
        batch.accepted_some = true;
        self.queue.record_success(moment.now);
        if let Some(NetworkPace::Wait(regain)) = answer.pace {
            self.queue.not_before = Some(moment.now.plus(clamp_requested_wait(regain)));
        }
        let asks = self.terms.network == Network::B && !self.terms.validates_only;
        if let Some(request) = answer.request_id.clone().filter(|_| asks) {
            let deliveries = events.iter().map(|event| event.conversion.delivery);
            let check = StatusCheck::new(request, answer.sent_at, deliveries.collect());
            self.checks.push(check);
        }
        self.settle(events, answer, AttemptVerdict::Delivered);
    }

    /// The network refused all of them and named some: those fail, and the others are sent again.
    fn fail_named(
        &mut self,
        batch: &mut DeliveryBatch,
        named: &[usize],
        part: BatchPart,
        answer: &AttemptResponse,
        moment: DecisionContext,
    ) {
        if part.events.len() == 1 {
            return self.fail_alone(part.events, answer, &answer.code, moment);
        }
        let (bad, rest) = partition_events(part.events, named);
        self.settle(bad, answer, AttemptVerdict::Terminal);
        if !rest.is_empty() {
            let rest = with_attempt(BatchPart::new(rest), answer, None);
            batch.waiting.push_front(rest);
        }
    }

    /// The network refused all of them and named none.
    fn isolate(
        &mut self,
        batch: &mut DeliveryBatch,
        part: BatchPart,
        answer: &AttemptResponse,
        moment: DecisionContext,
    ) {
        if part.events.len() == 1 {
            batch.note_refused(&part, &answer.code);
            batch.refused_alone.push((part, answer.clone()));
            return;
        }
        let step = next_isolation_step(&batch.refusal(&self.queue, &part, answer));
        batch.note_refused(&part, &answer.code);
        if step == IsolationStep::Hold {
            return self.hold(part.events, answer, moment);
        }
        let part = with_attempt(part, answer, Some(&answer.code));
        batch.split_refused(part, &answer.code);
    }

    /// One event was refused alone, and the rest of its batch has been sent.
    pub(super) fn decide_alone(
        &mut self,
        batch: &DeliveryBatch,
        part: BatchPart,
        answer: &AttemptResponse,
        moment: DecisionContext,
    ) {
        match next_isolation_step(&batch.refusal(&self.queue, &part, answer)) {
            IsolationStep::Fail if batch.accepted_some => {
                self.settle(part.events, answer, AttemptVerdict::Terminal);
            }
            IsolationStep::Fail => self.fail_alone(part.events, answer, &answer.code, moment),
            IsolationStep::Hold | IsolationStep::Split => self.hold(part.events, answer, moment),
        }
    }

    /// Keeps events that were refused, and lets the queue back off.
    fn hold(
        &mut self,
        events: Vec<OutgoingEvent>,
        answer: &AttemptResponse,
        moment: DecisionContext,
    ) {
        let own_refusals = match events.as_slice() {
            [one] => Some(one.progress.attempts_made),
            _ => None,
        };
        let DecisionContext { now, random } = moment;
        let mut verdict = AttemptVerdict::Retry;
        if self
            .queue
            .record_held(now, &answer.code, own_refusals, random)
        {
            let words = answer.message.clone();
            self.queue.pause(now, SYSTEMATIC_REJECTION, words);
            verdict = AttemptVerdict::Pause;
        }
        let result = self.result(verdict, answer, RetryAdvice::default());
        self.record(events, answer, &result, Some(&answer.code));
    }

    /// One event fails. If that happens again and again, it is not the events.
    fn fail_alone(
        &mut self,
        events: Vec<OutgoingEvent>,
        answer: &AttemptResponse,
        code: &str,
        moment: DecisionContext,
    ) {
        if self.queue.record_rejection(code) {
            let words = answer.message.clone();
            self.queue.pause(moment.now, SYSTEMATIC_REJECTION, words);
            return self.settle(events, answer, AttemptVerdict::Pause);
        }
        let result = AttemptResult {
            code: Some(code.to_owned()),
            ..self.result(AttemptVerdict::Terminal, answer, RetryAdvice::default())
        };
        self.record(events, answer, &result, None);
    }

    /// Lets the queue wait after a request that failed as a whole. Returns how long a shared quota has to wait.
    fn back_off(
        &mut self,
        answer: &AttemptResponse,
        retry: RetryAdvice,
        moment: DecisionContext,
    ) -> Option<Duration> {
        let mut wait = answer.retry_after;
        if let Some(NetworkPace::Wait(regain)) = answer.pace {
            wait = wait.max(Some(regain));
        }
        if retry.throttled {
            wait = wait.max(retry.at_least);
        }
        if retry.needs_longest_wait {
            wait = wait.max(Some(DELAY_MAX));
        }
        self.queue.record_failure(moment.now, wait, moment.random);
        retry
            .throttled
            .then(|| clamp_requested_wait(wait.unwrap_or(DELAY_MIN)))
    }

    fn result(
        &self,
        verdict: AttemptVerdict,
        answer: &AttemptResponse,
        retry: RetryAdvice,
    ) -> AttemptResult {
        let longest = retry.needs_longest_wait.then_some(DELAY_MAX);
        let asked = answer.retry_after.map(clamp_requested_wait);
        AttemptResult {
            sent_at: answer.sent_at,
            verdict,
            code: Some(answer.code.clone()),
            may_be_processed: retry.may_be_processed,
            at_least: retry.at_least.max(longest).max(asked),
            validated_only: self.terms.validates_only,
        }
    }

    /// The same verdict for all events, and nothing special about the next attempt.
    fn settle(
        &mut self,
        events: Vec<OutgoingEvent>,
        answer: &AttemptResponse,
        verdict: AttemptVerdict,
    ) {
        let result = self.result(verdict, answer, RetryAdvice::default());
        self.record(events, answer, &result, None);
    }

    fn record(
        &mut self,
        events: Vec<OutgoingEvent>,
        answer: &AttemptResponse,
        result: &AttemptResult,
        refusal: Option<&str>,
    ) {
        let attempt = answer.attempt(result.verdict, refusal);
        self.results.extend(events.into_iter().map(|mut event| {
            event.attempts.push(attempt.clone());
            RoundResult {
                event,
                result: Some(result.clone()),
            }
        }));
    }
}

/// Records an attempt of events that are sent again at once.
fn with_attempt(mut part: BatchPart, answer: &AttemptResponse, refusal: Option<&str>) -> BatchPart {
    let attempt = answer.attempt(AttemptVerdict::Retry, refusal);
    for event in &mut part.events {
        event.attempts.push(attempt.clone());
    }
    part
}

/// Returns the events in these places, and the others.
fn partition_events(
    events: Vec<OutgoingEvent>,
    places: &[usize],
) -> (Vec<OutgoingEvent>, Vec<OutgoingEvent>) {
    let (mut there, mut others) = (Vec::new(), Vec::new());
    for (place, event) in events.into_iter().enumerate() {
        if places.contains(&place) {
            there.push(event);
        } else {
            others.push(event);
        }
    }
    (there, others)
}

#[cfg(test)]
mod tests;
