//! Subscriptions in cohorts: rebuilt figures equal the incrementally updated ones, even after
//! events moved to other devices.

use super::erasure_fixtures::{billing_notification, device, person};
use super::fixtures::{SharedStore, assert_rebuild_changes_nothing, at, join_all};
use super::sdk_fixtures::{Tenant, event, tenant};
use tributary_domain::access::Environment;
use tributary_domain::billing::{IncomingNotification, NotificationMeaning, PaymentClaim};
use tributary_domain::device::IdentityClaim;
use tributary_domain::install::ConfigureCommand;
use tributary_domain::report::Dimension;
use tributary_domain::report::cohort::CohortReportQuery;

const DAY: i64 = 24 * 60 * 60;
/// Amount of every payment in micro-units.
const PAID: i64 = 10_000_000;

/// Network, days since install, number of active devices, and revenue minus refunds.
type Row = (&'static str, u8, i64, i64);

fn paid(tenant: &Tenant, who: &str, chain: &str, second: i64) -> IncomingNotification {
    let start = NotificationMeaning::Payment(PaymentClaim::Start);
    of_person(
        who,
        billing_notification(tenant, &format!("{chain}-{second}"), chain, second, start),
    )
}

fn of_person(who: &str, mut arrival: IncomingNotification) -> IncomingNotification {
    arrival.content.subscriber.people = vec![person(who)];
    arrival
}

/// Adds the device to a notification.
fn of_device(name: &str, mut arrival: IncomingNotification) -> IncomingNotification {
    arrival.content.subscriber.device = Some(device(name));
    arrival
}

fn with_person(who: &str, mut command: ConfigureCommand) -> ConfigureCommand {
    command.identity.user = Some(person(who));
    command
}

async fn notify(tenant: &Tenant, arrival: IncomingNotification) {
    let accepted = tenant.store.accept_notification(arrival).await;
    accepted.expect("a notification is stored");
}

async fn send_open(tenant: &Tenant, name: &str, second: i64) {
    let events = vec![event(&format!("{name}-{second}"), "open", second)];
    let accepted = tenant
        .store
        .accept_sdk_events(tenant.arrival(name, second), events);
    accepted.await.expect("events are accepted");
}

/// Asserts the cohorts, before and after a rebuild.
async fn assert_cohorts(tenant: &Tenant, expected: &[Row]) {
    let cohorts = async || {
        let periods = vec![(at(-DAY), at(DAY))];
        let query = CohortReportQuery::new(periods, &[Dimension::Network], 30, 1_000);
        let found = tenant.store.cohorts(&tenant.reader, tenant.app.id, query);
        let found = found.await.expect("cohorts are read").into_iter();
        let mut rows: Vec<_> = found
            .map(|row| {
                let money = row.figures.revenue_micros - row.figures.refunded_micros;
                (row.values.concat(), row.age, row.figures.devices, money)
            })
            .filter(|row| (row.2, row.3) != (0, 0))
            .collect();
        rows.sort();
        rows
    };
    let expected: Vec<_> = expected
        .iter()
        .map(|(network, age, devices, money)| ((*network).to_owned(), *age, *devices, *money))
        .collect();
    assert_eq!(cohorts().await, expected);
    assert_rebuild_changes_nothing(&tenant.store).await;
    assert_eq!(cohorts().await, expected);
}

/// A payment that arrived before its device was known counts in the device's cohort later, no
/// matter how the device was found.
pub async fn late_payments_count_in_the_cohort(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(5).await;
    notify(&tenant, paid(&tenant, "one", "sub-1", 10)).await;
    assert_cohorts(&tenant, &[]).await;
    // The device is found through its first `configure` call, which creates the cohort.
    let command = tenant.configure_with_click("phone", &click, 2_000);
    tenant.call_configure(with_person("one", command)).await;
    assert_cohorts(&tenant, &[("network_a", 0, 1, PAID)]).await;
    // The device is found through a user who is identified later, on a day without other events.
    tenant
        .call_configure(tenant.configure("tablet", 3_000))
        .await;
    notify(&tenant, paid(&tenant, "two", "sub-2", 3 * DAY)).await;
    let before: [Row; 2] = [("network_a", 0, 1, PAID), ("organic", 0, 1, 0)];
    assert_cohorts(&tenant, &before).await;
    let identity = IdentityClaim {
        user: Some(person("two")),
        ..IdentityClaim::default()
    };
    let (app, live) = (tenant.app.id, Environment::Live);
    let identified = store.identify(app, live, device("tablet"), identity, at(4 * DAY));
    identified.await.expect("a user is identified");
    let [phone, tablet] = before;
    assert_cohorts(&tenant, &[phone, tablet, ("organic", 2, 1, PAID)]).await;
    // The device is found through a transfer, which links the subscriber to the device's user.
    notify(&tenant, paid(&tenant, "three", "sub-3", 5 * DAY)).await;
    let transfer = NotificationMeaning::Transfer {
        from: vec![person("two")],
        to: vec![person("three")],
    };
    let transfer = billing_notification(&tenant, "transfer", "", 6 * DAY, transfer);
    notify(&tenant, of_person("unknown", transfer)).await;
    let joined: Row = ("organic", 2, 1, PAID);
    assert_cohorts(&tenant, &[phone, tablet, joined, ("organic", 4, 1, PAID)]).await;
}

/// An event that moves to another device leaves its old cohort, together with its revenue. The old
/// device stays active on that day only if it has another event.
pub async fn a_moved_event_leaves_its_cohort(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(5).await;
    let command = tenant.configure_with_click("phone", &click, 10);
    tenant.call_configure(with_person("one", command)).await;
    tenant.call_configure(tenant.configure("tablet", 20)).await;
    for second in [100, 3 * DAY + 100, 5 * DAY + 100] {
        notify(&tenant, paid(&tenant, "one", "sub-1", second)).await;
    }
    send_open(&tenant, "phone", 5 * DAY + 200).await;
    assert_cohorts(
        &tenant,
        &[
            ("network_a", 0, 1, PAID),
            ("network_a", 3, 1, PAID),
            ("network_a", 5, 1, PAID),
            ("organic", 0, 1, 0),
        ],
    )
    .await;
    let renewal = paid(&tenant, "one", "sub-1", 6 * DAY + 100);
    notify(&tenant, of_device("tablet", renewal)).await;
    let moved: [Row; 6] = [
        ("network_a", 0, 1, 0),
        ("network_a", 5, 1, 0),
        ("organic", 0, 1, PAID),
        ("organic", 3, 1, PAID),
        ("organic", 5, 1, PAID),
        ("organic", 6, 1, PAID),
    ];
    assert_cohorts(&tenant, &moved).await;
    // A renewal moves the subscription to a device that was never configured and has no cohort.
    // Earlier payments stay in their cohort.
    let late = paid(&tenant, "one", "sub-1", 7 * DAY + 100);
    notify(&tenant, of_device("unconfigured", late)).await;
    assert_cohorts(&tenant, &moved).await;
    let first = paid(&tenant, "one", "sub-1", 50);
    notify(&tenant, of_device("unconfigured", first)).await;
    let [phone, seen, tablet, _, _, last] = moved;
    let (_, age, devices, _) = tablet;
    assert_cohorts(&tenant, &[phone, seen, ("organic", age, devices, 0), last]).await;
}

/// A refund that arrived before its payment counts in the payment's cohort, with the refund's
/// settled amount.
pub async fn a_settled_refund_updates_its_cohort(store: &SharedStore) {
    let tenant = tenant(store).await;
    let command = tenant.configure("phone", 10);
    tenant.call_configure(with_person("one", command)).await;
    let of_one = |mut arrival: IncomingNotification, usd: &str| {
        arrival.content.transaction = Some("t-1".to_owned());
        arrival.content.price.usd = tributary_domain::vocabulary::money::Amount::parse(usd).ok();
        of_person("one", arrival)
    };
    let back = billing_notification(
        &tenant,
        "back",
        "sub-1",
        3 * DAY,
        NotificationMeaning::RefundReversed,
    );
    notify(&tenant, of_one(back, "9")).await;
    let refund = billing_notification(
        &tenant,
        "refund",
        "sub-1",
        2 * DAY,
        NotificationMeaning::Refund,
    );
    notify(&tenant, of_one(refund, "4")).await;
    let seen: [Row; 3] = [
        ("organic", 0, 1, 0),
        ("organic", 1, 1, 0),
        ("organic", 2, 1, 0),
    ];
    assert_cohorts(&tenant, &seen).await;
    let payment = paid(&tenant, "one", "sub-1", 100);
    notify(&tenant, of_one(payment, "10")).await;
    assert_cohorts(
        &tenant,
        &[
            ("organic", 0, 1, PAID),
            ("organic", 1, 1, -4_000_000),
            ("organic", 2, 1, 4_000_000),
        ],
    )
    .await;
}

/// Figures stay correct when events leave a device that is sending events and being recredited at
/// the same time.
pub async fn moving_events_of_a_busy_device_keeps_figures_right(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(5).await;
    let command = tenant.configure("phone", 10);
    tenant.call_configure(with_person("one", command)).await;
    tenant.call_configure(tenant.configure("tablet", 20)).await;
    for sub in 0..16 {
        let second = (1 + sub) * DAY + 100;
        notify(&tenant, paid(&tenant, "one", &format!("sub-{sub}"), second)).await;
    }
    for round in 0..8 {
        let tasks = (0..8).map(|number: i64| {
            let (store, sub) = (store.clone(), 2 * round + number % 2);
            let second = 20 * DAY + sub;
            let renewal = paid(&tenant, "one", &format!("sub-{sub}"), second);
            // Half of the app's events are on days without other events. The others are on days
            // from which a payment is moved to another device.
            let day = if number < 4 { 30 + sub } else { 1 + sub };
            let open = event(&format!("open-{round}-{number}"), "open", day * DAY + 300);
            let context = tenant.arrival("phone", 60 * DAY);
            let name = if round % 2 == 0 { "phone" } else { "tablet" };
            let claim = tenant.configure_with_click(name, &click, second);
            async move {
                match number {
                    0 | 1 => {
                        let accepted = store
                            .accept_notification(of_device("tablet", renewal))
                            .await;
                        accepted.expect("a notification is stored");
                    }
                    2..6 => {
                        let accepted = store.accept_sdk_events(context, vec![open]).await;
                        accepted.expect("events are accepted");
                    }
                    _ => {
                        store.configure(claim).await.expect("a call succeeds");
                    }
                }
            }
        });
        join_all(tasks.collect()).await;
    }
    assert_rebuild_changes_nothing(store).await;
}
