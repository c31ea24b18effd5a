//! Billing: notifications and the events they create.

use super::fixtures::{SharedStore, at, first_page, is_due, join_all, origin};
use super::sdk_fixtures::{Tenant, tenant};
use crate::NotificationOutcome;
use crate::records::original_transaction;
use std::borrow::Cow;
use std::time::Duration;
use tributary_domain::access::{Authorized, Environment};
use tributary_domain::app::{AppChange, AppSecret, BillingProvider};
use tributary_domain::billing::money::ReportedPrice;
use tributary_domain::billing::{
    IncomingNotification, NotificationMeaning, PaymentClaim, ProviderNotification, Subscriber,
};
use tributary_domain::device::{DeviceKey, IdentityClaim, UserKey};
use tributary_domain::due_work::WorkKind;
use tributary_domain::event::{Event, EventFilter};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::revision::Precondition;

const PROVIDER: BillingProvider = BillingProvider::Revenuecat;

fn person(name: &str) -> UserKey {
    UserKey::parse(name).expect("a user id")
}

/// Builds a notification about a person's subscription, with the time of the billing event in
/// seconds.
fn arrival(
    tenant: &Tenant,
    id: &str,
    second: i64,
    meaning: NotificationMeaning,
    usd: Option<&str>,
) -> IncomingNotification {
    let amount = usd.map(|text| Amount::parse(text).expect("an amount"));
    IncomingNotification {
        app: tenant.app.id,
        provider: PROVIDER,
        content: ProviderNotification {
            external_id: id.to_owned(),
            kind: "ANY".to_owned(),
            environment: Environment::Live,
            meaning,
            store: Some("PLAY_STORE".to_owned()),
            product: Some("weekly".to_owned()),
            transaction: Some(id.to_owned()),
            original_transaction: Some("sub-1".to_owned()),
            other_transactions: Vec::new(),
            refund: None,
            period: None,
            country: Some("DE".to_owned()),
            price: ReportedPrice {
                paid: None,
                usd: amount,
            },
            tax: Some("0.19".to_owned()),
            commission: None,
            happened_at: Some(at(second)),
            subscriber: Subscriber {
                people: vec![person("person-1")],
                ..Subscriber::default()
            },
        },
        body: format!("{{\"id\":\"{id}\"}}"),
        received_at: at(1_000),
        trial_hold: None,
    }
}

fn payment(tenant: &Tenant, id: &str, second: i64, claim: PaymentClaim) -> IncomingNotification {
    arrival(
        tenant,
        id,
        second,
        NotificationMeaning::Payment(claim),
        Some("10"),
    )
}

impl Tenant {
    async fn notify(&self, arrival: &IncomingNotification) -> NotificationOutcome {
        let accepted = self.store.accept_notification(arrival.clone());
        accepted.await.expect("a notification is stored")
    }

    async fn billing_events(&self) -> Vec<Event> {
        let page = first_page("100");
        let events = self
            .store
            .events(&self.reader, self.app.id, EventFilter::default(), page);
        let mut events = events.await.expect("the log is read").items;
        events.retain(|event| event.source == tributary_domain::event::EventSource::Billing);
        events.reverse();
        events
    }

    async fn names(&self) -> Vec<String> {
        let events = self.billing_events().await.into_iter();
        events.map(|event| event.name).collect()
    }

    /// Returns revenue minus refunds in micro-units.
    async fn net_revenue(&self) -> i64 {
        let (from, until) = (at(0), at(10_000));
        let store = &self.store;
        let figures = store
            .figures_by_network(&self.reader, self.app.id, (from, until))
            .await
            .expect("figures are read");
        figures
            .iter()
            .map(|(_, one)| one.revenue_micros - one.refunded_micros)
            .sum()
    }
}

/// A notification is stored once per id and app, even under concurrent calls.
pub async fn a_notification_is_stored_once(store: &SharedStore) {
    let (one, other) = (tenant(store).await, tenant(store).await);
    let paid = payment(&one, "n-1", 10, PaymentClaim::Start);
    let at_once = (0..8).map(|_| {
        let again = paid.clone();
        let store = store.clone();
        async move { store.accept_notification(again).await }
    });
    let answers = join_all(at_once.collect()).await;
    let stored = answers.iter().filter(|answer| {
        matches!(
            answer.as_ref().expect("all succeed"),
            NotificationOutcome::Stored {
                has_event: true,
                ..
            }
        )
    });
    assert_eq!(stored.count(), 1);
    let mut changed = paid.clone();
    "{}".clone_into(&mut changed.body);
    assert_eq!(one.notify(&changed).await, NotificationOutcome::IdReused);
    assert_eq!(one.names().await, ["purchase"]);
    assert_eq!(one.net_revenue().await, 10_000_000);
    assert!(other.names().await.is_empty());
    other
        .notify(&payment(&other, "n-1", 10, PaymentClaim::Start))
        .await;
    assert_eq!(other.names().await, ["purchase"]);
    let reader = Authorized::operator(one.writer.organization());
    let figures = store
        .billing_figures(&reader, one.app.id, Day::of(at(0))..=Day::of(at(0)))
        .await;
    let figures = figures.expect("figures are read");
    assert_eq!((figures[0].notifications, figures[0].reused), (1, 1));
    let stranger = Authorized::operator(other.writer.organization());
    let refused = store
        .billing_figures(&stranger, one.app.id, Day::of(at(0))..=Day::of(at(0)))
        .await;
    refused.expect_err("another organization's app");
}

/// Of a person's concurrent payments, the one with the earliest payment time is the first payment.
pub async fn concurrent_payments_have_one_first(store: &SharedStore) {
    let tenant = tenant(store).await;
    let payments = (1..=12).map(|number| {
        let id = format!("n-{number:02}");
        let mut one = payment(&tenant, &id, number, PaymentClaim::Start);
        one.content.original_transaction = Some(format!("sub-{number}"));
        let store = store.clone();
        async move { store.accept_notification(one).await }
    });
    for answer in join_all(payments.collect()).await {
        answer.expect("all are stored");
    }
    let events = tenant.billing_events().await;
    let first: Vec<&str> = events
        .iter()
        .filter(|event| event.name == "purchase")
        .map(|event| event.external_id.as_str())
        .collect();
    assert_eq!(first, ["n-01"]);
    assert_eq!(events.len(), 12);
    assert_eq!(tenant.net_revenue().await, 120_000_000);
}

/// A billing event names its subscription's original transaction, if the provider sends it.
pub async fn events_name_their_original_transaction(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant
        .notify(&payment(&tenant, "named", 10, PaymentClaim::Start))
        .await;
    let mut nameless = payment(&tenant, "nameless", 20, PaymentClaim::Start);
    nameless.content.original_transaction = None;
    tenant.notify(&nameless).await;
    let events = tenant.billing_events().await;
    let found: Vec<_> = events
        .iter()
        .map(|event| {
            (
                event.external_id.as_str(),
                original_transaction(event).map(Cow::into_owned),
            )
        })
        .collect();
    let expected = [("named", Some("sub-1".to_owned())), ("nameless", None)];
    assert_eq!(found, expected);
}

/// A refund and its reversal count against their payment, in any order of arrival.
pub async fn refunds_wait_for_their_payment(store: &SharedStore) {
    let tenant = tenant(store).await;
    let of_t1 = |mut one: IncomingNotification| {
        one.content.transaction = Some("t1".to_owned());
        one
    };
    let paid = of_t1(payment(&tenant, "paid", 10, PaymentClaim::Start));
    let refund = of_t1(arrival(
        &tenant,
        "refund",
        20,
        NotificationMeaning::Refund,
        Some("4"),
    ));
    let reversed = of_t1(arrival(
        &tenant,
        "back",
        30,
        NotificationMeaning::RefundReversed,
        Some("9"),
    ));
    tenant.notify(&reversed).await;
    tenant.notify(&refund).await;
    assert_eq!(tenant.net_revenue().await, 0);
    tenant.notify(&paid).await;
    assert_eq!(tenant.net_revenue().await, 10_000_000);
    assert_eq!(
        tenant.names().await,
        ["purchase", "refund", "refund_reversed"]
    );
    let worth: Vec<i64> = tenant
        .billing_events()
        .await
        .iter()
        .filter_map(|event| event.revenue.as_ref())
        .map(|revenue| revenue.counted_usd().micros())
        .collect();
    assert_eq!(worth, [10_000_000, -4_000_000, 4_000_000]);
}

/// When a device's user is identified after the user's payment arrived, the device gets the
/// subscription, and the payment counts once.
pub async fn a_later_identified_device_gets_the_subscription(store: &SharedStore) {
    let tenant = tenant(store).await;
    let paid = payment(&tenant, "n-1", 10, PaymentClaim::Start);
    let accepted = tenant.notify(&paid).await;
    let unmatched = NotificationOutcome::Stored {
        has_event: true,
        is_matched: false,
    };
    assert_eq!(accepted, unmatched);
    let device = DeviceKey::parse("phone-1").expect("a device id");
    let identity = IdentityClaim {
        user: Some(person("person-1")),
        ..IdentityClaim::default()
    };
    for second in [2_000, 2_001] {
        let (app, live) = (tenant.app.id, Environment::Live);
        let identified = store.identify(app, live, device.clone(), identity.clone(), at(second));
        identified.await.expect("a user is identified");
    }
    let events = tenant.billing_events().await;
    assert_eq!(events[0].device, Some(device));
    assert!(events[0].first_payment);
    assert_eq!(tenant.net_revenue().await, 10_000_000);
    let reader = Authorized::operator(tenant.writer.organization());
    let figures = store
        .billing_figures(&reader, tenant.app.id, Day::of(at(0))..=Day::of(at(0)))
        .await;
    let figures = figures.expect("figures are read");
    assert_eq!((figures[0].events, figures[0].matched), (1, 1));
}

/// A trial counts once when its hold ends, unless the trial was cancelled before.
pub async fn trials_on_hold_count_once(store: &SharedStore) {
    let tenant = tenant(store).await;
    for (sub, cancelled) in [("alive", false), ("gone", true)] {
        let of = |mut one: IncomingNotification| {
            one.content.original_transaction = Some(sub.to_owned());
            one.trial_hold = Some(Duration::from_secs(100));
            one
        };
        let trial = arrival(&tenant, sub, 10, NotificationMeaning::TrialStart, Some("0"));
        tenant.notify(&of(trial)).await;
        if cancelled {
            let meaning = NotificationMeaning::Lifecycle("trial_cancelled".to_owned());
            let cancelled = arrival(&tenant, "cancelled", 20, meaning, None);
            tenant.notify(&of(cancelled)).await;
        }
    }
    let settled = async |second| {
        let settled = store.settle_trials(at(second), 10).await;
        settled.expect("trials are settled")
    };
    assert_eq!(settled(1_099).await, 0);
    assert!(!is_due(store, WorkKind::Trials, 1_099).await);
    assert!(is_due(store, WorkKind::Trials, 1_100).await);
    let workers = (0..4).map(|_| {
        let store = store.clone();
        async move { store.settle_trials(at(1_100), 10).await }
    });
    for answer in join_all(workers.collect()).await {
        answer.expect("concurrent workers succeed");
    }
    assert_eq!(settled(1_200).await, 0);
    assert!(!is_due(store, WorkKind::Trials, 1_200).await);
    let qualified: Vec<Event> = tenant
        .billing_events()
        .await
        .into_iter()
        .filter(|event| event.name == "qualified_trial")
        .collect();
    assert_eq!(qualified.len(), 1);
    assert_eq!(qualified[0].external_id, "qualified_trial:revenuecat:alive");
    assert_eq!(qualified[0].occurred_at, at(1_100));
}

/// Rotating a secret keeps the previous one.
pub async fn rotating_a_secret_keeps_the_previous_one(store: &SharedStore) {
    let tenant = tenant(store).await;
    let sealed = |text: &str| SealedSecret::from_bytes(text.as_bytes().to_vec());
    for (number, text) in ["one", "two", "three"].into_iter().enumerate() {
        let when = i64::try_from(number).expect("a small number") + 10;
        let rotation = AppChange::rotation(AppSecret::Billing(PROVIDER), sealed(text));
        let replaced = store.update_app(
            &tenant.writer,
            tenant.app.id,
            rotation,
            Precondition::None,
            origin(when),
        );
        let app = replaced.await.expect("a secret is set");
        assert!(app.has_provider(PROVIDER));
    }
    let found = store.billing_app(tenant.app.id).await;
    let found = found.expect("it is read").expect("an app");
    let mut secrets: Vec<(AppSecret, SealedSecret, i64)> = found
        .secrets
        .into_iter()
        .map(|one| (one.secret, one.sealed, one.set_at.as_millis()))
        .collect();
    secrets.sort_by_key(|(secret, ..)| *secret);
    let set_at = at(12).as_millis();
    assert_eq!(
        secrets,
        [
            (AppSecret::Billing(PROVIDER), sealed("three"), set_at),
            (AppSecret::BillingPrevious(PROVIDER), sealed("two"), set_at),
        ]
    );
}
