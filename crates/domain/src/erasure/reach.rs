//! How far an erasure reaches, by who asks for it.

use crate::device::UserKey;
use std::collections::BTreeSet;

/// Who asks for an erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasureRequester {
    /// A member or key of the organization.
    Operator,
    /// The user of a device, with the device's token.
    DeviceUser,
}

/// What an erasure removes beside the device's own data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureReach {
    /// User ids whose data is erased.
    pub people: BTreeSet<UserKey>,
    /// Whether payments that a billing provider reported keep their user and parameters.
    pub keeps_billing: bool,
    /// Whether subscriptions are also found by the device's advertising id.
    pub follows_advertising_id: bool,
}

impl ErasureReach {
    /// Decides how far an erasure reaches. A token proves who owns the device, but anyone can claim
    /// a user id or an advertising id in a call. If a device's user asks, only users with a signed
    /// claim are erased, so that a stranger cannot erase another person.
    pub fn of(
        requester: ErasureRequester,
        people: BTreeSet<UserKey>,
        signed: &BTreeSet<UserKey>,
    ) -> Self {
        match requester {
            ErasureRequester::Operator => Self {
                people,
                keeps_billing: false,
                follows_advertising_id: true,
            },
            ErasureRequester::DeviceUser => Self {
                keeps_billing: !people.is_subset(signed),
                people: people.intersection(signed).cloned().collect(),
                follows_advertising_id: false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const OPERATOR: ErasureRequester = ErasureRequester::Operator;
    const USER: ErasureRequester = ErasureRequester::DeviceUser;

    #[rstest]
    #[case::operator(OPERATOR, &["a", "b"], &[], &["a", "b"], false)]
    #[case::unsigned(USER, &["a"], &[], &[], true)]
    #[case::signed(USER, &["a"], &["a"], &["a"], false)]
    #[case::both(USER, &["a", "b"], &["a"], &["a"], true)]
    #[case::without_users(USER, &[], &[], &[], false)]
    fn only_proven_users_are_erased(
        #[case] requester: ErasureRequester,
        #[case] people: &[&str],
        #[case] signed: &[&str],
        #[case] erased: &[&str],
        #[case] keeps_billing: bool,
    ) {
        let set = |names: &[&str]| -> BTreeSet<UserKey> {
            let names = names.iter().map(|name| UserKey::stored((*name).to_owned()));
            names.collect()
        };
        let reach = ErasureReach::of(requester, set(people), &set(signed));
        assert_eq!(reach.people, set(erased));
        assert_eq!(reach.keeps_billing, keeps_billing);
        assert_eq!(reach.follows_advertising_id, requester == OPERATOR);
    }
}
