//! Subscriptions in cohorts: wherever their events end up, figures that are made anew are the ones that are there.

use super::erasure_fixtures::{device, notified, person};
use super::fixtures::{SharedStore, at, join_all, rebuilds_the_same};
use super::sdk_fixtures::{Tenant, event, tenant};
use tributary_domain::access::Environment;
use tributary_domain::billing::{Arrival, Claim, Meaning};
use tributary_domain::device::Identity;
use tributary_domain::install::Configure;
use tributary_domain::report::cohort::{CohortDimension, CohortQuestion};

const DAY: i64 = 24 * 60 * 60;
/// What every payment brings, in millionths.
const PAID: i64 = 10_000_000;

/// Network, age, devices, and money in less money back.
type Row = (&'static str, u8, i64, i64);

fn paid(tenant: &Tenant, who: &str, chain: &str, second: i64) -> Arrival {
    let start = Meaning::Payment(Claim::Start);
    of(
        who,
        notified(tenant, &format!("{chain}-{second}"), chain, second, start),
    )
}

fn of(who: &str, mut arrival: Arrival) -> Arrival {
    arrival.said.subscriber.people = vec![person(who)];
    arrival
}

/// The same, and it says which device it is about.
fn naming(name: &str, mut arrival: Arrival) -> Arrival {
    arrival.said.subscriber.device = Some(device(name));
    arrival
}

fn with_person(who: &str, mut command: Configure) -> Configure {
    command.identity.user = Some(person(who));
    command
}

async fn notify(tenant: &Tenant, arrival: Arrival) {
    let accepted = tenant.store.accept_notification(arrival).await;
    accepted.expect("a notification is kept");
}

async fn opened(tenant: &Tenant, name: &str, second: i64) {
    let events = vec![event(&format!("{name}-{second}"), "open", second)];
    let accepted = tenant
        .store
        .accept_sdk_events(tenant.arrival(name, second), events);
    accepted.await.expect("events are taken");
}

/// The cohorts are these, and stay these when they are made anew.
async fn are(tenant: &Tenant, expected: &[Row]) {
    let told = async || {
        let question = CohortQuestion {
            periods: vec![(at(-DAY), at(DAY))],
            by: Some(CohortDimension::Network),
            age_max: 30,
            rows_max: 1_000,
        };
        let found = tenant
            .store
            .cohorts(&tenant.reader, tenant.app.id, question);
        let found = found.await.expect("cohorts are read").into_iter();
        let mut rows: Vec<_> = found
            .map(|row| {
                let money = row.figures.revenue_micros - row.figures.refunded_micros;
                (row.value, row.age, row.figures.devices, money)
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
    assert_eq!(told().await, expected);
    rebuilds_the_same(&tenant.store).await;
    assert_eq!(told().await, expected);
}

/// Money that came before its device was known is in that device's cohort once it is, however it is found.
pub async fn late_money_is_in_its_cohort(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.clicked(5).await;
    notify(&tenant, paid(&tenant, "one", "sub-1", 10)).await;
    are(&tenant, &[]).await;
    // With the first call, which makes the cohort.
    let command = tenant.claims("phone", &click, 2_000);
    tenant.configured(with_person("one", command)).await;
    are(&tenant, &[("network_a", 0, 1, PAID)]).await;
    // By a person who is known later, on a day without anything else.
    tenant.configured(tenant.configure("tablet", 3_000)).await;
    notify(&tenant, paid(&tenant, "two", "sub-2", 3 * DAY)).await;
    let before: [Row; 2] = [("network_a", 0, 1, PAID), ("organic", 0, 1, 0)];
    are(&tenant, &before).await;
    let identity = Identity {
        user: Some(person("two")),
        ..Identity::default()
    };
    let (app, live) = (tenant.app.id, Environment::Live);
    let known = store.identify(app, live, device("tablet"), identity, at(4 * DAY));
    known.await.expect("a person is known");
    let [phone, tablet] = before;
    are(&tenant, &[phone, tablet, ("organic", 2, 1, PAID)]).await;
    // By a transfer: what one person had is another's, and so is the device.
    notify(&tenant, paid(&tenant, "three", "sub-3", 5 * DAY)).await;
    let transfer = Meaning::Transfer {
        from: vec![person("two")],
        to: vec![person("three")],
    };
    let transfer = notified(&tenant, "transfer", "", 6 * DAY, transfer);
    notify(&tenant, of("nobody", transfer)).await;
    let joined: Row = ("organic", 2, 1, PAID);
    are(&tenant, &[phone, tablet, joined, ("organic", 4, 1, PAID)]).await;
}

/// An event that turns out to be another device's leaves the cohort that it was in, money and all. The device that it
/// leaves was seen on that day only if it did something else.
pub async fn what_leaves_a_device_leaves_its_cohort(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.clicked(5).await;
    let command = tenant.claims("phone", &click, 10);
    tenant.configured(with_person("one", command)).await;
    tenant.configured(tenant.configure("tablet", 20)).await;
    for second in [100, 3 * DAY + 100, 5 * DAY + 100] {
        notify(&tenant, paid(&tenant, "one", "sub-1", second)).await;
    }
    opened(&tenant, "phone", 5 * DAY + 200).await;
    are(
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
    notify(&tenant, naming("tablet", renewal)).await;
    let moved: [Row; 6] = [
        ("network_a", 0, 1, 0),
        ("network_a", 5, 1, 0),
        ("organic", 0, 1, PAID),
        ("organic", 3, 1, PAID),
        ("organic", 5, 1, PAID),
        ("organic", 6, 1, PAID),
    ];
    are(&tenant, &moved).await;
    // To one that never was configured, and so is in no cohort: all that was paid before it stays.
    let late = paid(&tenant, "one", "sub-1", 7 * DAY + 100);
    notify(&tenant, naming("somebody-elses", late)).await;
    are(&tenant, &moved).await;
    let first = paid(&tenant, "one", "sub-1", 50);
    notify(&tenant, naming("somebody-elses", first)).await;
    let [phone, seen, tablet, _, _, last] = moved;
    let (_, age, devices, _) = tablet;
    are(&tenant, &[phone, seen, ("organic", age, devices, 0), last]).await;
}

/// A refund that waited for its payment is in its cohort with what it came to.
pub async fn money_that_comes_to_something_else_moves_in_its_cohort(store: &SharedStore) {
    let tenant = tenant(store).await;
    let command = tenant.configure("phone", 10);
    tenant.configured(with_person("one", command)).await;
    let of_one = |mut arrival: Arrival, usd: &str| {
        arrival.said.transaction = Some("t-1".to_owned());
        arrival.said.price.usd = tributary_domain::vocabulary::money::Amount::parse(usd).ok();
        of("one", arrival)
    };
    let back = notified(&tenant, "back", "sub-1", 3 * DAY, Meaning::RefundReversed);
    notify(&tenant, of_one(back, "9")).await;
    let refund = notified(&tenant, "refund", "sub-1", 2 * DAY, Meaning::Refund);
    notify(&tenant, of_one(refund, "4")).await;
    let seen: [Row; 3] = [
        ("organic", 0, 1, 0),
        ("organic", 1, 1, 0),
        ("organic", 2, 1, 0),
    ];
    are(&tenant, &seen).await;
    let payment = paid(&tenant, "one", "sub-1", 100);
    notify(&tenant, of_one(payment, "10")).await;
    are(
        &tenant,
        &[
            ("organic", 0, 1, PAID),
            ("organic", 1, 1, -4_000_000),
            ("organic", 2, 1, 4_000_000),
        ],
    )
    .await;
}

/// Events that leave a device while it goes on talking, and while both are credited anew, are counted right.
pub async fn leaving_meets_a_busy_device(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.clicked(5).await;
    let command = tenant.configure("phone", 10);
    tenant.configured(with_person("one", command)).await;
    tenant.configured(tenant.configure("tablet", 20)).await;
    for sub in 0..16 {
        let second = (1 + sub) * DAY + 100;
        notify(&tenant, paid(&tenant, "one", &format!("sub-{sub}"), second)).await;
    }
    for round in 0..8 {
        let tasks = (0..8).map(|number: i64| {
            let (store, sub) = (store.clone(), 2 * round + number % 2);
            let second = 20 * DAY + sub;
            let renewal = paid(&tenant, "one", &format!("sub-{sub}"), second);
            // On a day of its own, or on one that an event leaves.
            let day = if number < 4 { 30 + sub } else { 1 + sub };
            let open = event(&format!("open-{round}-{number}"), "open", day * DAY + 300);
            let talks = tenant.arrival("phone", 60 * DAY);
            let name = if round % 2 == 0 { "phone" } else { "tablet" };
            let claim = tenant.claims(name, &click, second);
            async move {
                match number {
                    0 | 1 => {
                        let kept = store.accept_notification(naming("tablet", renewal)).await;
                        kept.expect("it is kept");
                    }
                    2..6 => {
                        let accepted = store.accept_sdk_events(talks, vec![open]).await;
                        accepted.expect("events are taken");
                    }
                    _ => {
                        store.configure(claim).await.expect("a call is taken");
                    }
                }
            }
        });
        join_all(tasks.collect()).await;
    }
    rebuilds_the_same(store).await;
}
