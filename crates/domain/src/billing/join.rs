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
    /// Time of the device's first claim of the id.
    pub since: Timestamp,
    /// Time of the device's latest claim of the id.
    pub latest: Timestamp,
    /// Whether billing uses the link. See [`crate::device::DEVICE_USERS_MAX`].
    pub is_used: bool,
    /// Whether the app's backend signed the claim.
    pub is_signed: bool,
    /// Whether the device's install is flagged.
    pub is_flagged: bool,
}

/// Link from a user to a device.
pub type PersonLink = DeviceLink<UserKey>;
/// Link from an advertising id to a device.
pub type AdvertisingLink = DeviceLink<AdvertisingId>;

/// A device's claim to a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceClaim {
    /// Device key.
    pub device: DeviceKey,
    /// Rule that connects the device to the notification.
    pub rule: JoinRule,
    /// Whether the app's backend signed the device's user id.
    pub is_signed: bool,
    /// Whether the device's install is flagged.
    pub is_flagged: bool,
    /// Time of the device's first claim of the id.
    pub since: Timestamp,
}

impl DeviceClaim {
    fn of_link<Id>(link: &DeviceLink<Id>, rule: JoinRule) -> Self {
        Self {
            device: link.device.clone(),
            rule,
            is_signed: link.is_signed,
            is_flagged: link.is_flagged,
            since: link.since,
        }
    }

    /// Returns the join of a notification that this claim won.
    pub fn join(&self) -> Join {
        Join {
            device: self.device.clone(),
            rule: self.rule,
            since: self.since,
        }
    }

    /// Rank of the claim; the lowest rank wins. The device that the provider names comes first,
    /// because only the app can set this attribute. Then a signed user id, because a stranger
    /// cannot sign. Then an install without flags, a user id before an advertising id, and the
    /// earliest claim, so that a later device cannot take over a user. The device id makes the
    /// order total.
    fn rank(&self) -> impl Ord + '_ {
        (
            self.rule != JoinRule::Named,
            !self.is_signed,
            self.is_flagged,
            self.rule,
            self.since,
            &self.device,
        )
    }
}

/// Returns the claim that wins. The order of the claims does not matter.
pub fn best<'a>(claims: impl IntoIterator<Item = &'a DeviceClaim>) -> Option<&'a DeviceClaim> {
    claims
        .into_iter()
        .min_by(|one, other| one.rank().cmp(&other.rank()))
}

/// Picks the latest entry at or before `at`. If there is none, picks the first entry after `at`.
/// Ties are broken by value, so the choice is deterministic.
pub(super) fn pick<T: Ord + Clone>(
    all: &[(Timestamp, T)],
    at: Timestamp,
) -> Option<&(Timestamp, T)> {
    let before = all.iter().filter(|(since, _)| *since <= at).max();
    before.or_else(|| all.iter().min())
}

/// Finds the device for a single notification, given the links of its users and advertising ids.
///
/// The notification's previous join still counts, because a device may have dropped its ids since.
/// It does not count if the device's claim of the user is no longer used. Links that were made
/// after `until` are ignored, unless the notification is already joined to their device.
pub(super) fn find_claim(
    one: &Notification,
    people: &[&PersonLink],
    advertising: &[&AdvertisingLink],
    until: Timestamp,
) -> Option<DeviceClaim> {
    // The pseudonym of an erased device only marks a subscription; it does not name a device.
    let named = one.content.subscriber.device.as_ref();
    let named = named.filter(|device| !is_pseudonym(device));
    let named = named.map(|device| (device, one.happened_at));
    let before = one.join.as_ref();
    let named_before = before.filter(|join| join.rule == JoinRule::Named);
    if let Some((device, since)) =
        named.or_else(|| named_before.map(|join| (&join.device, join.since)))
    {
        return Some(DeviceClaim {
            device: device.clone(),
            rule: JoinRule::Named,
            is_signed: false,
            is_flagged: false,
            since,
        });
    }
    let mut claims = link_claims(people, JoinRule::Person, before, until);
    let by_advertising = link_claims(advertising, JoinRule::Advertising, before, until);
    claims.extend(by_advertising);
    best(&claims).cloned()
}

fn link_claims<Id>(
    links: &[&DeviceLink<Id>],
    rule: JoinRule,
    before: Option<&Join>,
    until: Timestamp,
) -> Vec<DeviceClaim> {
    let before = before.filter(|join| join.rule == rule);
    let is_joined = |device: &DeviceKey| before.is_some_and(|join| join.device == *device);
    let dropped = before.filter(|join| links.iter().all(|link| link.device != join.device));
    let dropped = dropped.map(|join| DeviceClaim {
        device: join.device.clone(),
        rule,
        is_signed: false,
        is_flagged: false,
        since: join.since,
    });
    links
        .iter()
        .filter(|link| link.is_used && (link.since <= until || is_joined(&link.device)))
        .map(|link| DeviceClaim::of_link(link, rule))
        .chain(dropped)
        .collect()
}

/// Returns the device for each of a subscription's notifications. `claims` are the winning claims
/// of the single notifications, sorted by time.
///
/// The strongest evidence in the whole subscription decides. A notification gets the device that it
/// names itself, otherwise the last device named before it, otherwise the first device named after
/// it. If no device is named, all notifications get the device with the best claim.
pub(super) fn devices(claims: &[Option<&DeviceClaim>]) -> Vec<Option<DeviceKey>> {
    let fallback = best(claims.iter().flatten().copied()).map(|claim| &claim.device);
    let mut last_named = None;
    claims
        .iter()
        .map(|claim| {
            let named = claim.filter(|claim| claim.rule == JoinRule::Named);
            last_named = named.map(|claim| &claim.device).or(last_named);
            last_named.or(fallback).cloned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{at, device, notification, person};
    use super::*;
    use crate::billing::NotificationMeaning;
    use proptest::prelude::*;
    use rstest::rstest;

    fn link(name: &str, since: i64) -> PersonLink {
        DeviceLink {
            id: person("p"),
            device: device(name),
            since: at(since),
            latest: at(since),
            is_used: true,
            is_signed: false,
            is_flagged: false,
        }
    }

    fn claim(name: &str, rule: JoinRule, since: i64) -> DeviceClaim {
        DeviceClaim {
            device: device(name),
            rule,
            is_signed: false,
            is_flagged: false,
            since: at(since),
        }
    }

    #[rstest]
    #[case::no_link(&[], None)]
    #[case::one_before(&[("a", 1)], Some("a"))]
    #[case::one_after(&[("a", 9)], Some("a"))]
    #[case::the_last_before(&[("a", 1), ("b", 4), ("c", 9)], Some("b"))]
    #[case::at_that_moment(&[("a", 1), ("b", 5)], Some("b"))]
    #[case::the_first_after(&[("a", 9), ("b", 6)], Some("b"))]
    fn picks_the_entry_of_a_moment(
        #[case] entries: &[(&str, i64)],
        #[case] expected: Option<&str>,
    ) {
        let entries: Vec<_> = entries
            .iter()
            .map(|(name, since)| (at(*since), device(name)))
            .collect();
        let picked = pick(&entries, at(5)).map(|(_, device)| device.as_str());
        assert_eq!(picked, expected);
    }

    /// The claims in descending rank. Each one wins against all that follow.
    fn ranked() -> Vec<DeviceClaim> {
        use JoinRule::{Advertising, Named, Person};
        let signed = |claim| DeviceClaim {
            is_signed: true,
            ..claim
        };
        let flagged = |claim| DeviceClaim {
            is_flagged: true,
            ..claim
        };
        vec![
            flagged(claim("z", Named, 9)),
            signed(claim("y", Person, 9)),
            signed(flagged(claim("x", Person, 1))),
            claim("v", Person, 2),
            claim("w", Person, 2),
            claim("u", Person, 8),
            claim("t", Advertising, 1),
            flagged(claim("s", Person, 1)),
            flagged(claim("r", Advertising, 0)),
        ]
    }

    #[test]
    fn the_better_claim_wins() {
        let all = ranked();
        for (position, expected) in all.iter().enumerate() {
            assert_eq!(best(&all[position..]), Some(expected), "{position}");
        }
        assert_eq!(best([]), None);
    }

    proptest! {
        #[test]
        fn the_order_of_claims_changes_nothing(
            shuffled in Just(ranked()).prop_shuffle(),
            count in 1..9_usize,
        ) {
            let mut sorted = shuffled[..count].to_vec();
            sorted.sort_by(|one, other| one.rank().cmp(&other.rank()));
            prop_assert_eq!(best(&shuffled[..count]), sorted.first());
        }
    }

    #[rstest]
    #[case::the_first_device_keeps_the_user(&[("a", 1), ("thief", 4)], None, Some("a"))]
    #[case::too_late(&[("a", 101)], None, None)]
    #[case::joined_before_the_window_ended(&[("a", 101)], Some("a"), Some("a"))]
    #[case::the_device_dropped_its_id(&[], Some("a"), Some("a"))]
    fn finds_the_claim_of_a_notification(
        #[case] links: &[(&str, i64)],
        #[case] joined: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let links: Vec<_> = links
            .iter()
            .map(|(name, since)| link(name, *since))
            .collect();
        let links: Vec<_> = links.iter().collect();
        let mut one = notification(5, NotificationMeaning::TrialStart);
        one.join = joined.map(|name| claim(name, JoinRule::Person, 3).join());
        let found = find_claim(&one, &links, &[], at(100));
        assert_eq!(found.as_ref().map(|claim| claim.device.as_str()), expected);
    }

    #[test]
    fn a_claim_that_is_not_used_does_not_count_even_if_it_was_joined() {
        let unused = PersonLink {
            is_used: false,
            ..link("a", 1)
        };
        let mut one = notification(5, NotificationMeaning::TrialStart);
        one.join = Some(claim("a", JoinRule::Person, 1).join());
        assert_eq!(find_claim(&one, &[&unused], &[], at(100)), None);
        let later = link("b", 7);
        let found = find_claim(&one, &[&unused, &later], &[], at(100)).unwrap();
        assert_eq!(found.device, device("b"));
    }

    #[test]
    fn the_named_device_wins() {
        let mut one = notification(5, NotificationMeaning::TrialStart);
        one.content.subscriber.device = Some(device("named"));
        let signed = PersonLink {
            is_signed: true,
            ..link("by-person", 1)
        };
        let found = find_claim(&one, &[&signed], &[], at(100)).unwrap();
        assert_eq!(found.join().rule, JoinRule::Named);
        assert_eq!(found.device, device("named"));
        one.join = Some(found.join());
        one.content.subscriber.device = None;
        let kept = find_claim(&one, &[&signed], &[], at(100)).unwrap();
        assert_eq!(kept.device, device("named"), "the provider named it before");
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
        &[Some(("p", JoinRule::Person)), Some(("o", JoinRule::Person))],
        &[Some("p"), Some("p")]
    )]
    #[case::a_person_beats_an_earlier_advertising_id(
        &[Some(("q", JoinRule::Advertising)), Some(("p", JoinRule::Person))],
        &[Some("p"), Some("p")]
    )]
    fn all_notifications_of_a_subscription_share_evidence(
        #[case] claims: &[Option<(&str, JoinRule)>],
        #[case] expected: &[Option<&str>],
    ) {
        let claims: Vec<Option<DeviceClaim>> = (0..)
            .zip(claims)
            .map(|(since, one)| one.map(|(name, rule)| claim(name, rule, since)))
            .collect();
        let claims: Vec<Option<&DeviceClaim>> = claims.iter().map(Option::as_ref).collect();
        let found = devices(&claims);
        let found: Vec<Option<&str>> = found
            .iter()
            .map(|one| one.as_ref().map(DeviceKey::as_str))
            .collect();
        assert_eq!(found, expected);
    }
}
