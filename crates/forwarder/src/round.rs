//! One round: a batch goes out, and whatever its answer leaves open goes out again until every delivery has a verdict.
//!
//! The networks refuse a whole request for one bad event. Where the answer names it, the others are sent again at once;
//! where it does not, halves are, until the culprit is alone or `domain::forwarding::isolation` says that no event is
//! to blame. Isolation attempts are recorded and do not count as retries.

use crate::attempt::{Line, Made, validates_only};
use crate::parts::{Carried, Course, Group, Part};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tributary_domain::forwarding::course::Ruled;
use tributary_domain::forwarding::isolation::{Step, step};
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

impl Round<'_> {
    /// Sends a batch and whatever follows from it.
    pub(crate) async fn run(&self, batch: Group) -> Outcome {
        let mut course = Course::new(batch);
        while let Some(part) = course.waiting.pop_front() {
            if self.has_to_stop() {
                course
                    .outcome
                    .tried
                    .extend(part.group.into_iter().map(untried));
                continue;
            }
            let conversions: Vec<Conversion> = part
                .group
                .iter()
                .map(|one| one.conversion.clone())
                .collect();
            if part.group.len() > 1 && self.is_too_long(&conversions) {
                course.split(part.group, part.half_of);
                continue;
            }
            let made = self.line.send(&conversions).await;
            self.judge(made, part, &mut course);
        }
        for (part, made) in std::mem::take(&mut course.refused_alone) {
            self.decide_alone(part, &made, &mut course);
        }
        course.outcome
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

    fn judge(&self, made: Made, part: Part, course: &mut Course) {
        let now = self.line.shared.parts.source.now();
        Self::note_pace(&made, &mut course.outcome);
        let (verdict, retry) = match &made.judgement.ruling {
            Ruling::Delivered => {
                return self.deliver(part.group, &made, course);
            }
            Ruling::DeliveredExcept { failed } => {
                let (bad, rest) = separated(part.group, failed);
                self.end(bad, &made, Verdict::Terminal, course);
                if !rest.is_empty() {
                    self.deliver(rest, &made, course);
                }
                return;
            }
            Ruling::TooLarge if part.group.len() == 1 => {
                return self.fail_alone(part.group, &made, TOO_LARGE, course);
            }
            Ruling::TooLarge => {
                let group = self.noted(part.group, &made, None);
                return course.split(group, part.half_of);
            }
            Ruling::Rejected { named } if !named.is_empty() => {
                return self.fail_named(named, part, &made, course);
            }
            Ruling::Rejected { .. } | Ruling::InvalidEvent => {
                return self.isolate(part, made, course);
            }
            Ruling::Retry(retry) => {
                self.fail(&made, *retry, now);
                (Verdict::Retry, Some(*retry))
            }
            Ruling::Unknown => {
                self.fail(&made, Retry::default(), now);
                (Verdict::Unknown, None)
            }
            Ruling::Pause | Ruling::TokenRefused => {
                let words = self.line.answer(&made);
                self.state().pause(now, made.code(), words);
                (Verdict::Pause, None)
            }
        };
        let ruled = self.ruled(verdict, &made, retry);
        let tried = self.all(part.group, &made, &ruled);
        course.outcome.tried.extend(tried);
    }

    fn deliver(&self, group: Group, made: &Made, course: &mut Course) {
        let now = self.line.shared.parts.source.now();
        course.accepted_some = true;
        let mut state = self.state();
        state.delivered(now);
        if let Some(Pace::Wait(regain)) = made.judgement.pace {
            state.not_before = Some(now.plus(asked(regain)));
        }
        drop(state);
        course.outcome.checks.extend(self.check(made, &group));
        self.end(group, made, Verdict::Delivered, course);
    }

    /// Events come to their end with an answer.
    fn end(&self, group: Group, made: &Made, verdict: Verdict, course: &mut Course) {
        let ruled = self.ruled(verdict, made, None);
        course.outcome.tried.extend(self.all(group, made, &ruled));
    }

    /// The network refused all of them and named some: those fail, and the others are sent again.
    fn fail_named(&self, named: &[usize], part: Part, made: &Made, course: &mut Course) {
        if part.group.len() == 1 {
            return self.fail_alone(part.group, made, made.code(), course);
        }
        let (bad, rest) = separated(part.group, named);
        self.end(bad, made, Verdict::Terminal, course);
        if !rest.is_empty() {
            let group = self.noted(rest, made, None);
            let half_of = None;
            course.waiting.push_front(Part { group, half_of });
        }
    }

    /// The network refused all of them and named none.
    fn isolate(&self, mut part: Part, made: Made, course: &mut Course) {
        if part.group.len() == 1 {
            course.note_refused(&part, &made);
            course.refused_alone.push((part, made));
            return;
        }
        let step = step(&course.refusal(&self.state(), &part, &made));
        course.note_refused(&part, &made);
        if step == Step::Hold {
            return self.hold(part.group, &made, course);
        }
        part.group = self.noted(part.group, &made, Some(made.code()));
        course.split_refused(part.group, made.code());
    }

    /// One event was refused alone, and the rest of its batch has been sent.
    fn decide_alone(&self, part: Part, made: &Made, course: &mut Course) {
        let step = step(&course.refusal(&self.state(), &part, made));
        match step {
            Step::Fail if course.accepted_some => {
                self.end(part.group, made, Verdict::Terminal, course);
            }
            Step::Fail => self.fail_alone(part.group, made, made.code(), course),
            Step::Hold | Step::Split => self.hold(part.group, made, course),
        }
    }

    /// Keeps events that were refused, and lets the queue back off.
    fn hold(&self, group: Group, made: &Made, course: &mut Course) {
        let now = self.line.shared.parts.source.now();
        let random = u64::from_be_bytes(self.line.shared.parts.source.bytes());
        let own_refusals = match group.as_slice() {
            [one] => Some(one.before.1),
            _ => None,
        };
        let pauses = self.state().held(now, made.code(), own_refusals, random);
        let verdict = if pauses {
            let words = self.line.answer(made);
            self.state().pause(now, SYSTEMATIC_REJECTION, words);
            Verdict::Pause
        } else {
            Verdict::Retry
        };
        let ruled = self.ruled(verdict, made, None);
        let tried = self.all(group, made, &ruled).into_iter().map(|mut tried| {
            if let Some(last) = tried.attempts.last_mut() {
                last.refusal = Some(made.code().to_owned());
            }
            tried
        });
        course.outcome.tried.extend(tried);
    }

    /// One event fails. If that happens again and again, it is not the events.
    fn fail_alone(&self, group: Group, made: &Made, code: &str, course: &mut Course) {
        let now = self.line.shared.parts.source.now();
        let is_systematic = self.state().rejected(code);
        if is_systematic {
            let words = self.line.answer(made);
            self.state().pause(now, SYSTEMATIC_REJECTION, words);
            return self.end(group, made, Verdict::Pause, course);
        }
        let ruled = Ruled {
            code: Some(code.to_owned()),
            ..self.ruled(Verdict::Terminal, made, None)
        };
        course.outcome.tried.extend(self.all(group, made, &ruled));
    }

    fn ruled(&self, verdict: Verdict, made: &Made, retry: Option<Retry>) -> Ruled {
        let now = self.line.shared.parts.source.now();
        let longest = retry.filter(|retry| retry.longest).map(|_| DELAY_MAX);
        Ruled {
            verdict,
            code: Some(made.code().to_owned()),
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
        let tried = |mut one: Carried| {
            one.attempts.push(self.line.record(made, ruled.verdict));
            Tried {
                id: one.conversion.delivery,
                attempts: one.attempts,
                sent_at: made.at,
                ruled: Some(ruled.clone()),
            }
        };
        group.into_iter().map(tried).collect()
    }

    /// Records an attempt of events that are sent again at once.
    fn noted(&self, mut group: Group, made: &Made, refusal: Option<&str>) -> Group {
        for one in &mut group {
            let mut attempt = self.line.record(made, Verdict::Retry);
            attempt.refusal = refusal.map(str::to_owned);
            one.attempts.push(attempt);
        }
        group
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

    fn note_pace(made: &Made, outcome: &mut Outcome) {
        if made.judgement.warning.is_some() {
            // Its words may repeat what was sent; the delivery's attempts have them, cleaned.
            let code = made.code();
            tracing::warn!(code, "the network added a warning to its answer");
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
            deliveries: group.iter().map(|one| one.conversion.delivery).collect(),
        })
    }
}

fn untried(one: Carried) -> Tried {
    let sent_at = one.attempts.last().map(|attempt| attempt.at);
    Tried {
        id: one.conversion.delivery,
        attempts: one.attempts,
        sent_at: sent_at.unwrap_or(Timestamp::from_millis(0)),
        ruled: None,
    }
}

/// Those in these places, and the others.
fn separated(group: Group, places: &[usize]) -> (Group, Group) {
    let (mut there, mut others) = (Vec::new(), Vec::new());
    for (place, one) in group.into_iter().enumerate() {
        if places.contains(&place) {
            there.push(one);
        } else {
            others.push(one);
        }
    }
    (there, others)
}
