//! Finds the events that cause a request to be rejected.
//!
//! A network may reject a whole request because of one bad event. Splitting the request finds that
//! event. But if the account is at fault, the network rejects every part, and all events would be
//! lost if each of them were marked as failed. An event is therefore marked as failed only with
//! evidence: the network's code is about an event, or the network accepts other events while it
//! rejects this one. Without evidence the events are held and the queue backs off.

use super::delivery::DeliveryAttempt;
use super::queue::{QueueState, SYSTEMATIC_REJECTIONS};

/// A rejected request whose response names no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedRequest<'a> {
    /// Number of events in the request.
    pub events: usize,
    /// The network's error code.
    pub code: &'a str,
    /// Whether this code is always about an event, never about the account.
    pub blames_event: bool,
    /// Code of the larger request's rejection, if this request is half of a rejected request.
    pub whole_code: Option<&'a str>,
    /// Code of the other half's rejection, if the other half was already sent and rejected.
    pub other_half_code: Option<&'a str>,
    /// Evidence from the whole batch.
    pub batch: BatchEvidence,
}

/// Evidence from a batch that is being split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchEvidence {
    /// Initial number of events.
    pub events: usize,
    /// Whether the network accepted any event in the batch.
    pub accepted_some: bool,
    /// Number of events that were rejected alone, in requests with a single event.
    pub refused_alone: u32,
    /// Whether the network accepted any request after an earlier rejection of these events with
    /// this code; see [`accepted_since`].
    pub accepted_since: bool,
}

/// What to do about a rejected request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationStep {
    /// Send both halves.
    Split,
    /// Hold the events and back off the queue.
    Hold,
    /// Fail the request's only event.
    Fail,
}

/// Decides what to do about a rejected request whose response names no event. A request with a
/// single event is decided last, after the rest of its batch was sent.
pub fn next_isolation_step(refusal: &RefusedRequest<'_>) -> IsolationStep {
    let batch = refusal.batch;
    let concerns_event = refusal.blames_event || batch.accepted_some;
    if refusal.events == 1 {
        return if concerns_event || (batch.events == 1 && batch.accepted_since) {
            IsolationStep::Fail
        } else {
            IsolationStep::Hold
        };
    }
    let rejected_everywhere = if batch.accepted_since {
        batch.refused_alone >= SYSTEMATIC_REJECTIONS
    } else {
        [refusal.whole_code, refusal.other_half_code] == [Some(refusal.code); 2]
    };
    if rejected_everywhere && !concerns_event {
        IsolationStep::Hold
    } else {
        IsolationStep::Split
    }
}

/// Returns whether the network accepted a request after it had rejected a delivery with this code.
/// Returns false if the network has since rejected a request without naming an event. `attempts`
/// are the delivery's earlier attempts.
pub fn accepted_since(queue: &QueueState, code: &str, attempts: &[DeliveryAttempt]) -> bool {
    let refused_before = |attempt: &DeliveryAttempt| {
        attempt.refusal.as_deref() == Some(code) && queue.last_delivered_at > Some(attempt.at)
    };
    queue.rejections.is_none() && attempts.iter().any(refused_before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::AttemptVerdict;
    use crate::vocabulary::time::Timestamp;
    use rstest::rstest;

    const BATCH: BatchEvidence = BatchEvidence {
        events: 100,
        accepted_some: false,
        refused_alone: 0,
        accepted_since: false,
    };
    const HALF: RefusedRequest<'_> = RefusedRequest {
        events: 50,
        code: "100",
        blames_event: false,
        whole_code: Some("100"),
        other_half_code: Some("100"),
        batch: BATCH,
    };
    const SUCCESS_SINCE: BatchEvidence = BatchEvidence {
        accepted_since: true,
        ..BATCH
    };

    #[rstest]
    #[case::whole_batch(RefusedRequest { whole_code: None, other_half_code: None, events: 100, ..HALF }, IsolationStep::Split)]
    #[case::first_half(RefusedRequest { other_half_code: None, ..HALF }, IsolationStep::Split)]
    #[case::batch_and_both_halves(HALF, IsolationStep::Hold)]
    #[case::other_half_has_another_code(RefusedRequest { other_half_code: Some("101"), ..HALF }, IsolationStep::Split)]
    #[case::batch_had_another_code(RefusedRequest { whole_code: Some("101"), ..HALF }, IsolationStep::Split)]
    #[case::code_is_about_an_event(RefusedRequest { blames_event: true, ..HALF }, IsolationStep::Split)]
    #[case::others_were_accepted(RefusedRequest { batch: BatchEvidence { accepted_some: true, ..BATCH }, ..HALF }, IsolationStep::Split)]
    #[case::accepted_since_the_last_rejection(RefusedRequest { batch: SUCCESS_SINCE, ..HALF }, IsolationStep::Split)]
    #[case::nine_rejected_alone(
        RefusedRequest { batch: BatchEvidence { refused_alone: 9, ..SUCCESS_SINCE }, ..HALF }, IsolationStep::Split
    )]
    #[case::ten_rejected_alone(
        RefusedRequest { batch: BatchEvidence { refused_alone: 10, ..SUCCESS_SINCE }, ..HALF }, IsolationStep::Hold
    )]
    #[case::ten_rejected_alone_and_some_accepted(
        RefusedRequest { batch: BatchEvidence { refused_alone: 10, accepted_some: true, ..SUCCESS_SINCE }, ..HALF }, IsolationStep::Split
    )]
    fn several_events(#[case] refusal: RefusedRequest<'_>, #[case] expected: IsolationStep) {
        assert_eq!(next_isolation_step(&refusal), expected);
    }

    #[rstest]
    #[case::whole_batch_was_rejected(BATCH, false, IsolationStep::Hold)]
    #[case::the_rest_was_accepted(BatchEvidence { accepted_some: true, ..BATCH }, false, IsolationStep::Fail)]
    #[case::code_is_about_an_event(BATCH, true, IsolationStep::Fail)]
    #[case::sent_alone(BatchEvidence { events: 1, ..BATCH }, false, IsolationStep::Hold)]
    #[case::sent_alone_again_after_others_were_accepted(
        BatchEvidence { events: 1, ..SUCCESS_SINCE }, false, IsolationStep::Fail
    )]
    #[case::whole_batch_was_rejected_again(SUCCESS_SINCE, false, IsolationStep::Hold)]
    fn one_event(
        #[case] batch: BatchEvidence,
        #[case] blames_event: bool,
        #[case] expected: IsolationStep,
    ) {
        let refusal = RefusedRequest {
            events: 1,
            blames_event,
            batch,
            ..HALF
        };
        assert_eq!(next_isolation_step(&refusal), expected);
    }

    #[rstest]
    #[case::accepted_after_it(Some("100"), Some(6), None, true)]
    #[case::accepted_before_it(Some("100"), Some(4), None, false)]
    #[case::nothing_accepted(Some("100"), None, None, false)]
    #[case::rejected_with_another_code(Some("101"), Some(6), None, false)]
    #[case::failed_but_not_rejected(None, Some(6), None, false)]
    #[case::rejections_since(Some("100"), Some(6), Some(1), false)]
    fn evidence_from_earlier_attempts(
        #[case] refusal: Option<&str>,
        #[case] delivered: Option<i64>,
        #[case] rejections: Option<u32>,
        #[case] expected: bool,
    ) {
        let queue = QueueState {
            last_delivered_at: delivered.map(Timestamp::from_millis),
            rejections: rejections.map(|count| ("100".to_owned(), count)),
            ..QueueState::default()
        };
        let attempt = DeliveryAttempt {
            at: Timestamp::from_millis(5),
            status: Some(400),
            duration_ms: 1,
            verdict: AttemptVerdict::Retry,
            answer: None,
            refusal: refusal.map(str::to_owned),
        };
        assert_eq!(accepted_since(&queue, "100", &[attempt]), expected);
    }
}
