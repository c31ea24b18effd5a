//! Random subscriber histories in random orders: the order of arrival must not matter.
//!
//! Values that depend on the order or time of arrival are fixed or omitted: a notification has the
//! same `receivedAt` in every order. Events are compared by external id, because event ids depend
//! on the app. Cancelled deliveries are omitted, because they depend on intermediate states.

use super::billing_orders_reports::{StableNames, event_text, reports};
use super::duplicates::forwarding_shop;
use super::erasure_fixtures::{billing_notification, device, person};
use super::fixtures::{SharedStore, at, refusal, unique};
use super::history_random::HistoryRandom;
use super::outbox_fixtures::{ForwardingApp, forwarding_app};
use super::sdk_fixtures::{Tenant, payment};
use super::web_events::post;
use crate::RollupDay;
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::{IncomingNotification, NotificationMeaning, PaymentClaim};
use tributary_domain::click::Click;
use tributary_domain::device::{AdvertisingId, IdentityClaim};
use tributary_domain::event::web::{WebEvent, WebEventKind};
use tributary_domain::event::{BILLING_PAYMENTS, Event, EventSource};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Figures;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::money::Amount;

/// Number of histories in a normal test run.
pub const CASES: u64 = 150;
/// Environment variable that `./test --long` sets to run more histories.
pub const CASES_VARIABLE: &str = "TRIBUTARY_BILLING_ORDERS";
/// Number of histories on PostgreSQL, where every step is a round trip.
pub const CASES_ON_A_SERVER: u64 = 20;
const PEOPLE: [&str; 4] = ["ann", "ben", "cid", "dot"];
const DEVICES: [&str; 3] = ["phone", "tablet", "watch"];
const SUBSCRIPTIONS: [&str; 4] = ["s1", "s2", "s3", "s4"];
const PRODUCTS: [&str; 3] = ["weekly", "monthly", "yearly"];
const REPORTED: [&str; 5] = ["purchase", "subscribe", "renewal", "refund", "start_trial"];
/// Number of store transactions. Small, so that several notifications refer to the same
/// transaction.
const TRANSACTIONS: usize = 6;
const DAY: i64 = 24 * 60 * 60;

#[derive(Debug, Clone)]
enum Step {
    Notify(Box<GeneratedNotification>),
    /// Configures the device with its own advertising id.
    Configure(&'static str, i64),
    Identify(&'static str, &'static str, i64),
    /// The website reports or refunds a payment.
    Post(GeneratedWebEvent),
    /// The app reports a transaction: device, transaction, event name, time.
    Report(&'static str, String, &'static str, i64),
}

#[derive(Debug, Clone)]
struct GeneratedWebEvent {
    id: String,
    kind: WebEventKind,
    usd: &'static str,
    parent: Option<String>,
    device: &'static str,
    second: i64,
}

#[derive(Debug, Clone)]
struct GeneratedNotification {
    id: String,
    subscription: &'static str,
    second: i64,
    received: i64,
    meaning: NotificationMeaning,
    usd: &'static str,
    transaction: String,
    product: &'static str,
    device: Option<&'static str>,
    people: Vec<&'static str>,
    advertising: Option<&'static str>,
    country: Option<&'static str>,
    /// Set if Stripe took the payment.
    shared: Option<SharedPayment>,
}

/// A payment that has several ids, and that several providers may report.
#[derive(Debug, Clone)]
struct SharedPayment {
    provider: BillingProvider,
    other_id: String,
    refund: Option<String>,
}

impl SharedPayment {
    fn generate(random: &mut HistoryRandom) -> Self {
        let providers = [BillingProvider::Stripe, BillingProvider::Revenuecat];
        Self {
            provider: providers[random.below(2)],
            other_id: format!("t-{}", random.below(TRANSACTIONS)),
            refund: (random.below(2) == 0).then(|| format!("r-{}", random.below(3))),
        }
    }
}

fn advertising(name: &str) -> Option<AdvertisingId> {
    let place = DEVICES.iter().position(|one| *one == name)?;
    AdvertisingId::parse(&format!("6f9619ff-8b86-4011-b42d-00c04fc964f{place}"))
}

fn meaning(random: &mut HistoryRandom) -> (NotificationMeaning, &'static str) {
    let lifecycle = |name: &str| NotificationMeaning::Lifecycle(name.to_owned());
    match random.below(14) {
        0..3 => (NotificationMeaning::Payment(PaymentClaim::Start), "10"),
        3..5 => (
            NotificationMeaning::Payment(PaymentClaim::Continuation),
            "10",
        ),
        5 => (NotificationMeaning::Payment(PaymentClaim::Conversion), "10"),
        6 => (NotificationMeaning::Payment(PaymentClaim::AfterTrial), "10"),
        7 => (NotificationMeaning::Payment(PaymentClaim::OneOff), "3"),
        8 => (NotificationMeaning::TrialStart, "0"),
        9 => (NotificationMeaning::Refund, "-4"),
        10 => (NotificationMeaning::RefundReversed, "4"),
        11 => (lifecycle("trial_cancelled"), "0"),
        12 => (lifecycle("uncancellation"), "0"),
        _ => (NotificationMeaning::Payment(PaymentClaim::Start), "0"),
    }
}

fn notification(
    random: &mut HistoryRandom,
    number: usize,
    is_shared: bool,
) -> GeneratedNotification {
    let (mut meaning, usd) = meaning(random);
    let people: Vec<&str> = (0..random.below(3)).map(|_| random.of(&PEOPLE)).collect();
    if random.below(12) == 0 {
        let (from, to) = (random.of(&PEOPLE), random.of(&PEOPLE));
        meaning = NotificationMeaning::Transfer {
            from: vec![person(from)],
            to: vec![person(to)],
        };
    }
    // Few transactions and ids, so that they collide. All times differ, because ties are broken by
    // event id, and event ids differ between the two compared runs.
    let second = random.below(8) * 100 + 1_000 + number;
    let second = i64::try_from(second).expect("a small number");
    let received = i64::try_from(random.below(40) * 10 + 2_000).expect("a small number");
    GeneratedNotification {
        id: format!("n-{number:02}"),
        subscription: random.of(&SUBSCRIPTIONS),
        second,
        received,
        meaning,
        usd,
        transaction: format!("t-{}", random.below(TRANSACTIONS)),
        product: random.of(&PRODUCTS),
        device: (random.below(4) == 0).then(|| random.of(&DEVICES)),
        people,
        advertising: (random.below(4) == 0).then(|| random.of(&DEVICES)),
        country: (random.below(2) == 0).then_some("FR"),
        shared: is_shared.then(|| SharedPayment::generate(random)),
    }
}

fn history(seed: u64) -> Vec<Step> {
    let mut random = HistoryRandom::seeded(seed);
    let count = 3 + random.below(6);
    let mut steps: Vec<Step> = (0..count)
        .map(|number| {
            let notified = notification(&mut random, number, seed % 4 > 1);
            Step::Notify(Box::new(notified))
        })
        .collect();
    // Half of the histories with payments that Stripe took have website events.
    if matches!(seed % 8, 2 | 3) {
        steps.extend(web_events(&mut random).into_iter().map(Step::Post));
    }
    for (place, name) in DEVICES.into_iter().enumerate() {
        let second = i64::try_from(place).expect("a small number") * 300;
        if random.below(4) > 0 {
            steps.push(Step::Configure(name, 900 + second));
        }
        if random.below(2) == 0 {
            steps.push(Step::Identify(name, random.of(&PEOPLE), 950 + second));
        }
    }
    // Every other history has no SDK events. An SDK event stores the state of its device on
    // arrival, so some of its fields depend on the order and cannot be compared.
    let reports = if seed.is_multiple_of(2) {
        0
    } else {
        random.below(4)
    };
    for number in 0..reports {
        let transaction = format!("t-{}", (number * 2 + random.below(2)) % TRANSACTIONS);
        let (device, name) = (random.of(&DEVICES), random.of(&REPORTED));
        let second = i64::try_from(random.below(8) * 100 + 1_060 + number).expect("small");
        steps.push(Step::Report(device, transaction, name, second));
    }
    steps
}

/// Generates payments of a website, with refunds that do not exceed them.
fn web_events(random: &mut HistoryRandom) -> Vec<GeneratedWebEvent> {
    let mut events = Vec::new();
    let first = format!("t-{}", random.below(2));
    for number in 0..=random.below(3) {
        let id = if number == 0 {
            first.clone()
        } else {
            format!("t-{}", number * 2 + random.below(2))
        };
        let is_renewal = number > 0 && random.below(2) == 0;
        let device = if random.below(2) == 0 {
            "visitor"
        } else {
            random.of(&DEVICES)
        };
        // All times differ, because the earliest of several events for a payment is used.
        let second = i64::try_from(random.below(8) * 100 + 1_030 + number * 3).expect("small");
        events.push(GeneratedWebEvent {
            id: id.clone(),
            kind: if is_renewal {
                WebEventKind::Renewal
            } else {
                WebEventKind::Purchase
            },
            usd: "8",
            parent: is_renewal.then(|| first.clone()),
            device,
            second,
        });
        for refund in 0..random.below(3) {
            events.push(GeneratedWebEvent {
                id: format!("w-{number}-{refund}"),
                kind: WebEventKind::Refund,
                usd: "-3",
                parent: Some(id.clone()),
                device,
                second: second + 1,
            });
        }
    }
    events
}

impl GeneratedWebEvent {
    fn posted(&self, click: &Click) -> WebEvent {
        let posted = post(click, self.kind, &self.id, self.usd, self.parent.as_deref());
        WebEvent {
            id: EventId::new(at(self.second), unique()),
            occurred_at: at(self.second),
            received_at: at(2_500),
            device: device(self.device),
            ..posted
        }
    }
}

/// Posts website events. Returns those whose payment is missing; a website repeats them.
async fn post_all(store: &SharedStore, posted: Vec<WebEvent>) -> Vec<WebEvent> {
    let mut waiting = Vec::new();
    for one in posted {
        match store.accept_web_event(one.clone()).await {
            Ok(_) => {}
            failed => {
                assert_eq!(refusal(failed), Refusal::OriginalTransactionUnavailable);
                waiting.push(one);
            }
        }
    }
    waiting
}

impl GeneratedNotification {
    fn arrival(&self, of: &ForwardingApp) -> IncomingNotification {
        let meaning = self.meaning.clone();
        let mut one = billing_notification(
            &of.tenant,
            &self.id,
            self.subscription,
            self.second,
            meaning,
        );
        one.received_at = at(self.received);
        one.trial_hold = Some(Duration::from_mins(5));
        let content = &mut one.content;
        content.transaction = Some(self.transaction.clone());
        content.product = Some(self.product.to_owned());
        content.country = self.country.map(str::to_owned);
        content.price.usd = Some(Amount::parse(self.usd).expect("an amount"));
        if let Some(shared) = &self.shared {
            content.store = Some("STRIPE".to_owned());
            content.other_transactions = vec![shared.other_id.clone()];
            content.refund.clone_from(&shared.refund);
            one.provider = shared.provider;
        }
        let who = &mut one.content.subscriber;
        who.device = self.device.map(device);
        who.people = self.people.iter().map(|name| person(name)).collect();
        who.advertising = self.advertising.and_then(advertising).into_iter().collect();
        one
    }
}

/// The events, planned deliveries and figures that result from a history.
type Outcome = (Vec<String>, Vec<String>, Vec<String>);

/// Takes a step. Returns the website event to post, if it is one.
async fn take_step(one: &ForwardingApp, click: &Click, step: &Step) -> Option<WebEvent> {
    let tenant = &one.tenant;
    let store = &tenant.store;
    match step {
        Step::Notify(notified) => {
            let accepted = store.accept_notification(notified.arrival(one));
            accepted.await.expect("a notification is stored");
        }
        Step::Post(event) => {
            return Some(event.posted(click));
        }
        Step::Configure(name, second) => {
            let mut command = if *name == "phone" {
                tenant.configure_with_click(name, click, *second)
            } else {
                tenant.configure(name, *second)
            };
            command.advertising_id = advertising(name);
            tenant.call_configure(command).await;
        }
        Step::Identify(name, who, second) => {
            let identity = IdentityClaim {
                user: Some(person(who)),
                ..IdentityClaim::default()
            };
            let app = tenant.app.id;
            let identified =
                store.identify(app, Environment::Live, device(name), identity, at(*second));
            identified.await.expect("a user is identified");
        }
        Step::Report(name, transaction, reported, second) => {
            let mut event = payment(transaction, "7", "USD", *second);
            event.name = (*reported).to_owned();
            let arrival = tenant.arrival(name, *second);
            let accepted = store.accept_sdk_events(arrival, vec![event]).await;
            accepted.expect("events are accepted");
        }
    }
    None
}

/// Repeats all notifications and website events.
async fn repeat(one: &ForwardingApp, steps: &[Step], posted: Vec<WebEvent>) {
    let store = &one.tenant.store;
    for step in steps {
        if let Step::Notify(notified) = step {
            let repeated = store.accept_notification(notified.arrival(one)).await;
            repeated.expect("a repeat is accepted");
        }
    }
    assert!(post_all(store, posted).await.is_empty());
}

async fn outcome(store: &SharedStore, steps: &[Step], pays: bool) -> Outcome {
    let has_posts = steps.iter().any(|step| matches!(step, Step::Post(_)));
    let (one, click) = if has_posts {
        forwarding_shop(store).await
    } else {
        let one = forwarding_app(store).await;
        let click = one.tenant.record_click(5).await;
        (one, click)
    };
    let tenant = &one.tenant;
    let mut posted = Vec::new();
    let mut waiting = Vec::new();
    if pays {
        let arrival = tenant.arrival("tablet", 1_250);
        let events = vec![payment("sdk", "10", "USD", 1_250)];
        store
            .accept_sdk_events(arrival, events)
            .await
            .expect("events are accepted");
    }
    for step in steps {
        if let Some(event) = take_step(&one, &click, step).await {
            posted.push(event.clone());
            waiting.push(event);
        }
        waiting = post_all(store, waiting).await;
    }
    while !waiting.is_empty() {
        waiting = post_all(store, waiting).await;
    }
    while store
        .settle_trials(at(5_000), 100)
        .await
        .expect("trials are settled")
        > 0
    {}
    let has_reports = steps.iter().any(|step| matches!(step, Step::Report(..)));
    let detail = if has_reports || has_posts {
        Detail::Figures
    } else {
        Detail::Everything
    };
    let result = read(store, &one, detail).await;
    assert_eq!(
        wrong_rows(tenant).await,
        0,
        "rebuilt figures equal the maintained ones: {steps:#?}"
    );
    assert_eq!(
        read(store, &one, detail).await,
        result,
        "a rebuild changes nothing"
    );
    if has_posts {
        repeat(&one, steps, posted).await;
        assert_eq!(
            read(store, &one, detail).await,
            result,
            "repeats change nothing"
        );
        assert_web_payments_count_once(&one).await;
    }
    result
}

/// Asserts that no payment that Stripe reported counts beside that of the website for the same id.
async fn assert_web_payments_count_once(one: &ForwardingApp) {
    let log = one.log().await;
    let of_source = |source| log.iter().filter(move |event| event.source == source);
    for web in of_source(EventSource::Web).filter(|event| event.name != "refund") {
        let named = format!("\"transactionId\":\"{}\"", web.external_id);
        let counted = of_source(EventSource::Billing).filter(|billed| {
            let params = billed.params.as_deref().unwrap_or_default();
            BILLING_PAYMENTS.contains(&billed.name.as_str())
                && params.contains(&named)
                && billed.duplicate_of.is_none()
        });
        assert_eq!(counted.count(), 0, "{web:?}");
    }
}

/// Rebuilds the days in a history. Returns the number of corrected rows.
async fn wrong_rows(tenant: &Tenant) -> u64 {
    let mut wrong = 0;
    for day in [at(0), at(DAY)] {
        let day = RollupDay {
            app: tenant.app.id,
            environment: Environment::Live,
            day: Day::of(day),
        };
        let rebuilt = tenant.store.rebuild_rollups(day).await;
        wrong += rebuilt.expect("figures are rebuilt").corrected_rows;
    }
    wrong
}

/// Level of detail to compare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Every field and every report.
    Everything,
    /// Counted revenue, and figures by network.
    Figures,
}

async fn read(store: &SharedStore, of: &ForwardingApp, detail: Detail) -> Outcome {
    let tenant = &of.tenant;
    let all = of.log().await;
    let names = StableNames::of(of, &all);
    let log: Vec<Event> = all
        .into_iter()
        .filter(|event| !event.is_service_install)
        .collect();
    let mut first_payments = BTreeMap::new();
    for name in DEVICES {
        if let Ok(story) = store
            .device(&tenant.reader, tenant.app.id, device(name))
            .await
            && let Some(first) = story.state.first_payment
            && let Some(event) = log.iter().find(|event| event.id == first)
        {
            first_payments.insert(event.external_id.clone(), name.to_owned());
        }
    }
    let text = |event| match detail {
        Detail::Everything => format!(
            "{} {}",
            event_text(event, &first_payments),
            names.text(event)
        ),
        Detail::Figures => event_text(event, &first_payments),
    };
    let mut events: Vec<String> = log.iter().map(text).collect();
    events.sort();
    let ids = log.iter().map(|event| event.id).collect();
    let found = store
        .deliveries_of(tenant.app.id, ids)
        .await
        .expect("deliveries are read");
    let planned = found
        .iter()
        .filter(|one| one.status != DeliveryStatus::Cancelled);
    let mut planned: Vec<String> = planned
        .map(|one| {
            let event = log.iter().find(|event| event.id == one.event);
            let id = event.map(|event| event.external_id.as_str());
            format!(
                "{id:?} {:?} {} {:?}",
                one.network, one.network_event, one.status
            )
        })
        .collect();
    planned.sort();
    // Omit rows of zeros, which remain after figures have moved away.
    let counted = tenant.figures().await.into_iter();
    let counted = counted.filter(|(_, figures)| *figures != Figures::default());
    let mut figures: Vec<String> = counted.map(|one| format!("{one:?}")).collect();
    let days = Day::of(at(0))..=Day::of(at(DAY));
    let reader = tributary_domain::access::Authorized::operator(tenant.writer.organization());
    let billing = store.billing_figures(&reader, tenant.app.id, days).await;
    figures.push(format!("{:?}", billing.expect("figures are read")));
    if detail == Detail::Everything {
        figures.extend(reports(of, &names).await);
    }
    (events, planned, figures)
}

/// Compares random histories in two random orders: `cases` histories, or the number in
/// [`CASES_VARIABLE`].
pub async fn arrival_order_changes_nothing(
    store: &SharedStore,
    cases: u64,
    requested: Option<String>,
) {
    let requested = requested.map(|requested| requested.parse().expect("a number of histories"));
    for seed in 0..requested.unwrap_or(cases) {
        let steps = history(seed);
        let mut shuffled = steps.clone();
        HistoryRandom::seeded(seed ^ 0x5555).shuffle(&mut shuffled);
        let pays = seed % 3 == 0;
        let expected = outcome(store, &steps, pays).await;
        let found = outcome(store, &shuffled, pays).await;
        assert_eq!(
            found, expected,
            "history {seed}:\n{steps:#?}\nshuffled:\n{shuffled:#?}"
        );
    }
}

/// The example that prompted these tests, in every order. The second subscription is matched by
/// advertising id to the device of the first one. A later notification names another device, and
/// the second subscription moves to that device with its first payment.
pub async fn a_purchase_moves_with_its_subscription(store: &SharedStore) {
    let notified = |id: &str, subscription, second, claim| GeneratedNotification {
        id: id.to_owned(),
        subscription,
        second,
        received: 2_000,
        meaning: NotificationMeaning::Payment(claim),
        usd: "10",
        transaction: id.to_owned(),
        product: "weekly",
        device: None,
        people: Vec::new(),
        advertising: None,
        country: None,
        shared: None,
    };
    let first = GeneratedNotification {
        device: Some("phone"),
        ..notified("first", "s1", 1_000, PaymentClaim::Start)
    };
    let second = GeneratedNotification {
        advertising: Some("phone"),
        ..notified("second", "s2", 1_100, PaymentClaim::Start)
    };
    let renewed = GeneratedNotification {
        device: Some("tablet"),
        ..notified("renewed", "s2", 1_200, PaymentClaim::Continuation)
    };
    let all = [first, second, renewed].map(|one| Step::Notify(Box::new(one)));
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    let mut outcomes = Vec::new();
    for order in orders {
        let mut steps = vec![Step::Configure("phone", 900)];
        steps.extend(order.map(|place| all[place].clone()));
        outcomes.push(outcome(store, &steps, false).await);
    }
    let (events, _, figures) = &outcomes[0];
    assert!(
        events[2].starts_with("second purchase billing"),
        "{events:#?}"
    );
    assert!(
        events[2].contains("tablet") && events[2].contains("first=true"),
        "{events:#?}"
    );
    assert!(events[0].contains("first=true") && events[1].contains("first=false"));
    let paying = |text: &&String| text.starts_with('(') && text.contains("paying_devices: 1");
    assert_eq!(
        figures.iter().filter(paying).count(),
        2,
        "one row for each network: {figures:#?}"
    );
    for other in &outcomes[1..] {
        assert_eq!(other, &outcomes[0]);
    }
}

/// A notification with an impossible date is stored and creates no event.
pub async fn an_impossible_date_creates_no_event(store: &SharedStore) {
    let one = forwarding_app(store).await;
    let start = NotificationMeaning::Payment(PaymentClaim::Start);
    let mut arrival = billing_notification(&one.tenant, "seconds", "s1", 10, start);
    arrival.content.happened_at = Some(tributary_domain::vocabulary::time::Timestamp::from_millis(
        1_794_845_507,
    ));
    let accepted = store
        .accept_notification(arrival.clone())
        .await
        .expect("a notification is stored");
    let stored = crate::NotificationOutcome::Stored {
        has_event: false,
        is_matched: false,
    };
    assert_eq!(accepted, stored);
    assert_eq!(one.log().await, []);
    let again = store
        .accept_notification(arrival)
        .await
        .expect("a duplicate is accepted");
    assert_eq!(again, crate::NotificationOutcome::Duplicate);
}
