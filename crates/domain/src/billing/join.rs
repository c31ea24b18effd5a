//! Whose device a notification is about.

use super::Notification;
use crate::device::{AdvertisingId, DeviceKey, UserKey};
use crate::erasure::is_pseudonym;
use crate::vocabulary::time::Timestamp;

/// By what a notification was joined to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JoinRule {
    /// The app told the provider the device's id.
    Named,
    /// The app told both of us the person's id.
    Person,
    /// An advertising id.
    Advertising,
}

crate::keywords! {
    JoinRule {
        Named => "named",
        Person => "person",
        Advertising => "advertising",
    }
}

/// A device that a notification was joined to by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// Which device.
    pub device: DeviceKey,
    /// By what.
    pub rule: JoinRule,
    /// Since when the device is known to be the person's.
    pub since: Timestamp,
}

/// A device that uses an id since a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceLink<Id> {
    /// The id.
    pub id: Id,
    /// Which device.
    pub device: DeviceKey,
    /// Since when.
    pub since: Timestamp,
}

/// A device that a person used.
pub type PersonLink = DeviceLink<UserKey>;
/// A device that has an advertising id.
pub type AdvertisingLink = DeviceLink<AdvertisingId>;

/// Picks the evidence that was made last at that time or before, else the first after it. Ties are broken by value, so
/// the choice is deterministic.
pub(super) fn pick<T: Ord + Clone>(
    all: &[(Timestamp, T)],
    at: Timestamp,
) -> Option<&(Timestamp, T)> {
    let before = all.iter().filter(|(since, _)| *since <= at).max();
    before.or_else(|| all.iter().min())
}

/// Returns the device that a notification has by itself, from the links of its people and of its advertising ids. What
/// it was joined to before stays evidence, since a device may take its ids back.
pub(super) fn find_join(
    one: &Notification,
    people: Vec<(Timestamp, DeviceKey)>,
    advertising: Vec<(Timestamp, DeviceKey)>,
) -> Option<Join> {
    // The pseudonym of an erased device marks a subscription; it is not a device that was named.
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

/// The devices of a subscription's notifications, given what each was joined to by itself, in the order of their time.
///
/// The strongest evidence of the whole subscription decides. A notification has the device that was named last before
/// it, else the first one named after it. Where no device is named, all have the one of the earliest notification that
/// was joined by a person's id, else by an advertising id.
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
    #[case::nobody(&[], None)]
    #[case::one_before(&[("a", 1)], Some("a"))]
    #[case::one_after(&[("a", 9)], Some("a"))]
    #[case::the_last_before(&[("a", 1), ("b", 4), ("c", 9)], Some("b"))]
    #[case::at_that_moment(&[("a", 1), ("b", 5)], Some("b"))]
    #[case::the_first_after(&[("a", 9), ("b", 6)], Some("b"))]
    fn several_devices_of_one_person(
        #[case] links: &[(&str, i64)],
        #[case] expected: Option<&str>,
    ) {
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
            "the id was taken back"
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
    fn a_subscription_stays_together(
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
