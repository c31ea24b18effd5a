//! When each caller last changed something.

use std::collections::HashMap;
use std::time::Duration;
use tributary_domain::access::Actor;

/// Number of callers whose changes are remembered separately. Changes are forgotten once the standby
/// has replayed them, so this many callers changed something within the standby's lag.
const CALLERS_MAX: usize = 10_000;

/// Times of changes that the standby may lack.
#[derive(Debug, Default)]
pub(super) struct ChangeTimes {
    by_caller: HashMap<Actor, Duration>,
    /// Time of the latest change of the callers that are no longer remembered separately.
    others: Option<Duration>,
}

impl ChangeTimes {
    /// Notes a change.
    pub(super) fn note(&mut self, caller: &Actor, at: Duration) {
        if let Some(changed_at) = self.by_caller.get_mut(caller) {
            *changed_at = at.max(*changed_at);
            return;
        }
        if self.by_caller.len() >= CALLERS_MAX {
            self.others = self
                .others
                .into_iter()
                .chain(self.by_caller.drain().map(|(_, at)| at))
                .max();
        }
        self.by_caller.insert(caller.clone(), at);
    }

    /// Returns the time of the caller's latest change, or a later one. `None` if the standby contains
    /// all of its changes.
    pub(super) fn latest_of(&self, caller: &Actor) -> Option<Duration> {
        self.others.max(self.by_caller.get(caller).copied())
    }

    /// Forgets changes that the standby has replayed.
    pub(super) fn forget_before(&mut self, replayed: Duration) {
        self.by_caller
            .retain(|_, changed_at| *changed_at >= replayed);
        self.others = self.others.filter(|changed_at| *changed_at >= replayed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::vocabulary::id::KeyId;

    fn key(number: usize) -> Actor {
        let mut bytes = [0; 16];
        for (byte, part) in bytes.iter_mut().zip(number.to_be_bytes()) {
            *byte = part;
        }
        Actor::Key(KeyId::from_bytes(bytes))
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn remembers_the_latest_change_of_each_caller_until_it_is_replayed() {
        let mut changes = ChangeTimes::default();
        changes.note(&key(1), seconds(1));
        changes.note(&key(1), seconds(3));
        changes.note(&key(2), seconds(2));
        assert_eq!(changes.latest_of(&key(1)), Some(seconds(3)));
        assert_eq!(changes.latest_of(&key(2)), Some(seconds(2)));
        assert_eq!(changes.latest_of(&key(3)), None);
        changes.forget_before(seconds(3));
        assert_eq!(changes.latest_of(&key(1)), Some(seconds(3)));
        assert_eq!(changes.latest_of(&key(2)), None);
    }

    #[test]
    fn too_many_callers_are_remembered_together() {
        let mut changes = ChangeTimes::default();
        for number in 0..=CALLERS_MAX {
            changes.note(&key(number), seconds(5));
        }
        assert!(changes.by_caller.len() <= CALLERS_MAX);
        assert_eq!(changes.latest_of(&key(0)), Some(seconds(5)));
        assert_eq!(changes.latest_of(&key(CALLERS_MAX + 1)), Some(seconds(5)));
        changes.forget_before(seconds(6));
        assert_eq!(changes.latest_of(&key(0)), None);
    }
}
