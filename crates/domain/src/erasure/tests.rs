//! What remains after an erasure.

use super::*;
use crate::access::Environment;
use crate::attribution::evidence::ReferrerTimes;
use crate::attribution::{
    ConsideredCandidate, CreditedNetwork, Decision, EvidenceSummary, MatchMethod, MatchState,
    MatchType, SettingsSummary,
};
use crate::billing::join::{Join, JoinRule};
use crate::billing::samples::{at, device, notification, person};
use crate::billing::{Notification, NotificationMeaning};
use crate::click::StoredClick;
use crate::click::params::TrackingParams;
use crate::device::{AdvertisingId, DeviceRef, Platform, Tracking, Traits};
use crate::event::EventSource;
use crate::forwarding::plan::samples::{click, event, worth};
use crate::install::DeviceState;
use crate::integration::Network;
use crate::link::Campaign;
use crate::personal_data::{EventReferences, clicks_of_device, users_of_device};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AttributionId, ClickId, EventId};
use rstest::rstest;
use std::collections::{BTreeMap, BTreeSet};

const PSEUDONYM: &str = "erased-01010101-0101-4101-8101-010101010101";

fn erasure() -> Erasure {
    Erasure {
        device: device("d"),
        pseudonym: pseudonym([1; 16]),
        person: PersonIds {
            devices: BTreeSet::from([device("d")]),
            users: BTreeSet::from([person("p")]),
            advertising: BTreeSet::from([AdvertisingId::stored("a".to_owned())]),
        },
    }
}

#[rstest]
#[case::pseudonym(PSEUDONYM, true)]
#[case::an_sdk_id("6f9619ff-8b86-4011-b42d-00c04fc964ff", false)]
#[case::same_prefix("erased-42", false)]
#[case::in_capitals("erased-6F9619FF-8B86-4011-B42D-00C04FC964FF", false)]
#[case::without_hyphens("erased-6f9619ff8b864011b42d00c04fc964ff", false)]
#[case::the_prefix_alone("erased-", false)]
fn recognises_pseudonyms(#[case] text: &str, #[case] expected: bool) {
    assert_eq!(is_pseudonym(&device(text)), expected);
}

#[test]
fn a_pseudonym_is_random() {
    assert_eq!(pseudonym([1; 16]).as_str(), PSEUDONYM);
    assert_ne!(pseudonym([1; 16]), pseudonym([2; 16]));
    assert!(is_pseudonym(&pseudonym([0xff; 16])));
}

#[test]
fn a_device_keeps_what_reports_need() {
    let text = || Some("text".to_owned());
    let remains = erasure().erase_device(Device {
        key: device("d"),
        traits: Traits {
            platform: Platform::Android,
            os_version: text(),
            model: text(),
            manufacturer: text(),
            app_version: text(),
            bundle_id: text(),
            locale: text(),
            timezone: text(),
            screen: None,
            sdk_version: text(),
        },
        advertising_id: Some(AdvertisingId::stored("a".to_owned())),
        idfv: text(),
        consent: Consent {
            tracking: Some(Tracking::Authorized),
            ..Consent::default()
        },
        country: Some("DE".to_owned()),
        first_seen_at: at(1),
        last_seen_at: at(2),
    });
    assert!(!format!("{remains:?}").contains("text"));
    assert_eq!(remains.key.as_str(), PSEUDONYM);
    assert_eq!(remains.advertising_id, None);
    assert_eq!(remains.consent, Consent::default());
    assert_eq!(remains.traits.platform, Platform::Android);
    assert_eq!(remains.country.as_deref(), Some("DE"));
    assert_eq!(
        (remains.first_seen_at, remains.last_seen_at),
        (at(1), at(2))
    );
}

fn considered(number: u8, method: MatchMethod) -> ConsideredCandidate {
    ConsideredCandidate {
        click: Some(ClickId::from_bytes([number; 16])),
        link: None,
        network: None,
        clicked_at: None,
        age_seconds: None,
        method,
        score: None,
        signals: None,
        rejection: None,
    }
}

fn decision() -> Decision {
    let text = || Some("text".to_owned());
    let pairs = || BTreeMap::from([("text".to_owned(), "text".to_owned())]);
    Decision {
        state: MatchState::Attributed,
        match_type: MatchType::ClickId,
        network: CreditedNetwork::Ad(Network::A),
        confidence: Some(100),
        click: Some(ClickId::from_bytes([1; 16])),
        link: None,
        campaign: Campaign {
            id: Some("spring".to_owned()),
            ..Campaign::default()
        },
        keyword: text(),
        network_click_id: Some(("gclid".to_owned(), "text".to_owned())),
        deep_link: text(),
        custom_data: pairs(),
        query_params: pairs(),
        reason: "The click id was delivered.".to_owned(),
        flags: BTreeSet::new(),
        candidates: vec![
            considered(1, MatchMethod::ClickId),
            considered(2, MatchMethod::AdvertisingId),
            considered(3, MatchMethod::Probabilistic),
        ],
        evidence: EvidenceSummary::default(),
        times: ReferrerTimes {
            click_at: Some(at(1)),
            ..ReferrerTimes::default()
        },
        settings: SettingsSummary {
            click_window_hours: 1,
            probabilistic: true,
            window_hours: 1,
        },
    }
}

#[test]
fn a_decision_keeps_its_credit() {
    let before = Attribution::first(AttributionId::from_bytes([1; 16]), decision(), at(1));
    let remains = erasure().erase_attribution(before.clone());
    assert_eq!(remains.credit(), before.credit());
    assert_eq!(remains.decision.reason, before.decision.reason);
    assert!(!format!("{remains:?}").contains("text"));
    assert_eq!(remains.decision.candidates, []);
    assert_eq!(remains.decision.times, ReferrerTimes::default());
}

#[test]
fn probabilistic_candidates_belong_to_other_people() {
    let own = [1, 2].map(|number| ClickId::from_bytes([number; 16]));
    let known = DeviceState {
        attribution: Some(Attribution::first(
            AttributionId::from_bytes([1; 16]),
            decision(),
            at(1),
        )),
        ..DeviceState::default()
    };
    let clicks = clicks_of_device(&known, &EventReferences::default());
    assert_eq!(clicks, BTreeSet::from(own));
}

#[test]
fn an_event_keeps_what_reports_and_deduplication_need() {
    let mut before = event("purchase");
    before.source = EventSource::Web;
    before.revenue = Some(worth(Some("9.99"), None));
    let mut expected = before.clone();
    before.user = Some(person("p"));
    before.params = Some(r#"{"name":"text"}"#.to_owned());
    let website = |source_url: &str, email: Option<&str>| WebEventDetails {
        source_url: source_url.to_owned(),
        parent: Some("e0".to_owned()),
        email_sha256: email.map(str::to_owned),
    };
    before.website = Some(Box::new(website("https://text", Some("text"))));
    expected.device = Some(pseudonym([1; 16]));
    expected.website = Some(Box::new(website("", None)));
    assert_eq!(erasure().erase_event(before.clone()), expected);
    before.device = None;
    expected.device = None;
    assert_eq!(
        erasure().erase_event(before),
        expected,
        "it never had a device"
    );
}

#[test]
fn a_click_keeps_what_reports_need() {
    let text = || Some("text".to_owned());
    let mut expected = click();
    expected.country = Some("DE".to_owned());
    expected.user_agent = None;
    expected.captured = TrackingParams::default();
    expected.captured.campaign.id = Some("spring".to_owned());
    let mut before = expected.clone();
    before.agent.model = text();
    before.agent.os_version = text();
    before.language = text();
    before.timezone = text();
    before.referer = text();
    before.user_agent = text();
    before.address = Some([203, 0, 113, 9].into());
    before.address_hash = Some(Digest::of(b"text"));
    before.advertising_hash = Some(Digest::of(b"text"));
    before.captured.click_ids.gclid = text();
    before.captured.browser_ids.fbp = text();
    before.captured.utm.content = text();
    before.captured.keyword = text();
    before.captured.query_params = BTreeMap::from([("ref".to_owned(), "text".to_owned())]);
    assert_eq!(erasure().erase_click(before), expected);
}

/// Returns a notification about users, matched to a device that the app named.
fn matched(second: i64, name: &str, people: &[&str]) -> Notification {
    let mut one = notification(second, NotificationMeaning::TrialStart);
    one.content.subscriber.device = Some(device(name));
    one.content.subscriber.people = people.iter().map(|name| person(name)).collect();
    one.join = Some(Join {
        device: device(name),
        rule: JoinRule::Named,
        since: at(second),
    });
    one.settled.device = Some(device(name));
    one
}

#[test]
fn a_subscription_stays_with_the_pseudonym() {
    let remains = erasure().erase_notification(matched(1, "d", &["p", "shared"]));
    let mut expected = matched(1, PSEUDONYM, &[]);
    expected.content.subscriber.device = None;
    assert_eq!(remains, expected);
}

#[test]
fn another_device_loses_only_the_erased_ids() {
    let remains = erasure().erase_notification(matched(1, "other", &["p", "shared"]));
    assert_eq!(remains, matched(1, "other", &["shared"]));
    let unrelated = matched(1, "other", &["shared"]);
    assert_eq!(erasure().erase_notification(unrelated.clone()), unrelated);
}

/// A payment that stayed with a pseudonym when a device's user erased the device, because the user id
/// was not signed.
#[test]
fn a_payment_of_an_erased_device_loses_its_subscriber_with_the_user() {
    let earlier = pseudonym([9; 16]);
    let before = matched(1, earlier.as_str(), &["p", "alias"]);
    let remains = erasure().erase_notification(before);
    assert_eq!(remains.people().count(), 0);
    assert_eq!(remains.settled.device, Some(earlier));
}

#[test]
fn another_devices_event_loses_only_the_erased_user() {
    let mut before = event("purchase");
    before.params = Some("{}".to_owned());
    before.user = Some(person("p"));
    let remains = erasure().erase_user_of_event(before.clone());
    assert_eq!((&remains.user, &remains.params), (&None, &before.params));
    before.user = Some(person("q"));
    assert_eq!(erasure().erase_user_of_event(before.clone()), before);
}

#[test]
fn an_unmatched_notification_of_the_user_stops_waiting() {
    let mut unmatched = notification(1, NotificationMeaning::TrialStart);
    let mut expected = unmatched.clone();
    unmatched.content.subscriber.people = vec![person("p"), person("alias")];
    expected.content.subscriber.device = Some(pseudonym([1; 16]));
    let remains = erasure().erase_notification(unmatched);
    assert_eq!(remains, expected);
    assert_eq!(remains.people().count(), 0);
    let later = |named_device| {
        continues_erased_subscription(std::slice::from_ref(&remains), named_device, at(5))
    };
    assert!(
        later(None) && later(Some(&device("d"))),
        "later notifications belong to the erased device"
    );
}

#[test]
fn a_transfer_loses_the_erased_user() {
    let people = |names: &[&str]| names.iter().map(|name| person(name)).collect();
    let meaning = |from: &[&str], to: &[&str]| NotificationMeaning::Transfer {
        from: people(from),
        to: people(to),
    };
    let remains = erasure().erase_notification(notification(1, meaning(&["p"], &["p", "q"])));
    assert_eq!(remains.content.meaning, meaning(&[], &["q"]));
}

#[rstest]
#[case::never_erased(&[(1, "d")], Some("other"), false)]
#[case::the_erased_id_again(&[(1, PSEUDONYM)], Some("d"), true)]
#[case::no_device_named(&[(1, PSEUDONYM)], None, true)]
#[case::before_the_first(&[(9, PSEUDONYM)], None, true)]
#[case::moved_before_it_was_erased(&[(1, PSEUDONYM), (2, "new")], Some("new"), false)]
#[case::follows_the_one_it_moved_to(&[(1, PSEUDONYM), (2, "new")], None, false)]
#[case::of_the_time_before(&[(1, PSEUDONYM), (9, "new")], None, true)]
#[case::the_pseudonym_itself(&[(1, PSEUDONYM)], Some(PSEUDONYM), true)]
#[case::nothing_known(&[], Some("d"), false)]
fn recognises_later_notifications_of_an_erased_device(
    #[case] known: &[(i64, &str)],
    #[case] named_device: Option<&str>,
    #[case] expected: bool,
) {
    let known: Vec<Notification> = known
        .iter()
        .map(|(second, name)| matched(*second, name, &[]))
        .collect();
    let named_device = named_device.map(device);
    assert_eq!(
        continues_erased_subscription(&known, named_device.as_ref(), at(5)),
        expected
    );
}

fn trace(source: EventSource, external_id: &str, user: Option<&str>, click: Option<u8>) -> Trace {
    Trace {
        event: EventId::from_bytes([1; 16]),
        source,
        external_id: external_id.to_owned(),
        user: user.map(person),
        click: click.map(|number| ClickId::from_bytes([number; 16])),
    }
}

#[test]
fn collects_users_of_the_device_its_links_and_its_events() {
    let mut known = DeviceState::default();
    known.identity.user = Some(person("own"));
    let traces = [
        trace(EventSource::Sdk, "e1", Some("sent"), None),
        trace(EventSource::Web, "e2", None, None),
        trace(EventSource::Sdk, "e3", Some("own"), None),
    ];
    let linked = BTreeSet::from([person("linked")]);
    let expected = ["own", "linked", "sent"].map(person);
    let users = users_of_device(&known, linked, &EventReferences::of(&traces));
    assert_eq!(users, BTreeSet::from(expected));
}

#[test]
fn only_billing_events_lead_to_subscriptions() {
    let traces = [
        trace(EventSource::Sdk, "e1", None, None),
        trace(EventSource::Billing, "e2", None, None),
    ];
    let payments = EventReferences::of(&traces).payments;
    assert_eq!(payments, BTreeSet::from(["e2".to_owned()]));
}

#[test]
fn collects_clicks_of_events_and_of_the_decision() {
    let attribution = Attribution::first(AttributionId::from_bytes([1; 16]), decision(), at(1));
    let known = DeviceState {
        attribution: Some(attribution),
        ..DeviceState::default()
    };
    let references = EventReferences::of(&[trace(EventSource::Web, "e1", None, Some(7))]);
    let ids = |numbers: &[u8]| {
        numbers
            .iter()
            .map(|one| ClickId::from_bytes([*one; 16]))
            .collect()
    };
    assert_eq!(clicks_of_device(&known, &references), ids(&[1, 2, 7]));
    let unknown = DeviceState::default();
    assert_eq!(clicks_of_device(&unknown, &references), ids(&[7]));
}

#[rstest]
#[case::free(Environment::Live, None, &[None], &[])]
#[case::its_own(Environment::Live, Some("d"), &[Some(PSEUDONYM)], &[Some("d")])]
#[case::of_another_device(Environment::Live, Some("other"), &[], &[])]
#[case::free_for_a_test_device(Environment::Test, None, &[None], &[])]
#[case::of_a_live_device_with_the_id_of_a_test_device(Environment::Test, Some("d"), &[], &[])]
fn a_click_of_another_device_is_not_erased(
    #[case] environment: Environment,
    #[case] taken_by: Option<&str>,
    #[case] erased: &[Option<&str>],
    #[case] forgotten: &[Option<&str>],
) {
    let key = device("d");
    let of = DeviceRef {
        app: click().app,
        environment,
        key: &key,
    };
    let stored = || StoredClick {
        click: click(),
        taken_by: taken_by.map(device),
    };
    let expected = |taken_by: &[Option<&str>]| -> Vec<StoredClick> {
        let remains = |taken_by: Option<&str>| StoredClick {
            click: retention::redact_click(click()),
            taken_by: taken_by.map(device),
        };
        taken_by.iter().copied().map(remains).collect()
    };
    assert_eq!(erasure().erase_clicks(of, vec![stored()]), expected(erased));
    assert_eq!(
        retention::redact_clicks(of, vec![stored()]),
        expected(forgotten)
    );
}

#[test]
fn a_subscription_is_found_by_the_keys_that_remain() {
    let mut billed = matched(1, "d", &["p", "shared"]);
    billed.content.transaction = Some("t1".to_owned());
    let of_other = matched(2, "other", &["p", "shared"]);
    let remaining = erasure().erase_chain(vec![billed.clone(), of_other.clone()]);
    let notifications = vec![
        erasure().erase_notification(billed),
        erasure().erase_notification(of_other),
    ];
    assert_eq!(remaining.notifications, notifications);
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    let expected: BTreeSet<String> = keys(&["person:p", "device:d"]);
    assert_eq!(remaining.removed_keys, expected);
    let renamed = format!("device:{PSEUDONYM}");
    let expected = keys(&["person:shared", "device:other", "transaction:t1", &renamed]);
    assert_eq!(remaining.lookup_keys, expected);
}

#[test]
fn finds_subscriptions_by_every_erased_id() {
    let person = erasure().person;
    let keys = person.subscription_keys();
    assert_eq!(keys, ["person:p", "advertising:a", "device:d"]);
    assert_eq!(person.texts(), ["p", "d"]);
}
