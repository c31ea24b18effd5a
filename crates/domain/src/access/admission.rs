//! Decides which report or export may run, which waits and which is rejected.
//!
//! Reports are the only requests whose cost a caller chooses. Each organization and each key gets a
//! limited number of slots. A request beyond them waits in a short queue, and the next free slot
//! goes to the organization with the fewest running requests, so that one caller with many requests
//! does not delay the others.

use super::{Actor, Authorized};
use crate::report::view::ShareLink;
use crate::vocabulary::id::OrganizationId;
use std::collections::HashMap;

/// Maximum number of concurrent requests of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// Running requests of all organizations.
    pub total: usize,
    /// Running requests of one organization.
    pub per_organization: usize,
    /// Running requests of one key or user.
    pub per_key: usize,
    /// Waiting requests of all organizations.
    pub waiting: usize,
    /// Waiting requests of one organization.
    pub waiting_per_organization: usize,
}

impl AdmissionLimits {
    /// No limits, for tools and tests that measure or check something else.
    pub const UNLIMITED: Self = Self {
        total: usize::MAX,
        per_organization: usize::MAX,
        per_key: usize::MAX,
        waiting: 0,
        waiting_per_organization: 0,
    };
}

/// Who asks for a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotHolder {
    /// Organization of the key or user.
    pub organization: OrganizationId,
    /// The key or user.
    pub actor: Actor,
}

impl<S> From<&Authorized<S>> for SlotHolder {
    fn from(authorized: &Authorized<S>) -> Self {
        Self {
            organization: authorized.organization(),
            actor: authorized.actor().clone(),
        }
    }
}

impl SlotHolder {
    /// Returns the holder for the visitors of a share link. Each link counts as an organization, so
    /// that its visitors wait in their own queue and never take the place of members.
    pub fn of_share(share: &ShareLink) -> Self {
        Self {
            organization: OrganizationId::from_bytes(*share.id.as_bytes()),
            actor: Actor::Service,
        }
    }
}

/// Number of a request, in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotTicket(u64);

/// Answer to a request for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotDecision {
    /// The request runs now.
    Admitted,
    /// The request waits. If the queue was full, another request was rejected in its favour.
    Queued {
        /// Number under which the request waits.
        ticket: SlotTicket,
        /// The waiting request that lost its place.
        displaced: Option<SlotTicket>,
    },
    /// The queue has no place for the request.
    Rejected,
}

#[derive(Debug)]
struct WaitingRequest {
    ticket: SlotTicket,
    holder: SlotHolder,
}

/// Running and waiting requests of one kind.
///
/// No waiting request could run: whenever a slot becomes free, [`Self::release`] admits every
/// request that fits.
#[derive(Debug)]
pub struct Admission {
    limits: AdmissionLimits,
    running: Vec<SlotHolder>,
    /// In the order of arrival.
    waiting: Vec<WaitingRequest>,
    last_ticket: u64,
}

impl Admission {
    /// Starts without requests.
    pub const fn new(limits: AdmissionLimits) -> Self {
        Self {
            limits,
            running: Vec::new(),
            waiting: Vec::new(),
            last_ticket: 0,
        }
    }

    /// Decides about a new request.
    pub fn request(&mut self, holder: SlotHolder) -> SlotDecision {
        if self.has_slot_for(&holder) {
            self.running.push(holder);
            return SlotDecision::Admitted;
        }
        let own = self.waiting_of(holder.organization);
        if own >= self.limits.waiting_per_organization {
            return SlotDecision::Rejected;
        }
        let displaced = if self.waiting.len() < self.limits.waiting {
            None
        } else {
            match self.displaceable(own) {
                Some(index) => Some(self.waiting.remove(index).ticket),
                None => return SlotDecision::Rejected,
            }
        };
        self.last_ticket += 1;
        let ticket = SlotTicket(self.last_ticket);
        self.waiting.push(WaitingRequest { ticket, holder });
        SlotDecision::Queued { ticket, displaced }
    }

    /// Frees a running request's slot and returns the waiting requests that run now.
    pub fn release(&mut self, holder: &SlotHolder) -> Vec<SlotTicket> {
        if let Some(index) = self.running.iter().position(|running| running == holder) {
            self.running.swap_remove(index);
        }
        let mut admitted = Vec::new();
        while let Some(index) = self.next() {
            let next = self.waiting.remove(index);
            self.running.push(next.holder);
            admitted.push(next.ticket);
        }
        admitted
    }

    /// Removes a request from the queue. Returns false if it no longer waits.
    pub fn abandon(&mut self, ticket: SlotTicket) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.ticket != ticket);
        self.waiting.len() < before
    }

    /// Returns the number of running requests.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Returns the number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the index of the waiting request that gets the next slot: one of the organization
    /// with the fewest running requests, in the order of arrival.
    fn next(&self) -> Option<usize> {
        let fits = |(_, waiting): &(usize, &WaitingRequest)| self.has_slot_for(&waiting.holder);
        let candidates = self.waiting.iter().enumerate().filter(fits);
        let next = candidates
            .min_by_key(|(_, waiting)| (self.running_of(&waiting.holder).0, waiting.ticket));
        next.map(|(index, _)| index)
    }

    fn has_slot_for(&self, holder: &SlotHolder) -> bool {
        let (of_organization, of_actor) = self.running_of(holder);
        self.running.len() < self.limits.total
            && of_organization < self.limits.per_organization
            && of_actor < self.limits.per_key
    }

    /// Returns the number of running requests of the holder's organization and of its key or user.
    fn running_of(&self, holder: &SlotHolder) -> (usize, usize) {
        let of_organization = self
            .running
            .iter()
            .filter(|running| running.organization == holder.organization);
        let of_actor = self.running.iter().filter(|running| *running == holder);
        (of_organization.count(), of_actor.count())
    }

    fn waiting_of(&self, organization: OrganizationId) -> usize {
        let waiting = self.waiting.iter();
        waiting
            .filter(|waiting| waiting.holder.organization == organization)
            .count()
    }

    /// Returns the newest waiting request of the organization with the most waiting requests, if it
    /// has more than a newcomer would have with its own.
    fn displaceable(&self, own: usize) -> Option<usize> {
        let mut counts: HashMap<OrganizationId, usize> = HashMap::new();
        for waiting in &self.waiting {
            *counts.entry(waiting.holder.organization).or_default() += 1;
        }
        let count = |waiting: &WaitingRequest| counts[&waiting.holder.organization];
        let longest = self.waiting.iter().enumerate();
        let (index, waiting) = longest.max_by_key(|(_, one)| (count(one), one.ticket))?;
        (count(waiting) > own + 1).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::id::KeyId;
    use proptest::prelude::*;
    use rstest::rstest;

    const LIMITS: AdmissionLimits = AdmissionLimits {
        total: 4,
        per_organization: 2,
        per_key: 1,
        waiting: 4,
        waiting_per_organization: 3,
    };

    /// Returns a key of an organization, such as `a1`.
    fn holder(name: &str) -> SlotHolder {
        let bytes = name.as_bytes();
        SlotHolder {
            organization: OrganizationId::from_bytes([bytes[0]; 16]),
            actor: Actor::Key(KeyId::from_bytes([bytes[1]; 16])),
        }
    }

    /// Returns the decisions as letters: admitted, queued, rejected, and displacing another.
    fn decisions(requests: &str) -> String {
        let mut admission = Admission::new(LIMITS);
        let decide = |name| match admission.request(holder(name)) {
            SlotDecision::Admitted => 'A',
            SlotDecision::Queued {
                displaced: None, ..
            } => 'Q',
            SlotDecision::Queued { .. } => 'D',
            SlotDecision::Rejected => 'R',
        };
        requests.split(' ').map(decide).collect()
    }

    #[rstest]
    #[case::one("a1", "A")]
    #[case::a_key_runs_one("a1 a1", "AQ")]
    #[case::an_organization_runs_two("a1 a2 a3", "AAQ")]
    #[case::others_are_not_affected("a1 a1 a1 b1", "AQQA")]
    #[case::all_together_run_four("a1 a2 b1 b2 c1", "AAAAQ")]
    #[case::the_queue_of_one_organization_ends("a1 a1 a1 a1 a1 b1", "AQQQRA")]
    #[case::a_full_queue_makes_room("a1 a1 a1 a1 b1 b1 c1 c1 c1", "AQQQAQADR")]
    #[case::a_fair_queue_stays("a1 b1 a1 b1 a1 b1 c1 c1 c1", "AAQQQQADR")]
    fn admits_queues_and_rejects(#[case] requests: &str, #[case] expected: &str) {
        assert_eq!(decisions(requests), expected);
    }

    /// Requests as in [`decisions`]; returns the keys that the free slots of `released` go to.
    fn admitted_next(requests: &str, released: &str) -> Vec<String> {
        let mut admission = Admission::new(LIMITS);
        let mut names = HashMap::new();
        for name in requests.split(' ') {
            if let SlotDecision::Queued { ticket, .. } = admission.request(holder(name)) {
                names.insert(ticket, name.to_owned());
            }
        }
        let released = released.split(' ');
        released
            .flat_map(|name| admission.release(&holder(name)))
            .map(|ticket| names[&ticket].clone())
            .collect()
    }

    #[rstest]
    #[case::own_queue("a1 a1", "a1", &["a1"])]
    #[case::nothing_waits("a1 b1", "a1", &[])]
    #[case::the_order_of_arrival("a1 a1 a2 b1 b2 c1 d1", "b2", &["c1"])]
    #[case::fewest_running_first("a1 b1 b2 c1 a2 d1", "c1", &["d1"])]
    #[case::fewest_running_after_arrival("a1 b1 b2 c1 d1 a2", "c1", &["d1"])]
    #[case::another_key_of_the_organization("a1 a2 a1 a3", "a2", &["a3"])]
    #[case::several("a1 a2 a3 b1 b1", "a1 b1", &["a3", "b1"])]
    fn the_next_slot_goes_to(
        #[case] requests: &str,
        #[case] released: &str,
        #[case] expected: &[&str],
    ) {
        assert_eq!(admitted_next(requests, released), expected);
    }

    #[test]
    fn an_abandoned_request_gets_no_slot() {
        let mut admission = Admission::new(LIMITS);
        assert_eq!(admission.request(holder("a1")), SlotDecision::Admitted);
        let SlotDecision::Queued { ticket, .. } = admission.request(holder("a1")) else {
            panic!("the key has its slot");
        };
        assert!(admission.abandon(ticket));
        assert!(!admission.abandon(ticket));
        assert_eq!(admission.release(&holder("a1")), []);
        assert_eq!((admission.running(), admission.waiting()), (0, 0));
    }

    /// A random step: request, release or abandon, for one of the keys.
    fn steps() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
        prop::collection::vec((0..3_u8, 0..5_u8, 0..3_u8), 1..200)
    }

    proptest! {
        /// Limits hold after every step, and no organization waits while one with more running
        /// requests gets the slot.
        #[test]
        fn slots_are_limited_and_fair(steps in steps()) {
            let mut admission = Admission::new(LIMITS);
            for (step, organization, key) in steps {
                let one = holder(&format!("{}{key}", char::from(b'a' + organization)));
                match step {
                    0 => {
                        admission.request(one);
                    }
                    1 if admission.running.contains(&one) => {
                        let waiting: Vec<(SlotTicket, SlotHolder)> = admission
                            .waiting
                            .iter()
                            .map(|waiting| (waiting.ticket, waiting.holder.clone()))
                            .collect();
                        let mut model = Admission::new(LIMITS);
                        model.running = admission.running.clone();
                        let at = model.running.iter().position(|running| *running == one);
                        model.running.swap_remove(at.unwrap());
                        let admitted = admission.release(&one);
                        let mut left = waiting;
                        for ticket in admitted {
                            let at = left.iter().position(|(other, _)| *other == ticket).unwrap();
                            let (_, winner) = left.remove(at);
                            let load = model.running_of(&winner).0;
                            for (_, other) in &left {
                                let loses = model.has_slot_for(other)
                                    && model.running_of(other).0 < load;
                                prop_assert!(!loses, "{other:?} waits behind {winner:?}");
                            }
                            model.running.push(winner);
                        }
                    }
                    _ => {
                        if let Some(ticket) = admission.waiting.first().map(|one| one.ticket) {
                            admission.abandon(ticket);
                        }
                    }
                }
                prop_assert!(admission.running.len() <= LIMITS.total);
                prop_assert!(admission.waiting.len() <= LIMITS.waiting);
                for running in &admission.running {
                    let (of_organization, of_key) = admission.running_of(running);
                    prop_assert!(of_organization <= LIMITS.per_organization);
                    prop_assert!(of_key <= LIMITS.per_key);
                }
                for waiting in &admission.waiting {
                    prop_assert!(!admission.has_slot_for(&waiting.holder), "could run");
                }
            }
        }
    }
}
