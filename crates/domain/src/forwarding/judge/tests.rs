use super::*;
use crate::forwarding::lifecycle::DeliveryProgress;
use crate::forwarding::queue::{QueueState, SYSTEMATIC_REJECTION};
use crate::forwarding::round::RoundSettings;
use crate::forwarding::samples::conversion;
use crate::vocabulary::id::DeliveryId;
use rstest::rstest;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const CONTEXT: DecisionContext = DecisionContext {
    now: NOW,
    random: 0,
};

fn outgoing(number: u8) -> OutgoingEvent {
    OutgoingEvent {
        conversion: conversion(number),
        progress: DeliveryProgress {
            network: Network::A,
            occurred_at: NOW,
            expires_at: NOW.plus(DELAY_MAX),
            attempts_made: 0,
            ambiguous_since: None,
        },
        earlier_attempts: Vec::new(),
        attempts: Vec::new(),
    }
}

fn round_to(network: Network, batches: &[u8]) -> Round {
    let terms = RoundSettings {
        network,
        validates_only: false,
    };
    let mut next = 0..;
    let batch = |size: &u8| {
        let events = next.by_ref().take(usize::from(*size)).map(outgoing);
        DeliveryBatch::new(events.collect(), |_| false)
    };
    Round::new(
        QueueState::default(),
        terms,
        batches.iter().map(batch).collect(),
    )
}

fn round(events: u8) -> Round {
    round_to(Network::A, &[events])
}

fn response(ruling: Ruling) -> AttemptResponse {
    AttemptResponse {
        sent_at: NOW,
        duration: Duration::from_millis(5),
        status: Some(400),
        ruling,
        code: "100".to_owned(),
        message: Some("no".to_owned()),
        pace: None,
        retry_after: None,
        request_id: Some("r1".to_owned()),
    }
}

/// Responds to every request in a round. Returns the number of events in each request.
fn run(round: &mut Round, mut network: impl FnMut(&[u8]) -> AttemptResponse) -> Vec<usize> {
    let mut sizes = Vec::new();
    while let Some(request) = round.next_request(false, CONTEXT) {
        let numbers: Vec<u8> = request.part.events.iter().map(number).collect();
        sizes.push(numbers.len());
        round.judge(request, &network(&numbers), CONTEXT);
    }
    sizes
}

fn number(event: &OutgoingEvent) -> u8 {
    event.conversion.delivery.as_bytes()[0]
}

/// Returns each event's verdict, in order; `None` if it was not sent.
fn verdicts(round: &Round) -> Vec<Option<AttemptVerdict>> {
    let mut outcomes: Vec<&RoundResult> = round.results.iter().collect();
    outcomes.sort_by_key(|outcome| number(&outcome.event));
    let verdict = |outcome: &&RoundResult| outcome.result.as_ref().map(|result| result.verdict);
    outcomes.iter().map(verdict).collect()
}

const DELIVERED: Option<AttemptVerdict> = Some(AttemptVerdict::Delivered);
const RETRY: Option<AttemptVerdict> = Some(AttemptVerdict::Retry);
const TERMINAL: Option<AttemptVerdict> = Some(AttemptVerdict::Terminal);
const PAUSE: Option<AttemptVerdict> = Some(AttemptVerdict::Pause);
const UNKNOWN: Option<AttemptVerdict> = Some(AttemptVerdict::Unknown);

/// A single response that settles all events in its request.
#[rstest]
#[case::delivered(Ruling::Delivered, [DELIVERED; 3], false)]
#[case::delivered_except(
    Ruling::DeliveredExcept { failed: vec![1] }, [DELIVERED, TERMINAL, DELIVERED], false
)]
#[case::retry(Ruling::retry(), [RETRY; 3], true)]
#[case::unknown(Ruling::Unknown, [UNKNOWN; 3], true)]
#[case::pause(Ruling::Pause, [PAUSE; 3], true)]
#[case::token_refused(Ruling::TokenRefused, [PAUSE; 3], true)]
#[case::all_named(Ruling::Rejected { named: vec![0, 1, 2] }, [TERMINAL; 3], false)]
fn one_response_settles_a_request(
    #[case] ruling: Ruling,
    #[case] expected: [Option<AttemptVerdict>; 3],
    #[case] waits: bool,
) {
    let mut round = round(3);
    let sizes = run(&mut round, |_| response(ruling.clone()));
    assert_eq!(sizes, [3]);
    assert_eq!(verdicts(&round), expected);
    assert_eq!(round.queue.has_to_wait(), waits);
}

#[test]
fn unnamed_events_are_resent() {
    let mut round = round(3);
    let sizes = run(&mut round, |numbers| match numbers {
        [_, _, _] => response(Ruling::Rejected { named: vec![1] }),
        _ => response(Ruling::Delivered),
    });
    assert_eq!(sizes, [3, 2]);
    assert_eq!(verdicts(&round), [DELIVERED, TERMINAL, DELIVERED]);
    let attempts = round
        .results
        .iter()
        .map(|outcome| outcome.event.attempts.len());
    assert_eq!(attempts.max(), Some(2), "both requests are recorded");
}

#[test]
fn splitting_finds_the_bad_event() {
    let mut round = round(8);
    let sizes = run(&mut round, |numbers| {
        response(if numbers.contains(&5) {
            Ruling::unnamed()
        } else {
            Ruling::Delivered
        })
    });
    assert_eq!(sizes, [8, 4, 4, 2, 2, 1, 1]);
    let mut expected = [DELIVERED; 8];
    expected[5] = TERMINAL;
    assert_eq!(verdicts(&round), expected);
}

#[test]
fn events_are_held_when_everything_is_rejected() {
    let mut round = round(8);
    let sizes = run(&mut round, |_| response(Ruling::unnamed()));
    assert_eq!(sizes, [8, 4, 4], "three requests are enough evidence");
    let mut held = [None; 8];
    held[4..].fill(RETRY);
    assert_eq!(verdicts(&round), held);
    assert!(round.queue.has_to_wait());
}

#[rstest]
#[case::one_is_too_large(0, vec![4, 2, 2, 1, 1, 1, 1], TERMINAL)]
#[case::four_are_too_large(3, vec![4, 2, 2], DELIVERED)]
fn a_request_that_is_too_large_is_split(
    #[case] most: usize,
    #[case] requests: Vec<usize>,
    #[case] verdict: Option<AttemptVerdict>,
) {
    let mut round = round(4);
    let sizes = run(&mut round, |numbers| {
        response(if numbers.len() > most {
            Ruling::TooLarge
        } else {
            Ruling::Delivered
        })
    });
    assert_eq!(sizes, requests);
    assert_eq!(verdicts(&round), [verdict; 4]);
}

#[test]
fn a_batch_that_is_too_long_is_split_before_sending() {
    let events = (0..5).map(outgoing).collect();
    let batch = DeliveryBatch::new(events, |conversions| conversions.len() > 2);
    let sizes: Vec<usize> = batch.waiting.iter().map(|part| part.events.len()).collect();
    assert_eq!(sizes, [2, 1, 2]);
}

/// How long the queue waits, and how long all accounts with the same quota wait, in seconds.
#[rstest]
#[case::plain(RetryAdvice::default(), None, None, 1, None)]
#[case::throttled(RetryAdvice { throttled: true, ..RetryAdvice::default() }, None, None, 1, Some(1))]
#[case::throttled_with_a_least(
    RetryAdvice { throttled: true, at_least: Some(Duration::from_mins(1)), ..RetryAdvice::default() }, None, None, 60, Some(60)
)]
#[case::requested(RetryAdvice::default(), Some(120), None, 120, None)]
#[case::requested_too_long(RetryAdvice::default(), Some(999_999), None, 3_600, None)]
#[case::network_pace(RetryAdvice::default(), None, Some(300), 300, None)]
#[case::longest(RetryAdvice { needs_longest_wait: true, ..RetryAdvice::default() }, None, None, 900, None)]
fn waits(
    #[case] retry: RetryAdvice,
    #[case] requested: Option<u64>,
    #[case] pace: Option<u64>,
    #[case] queue: u64,
    #[case] quota: Option<u64>,
) {
    let mut round = round(1);
    let request = round.next_request(false, CONTEXT).unwrap();
    let response = AttemptResponse {
        retry_after: requested.map(Duration::from_secs),
        pace: pace.map(|seconds| NetworkPace::Wait(Duration::from_secs(seconds))),
        ..response(Ruling::Retry(retry))
    };
    let throttled = round.judge(request, &response, CONTEXT);
    let not_before = NOW.plus(Duration::from_secs(queue));
    assert_eq!(round.queue.not_before, Some(not_before));
    assert_eq!(throttled, quota.map(Duration::from_secs));
}

#[test]
fn nothing_more_is_sent_once_the_queue_waits() {
    let mut round = round_to(Network::A, &[2, 2, 2, 2, 2]);
    let mut in_flight = Vec::new();
    while let Some(request) = round.next_request(false, CONTEXT) {
        in_flight.push(request);
    }
    assert_eq!(in_flight.len(), 4, "concurrent batches");
    for request in in_flight {
        round.judge(request, &response(Ruling::Pause), CONTEXT);
    }
    assert!(round.next_request(false, CONTEXT).is_none());
    let mut expected = [PAUSE; 10];
    expected[8..].fill(None);
    assert_eq!(verdicts(&round), expected);
}

#[test]
fn nothing_more_is_sent_once_the_server_stops() {
    let mut round = round(2);
    assert!(round.next_request(true, CONTEXT).is_none());
    assert_eq!(verdicts(&round), [None; 2]);
}

#[rstest]
#[case::a(Network::A, false, 0)]
#[case::b(Network::B, false, 1)]
#[case::b_validating_only(Network::B, true, 0)]
fn network_b_requests_are_checked_later(
    #[case] network: Network,
    #[case] validates_only: bool,
    #[case] checks: usize,
) {
    let mut round = round_to(network, &[2]);
    round.terms.validates_only = validates_only;
    run(&mut round, |_| response(Ruling::Delivered));
    assert_eq!(round.checks.len(), checks);
    let deliveries = round.checks.first().map(|check| check.deliveries.clone());
    let all = [0, 1].map(|number| DeliveryId::from_bytes([number; 16]));
    assert_eq!(deliveries.unwrap_or(all.to_vec()), all);
}

#[test]
fn ten_single_failures_pause_the_queue() {
    let mut round = round_to(Network::A, &[1; 10]);
    run(&mut round, |_| {
        response(Ruling::Rejected { named: vec![0] })
    });
    let mut expected = [TERMINAL; 10];
    expected[9] = PAUSE;
    assert_eq!(verdicts(&round), expected);
    let code = round.queue.pause.map(|pause| pause.code);
    assert_eq!(code.as_deref(), Some(SYSTEMATIC_REJECTION));
}
