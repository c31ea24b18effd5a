//! One round: a batch goes out, and whatever its answer leaves open goes out again until every delivery has a verdict.
//!
//! The networks refuse a whole request for one bad event. Where the answer names it, the others are sent again at once;
//! where it does not, halves are, until the culprit is alone. That is isolation, and no retry: it is recorded, and
//! does not count.

use crate::attempt::{Line, Made, validates_only};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tributary_domain::forwarding::course::Ruled;
use tributary_domain::forwarding::queue::{QueueState, SYSTEMATIC_REJECTION};
use tributary_domain::forwarding::retry::{DELAY_MAX, DELAY_MIN, asked};
use tributary_domain::forwarding::{Attempt, Conversion, Verdict};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_networks::{BODY_BYTES_MAX, Pace, Retry, Ruling};
use tributary_store::StatusCheck;

/// Too large for the network even by itself.
const TOO_LARGE: &str = "too_large";
/// `network_b` is asked about a request for the first time after this.
const FIRST_CHECK: Duration = Duration::from_mins(5);

/// What came of a delivery in this round.
pub(crate) struct Tried {
    pub(crate) id: DeliveryId,
    /// Every request that it was in.
    pub(crate) attempts: Vec<Attempt>,
    /// When the last of them left.
    pub(crate) sent_at: Timestamp,
    /// What it came to; nothing: it never left, because something stopped the queue first.
    pub(crate) ruled: Option<Ruled>,
}

/// A batch under way.
pub(crate) struct Round<'a> {
    pub(crate) line: Line<'a>,
    /// How the queue stands, shared by the batches under way.
    pub(crate) state: &'a Mutex<QueueState>,
    /// The queue was lost, or the server stops.
    pub(crate) stopping: &'a CancellationToken,
}

/// What came of a batch.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) tried: Vec<Tried>,
    pub(crate) checks: Vec<StatusCheck>,
    /// The network asked for a slower pace: so long was the last request.
    pub(crate) slow_down: Option<Duration>,
}

/// Conversions that go out together, each with the requests that it was in before.
type Group = Vec<(Conversion, Vec<Attempt>)>;

impl Round<'_> {
    /// Sends a batch and whatever follows from it.
    pub(crate) async fn run(&self, batch: Vec<Conversion>) -> Outcome {
        let mut outcome = Outcome::default();
        let group: Group = batch.into_iter().map(|one| (one, Vec::new())).collect();
        let mut waiting = vec![group];
        while let Some(group) = waiting.pop() {
            if self.has_to_stop() {
                outcome.tried.extend(group.into_iter().map(untried));
                continue;
            }
            let conversions: Vec<Conversion> = group.iter().map(|(one, _)| one.clone()).collect();
            if group.len() > 1 && self.is_too_long(&conversions) {
                waiting.extend(halves(group));
                continue;
            }
            let made = self.line.send(&conversions).await;
            self.judge(made, group, &mut waiting, &mut outcome);
        }
        outcome
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Once something concerns the whole queue, nothing else is sent.
    fn has_to_stop(&self) -> bool {
        let state = self.state();
        self.stopping.is_cancelled() || state.pause.is_some() || state.not_before.is_some()
    }

    fn is_too_long(&self, batch: &[Conversion]) -> bool {
        tributary_networks::encode(self.line.account, batch, None)
            .body
            .len()
            > BODY_BYTES_MAX
    }

    fn judge(&self, made: Made, group: Group, waiting: &mut Vec<Group>, outcome: &mut Outcome) {
        let now = self.line.shared.parts.source.now();
        self.note_pace(&made, outcome);
        match &made.judgement.ruling {
            Ruling::Delivered => {
                let mut state = self.state();
                state.delivered(now);
                if let Some(Pace::Wait(regain)) = made.judgement.pace {
                    state.not_before = Some(now.plus(asked(regain)));
                }
                drop(state);
                outcome.checks.extend(self.check(&made, &group));
                let ruled = self.ruled(Verdict::Delivered, &made, None);
                outcome.tried.extend(self.all(group, &made, &ruled));
            }
            Ruling::Retry(retry) => {
                let retry = *retry;
                self.fail(&made, retry, now);
                let ruled = self.ruled(Verdict::Retry, &made, Some(retry));
                outcome.tried.extend(self.all(group, &made, &ruled));
            }
            Ruling::Unknown => {
                self.fail(&made, Retry::default(), now);
                let ruled = self.ruled(Verdict::Unknown, &made, None);
                outcome.tried.extend(self.all(group, &made, &ruled));
            }
            Ruling::Pause | Ruling::TokenRefused => {
                let words = self.line.answer(&made);
                self.state().pause(now, &made.code(), words);
                let ruled = self.ruled(Verdict::Pause, &made, None);
                outcome.tried.extend(self.all(group, &made, &ruled));
            }
            Ruling::TooLarge if group.len() == 1 => self.refuse(group, &made, TOO_LARGE, outcome),
            Ruling::TooLarge => waiting.extend(halves(self.noted(group, &made))),
            Ruling::Rejected { named } => {
                let named = named.clone();
                self.isolate(&named, group, &made, waiting, outcome);
            }
        }
    }

    /// The network refused all for some.
    fn isolate(
        &self,
        named: &[usize],
        group: Group,
        made: &Made,
        waiting: &mut Vec<Group>,
        outcome: &mut Outcome,
    ) {
        if group.len() == 1 {
            self.refuse(group, made, &made.code(), outcome);
            return;
        }
        let mut bad = Vec::new();
        let mut rest = Vec::new();
        for (place, one) in group.into_iter().enumerate() {
            if named.contains(&place) {
                bad.push(one);
            } else {
                rest.push(one);
            }
        }
        if bad.is_empty() {
            waiting.extend(halves(self.noted(rest, made)));
            return;
        }
        let ruled = self.ruled(Verdict::Terminal, made, None);
        outcome.tried.extend(self.all(bad, made, &ruled));
        if !rest.is_empty() {
            waiting.push(self.noted(rest, made));
        }
    }

    /// One event alone was refused. If that goes on and on, it is not the events.
    fn refuse(&self, group: Group, made: &Made, code: &str, outcome: &mut Outcome) {
        let now = self.line.shared.parts.source.now();
        let is_systematic = self.state().rejected(code);
        if is_systematic {
            let words = self.line.answer(made);
            self.state().pause(now, SYSTEMATIC_REJECTION, words);
            let ruled = self.ruled(Verdict::Pause, made, None);
            outcome.tried.extend(self.all(group, made, &ruled));
            return;
        }
        let ruled = Ruled {
            code: Some(code.to_owned()),
            ..self.ruled(Verdict::Terminal, made, None)
        };
        outcome.tried.extend(self.all(group, made, &ruled));
    }

    fn ruled(&self, verdict: Verdict, made: &Made, retry: Option<Retry>) -> Ruled {
        let now = self.line.shared.parts.source.now();
        let longest = retry.filter(|retry| retry.longest).map(|_| DELAY_MAX);
        Ruled {
            verdict,
            code: Some(made.code()),
            may_be_processed: retry.is_some_and(|retry| retry.may_be_processed),
            at_least: retry
                .and_then(|retry| retry.at_least)
                .max(longest)
                .max(made.asked(now).map(asked)),
            validated_only: validates_only(self.line.account),
        }
    }

    /// The same for all.
    fn all(&self, group: Group, made: &Made, ruled: &Ruled) -> Vec<Tried> {
        let tried = |(conversion, mut attempts): (Conversion, Vec<Attempt>)| {
            attempts.push(self.line.record(made, ruled.verdict));
            Tried {
                id: conversion.delivery,
                attempts,
                sent_at: made.at,
                ruled: Some(ruled.clone()),
            }
        };
        group.into_iter().map(tried).collect()
    }

    /// Those that were refused along with somebody else.
    fn noted(&self, group: Group, made: &Made) -> Group {
        let noted = |(conversion, mut attempts): (Conversion, Vec<Attempt>)| {
            attempts.push(self.line.record(made, Verdict::Retry));
            (conversion, attempts)
        };
        group.into_iter().map(noted).collect()
    }

    fn fail(&self, made: &Made, retry: Retry, now: Timestamp) {
        let mut wait = made.asked(now);
        if let Some(Pace::Wait(regain)) = made.judgement.pace {
            wait = wait.max(Some(regain));
        }
        if retry.throttled {
            wait = wait.max(retry.at_least);
        }
        if retry.longest {
            wait = wait.max(Some(DELAY_MAX));
        }
        let random = u64::from_be_bytes(self.line.shared.parts.source.bytes());
        self.state().failed(now, wait, random);
        if retry.throttled
            && let Some(project) = self.line.account.quota_project()
        {
            // Others count against the same limit.
            let wait = asked(wait.unwrap_or(DELAY_MIN));
            self.line.shared.projects.hold(project, wait);
        }
    }

    fn note_pace(&self, made: &Made, outcome: &mut Outcome) {
        if made.judgement.warning.is_some() {
            // Its words may repeat what was sent; the delivery's attempts have them, cleaned.
            let (app, network) = (self.line.queue.app, self.line.queue.network.as_str());
            let code = made.code();
            tracing::warn!(%app, network, code, "the network added a warning to its answer");
        }
        if made.judgement.pace == Some(Pace::Slow) {
            outcome.slow_down = Some(made.took);
        }
    }

    /// What is to be asked about later.
    fn check(&self, made: &Made, group: &Group) -> Option<StatusCheck> {
        let asks = self.line.queue.network == Network::B && !validates_only(self.line.account);
        let request = made.judgement.trace.clone().filter(|_| asks)?;
        Some(StatusCheck {
            request,
            sent_at: made.at,
            step: 0,
            due_at: made.at.plus(FIRST_CHECK),
            deliveries: group.iter().map(|(one, _)| one.delivery).collect(),
        })
    }
}

fn untried((conversion, attempts): (Conversion, Vec<Attempt>)) -> Tried {
    let sent_at = attempts.last().map(|attempt| attempt.at);
    Tried {
        id: conversion.delivery,
        attempts,
        sent_at: sent_at.unwrap_or(Timestamp::from_millis(0)),
        ruled: None,
    }
}

/// Both halves; the first is sent first.
fn halves(mut group: Group) -> [Group; 2] {
    let second = group.split_off(group.len() / 2);
    [second, group]
}
