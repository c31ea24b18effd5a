//! Events reported by two sources.

use super::fixtures::{SharedStore, assert_rebuild_changes_nothing, at, join_all, refusal, unique};
use super::outbox_fixtures::{ForwardingApp, connected};
use super::sdk_fixtures::{event, payment};
use super::web_events::{post, purchase, shop};
use crate::QueueRef;
use std::collections::BTreeMap;
use std::pin::Pin;
use tributary_domain::click::Click;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::sdk::SdkEvent;
use tributary_domain::event::web::{WebEvent, WebEventKind};
use tributary_domain::event::{Event, EventFilter, EventSource};
use tributary_domain::forwarding::SkipReason;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::integration::Network;
use tributary_domain::ledger::UncountedReason;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Figures;
use tributary_domain::vocabulary::id::EventId;

/// Creates a shop that forwards to Meta (`network_a`), and a phone whose install is credited to
/// Meta.
pub(super) async fn forwarding_shop(store: &SharedStore) -> (ForwardingApp, Click) {
    let (tenant, click) = shop(store).await;
    let queue = QueueRef {
        app: tenant.app.id,
        network: Network::A,
    };
    let one = ForwardingApp { tenant, queue };
    one.change(Network::A, connected(Network::A), 6).await;
    one.attribute_install("phone", 10).await;
    (one, click)
}

impl ForwardingApp {
    pub(super) async fn report_sdk_event(&self, device: &str, event: SdkEvent) {
        let arrival = self.tenant.arrival(device, 100);
        let accepted = self.tenant.store.accept_sdk_events(arrival, vec![event]);
        accepted.await.expect("events are accepted");
    }

    pub(super) async fn post_web_event(&self, posted: WebEvent) {
        let accepted = self.tenant.store.accept_web_event(posted).await;
        assert!(!accepted.expect("an event is accepted").is_duplicate);
    }

    pub(super) async fn event(&self, source: EventSource, id: &str) -> Event {
        let log = self.log().await.into_iter();
        let mut found = log.filter(|event| event.source == source && event.external_id == id);
        found.next().expect("an event")
    }

    /// Returns an event's deliveries: status, reason and deduplication id.
    pub(super) async fn deliveries_of_event(
        &self,
        event: &Event,
    ) -> Vec<(&'static str, Option<String>, String)> {
        let all = self.deliveries(DeliveryFilter::default()).await;
        let of_event = all.into_iter().filter(|one| one.delivery.event == event.id);
        of_event
            .map(|one| {
                let delivery = one.delivery;
                (delivery.status.as_str(), delivery.reason, delivery.dedup_id)
            })
            .collect()
    }

    pub(super) async fn total(&self) -> Figures {
        let mut total = Figures::default();
        for (_, figures) in self.tenant.figures().await {
            total.add(&figures, 1);
        }
        total
    }
}

pub(super) fn assert_duplicate_of(sdk: &Event, verified: &Event) {
    assert_eq!(sdk.duplicate_of, Some(verified.id));
    assert!(!sdk.first_payment);
    if let Some(revenue) = &sdk.revenue {
        assert_eq!(
            revenue.uncounted,
            Some(UncountedReason::DuplicateOfVerified)
        );
    }
    assert_eq!(sdk.skipped, [(Network::A, SkipReason::DuplicateOfVerified)]);
    assert_eq!(verified.duplicate_of, None);
}

/// The SDK event stops counting when a website reports the same payment, and the event's pending
/// delivery is cancelled. The web event is sent with the SDK event's deduplication id, because the
/// network may already have received the SDK event.
pub async fn a_web_event_replaces_the_sdk_event(store: &SharedStore) {
    let (one, click) = forwarding_shop(store).await;
    one.report_sdk_event("phone", payment("o1", "9", "USD", 100))
        .await;
    let before = one.event(EventSource::Sdk, "o1").await;
    assert!(before.first_payment && before.skipped.is_empty());
    let [(_, _, dedup_id)] = &one.deliveries_of_event(&before).await[..] else {
        panic!("expected one delivery");
    };
    let refund = post(&click, WebEventKind::Refund, "r1", "-10", Some("o1"));
    let early = store.accept_web_event(refund.clone()).await;
    assert_eq!(refusal(early), Refusal::OriginalTransactionUnavailable);

    one.post_web_event(purchase(&click, "o1", "10")).await;
    let (sdk, web) = (
        one.event(EventSource::Sdk, "o1").await,
        one.event(EventSource::Web, "o1").await,
    );
    assert_duplicate_of(&sdk, &web);
    assert_eq!((sdk.dedup_root, web.dedup_root), (None, Some(sdk.id)));
    let cancelled = Some("duplicate_of_verified".to_owned());
    assert_eq!(
        one.deliveries_of_event(&sdk).await,
        [("cancelled", cancelled, dedup_id.clone())]
    );
    assert_eq!(
        one.deliveries_of_event(&web).await,
        [("pending", None, dedup_id.clone())]
    );
    let total = one.total().await;
    assert_eq!(
        (total.purchases, total.paying_devices, total.revenue_micros),
        (1, 1, 10_000_000)
    );
    // The id now belongs to the web event.
    let again = store.accept_web_event(purchase(&click, "o1", "10")).await;
    assert!(again.expect("a duplicate is accepted").is_duplicate);
    one.post_web_event(refund).await;
    assert_rebuild_changes_nothing(store).await;
}

/// An SDK event whose payment a website reported earlier does not count, and no delivery is planned
/// for it.
pub async fn an_sdk_event_after_the_web_event_does_not_count(store: &SharedStore) {
    let (one, click) = forwarding_shop(store).await;
    one.post_web_event(purchase(&click, "o1", "10")).await;
    let subscribed = SdkEvent {
        name: "SUBSCRIBE".to_owned(),
        ..payment("o1", "9", "USD", 100)
    };
    one.report_sdk_event("phone", subscribed).await;
    let (sdk, web) = (
        one.event(EventSource::Sdk, "o1").await,
        one.event(EventSource::Web, "o1").await,
    );
    assert_duplicate_of(&sdk, &web);
    assert_eq!((sdk.dedup_root, web.dedup_root), (Some(web.id), None));
    assert_eq!(one.deliveries_of_event(&sdk).await, []);
    let total = one.total().await;
    assert_eq!((total.purchases, total.subscriptions), (1, 0));
    assert_eq!(
        (total.paying_devices, total.revenue_micros),
        (1, 10_000_000)
    );
    // A later attribution of the device does not make the event count again.
    one.attribute_install("phone", 300).await;
    assert_eq!(one.deliveries_of_event(&sdk).await, []);
    // A search by the id finds the SDK event and the web event. The reserved key itself is not an
    // event.
    let filter = EventFilter {
        external_id: Some("o1".to_owned()),
        ..EventFilter::default()
    };
    let page = super::fixtures::first_page("10");
    let found = store.events(&one.tenant.reader, one.queue.app, filter, page);
    assert_eq!(found.await.expect("events").items.len(), 2);
    assert_rebuild_changes_nothing(store).await;
}

/// Events with the same id but different kinds are not duplicates.
pub async fn events_of_different_kinds_are_not_duplicates(store: &SharedStore) {
    let (one, click) = forwarding_shop(store).await;
    one.report_sdk_event("phone", event("a", "sign_up", 100))
        .await;
    one.post_web_event(purchase(&click, "a", "10")).await;
    one.post_web_event(purchase(&click, "b", "10")).await;
    one.report_sdk_event("phone", event("b", "sign_up", 100))
        .await;
    one.report_sdk_event("phone", event("c", "level_complete", 100))
        .await;
    one.post_web_event(purchase(&click, "c", "10")).await;
    let log = one.log().await;
    assert!(log.iter().all(|event| event.duplicate_of.is_none()));
    assert!(log.iter().all(|event| event.dedup_root.is_none()));
    let total = one.total().await;
    assert_eq!((total.purchases, total.sign_ups), (3, 2));
    assert_rebuild_changes_nothing(store).await;
}

/// When the first payment becomes a duplicate, the device's next payment becomes the first.
pub async fn the_first_payment_moves_to_the_next_payment(store: &SharedStore) {
    let (one, click) = forwarding_shop(store).await;
    let on = |device: &str, posted: WebEvent| WebEvent {
        device: DeviceKey::parse(device).expect("a device id"),
        ..posted
    };
    // Case 1: another payment on the device still counts.
    one.report_sdk_event("phone", payment("a", "1", "USD", 100))
        .await;
    one.report_sdk_event("phone", payment("b", "2", "USD", 101))
        .await;
    one.post_web_event(on("laptop", purchase(&click, "a", "1")))
        .await;
    assert!(one.event(EventSource::Sdk, "b").await.first_payment);
    assert!(one.event(EventSource::Web, "a").await.first_payment);
    // Case 2: no payment on the device counts any more, so the next payment is its first.
    one.post_web_event(on("laptop", purchase(&click, "b", "2")))
        .await;
    assert!(!one.event(EventSource::Sdk, "b").await.first_payment);
    assert!(!one.event(EventSource::Web, "b").await.first_payment);
    assert_eq!(one.total().await.paying_devices, 1);
    one.report_sdk_event("phone", payment("c", "3", "USD", 102))
        .await;
    assert!(one.event(EventSource::Sdk, "c").await.first_payment);
    // Case 3: the verified event is on the same device as the SDK event.
    one.report_sdk_event("tablet", payment("d", "4", "USD", 103))
        .await;
    one.post_web_event(on("tablet", purchase(&click, "d", "4")))
        .await;
    assert!(one.event(EventSource::Web, "d").await.first_payment);
    assert_eq!(one.total().await.paying_devices, 3);
    assert_rebuild_changes_nothing(store).await;
}

/// A report from one source.
#[derive(Clone)]
enum Report {
    Sdk(&'static str, SdkEvent),
    Web(Box<WebEvent>),
}

fn reports(click: &Click) -> Vec<Report> {
    let on = |device: &str, posted: WebEvent| {
        Report::Web(Box::new(WebEvent {
            device: DeviceKey::parse(device).expect("a device id"),
            id: EventId::new(at(100), unique()),
            ..posted
        }))
    };
    let named = |name: &str, event: SdkEvent| SdkEvent {
        name: name.to_owned(),
        ..event
    };
    let mut sign_up = post(click, WebEventKind::SignUp, "s1", "0", None);
    sign_up.currency = None;
    vec![
        Report::Sdk("phone", payment("p1", "1", "USD", 100)),
        on("phone", purchase(click, "p1", "10")),
        Report::Sdk("phone", named("subscribe", payment("p2", "2", "USD", 101))),
        on("laptop", purchase(click, "p2", "20")),
        Report::Sdk("tablet", payment("p3", "3", "USD", 102)),
        on("tablet", purchase(click, "p3", "30")),
        Report::Sdk("tablet", payment("p4", "4", "USD", 103)),
        on("laptop", purchase(click, "p5", "50")),
        Report::Sdk("phone", event("s1", "sign_up", 104)),
        on("phone", sign_up),
        Report::Sdk("phone", event("p5", "sign_up", 105)),
        Report::Sdk("phone", event("x", "boss_defeated", 106)),
        Report::Sdk("watch", payment("q1", "1", "USD", 107)),
        Report::Sdk("watch", payment("q2", "1", "USD", 90)),
    ]
}

/// Shuffles the order of arrival with a seed.
fn shuffled(mut reports: Vec<Report>, seed: u64) -> Vec<Report> {
    let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    for last in (1..reports.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let bound = u64::try_from(last + 1).expect("small");
        let place = usize::try_from((state >> 33) % bound).expect("small");
        reports.swap(last, place);
    }
    reports
}

/// Results that must not depend on the order of arrival: the figures, and each event's duplicate
/// flag, first-payment flag and revenue.
type Outcome = (
    Figures,
    BTreeMap<(String, &'static str), ((bool, bool), i64)>,
);

async fn outcome(one: &ForwardingApp) -> Outcome {
    let log = one.log().await;
    let roots: BTreeMap<EventId, EventId> =
        log.iter().map(|event| (event.id, event.root())).collect();
    let mut payers: BTreeMap<_, usize> = BTreeMap::new();
    for event in &log {
        *payers.entry(event.device.clone()).or_default() += usize::from(event.first_payment);
        if let Some(verified) = event.duplicate_of {
            assert_eq!(
                roots[&event.id], roots[&verified],
                "both events have the same root"
            );
        }
        if let Some(root) = event.dedup_root {
            assert_eq!(roots[&root], root, "a root is its own root");
        }
    }
    assert!(payers.values().all(|first| *first <= 1));
    let events = log.iter().map(|event| {
        let counted = event.revenue.as_ref();
        let counted = counted.map_or(0, |revenue| revenue.counted_usd().micros());
        let key = (event.external_id.clone(), event.source.as_str());
        let flags = (event.duplicate_of.is_some(), event.first_payment);
        (key, (flags, counted))
    });
    // Installs get a random id in every run, so leave them out.
    let events = events.filter(|((id, _), _)| id.len() < 3).collect();
    (one.total().await, events)
}

/// Number of shuffled orders to test.
const SHUFFLES: u64 = 12;

/// The order of arrival changes neither figures nor counted events.
pub async fn the_order_of_arrival_changes_nothing(store: &SharedStore) {
    let mut expected: Option<Outcome> = None;
    let mut runs = Vec::new();
    for seed in 0..SHUFFLES {
        let (one, click) = forwarding_shop(store).await;
        for report in shuffled(reports(&click), seed) {
            match report {
                Report::Sdk(device, event) => one.report_sdk_event(device, event).await,
                Report::Web(posted) => one.post_web_event(*posted).await,
            }
        }
        let found = outcome(&one).await;
        let expected = expected.get_or_insert_with(|| found.clone());
        assert_eq!(found, *expected, "seed {seed}");
        runs.push(one);
    }
    assert_rebuild_changes_nothing(store).await;
    for one in &runs {
        assert_eq!(Some(outcome(one).await), expected);
    }
    let (total, _) = expected.expect("a run");
    assert_eq!(
        (total.revenue_micros, total.paying_devices),
        (116_000_000, 4)
    );
}

type Reporting<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Concurrent reports of one payment are processed one after the other.
pub async fn concurrent_reports_count_once(store: &SharedStore) {
    let (one, click) = forwarding_shop(store).await;
    let (one, click) = (&one, &click);
    let ids: Vec<String> = (0..40).map(|number| format!("o{number}")).collect();
    let both = ids.iter().enumerate().flat_map(|(place, id)| {
        let device = ["phone", "tablet", "laptop"][place % 3];
        let sdk: Reporting<'_> =
            Box::pin(one.report_sdk_event(device, payment(id, "1", "USD", 100)));
        let web: Reporting<'_> = Box::pin(one.post_web_event(purchase(click, id, "1")));
        if place % 2 == 0 {
            [sdk, web]
        } else {
            [web, sdk]
        }
    });
    join_all(both.collect()).await;
    let total = one.total().await;
    assert_eq!((total.purchases, total.revenue_micros), (40, 40_000_000));
    assert_eq!(
        total.paying_devices, 1,
        "only the visitor has counted payments"
    );
    let log = one.log().await;
    let (sdk, web): (Vec<&Event>, Vec<&Event>) = log
        .iter()
        .filter(|event| event.name == "purchase")
        .partition(|event| event.source == EventSource::Sdk);
    assert!(sdk.iter().all(|event| event.duplicate_of.is_some()));
    for event in web {
        let reported = sdk.iter().find(|sdk| sdk.external_id == event.external_id);
        assert_eq!(reported.expect("the SDK event").root(), event.root());
    }
    assert_rebuild_changes_nothing(store).await;
}

/// Number of races.
const RACES: i64 = 6;

/// After concurrent payments on one device, the earliest counted payment has the first-payment
/// flag. Payments come from all sources, and the previous first payment becomes a duplicate
/// meanwhile.
pub async fn concurrent_payments_leave_one_first_payment(store: &SharedStore) {
    for round in 0..RACES {
        let (one, click) = forwarding_shop(store).await;
        race(&one, &one, &click, round).await;
    }
    assert_rebuild_changes_nothing(store).await;
}

/// Like [`concurrent_payments_leave_one_first_payment`], with two nodes on one database.
pub async fn nodes_leave_one_first_payment(store: &SharedStore, node: &SharedStore) {
    for round in 0..RACES {
        let (one, click) = forwarding_shop(store).await;
        race(&one, &one.through(node), &click, round).await;
    }
    assert_rebuild_changes_nothing(store).await;
}

async fn race(one: &ForwardingApp, other: &ForwardingApp, click: &Click, round: i64) {
    let visitor = "visitor";
    // The first payment so far, which a website also reports during the race.
    one.report_sdk_event(visitor, payment("first", "1", "USD", 50))
        .await;
    let web = |id: String, second: i64| {
        let posted = WebEvent {
            id: EventId::new(at(second), unique()),
            occurred_at: at(second),
            ..purchase(click, &id, "1")
        };
        let reporting: Reporting<'_> = Box::pin(other.post_web_event(posted));
        reporting
    };
    let mut all = vec![web("first".to_owned(), 90)];
    for number in 0..10_i64 {
        let second = 60 + (number * 7 + round * 3) % 30;
        all.push(web(format!("w{number}"), second));
        let sdk = payment(&format!("s{number}"), "1", "USD", second + 1);
        let uncounted = payment(&format!("z{number}"), "0", "USD", second);
        all.push(Box::pin(one.report_sdk_event(visitor, sdk)));
        all.push(Box::pin(other.report_sdk_event(visitor, uncounted)));
    }
    join_all(all).await;
    let log = one.log().await;
    let earliest = log.iter().filter(|event| event.payer().is_some());
    let earliest = earliest.map(|event| event.id).min();
    let flagged = log.iter().filter(|event| event.first_payment);
    let flagged: Vec<EventId> = flagged.map(|event| event.id).collect();
    assert_eq!(flagged, earliest.into_iter().collect::<Vec<_>>());
    assert_eq!(one.total().await.paying_devices, 1);
}
