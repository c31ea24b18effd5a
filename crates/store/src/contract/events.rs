//! Events and their figures.

use super::fixtures::{
    SharedStore, assert_rebuild_changes_nothing, at, first_page, join3, organization, origin,
    rebuild, refusal,
};
use super::sdk_fixtures::{Tenant, event, payment, tenant};
use std::collections::BTreeSet;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::app::AppChange;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::sdk::{SdkEvent, SdkEventOutcome, SdkRequestContext};
use tributary_domain::event::{Event, EventFilter};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::page::PageRequest;
use tributary_domain::vocabulary::revision::Precondition;

async fn accept(tenant: &Tenant, device: &str, events: Vec<SdkEvent>) -> Vec<SdkEventOutcome> {
    let accepted = tenant
        .store
        .accept_sdk_events(tenant.arrival(device, 500), events);
    accepted.await.expect("events are accepted")
}

async fn find(tenant: &Tenant, filter: EventFilter) -> Vec<Event> {
    let log = tenant
        .store
        .events(&tenant.reader, tenant.app.id, filter, first_page("500"));
    log.await.expect("the log is read").items
}

fn ids(events: &[Event]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event.external_id.as_str())
        .collect()
}

/// Every field of an event is stored.
pub async fn an_event_is_read_as_it_was_recorded(store: &SharedStore) {
    let tenant = tenant(store).await;
    let sent = SdkEvent {
        name: "PURCHASE".to_owned(),
        params: Some(r#"{"sku":"é\"1\"","n":1.50}"#.to_owned()),
        ..payment("e1", "9.99", "USD", 10)
    };
    accept(&tenant, "device-1", vec![sent.clone()]).await;
    let found = find(&tenant, EventFilter::default()).await;
    let [found] = found.as_slice() else {
        panic!("expected one event, got {}", found.len())
    };
    assert_eq!((found.id, found.name.as_str()), (sent.id, "purchase"));
    assert_eq!(found.original_name.as_deref(), Some("PURCHASE"));
    assert_eq!((found.occurred_at, found.received_at), (at(10), at(500)));
    assert_eq!(found.params, sent.params);
    assert_eq!((found.credit.as_ref(), found.platform), (None, None));
    let revenue = found.revenue.as_ref().expect("the event has revenue");
    assert_eq!(
        (revenue.amount.micros(), revenue.usd.map(Amount::micros)),
        (9_990_000, Some(9_990_000))
    );
    assert_eq!(
        revenue.rate_day.map(|day| day.to_string()).as_deref(),
        Some("2023-11-14")
    );
    assert_eq!(
        (revenue.uncounted, revenue.rate.as_deref()),
        (None, Some("1"))
    );
}

/// The first event with an id wins, both within a batch and across batches.
pub async fn an_event_is_recorded_once_by_its_id(store: &SharedStore) {
    use SdkEventOutcome::{Accepted, Duplicate};
    let tenant = tenant(store).await;
    let batch = vec![
        event("a", "search", 1),
        event("b", "search", 2),
        event("a", "sign_up", 3),
    ];
    assert_eq!(
        accept(&tenant, "device-1", batch).await,
        [Accepted, Accepted, Duplicate]
    );
    let again = vec![event("b", "purchase", 4), event("c", "search", 5)];
    assert_eq!(
        accept(&tenant, "device-2", again).await,
        [Duplicate, Accepted]
    );
    let in_test = SdkRequestContext {
        environment: Environment::Test,
        ..tenant.arrival("device-1", 500)
    };
    let of_test = store
        .accept_sdk_events(in_test, vec![event("a", "search", 1)])
        .await;
    assert_eq!(
        of_test.expect("events are accepted"),
        [Accepted],
        "the test environment is separate"
    );
    assert_eq!(
        ids(&find(&tenant, EventFilter::default()).await),
        ["c", "b", "a"]
    );
    assert_eq!(tenant.figures_of("").await.events, 3);
    assert_eq!(accept(&tenant, "device-1", Vec::new()).await, []);
}

/// An event sent by three concurrent calls is recorded once.
pub async fn an_event_sent_concurrently_is_recorded_once(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant.call_configure(tenant.configure("device-1", 5)).await;
    for round in 0..10 {
        let id = format!("e{round}");
        let send = || {
            let events = vec![
                payment(&id, "1", "USD", 10),
                event(&format!("{id}-b"), "search", 11),
            ];
            store.accept_sdk_events(tenant.arrival("device-1", 500), events)
        };
        let outcomes = join3(send(), send(), send()).await;
        let accepted = outcomes
            .into_iter()
            .flat_map(|outcome| outcome.expect("events are accepted"))
            .filter(|acceptance| *acceptance == SdkEventOutcome::Accepted)
            .count();
        assert_eq!(accepted, 2);
    }
    let figures = tenant.figures_of("organic").await;
    assert_eq!(
        (figures.purchases, figures.revenue_micros),
        (10, 10_000_000)
    );
    assert_eq!(figures.paying_devices, 1, "a device has one first payment");
}

/// An amount of exactly 2,000 USD counts. Amounts that do not count are stored too.
pub async fn uncounted_amounts_are_stored(store: &SharedStore) {
    let tenant = tenant(store).await;
    let sent = vec![
        payment("limit", "2000", "USD", 1),
        payment("over", "2000.01", "USD", 2),
        payment("negative", "-5", "USD", 3),
        payment("unknown", "5", "ZZZ", 4),
        payment("zero", "0", "USD", 5),
    ];
    accept(&tenant, "device-1", sent).await;
    let found = find(&tenant, EventFilter::default()).await;
    let reasons: Vec<_> = found
        .iter()
        .map(|event| {
            let revenue = event.revenue.as_ref().expect("the amount is stored");
            (
                event.external_id.as_str(),
                revenue
                    .uncounted
                    .map(tributary_domain::ledger::UncountedReason::as_str),
            )
        })
        .collect();
    let expected = [
        ("zero", Some("zero")),
        ("unknown", Some("unconvertible")),
        ("negative", Some("negative")),
        ("over", Some("over_limit")),
        ("limit", None),
    ];
    assert_eq!(reasons, expected);
    let figures = tenant.figures_of("").await;
    assert_eq!(
        (
            figures.purchases,
            figures.revenue_micros,
            figures.refunded_micros
        ),
        (5, 2_000_000_000, 0)
    );
}

/// Euros are converted at the rate for the event's day: 2023-11-14, which the compiled-in rates
/// include.
pub async fn amounts_are_converted_at_the_rate_of_the_event_day(store: &SharedStore) {
    let tenant = tenant(store).await;
    accept(&tenant, "device-1", vec![payment("e1", "10", "EUR", 1)]).await;
    let found = find(&tenant, EventFilter::default()).await;
    let revenue = found[0].revenue.as_ref().expect("the event has revenue");
    assert_eq!(
        revenue.rate_day.map(|day| day.to_string()).as_deref(),
        Some("2023-11-14")
    );
    let usd = revenue.usd.expect("the amount is converted").micros();
    assert!(usd > 10_000_000 && usd < 12_000_000, "{usd}");
    assert_eq!(tenant.figures_of("").await.revenue_micros, usd);
}

/// The log can be filtered by name, id, device and time, alone and combined.
pub async fn the_log_is_filtered(store: &SharedStore) {
    let tenant = tenant(store).await;
    accept(
        &tenant,
        "device-1",
        vec![event("a", "search", 10), event("b", "sign_up", 20)],
    )
    .await;
    accept(
        &tenant,
        "device-2",
        vec![event("c", "search", 30), event("d", "search", 40)],
    )
    .await;
    let all = EventFilter::default;
    let device = |key: &str| Some(DeviceKey::parse(key).expect("a device id"));
    let cases = [
        (
            EventFilter {
                name: Some("search".to_owned()),
                ..all()
            },
            vec!["d", "c", "a"],
        ),
        (
            EventFilter {
                external_id: Some("b".to_owned()),
                ..all()
            },
            vec!["b"],
        ),
        (
            EventFilter {
                external_id: Some("never".to_owned()),
                ..all()
            },
            vec![],
        ),
        (
            EventFilter {
                device: device("device-1"),
                ..all()
            },
            vec!["b", "a"],
        ),
        (
            EventFilter {
                from: Some(at(20)),
                until: Some(at(40)),
                ..all()
            },
            vec!["c", "b"],
        ),
        (
            EventFilter {
                name: Some("search".to_owned()),
                device: device("device-2"),
                until: Some(at(40)),
                ..all()
            },
            vec!["c"],
        ),
        (
            EventFilter {
                name: Some("sign_up".to_owned()),
                external_id: Some("a".to_owned()),
                ..all()
            },
            vec![],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(
            ids(&find(&tenant, filter.clone()).await),
            expected,
            "{filter:?}"
        );
    }
}

/// Pages list events newest first by event time, even while events arrive.
pub async fn the_log_is_paged_while_events_arrive(store: &SharedStore) {
    let tenant = tenant(store).await;
    for number in 0..50 {
        accept(
            &tenant,
            "device-1",
            vec![event(&number.to_string(), "search", 100 + number)],
        )
        .await;
    }
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let request = PageRequest {
            before,
            ..first_page("7")
        };
        let page = store.events(
            &tenant.reader,
            tenant.app.id,
            EventFilter::default(),
            request,
        );
        let page = page.await.expect("the log is read");
        seen.extend(page.items.iter().map(|event| event.external_id.clone()));
        before = page.items.last().map(|event| *event.id.as_bytes());
        let late = event(&format!("new-{}", seen.len()), "search", 400);
        accept(&tenant, "device-1", vec![late]).await;
        if !page.has_more {
            break;
        }
    }
    let expected: Vec<String> = (0..50).rev().map(|number| number.to_string()).collect();
    assert_eq!(seen, expected);
    let unique: BTreeSet<_> = seen.iter().collect();
    assert_eq!(unique.len(), seen.len());
}

/// Other organizations read no events and no figures.
pub async fn another_organization_reads_no_events(store: &SharedStore) {
    let tenant = tenant(store).await;
    accept(&tenant, "device-1", vec![event("a", "search", 10)]).await;
    let stranger = organization(store).await;
    let stranger: Authorized<AnalyticsRead> = Authorized::operator(stranger.organization());
    let log = store.events(
        &stranger,
        tenant.app.id,
        EventFilter::default(),
        first_page("5"),
    );
    assert_eq!(refusal(log.await), Refusal::AppNotFound);
    let figures = store.figures_by_network(&stranger, tenant.app.id, (at(0), at(900)));
    assert_eq!(refusal(figures.await), Refusal::AppNotFound);
    let reader = tenant.test_reader();
    let page = first_page("5");
    let of_test = store.events(&reader, tenant.app.id, EventFilter::default(), page);
    assert!(of_test.await.expect("the log is read").items.is_empty());
}

/// A rebuild applies the current revenue rule to stored events, in the figures and in the log.
pub async fn a_rebuild_applies_the_current_revenue_rule(store: &SharedStore) {
    let tenant = tenant(store).await;
    let value = |id: &str, name: &str| SdkEvent {
        name: name.to_owned(),
        ..payment(id, "500", "USD", 5)
    };
    // The events are accepted while both names are revenue events, so both amounts count, as in
    // older versions, which counted every amount.
    let mut arrival = tenant.arrival("device-1", 6);
    arrival.revenue_events = vec!["add_to_cart".to_owned(), "coins".to_owned()];
    let sent = vec![value("cart", "add_to_cart"), value("coins", "coins")];
    let accepted = store.accept_sdk_events(arrival, sent).await;
    accepted.expect("events are accepted");
    let change = AppChange {
        revenue_events: Change::Set(vec!["coins".to_owned()]),
        ..AppChange::default()
    };
    let changed = store.update_app(
        &tenant.writer,
        tenant.app.id,
        change,
        Precondition::None,
        origin(7),
    );
    changed.await.expect("an app is changed");
    assert_eq!(tenant.figures_of("").await.revenue_micros, 1_000_000_000);
    rebuild(store).await;
    assert_eq!(tenant.figures_of("").await.revenue_micros, 500_000_000);
    let log = find(&tenant, EventFilter::default()).await;
    let counted: Vec<(&str, bool)> = log
        .iter()
        .map(|event| {
            let revenue = event.revenue.as_ref().expect("the amount is stored");
            (event.name.as_str(), revenue.uncounted.is_none())
        })
        .collect();
    assert_eq!(counted.len(), 2);
    assert!(counted.contains(&("add_to_cart", false)) && counted.contains(&("coins", true)));
    assert_rebuild_changes_nothing(store).await;
}
