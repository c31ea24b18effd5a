//! Joins notifications to devices.

use super::Notification;
use crate::device::{AdvertisingId, DeviceKey, UserKey};
use crate::erasure::is_pseudonym;
use crate::vocabulary::time::Timestamp;

/// Rule that joined a notification to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JoinRule {
    /// The app gave the device id to the provider.
    Named,
    /// The app gave the same user id to the provider and to the SDK.
    Person,
    /// The provider and the SDK reported the same advertising id.
    Advertising,
}

crate::keywords! {
    JoinRule {
        Named => "named",
        Person => "person",
        Advertising => "advertising",
    }
}

/// Device that a single notification is joined to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// Device key.
    pub device: DeviceKey,
    /// Rule that joined the notification.
    pub rule: JoinRule,
    /// Time since which the device is known to be the user's.
    pub since: Timestamp,
}

/// Link from an id to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceLink<Id> {
    /// Linked id.
    pub id: Id,
    /// Device key.
    pub device: DeviceKey,
    /// Start of the link.
    pub since: Timestamp,
}

/// Link from a user to a device.
pub type PersonLink = DeviceLink<UserKey>;
/// Link from an advertising id to a device.
pub type AdvertisingLink = DeviceLink<AdvertisingId>;

/// Picks the latest entry at or before `at`. If there is none, picks the first entry after `at`.
/// Ties are broken by value, so the choice is deterministic.
pub(super) fn pick<T: Ord + Clone>(
    all: &[(Timestamp, T)],
    at: Timestamp,
) -> Option<&(Timestamp, T)> {
    let before = all.iter().filter(|(since, _)| *since <= at).max();
    before.or_else(|| all.iter().min())
}

/// Finds the device for a single notification, given the links from its users and advertising ids
/// to devices. The notification's previous join still counts, because a device may have dropped its
/// ids since.
pub(super) fn find_join(
    one: &Notification,
    people: Vec<(Timestamp, DeviceKey)>,
    advertising: Vec<(Timestamp, DeviceKey)>,
) -> Option<Join> {
    // The pseudonym of an erased device only marks a subscription; it does not name a device.
    let named = one.content.subscriber.device.as_ref();
    if let Some(device) = named.filter(|device| !is_pseudonym(device)) {
        return Some(Join {
            device: device.clone(),
            rule: JoinRule::Named,
            since: one.happened_at,
        });
    }
    if let Some(join) = one.join.as_ref().filter(|it| it.rule == JoinRule::Named) {
        return Some(join.clone());
    }
    [
        (JoinRule::Person, people),
        (JoinRule::Advertising, advertising),
    ]
    .into_iter()
    .find_map(|(rule, mut links)| {
        let before = one.join.as_ref().filter(|join| join.rule == rule);
        links.extend(before.map(|join| (join.since, join.device.clone())));
        let (since, device) = pick(&links, one.happened_at)?.clone();
        Some(Join {
            device,
            rule,
            since,
        })
    })
}

/// Returns the device for each of a subscription's notifications. `joins` are the joins of the
/// single notifications, sorted by time.
///
/// The strongest evidence in the whole subscription decides. A notification gets the device that it
/// names itself, otherwise the last device named before it, otherwise the first device named after
/// it. If no device is named, all notifications get the device of the earliest join by user id,
/// otherwise by advertising id.
pub(super) fn devices(joins: &[Option<&Join>]) -> Vec<Option<DeviceKey>> {
    let first = |rule| {
        let mut joins = joins.iter().flatten();
        joins
            .find(|join| join.rule == rule)
            .map(|join| &join.device)
    };
    let fallback = JoinRule::ALL.iter().find_map(|rule| first(*rule));
    let mut last_named = None;
    joins
        .iter()
        .map(|join| {
            let named = join.filter(|join| join.rule == JoinRule::Named);
            last_named = named.map(|join| &join.device).or(last_named);
            last_named.or(fallback).cloned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{at, device, notification};
    use super::*;
    use crate::billing::NotificationMeaning;
    use rstest::rstest;

    fn link(name: &str, since: i64) -> (Timestamp, DeviceKey) {
        (at(since), device(name))
    }

    #[rstest]
    #[case::no_link(&[], None)]
    #[case::one_before(&[("a", 1)], Some("a"))]
    #[case::one_after(&[("a", 9)], Some("a"))]
    #[case::the_last_before(&[("a", 1), ("b", 4), ("c", 9)], Some("b"))]
    #[case::at_that_moment(&[("a", 1), ("b", 5)], Some("b"))]
    #[case::the_first_after(&[("a", 9), ("b", 6)], Some("b"))]
    fn picks_among_several_devices(#[case] links: &[(&str, i64)], #[case] expected: Option<&str>) {
        let links: Vec<_> = links.iter().map(|(name, at)| link(name, *at)).collect();
        let picked = pick(&links, at(5)).map(|(_, device)| device.as_str());
        assert_eq!(picked, expected);
    }

    #[test]
    fn the_stronger_rule_wins() {
        let mut one = notification(5, NotificationMeaning::TrialStart);
        let (people, ads) = (vec![link("by-person", 1)], vec![link("by-ad", 1)]);
        let rule = |it: Option<Join>| it.map(|it| it.rule);
        assert_eq!(rule(find_join(&one, vec![], vec![])), None);
        let found = find_join(&one, vec![], ads.clone());
        assert_eq!(rule(found.clone()), Some(JoinRule::Advertising));
        one.join = found;
        assert_eq!(
            find_join(&one, vec![], vec![]),
            one.join,
            "the device dropped the id"
        );
        let found = find_join(&one, people.clone(), ads.clone());
        assert_eq!(rule(found), Some(JoinRule::Person));
        one.content.subscriber.device = Some(device("named"));
        let found = find_join(&one, people, ads).unwrap();
        assert_eq!(found.rule, JoinRule::Named);
        assert_eq!(found.device.as_str(), "named");
    }

    #[rstest]
    #[case::none(&[None, None], &[None, None])]
    #[case::from_a_person(&[None, Some(("p", JoinRule::Person))], &[Some("p"), Some("p")])]
    #[case::named_later(
        &[Some(("p", JoinRule::Person)), Some(("n", JoinRule::Named)), None],
        &[Some("n"), Some("n"), Some("n")]
    )]
    #[case::moved_to_another_device(
        &[None, Some(("n", JoinRule::Named)), None, Some(("m", JoinRule::Named)), None],
        &[Some("n"), Some("n"), Some("n"), Some("m"), Some("m")]
    )]
    #[case::the_earliest_person(
        &[Some(("p", JoinRule::Person)), Some(("q", JoinRule::Person))],
        &[Some("p"), Some("p")]
    )]
    #[case::a_person_beats_an_earlier_advertising_id(
        &[Some(("q", JoinRule::Advertising)), Some(("p", JoinRule::Person))],
        &[Some("p"), Some("p")]
    )]
    fn all_notifications_of_a_subscription_share_evidence(
        #[case] joins: &[Option<(&str, JoinRule)>],
        #[case] expected: &[Option<&str>],
    ) {
        let joins: Vec<Option<Join>> = joins
            .iter()
            .map(|join| {
                join.map(|(name, rule)| Join {
                    device: device(name),
                    rule,
                    since: at(0),
                })
            })
            .collect();
        let joins: Vec<Option<&Join>> = joins.iter().map(Option::as_ref).collect();
        let found = devices(&joins);
        let found: Vec<Option<&str>> = found
            .iter()
            .map(|one| one.as_ref().map(DeviceKey::as_str))
            .collect();
        assert_eq!(found, expected);
    }
}
