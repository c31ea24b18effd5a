//! A batch that is being sent, the parts it is taken apart into, and what their answers say about the events.

use crate::attempt::Made;
use crate::round::Outcome;
use std::collections::VecDeque;
use tributary_domain::forwarding::isolation::{Batch, Refusal, accepted_since};
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::{Attempt, Conversion};
use tributary_networks::Ruling;
use tributary_store::PendingDelivery;

/// An event on its way.
pub(crate) struct Carried {
    pub(crate) conversion: Conversion,
    /// Attempts of earlier rounds that are kept, and how many there were.
    pub(crate) before: (Vec<Attempt>, u32),
    /// Attempts of this round.
    pub(crate) attempts: Vec<Attempt>,
}

impl Carried {
    /// An event that was not sent in this round yet.
    pub(crate) fn new(conversion: Conversion, pending: &PendingDelivery) -> Self {
        Self {
            conversion,
            before: (pending.attempts.clone(), pending.attempts_made),
            attempts: Vec::new(),
        }
    }
}

/// Events that go out together.
pub(crate) type Group = Vec<Carried>;

/// A request to be sent: a batch, or a part of one.
pub(crate) struct Part {
    pub(crate) group: Group,
    /// The refused request that it is a half of, by its place in [`Course::splits`].
    pub(crate) half_of: Option<usize>,
}

/// A refused request that was sent again in halves.
struct Split {
    code: String,
    /// What the first half was refused with.
    first_half: Option<String>,
}

/// A batch that is being sent, with what is known of its parts.
pub(crate) struct Course {
    events: usize,
    pub(crate) waiting: VecDeque<Part>,
    splits: Vec<Split>,
    /// Whether the network accepted any of its events.
    pub(crate) accepted_some: bool,
    /// Events that were refused alone; they are decided after the rest was sent.
    pub(crate) refused_alone: Vec<(Part, Made)>,
    pub(crate) outcome: Outcome,
}

impl Course {
    /// A batch that was not sent yet.
    pub(crate) fn new(batch: Group) -> Self {
        Self {
            events: batch.len(),
            waiting: VecDeque::from([Part {
                group: batch,
                half_of: None,
            }]),
            splits: Vec::new(),
            accepted_some: false,
            refused_alone: Vec::new(),
            outcome: Outcome::default(),
        }
    }

    /// Sends both halves next, after the parts that wait already: whether both halves fail is known before either is
    /// taken apart.
    pub(crate) fn split(&mut self, mut group: Group, half_of: Option<usize>) {
        let second = group.split_off(group.len() / 2);
        for group in [group, second] {
            self.waiting.push_back(Part { group, half_of });
        }
    }

    /// The same for a request that was refused without naming an event.
    pub(crate) fn split_refused(&mut self, group: Group, code: &str) {
        self.splits.push(Split {
            code: code.to_owned(),
            first_half: None,
        });
        self.split(group, Some(self.splits.len() - 1));
    }

    /// Notes the code that a half was refused with.
    pub(crate) fn note_refused(&mut self, part: &Part, made: &Made) {
        if let Some(split) = part.half_of.and_then(|place| self.splits.get_mut(place)) {
            split.first_half = Some(made.code().to_owned());
        }
    }

    /// What is known about a refused part.
    pub(crate) fn refusal<'a>(
        &'a self,
        state: &QueueState,
        part: &Part,
        made: &'a Made,
    ) -> Refusal<'a> {
        let split = part.half_of.and_then(|place| self.splits.get(place));
        let since = |one: &Carried| accepted_since(state, made.code(), &one.before.0);
        let accepted_since = part.group.iter().any(since);
        Refusal {
            events: part.group.len(),
            code: made.code(),
            blames_event: made.judgement.ruling == Ruling::InvalidEvent,
            whole: split.map(|split| split.code.as_str()),
            other_half: split.and_then(|split| split.first_half.as_deref()),
            batch: Batch {
                events: self.events,
                accepted_some: self.accepted_some,
                refused_alone: u32::try_from(self.refused_alone.len()).unwrap_or(u32::MAX),
                accepted_since,
            },
        }
    }
}
