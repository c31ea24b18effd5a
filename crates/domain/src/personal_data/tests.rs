//! Which data is whose.

use super::*;
use crate::billing::samples::{at, device, notification, person};
use crate::forwarding::plan::samples::event;
use rstest::rstest;

fn link(name: &str, is_used: bool, is_signed: bool) -> UserLink {
    UserLink {
        user: person("p"),
        device: device(name),
        first_linked_at: at(1),
        linked_at: at(2),
        is_used,
        is_signed,
        address_hash: None,
    }
}

#[rstest]
#[case::no_device(&[], &[], &[])]
#[case::the_only_device(&[("a", true, false)], &["a"], &[])]
#[case::the_only_used_claim(&[("a", true, false), ("b", false, false)], &["a"], &[("b", LeftOutReason::NotUsed)])]
#[case::a_claim_that_is_not_used(&[("a", false, false)], &[], &[("a", LeftOutReason::NotUsed)])]
#[case::two_unsigned(
    &[("a", true, false), ("b", true, false)], &[],
    &[("a", LeftOutReason::Unsigned), ("b", LeftOutReason::Unsigned)]
)]
#[case::one_signed(&[("a", true, false), ("b", true, true)], &["b"], &[("a", LeftOutReason::Unsigned)])]
#[case::all_signed(&[("a", true, true), ("b", true, true)], &["a", "b"], &[])]
fn only_proven_devices_are_the_users(
    #[case] links: &[(&str, bool, bool)],
    #[case] own: &[&str],
    #[case] left_out: &[(&str, LeftOutReason)],
) {
    let links = links
        .iter()
        .map(|(name, used, signed)| link(name, *used, *signed));
    let found = LinkedDevices::of(links.collect());
    assert_eq!(found.own, own.iter().map(|name| device(name)).collect());
    let left_out = left_out.iter().map(|(name, reason)| LeftOutDevice {
        device: device(name),
        reason: *reason,
    });
    assert_eq!(found.left_out, left_out.collect::<Vec<_>>());
}

fn ids() -> PersonIds {
    PersonIds {
        devices: BTreeSet::from([device("d"), device("e")]),
        users: BTreeSet::from([person("p"), person("alias")]),
        advertising: BTreeSet::from([AdvertisingId::stored("a".to_owned())]),
    }
}

#[rstest]
#[case::of_a_device(Some("e"), None, &[], true)]
#[case::of_another_device(Some("x"), Some("d"), &["p"], false)]
#[case::of_an_erased_device(Some("erased-01010101-0101-4101-8101-010101010101"), None, &["p"], true)]
#[case::of_another_erased_device(Some("erased-01010101-0101-4101-8101-010101010101"), None, &["q"], false)]
#[case::waiting_for_the_device(None, Some("d"), &[], true)]
#[case::waiting_for_the_user(None, None, &["q", "alias"], true)]
#[case::of_another_user(None, None, &["q"], false)]
fn a_notification_is_the_persons(
    #[case] settled: Option<&str>,
    #[case] named: Option<&str>,
    #[case] people: &[&str],
    #[case] expected: bool,
) {
    let mut one = notification(1, NotificationMeaning::TrialStart);
    one.settled.device = settled.map(device);
    one.content.subscriber.device = named.map(device);
    one.content.subscriber.people = people.iter().map(|name| person(name)).collect();
    assert_eq!(ids().own_notification(&one), expected);
}

/// The same person, as a device and as a user.
fn subjects() -> [DataSubject; 2] {
    [
        DataSubject::Device(device("d")),
        DataSubject::User(person("p")),
    ]
}

#[rstest]
#[case::between_own_ids(&["p"], &["alias"], true, true)]
#[case::to_another_user(&["p"], &["q"], true, false)]
#[case::between_others(&["q"], &["r"], false, false)]
fn a_transfer_names_other_users(
    #[case] from: &[&str],
    #[case] to: &[&str],
    #[case] is_own: bool,
    #[case] shows_body: bool,
) {
    let people = |names: &[&str]| names.iter().map(|name| person(name)).collect();
    let meaning = NotificationMeaning::Transfer {
        from: people(from),
        to: people(to),
    };
    let one = notification(1, meaning);
    assert_eq!(ids().own_transfer(&one), is_own);
    for subject in subjects() {
        assert_eq!(ids().may_see_body(&subject, &one), shows_body);
    }
}

#[test]
fn a_notification_is_shown_without_other_people() {
    let people = |names: &[&str]| -> Vec<_> { names.iter().map(|name| person(name)).collect() };
    let [of_device, of_user] = subjects();
    let mut one = notification(1, NotificationMeaning::TrialStart);
    one.content.subscriber.people = people(&["p", "anonymous"]);
    one.settled.device = Some(device("d"));
    assert_eq!(
        ids().without_others(&of_device, one.clone()),
        (one.clone(), 0),
        "aliases are the person's"
    );
    let (shown, others) = ids().without_others(&of_user, one.clone());
    assert_eq!(others, 1, "no device claimed the other id");
    assert_eq!(shown.content.subscriber.people, people(&["p"]));
    one.content.meaning = NotificationMeaning::Transfer {
        from: people(&["p", "q"]),
        to: people(&["r"]),
    };
    one.content.subscriber.device = Some(device("x"));
    one.settled.device = Some(device("x"));
    let (shown, others) = ids().without_others(&of_device, one);
    assert_eq!(
        others, 3,
        "q, r and the alias of another device's subscriber"
    );
    assert_eq!(
        shown.people().cloned().collect::<Vec<_>>(),
        people(&["p", "p"])
    );
    assert_eq!(
        (shown.content.subscriber.device, shown.settled.device),
        (None, None)
    );
}

#[rstest]
#[case::without_a_user(None, true)]
#[case::of_the_user(Some("p"), true)]
#[case::of_another_user(Some("q"), false)]
fn a_user_gets_no_events_of_another_user(#[case] user: Option<&str>, #[case] expected: bool) {
    let mut one = event("purchase");
    one.user = user.map(person);
    assert_eq!(
        DataSubject::User(person("p")).includes(&ids(), &one),
        expected
    );
    assert!(DataSubject::Device(device("d")).includes(&ids(), &one));
}

#[rstest]
#[case::without_a_user(&[], None, true, true)]
#[case::of_the_user(&["alias"], None, true, true)]
#[case::also_of_an_anonymous_id(&["anonymous", "p"], None, true, false)]
#[case::of_another_user(&["q"], None, false, false)]
#[case::when_the_user_used_the_device(&[], Some("p"), true, true)]
#[case::when_another_user_used_the_device(&[], Some("q"), false, true)]
fn a_user_gets_no_notifications_of_another_user(
    #[case] people: &[&str],
    #[case] settled: Option<&str>,
    #[case] expected: bool,
    #[case] shows_body: bool,
) {
    let mut one = notification(1, NotificationMeaning::TrialStart);
    one.content.subscriber.people = people.iter().map(|name| person(name)).collect();
    one.settled.device = Some(device("d"));
    one.settled.user = settled.map(person);
    let [of_device, of_user] = subjects();
    assert_eq!(of_user.includes_notification(&ids(), &one), expected);
    assert_eq!(ids().may_see_body(&of_user, &one), shows_body);
    assert!(of_device.includes_notification(&ids(), &one));
    assert!(ids().may_see_body(&of_device, &one));
}
