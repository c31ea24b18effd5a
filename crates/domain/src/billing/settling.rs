//! A subscription that is being settled: what was stored of it, and what it comes to now.

use super::chain::settle;
use super::join::Join;
use super::{Notification, PaidBefore};

/// A notification that comes to something else than it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// As it was stored.
    pub before: Notification,
    /// As it is.
    pub now: Notification,
}

/// A subscription that is being settled.
#[derive(Debug, Clone)]
pub struct Settling {
    stored: Vec<Notification>,
    now: Vec<Notification>,
}

impl Settling {
    /// Everything that is stored of a subscription.
    pub fn of(stored: Vec<Notification>) -> Self {
        Self {
            now: stored.clone(),
            stored,
        }
    }

    /// Those that were not joined to a device by themselves.
    pub fn unjoined(&self) -> Vec<usize> {
        let all = self.now.iter().enumerate();
        all.filter(|(_, one)| one.join.is_none())
            .map(|(place, _)| place)
            .collect()
    }

    /// One of them.
    pub fn get(&self, place: usize) -> &Notification {
        &self.now[place]
    }

    /// All of them.
    pub fn all(&self) -> &[Notification] {
        &self.now
    }

    /// Joins one to a device.
    pub fn join(&mut self, place: usize, join: Join) {
        self.now[place].join = Some(join);
    }

    /// Notes that somebody paid before one of them.
    pub fn note_paid_before(&mut self, place: usize, before: PaidBefore) {
        let one = &mut self.now[place];
        one.paid_before = one.paid_before.take().or(Some(before));
    }

    /// The place of one, by the provider's id.
    pub fn place_of(&self, given_id: &str) -> Option<usize> {
        self.now
            .iter()
            .position(|one| one.said.given_id == given_id)
    }

    /// Settles what can be said without the person's other subscriptions, and gives the payments that have to take
    /// their place among those: new ones, and those of another device than before.
    pub fn unplaced(&mut self) -> Vec<usize> {
        self.settle();
        let pairs = self.stored.iter().zip(&self.now).enumerate();
        let is_unplaced = |(_, (stored, now)): &(usize, (&Notification, &Notification))| {
            let is_new = stored.standing.name.is_none();
            let has_moved = stored.standing.device != now.standing.device;
            now.is_period() && now.standing.name.is_some() && (is_new || has_moved)
        };
        pairs.filter(is_unplaced).map(|(place, _)| place).collect()
    }

    /// What differs from what is stored.
    pub fn finish(mut self) -> Vec<Changed> {
        self.settle();
        let pairs = self.stored.into_iter().zip(self.now);
        pairs
            .filter(|(before, now)| before != now)
            .map(|(before, now)| Changed { before, now })
            .collect()
    }

    fn settle(&mut self) {
        let standings = settle(&self.now);
        for (one, standing) in self.now.iter_mut().zip(standings) {
            one.standing = standing;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{device, money, notification};
    use super::super::{Claim, Meaning, PURCHASE, RENEWAL};
    use super::*;
    use crate::billing::join::JoinRule;

    #[test]
    fn a_payment_takes_its_place_once_and_again_when_it_moves() {
        let paid = money(1, Meaning::Payment(Claim::Start), "t1", "5");
        let mut settling = Settling::of(vec![paid]);
        assert_eq!(settling.unplaced(), [0]);
        let changed = settling.finish();
        assert_eq!(changed[0].now.standing.name.as_deref(), Some(PURCHASE));

        let mut again = Settling::of(vec![changed[0].now.clone()]);
        assert_eq!(again.unplaced(), [] as [usize; 0]);
        assert_eq!(again.unjoined(), [0]);
        let found = Join {
            device: device("d"),
            rule: JoinRule::Person,
        };
        again.join(0, found);
        assert_eq!(again.unplaced(), [0]);
        again.note_paid_before(0, PaidBefore { product: None });
        let changed = again.finish();
        assert_eq!(changed[0].now.standing.name.as_deref(), Some(RENEWAL));
        assert_eq!(Settling::of(vec![changed[0].now.clone()]).finish(), []);
    }

    #[test]
    fn what_is_no_period_takes_no_place() {
        let chain = vec![
            notification(1, Meaning::TrialStart),
            money(2, Meaning::Payment(Claim::OneOff), "t2", "5"),
        ];
        assert_eq!(Settling::of(chain).unplaced(), [] as [usize; 0]);
    }
}
