//! Whose device a notification is about.

use super::{Notification, Subscriber};
use crate::device::DeviceKey;
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

impl JoinRule {
    /// All of them, the strongest first.
    pub const ALL: &'static [Self] = &[Self::Named, Self::Person, Self::Advertising];

    /// As stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Person => "person",
            Self::Advertising => "advertising",
        }
    }

    /// Reads what [`Self::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == text)
    }
}

/// A device that a notification was joined to by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// Which device.
    pub device: DeviceKey,
    /// By what.
    pub rule: JoinRule,
}

/// A device that goes by a person's id, or by an advertising id, since a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Which device.
    pub device: DeviceKey,
    /// Since when.
    pub since: Timestamp,
}

/// Of several devices: the one that was linked last at that time or before, else the first after it.
fn linked(links: &[Link], at: Timestamp) -> Option<&DeviceKey> {
    let by_time = |link: &&Link| (link.since, link.device.clone());
    let before = links
        .iter()
        .filter(|link| link.since <= at)
        .max_by_key(by_time);
    let after = || links.iter().min_by_key(by_time);
    before.or_else(after).map(|link| &link.device)
}

/// The device that a subscriber has by itself.
pub fn joined(
    subscriber: &Subscriber,
    people: &[Link],
    advertising: &[Link],
    at: Timestamp,
) -> Option<Join> {
    let join = |device: &DeviceKey, rule| Join {
        device: device.clone(),
        rule,
    };
    let named = subscriber.device.as_ref();
    named
        .map(|device| join(device, JoinRule::Named))
        .or_else(|| linked(people, at).map(|device| join(device, JoinRule::Person)))
        .or_else(|| linked(advertising, at).map(|device| join(device, JoinRule::Advertising)))
}

/// The device that a notification names itself.
fn named(one: &Notification) -> Option<&DeviceKey> {
    let join = one.join.as_ref()?;
    (join.rule == JoinRule::Named).then_some(&join.device)
}

/// The devices of a subscription's notifications, which are in the order of their time.
///
/// A notification that names its device has that one, whatever the others say. The rest follow the subscription:
/// the device that was named last before them, else the first one named after them; where none is named, the one
/// that the earliest joined notification has. So it does not matter which of them arrived first.
pub(super) fn devices(chain: &[&Notification]) -> Vec<Option<DeviceKey>> {
    let first_named = chain.iter().find_map(|one| named(one));
    let first_joined = chain
        .iter()
        .find_map(|one| one.join.as_ref().map(|it| &it.device));
    let mut last_named = None;
    chain
        .iter()
        .map(|one| {
            last_named = named(one).or(last_named);
            last_named.or(first_named).or(first_joined).cloned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{at, device, notification, person};
    use super::*;
    use crate::billing::Meaning;
    use rstest::rstest;

    fn link(name: &str, since: i64) -> Link {
        Link {
            device: device(name),
            since: at(since),
        }
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
        let links: Vec<Link> = links.iter().map(|(name, at)| link(name, *at)).collect();
        assert_eq!(linked(&links, at(5)).map(DeviceKey::as_str), expected);
    }

    #[test]
    fn the_stronger_rule_wins() {
        let mut subscriber = Subscriber {
            people: vec![person("p")],
            ..Subscriber::default()
        };
        let (people, ads) = ([link("by-person", 1)], [link("by-ad", 1)]);
        let rule = |it: Option<Join>| it.map(|it| it.rule);
        assert_eq!(rule(joined(&subscriber, &[], &[], at(5))), None);
        let found = joined(&subscriber, &[], &ads, at(5));
        assert_eq!(rule(found), Some(JoinRule::Advertising));
        let found = joined(&subscriber, &people, &ads, at(5));
        assert_eq!(rule(found), Some(JoinRule::Person));
        subscriber.device = Some(device("named"));
        let found = joined(&subscriber, &people, &ads, at(5)).unwrap();
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
        &[Some(("p", JoinRule::Person)), Some(("q", JoinRule::Advertising))],
        &[Some("p"), Some("p")]
    )]
    fn a_subscription_stays_together(
        #[case] joins: &[Option<(&str, JoinRule)>],
        #[case] expected: &[Option<&str>],
    ) {
        let chain: Vec<Notification> = (0..)
            .zip(joins)
            .map(|(time, join)| {
                let mut one = notification(time, Meaning::TrialStart);
                one.join = join.map(|(name, rule)| Join {
                    device: device(name),
                    rule,
                });
                one
            })
            .collect();
        let chain: Vec<&Notification> = chain.iter().collect();
        let found = devices(&chain);
        let found: Vec<Option<&str>> = found
            .iter()
            .map(|one| one.as_ref().map(DeviceKey::as_str))
            .collect();
        assert_eq!(found, expected);
    }
}
