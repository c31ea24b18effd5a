//! Deliveries are planned when an event is recorded, or later when its credit becomes known.

use super::fixtures::{SharedStore, at};
use super::outbox_fixtures::{ForwardingApp, LEASE, connected, forwarding_app};
use super::sdk_fixtures::payment;
use super::web_events::{post, purchase, shop};
use crate::QueueRef;
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, IdentityClaim, UserKey};
use tributary_domain::event::web::WebEventKind;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::forwarding::{Conversion, SkipReason};
use tributary_domain::integration::{IntegrationChange, Network, SettingValue};
use tributary_domain::vocabulary::change::Change;

/// A delivery for a mapped and credited event is planned at once. Otherwise the event gets a skip
/// reason, and no delivery is stored.
pub async fn a_delivery_is_planned_with_its_event(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.change(Network::C, connected(Network::C), 4).await;
    one.attribute_install("phone", 10).await;
    one.send_events("phone", &["s1"], "sign_up", 11).await;
    one.send_events("phone", &["b1"], "boss_defeated", 12).await;
    one.send_events("stranger", &["s2"], "sign_up", 13).await;
    let statuses = one.delivery_statuses().await;
    let planned = |id: &str| (id.to_owned(), "pending", None);
    assert_eq!(statuses, [planned("install"), planned("s1")]);
    let skipped = |id: &str, log: &[tributary_domain::event::Event]| {
        let found = log.iter().find(|event| event.external_id == id);
        found.expect("an event").skipped.clone()
    };
    let log = one.log().await;
    assert_eq!(
        skipped("s1", &log),
        [(Network::C, SkipReason::NotAttributed)]
    );
    let both = [
        (Network::A, SkipReason::NotMapped),
        (Network::C, SkipReason::NotAttributed),
    ];
    assert_eq!(skipped("b1", &log), both);
    let unattributed = [
        (Network::A, SkipReason::NotAttributed),
        (Network::C, SkipReason::NotAttributed),
    ];
    assert_eq!(skipped("s2", &log), unattributed);
}

/// No delivery is planned for a duplicate, or for a purchase whose amount must not be forwarded.
pub async fn a_duplicate_plans_nothing(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    for _ in 0..2 {
        one.send_events("phone", &["s1"], "sign_up", 11).await;
    }
    let arrival = one.tenant.arrival("phone", 12);
    let events = vec![
        payment("p1", "10", "USD", 12),
        payment("p2", "2000.01", "USD", 12),
    ];
    store
        .accept_sdk_events(arrival, events)
        .await
        .expect("events are accepted");
    let ids: Vec<String> = one
        .delivery_statuses()
        .await
        .into_iter()
        .map(|one| one.0)
        .collect();
    assert_eq!(ids, ["install", "p1", "s1"]);
}

/// Enabling an integration does not send older events.
pub async fn enabling_an_integration_does_not_replay_history(store: &SharedStore) {
    let one = forwarding_app(store).await;
    let off = IntegrationChange {
        enabled: Change::Set(false),
        ..IntegrationChange::default()
    };
    one.change(Network::A, off, 5).await;
    one.send_events("phone", &["s1"], "sign_up", 6).await;
    let on = IntegrationChange {
        enabled: Change::Set(true),
        ..IntegrationChange::default()
    };
    one.change(Network::A, on, 7).await;
    // The install credits earlier events, but events from before the integration was enabled are
    // not sent.
    one.attribute_install("phone", 10).await;
    assert_eq!(
        one.delivery_statuses().await,
        [("install".to_owned(), "pending", None)]
    );
    let log = one.log().await;
    let early = log
        .iter()
        .find(|event| event.external_id == "s1")
        .expect("the event");
    assert_eq!(early.skipped, [(Network::A, SkipReason::EnabledLater)]);
}

/// Events from before the first `configure` call are credited by that call, and then sent.
pub async fn a_late_credit_plans_recent_events(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.send_events("phone", &["s1"], "sign_up", 8).await;
    assert_eq!(one.delivery_statuses().await, []);
    one.attribute_install("phone", 10).await;
    let pending = |id: &str| (id.to_owned(), "pending", None);
    assert_eq!(
        one.delivery_statuses().await,
        [pending("install"), pending("s1")]
    );
    assert!(one.log().await.iter().all(|event| event.skipped.is_empty()));
}

/// A web payment's delivery is planned once. No delivery is planned for events that are only used
/// in reports, such as renewals.
pub async fn web_events_are_planned(store: &SharedStore) {
    let (tenant, click) = shop(store).await;
    let one = ForwardingApp {
        queue: QueueRef {
            app: tenant.app.id,
            network: Network::A,
        },
        tenant,
    };
    one.change(Network::A, connected(Network::A), 6).await;
    let renewal = post(&click, WebEventKind::Renewal, "r1", "5", Some("p1"));
    for posted in [
        purchase(&click, "p1", "10"),
        purchase(&click, "p1", "10"),
        renewal,
        purchase(&click, "p2", "2000.01"),
    ] {
        store
            .accept_web_event(posted)
            .await
            .expect("an event is accepted");
    }
    assert_eq!(
        one.delivery_statuses().await,
        [("p1".to_owned(), "pending", None)]
    );
    let log = one.log().await;
    let skipped = |id: &str| {
        let found = log.iter().find(|event| event.external_id == id);
        found.expect("an event").skipped.clone()
    };
    assert_eq!(skipped("p1"), []);
    assert_eq!(skipped("r1"), [(Network::A, SkipReason::ReportingOnly)]);
    assert_eq!(
        skipped("p2"),
        [(Network::A, SkipReason::AmountNotForwardable)]
    );
    one.lease(LEASE, 200, 300).await.expect("a lease");
    let taken = one.take_due(LEASE, 200).await.expect("deliveries");
    let gathered = store
        .gather_conversions(one.queue, taken)
        .await
        .expect("conversions");
    let conversion = gathered[0].conversion.clone().expect("its event exists");
    assert_eq!(
        conversion.page_url.as_deref(),
        Some("https://shop.example.com/paid")
    );
    assert_eq!(conversion.matching.email, Some("ab".repeat(32)));
    assert_eq!(conversion.user, conversion.event.user);
}

/// Two spellings of a UUID are the same device, and networks get the spelling that the app sent
/// first. Web events keep their own spelling.
pub async fn device_ids_ignore_case_and_keep_their_spelling(store: &SharedStore) {
    const UPPER: &str = "6F9619FF-8B86-4011-B42D-00C04FC964FF";
    const LOWER: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";
    let one = forwarding_app(store).await;
    one.attribute_install(UPPER, 10).await;
    let again = one
        .tenant
        .call_configure(one.tenant.configure(LOWER, 11))
        .await;
    assert!(!again.is_first_open, "UUIDs are case-insensitive");
    one.send_events(LOWER, &["s1"], "sign_up", 12).await;
    assert_eq!(spellings(&one).await, vec![Some(UPPER.to_owned()); 2]);

    let (tenant, click) = shop(store).await;
    let one = ForwardingApp {
        queue: QueueRef {
            app: tenant.app.id,
            network: Network::A,
        },
        tenant,
    };
    one.change(Network::A, connected(Network::A), 6).await;
    for (id, device) in [("p1", UPPER), ("p2", LOWER)] {
        let mut posted = purchase(&click, id, "10");
        posted.device = DeviceKey::parse(device).expect("a device id");
        let accepted = store.accept_web_event(posted).await;
        accepted.expect("an event is accepted");
    }
    let expected = [UPPER, LOWER].map(|device| Some(device.to_owned()));
    assert_eq!(spellings(&one).await, expected);
}

/// Returns each conversion's device id as the network gets it, ordered by external id.
async fn spellings(one: &ForwardingApp) -> Vec<Option<String>> {
    one.lease(LEASE, 200, 300).await.expect("a lease");
    let taken = one.take_due(LEASE, 200).await.expect("deliveries");
    let gathered = one.tenant.store.gather_conversions(one.queue, taken).await;
    let mut conversions: Vec<_> = gathered
        .expect("conversions")
        .into_iter()
        .filter_map(|one| one.conversion)
        .collect();
    conversions.sort_by_key(|one| one.event.external_id.clone());
    let spelling = |one: &Conversion| one.device_id().map(str::to_owned);
    conversions.iter().map(spelling).collect()
}

/// App events are sent with the user id of their device, even if the user was identified later.
pub async fn the_user_id_is_gathered_for_app_events(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    let identity = IdentityClaim {
        user: UserKey::parse("user-77").ok(),
        ..IdentityClaim::default()
    };
    let device = DeviceKey::parse("phone").expect("an id");
    let app = one.queue.app;
    let identified = store.identify(app, Environment::Live, device, identity, at(11));
    identified.await.expect("a user is identified");
    one.lease(LEASE, 200, 300).await.expect("a lease");
    let taken = one.take_due(LEASE, 200).await.expect("deliveries");
    let gathered = store
        .gather_conversions(one.queue, taken)
        .await
        .expect("conversions");
    let install = gathered[0].conversion.clone().expect("its event exists");
    assert_eq!(install.user, UserKey::parse("user-77").ok());
    assert_eq!(install.external_ids().len(), 2);
}

/// When the credit moves to another network, pending deliveries are cancelled, and deliveries to
/// the new network are planned.
pub async fn moved_credit_moves_deliveries(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.change(Network::C, connected(Network::C), 4).await;
    let forwards_probabilistic = IntegrationChange {
        settings: BTreeMap::from([(
            "forwardProbabilistic",
            Change::Set(SettingValue::Flag(true)),
        )]),
        ..IntegrationChange::default()
    };
    one.change(Network::A, forwards_probabilistic, 5).await;
    one.tenant.record_click(10).await;
    let mut right = one.tenant.click(20);
    right.network = Some(Network::C);
    right.address_hash = None;
    store.record_click(right.clone()).await.expect("a click");
    let first = one.tenant.configure_from_address("phone", 60);
    one.tenant.call_configure(first).await;
    one.send_events("phone", &["s1"], "sign_up", 61).await;
    let networks = async || {
        let all = one.deliveries(DeliveryFilter::default()).await;
        let mut all: Vec<_> = all
            .iter()
            .map(|one| (one.delivery.network.as_str(), one.delivery.status.as_str()))
            .collect();
        all.sort_unstable();
        all
    };
    assert_eq!(networks().await, [("network_a", "pending"); 2]);
    let better = one.tenant.configure_with_click("phone", &right, 80);
    one.tenant.call_configure(better).await;
    let cancelled = ("network_a", "cancelled");
    let pending = ("network_c", "pending");
    assert_eq!(networks().await, [cancelled, cancelled, pending, pending]);
    for event in one.log().await {
        assert_eq!(event.skipped, [(Network::A, SkipReason::NotAttributed)]);
    }
}
