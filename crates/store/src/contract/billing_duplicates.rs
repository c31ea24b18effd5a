//! Payments that both an app and a billing provider report under the same store transaction.

use super::duplicates::{assert_duplicate_of, forwarding_shop};
use super::erasure_fixtures::{billing_notification, device, person};
use super::fixtures::{SharedStore, assert_rebuild_changes_nothing, at, join_all, new_key, origin};
use super::outbox_fixtures::ForwardingApp;
use super::sdk_fixtures::{event, payment};
use super::web_events::purchase;
use std::pin::Pin;
use tributary_domain::access::{Environment, Permission, authorize};
use tributary_domain::billing::{IncomingNotification, NotificationMeaning, PaymentClaim};
use tributary_domain::click::Click;
use tributary_domain::device::IdentityClaim;
use tributary_domain::erasure::pseudonym;
use tributary_domain::event::sdk::SdkEvent;
use tributary_domain::event::{Event, EventSource};

impl ForwardingApp {
    /// Builds a payment of 10 USD on a device, with a subscription of its own.
    pub(super) fn paid(&self, on: &str, transaction: &str, second: i64) -> IncomingNotification {
        self.paid_in(on, transaction, transaction, second, PaymentClaim::Start)
    }

    fn paid_in(
        &self,
        on: &str,
        chain: &str,
        transaction: &str,
        second: i64,
        claim: PaymentClaim,
    ) -> IncomingNotification {
        let id = format!("n-{chain}-{transaction}");
        let meaning = NotificationMeaning::Payment(claim);
        let mut one = billing_notification(&self.tenant, &id, chain, second, meaning);
        one.content.transaction = Some(transaction.to_owned());
        one.content.subscriber.people.clear();
        one.content.subscriber.device = Some(device(on));
        one
    }

    pub(super) async fn notify(&self, arrival: IncomingNotification) {
        let accepted = self.tenant.store.accept_notification(arrival).await;
        accepted.expect("a notification is stored");
    }

    pub(super) async fn billing_event(&self, transaction: &str) -> Event {
        let log = self.log().await.into_iter();
        let named = format!("\"transactionId\":\"{transaction}\"");
        let mut found = log.filter(|event| {
            let params = event.params.as_deref().unwrap_or_default();
            event.source == EventSource::Billing && params.contains(&named)
        });
        found.next().expect("a billing event")
    }

    /// Returns purchases, paying devices and revenue in whole USD.
    async fn purchase_totals(&self) -> (i64, i64, i64) {
        let total = self.total().await;
        let usd = total.revenue_micros / 1_000_000;
        (total.purchases, total.paying_devices, usd)
    }
}

/// The SDK event stops counting when a provider reports the same transaction. The provider's event
/// is sent with the SDK event's deduplication id, because the network may already have received the
/// SDK event.
pub async fn a_billing_event_replaces_the_sdk_event(store: &SharedStore) {
    let (one, _) = forwarding_shop(store).await;
    one.report_sdk_event("phone", payment("t1", "9", "USD", 100))
        .await;
    let before = one.event(EventSource::Sdk, "t1").await;
    assert!(before.first_payment && before.skipped.is_empty());
    let [(_, _, dedup_id)] = &one.deliveries_of_event(&before).await[..] else {
        panic!("expected one delivery");
    };
    one.notify(one.paid("phone", "t1", 110)).await;
    let sdk = one.event(EventSource::Sdk, "t1").await;
    let billed = one.billing_event("t1").await;
    assert_duplicate_of(&sdk, &billed);
    assert!(billed.first_payment);
    assert_eq!((sdk.dedup_root, billed.dedup_root), (None, Some(sdk.id)));
    let cancelled = Some("duplicate_of_verified".to_owned());
    assert_eq!(
        one.deliveries_of_event(&sdk).await,
        [("cancelled", cancelled, dedup_id.clone())]
    );
    assert_eq!(
        one.deliveries_of_event(&billed).await,
        [("pending", None, dedup_id.clone())]
    );
    assert_eq!(one.purchase_totals().await, (1, 1, 10));
    // A later attribution of the device changes neither the SDK event nor the billing event.
    one.attribute_install("phone", 300).await;
    assert_eq!(one.billing_event("t1").await.dedup_root, Some(sdk.id));
    assert_eq!(
        one.deliveries_of_event(&billed).await,
        [("pending", None, dedup_id.clone())]
    );
    assert_rebuild_changes_nothing(store).await;
}

/// An SDK event whose transaction a provider reported earlier does not count, and no delivery is
/// planned for it.
pub async fn an_sdk_event_after_the_billing_event_does_not_count(store: &SharedStore) {
    let (one, _) = forwarding_shop(store).await;
    one.notify(one.paid("phone", "t1", 110)).await;
    let subscribed = SdkEvent {
        name: "SUBSCRIBE".to_owned(),
        ..payment("t1", "9", "USD", 100)
    };
    one.report_sdk_event("phone", subscribed).await;
    let sdk = one.event(EventSource::Sdk, "t1").await;
    let billed = one.billing_event("t1").await;
    assert_duplicate_of(&sdk, &billed);
    assert_eq!((sdk.dedup_root, billed.dedup_root), (Some(billed.id), None));
    assert_eq!(one.deliveries_of_event(&sdk).await, []);
    assert_eq!(one.deliveries_of_event(&billed).await.len(), 1);
    assert_eq!(one.purchase_totals().await, (1, 1, 10));
    assert_eq!(one.total().await.subscriptions, 0);
    // Events of another kind, or for another transaction, are not duplicates.
    one.report_sdk_event("phone", event("n-t1-t1", "purchase", 100))
        .await;
    one.notify(one.paid("tablet", "t2", 120)).await;
    one.report_sdk_event("tablet", event("t2", "start_trial", 120))
        .await;
    let trial = one.event(EventSource::Sdk, "t2").await;
    let other = one.event(EventSource::Sdk, "n-t1-t1").await;
    assert_eq!((trial.duplicate_of, other.duplicate_of), (None, None));
    assert_rebuild_changes_nothing(store).await;
}

/// A purchase that turns out to be a renewal no longer matches the SDK event, so the SDK event
/// counts again.
pub async fn the_sdk_event_counts_again_without_its_duplicate(store: &SharedStore) {
    let (one, _) = forwarding_shop(store).await;
    one.report_sdk_event("phone", payment("t2", "9", "USD", 200))
        .await;
    let before = one.event(EventSource::Sdk, "t2").await;
    let waiting = one.deliveries_of_event(&before).await;
    one.notify(one.paid_in("phone", "sub", "t2", 200, PaymentClaim::Start))
        .await;
    assert_eq!(one.purchase_totals().await, (1, 1, 10));
    // The first period of the subscription arrives late.
    one.notify(one.paid_in("phone", "sub", "t1", 150, PaymentClaim::Start))
        .await;
    let (sdk, billed) = (
        one.event(EventSource::Sdk, "t2").await,
        one.billing_event("t2").await,
    );
    assert_eq!(billed.name, "renewal");
    assert_eq!((sdk.duplicate_of, sdk.dedup_root), (None, None));
    assert_eq!(
        one.deliveries_of_event(&sdk).await,
        waiting,
        "the delivery is planned again"
    );
    assert_eq!(sdk.skipped, []);
    assert!(one.billing_event("t1").await.first_payment && !sdk.first_payment);
    // 9 from the SDK, 10 from the first period and 10 from the renewal.
    assert_eq!(one.purchase_totals().await, (2, 1, 29));
    assert_rebuild_changes_nothing(store).await;
}

/// The SDK event is still a duplicate after the subscription moves to another device.
pub async fn a_transfer_keeps_the_duplicate(store: &SharedStore) {
    for sdk_first in [true, false] {
        let (one, _) = forwarding_shop(store).await;
        let (app, live) = (one.queue.app, Environment::Live);
        let mut paid = one.paid("phone", "t1", 110);
        paid.content.subscriber.device = None;
        paid.content.subscriber.people = vec![person("ann")];
        let sdk = payment("t1", "9", "USD", 100);
        if sdk_first {
            one.report_sdk_event("phone", sdk).await;
            one.notify(paid).await;
        } else {
            one.notify(paid).await;
            one.report_sdk_event("phone", sdk).await;
        }
        let before = one.billing_event("t1").await;
        let ann = IdentityClaim {
            user: Some(person("ann")),
            ..IdentityClaim::default()
        };
        let identified = store.identify(app, live, device("phone"), ann, at(120));
        identified.await.expect("a user is identified");
        let mut moved = one.paid_in("tablet", "t1", "t9", 130, PaymentClaim::Continuation);
        moved.content.subscriber.people = vec![person("ann")];
        one.notify(moved).await;
        let (sdk, billed) = (
            one.event(EventSource::Sdk, "t1").await,
            one.billing_event("t1").await,
        );
        assert_ne!(before.device, billed.device, "the event moved");
        assert_eq!(sdk.duplicate_of, Some(billed.id));
        assert_eq!((sdk.root(), billed.root()), (before.root(), before.root()));
        assert_eq!(one.purchase_totals().await, (1, 1, 20));
        assert_rebuild_changes_nothing(store).await;
    }
}

/// Erasing a device does not release its transaction ids: a later report is still a duplicate.
pub async fn an_erased_transaction_is_still_known(store: &SharedStore) {
    for sdk_first in [true, false] {
        let (one, _) = forwarding_shop(store).await;
        let sdk = payment("t1", "9", "USD", 100);
        if sdk_first {
            one.report_sdk_event("phone", sdk.clone()).await;
        }
        one.notify(one.paid("phone", "t1", 110)).await;
        let sums = one.purchase_totals().await;
        let mut key = new_key(one.tenant.writer.organization()).key;
        key.permission = Permission::Full;
        let eraser = authorize(&key, super::fixtures::CLIENT).expect("a full key erases");
        let name = pseudonym([u8::from(sdk_first); 16]);
        store
            .erase_device(&eraser, one.queue.app, device("phone"), name, origin(150))
            .await
            .expect("a device is erased");
        if !sdk_first {
            one.report_sdk_event("phone", sdk).await;
        }
        one.notify(one.paid_in("phone", "t1", "t2", 160, PaymentClaim::Continuation))
            .await;
        let sdk = one.event(EventSource::Sdk, "t1").await;
        assert!(sdk.duplicate_of.is_some());
        let (purchases, paying, usd) = one.purchase_totals().await;
        assert_eq!((purchases, paying, usd - 10), sums, "the renewal is added");
        assert_rebuild_changes_nothing(store).await;
    }
}

/// A web event and a billing event with the same id are both verified, so both count, unless Stripe
/// took the payment. The SDK event with that id does not count.
pub async fn two_verified_events_of_one_id_both_count(store: &SharedStore) {
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for order in orders {
        let (one, click) = forwarding_shop(store).await;
        for source in order {
            match source {
                0 => {
                    one.report_sdk_event("phone", payment("t1", "9", "USD", 100))
                        .await;
                }
                1 => one.post_web_event(purchase(&click, "t1", "20")).await,
                _ => one.notify(one.paid("phone", "t1", 110)).await,
            }
        }
        let sdk = one.event(EventSource::Sdk, "t1").await;
        assert!(sdk.duplicate_of.is_some(), "{order:?}");
        assert_eq!(one.purchase_totals().await, (2, 2, 30), "{order:?}");
    }
    assert_rebuild_changes_nothing(store).await;
}

pub(super) type Reporting<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Reports many payments concurrently, each by the app through one node and by the billing provider
/// through the other.
async fn at_once(one: &ForwardingApp, other: &ForwardingApp, click: &Click) {
    let ids: Vec<String> = (0..40).map(|number| format!("t{number}")).collect();
    let all = ids.iter().enumerate().flat_map(|(place, id)| {
        let on = ["phone", "tablet", "laptop"][place % 3];
        let second = 100 + i64::try_from(place * 7 % 40).expect("small");
        let sdk: Reporting<'_> =
            Box::pin(one.report_sdk_event(on, payment(id, "1", "USD", second)));
        let billed: Reporting<'_> =
            Box::pin(other.notify(one.paid_in(on, id, id, second, PaymentClaim::OneOff)));
        let web: Reporting<'_> = Box::pin(async move {
            if place % 4 == 0 {
                other
                    .post_web_event(purchase(click, &format!("web-{id}"), "1"))
                    .await;
            }
        });
        if place % 2 == 0 {
            [sdk, billed, web]
        } else {
            [web, billed, sdk]
        }
    });
    join_all(all.collect()).await;
    let log = one.log().await;
    let sdk = log
        .iter()
        .filter(|event| event.source == EventSource::Sdk && !event.is_service_install);
    for event in sdk {
        let verified = log.iter().find(|one| Some(one.id) == event.duplicate_of);
        let verified = verified.expect("each event is a duplicate");
        assert_eq!(event.root(), verified.root());
    }
    let total = one.total().await;
    assert_eq!(
        (total.purchases, total.revenue_micros, total.paying_devices),
        (50, 410_000_000, 4)
    );
}

/// Number of payments that the app and the billing provider report concurrently. The delay before
/// the app's report varies, so that different interleavings occur.
const MEETINGS: usize = 40;

/// Reports one payment after another, each concurrently by the app and by the billing provider.
async fn meeting(one: &ForwardingApp, other: &ForwardingApp) {
    for number in 0..MEETINGS {
        let id = format!("m{number}");
        let app = async {
            for before in 0..number % 8 {
                let id = format!("{id}-{before}");
                one.report_sdk_event("laptop", event(&id, "search", 90))
                    .await;
            }
            one.report_sdk_event("phone", payment(&id, "1", "USD", 100))
                .await;
        };
        let paid = one.paid_in("phone", &id, &id, 100, PaymentClaim::OneOff);
        let both: Vec<Reporting<'_>> = vec![Box::pin(app), Box::pin(other.notify(paid))];
        join_all(both).await;
        let sdk = one.event(EventSource::Sdk, &id).await;
        assert!(sdk.duplicate_of.is_some(), "{id}");
    }
}

/// Concurrent reports count once.
pub async fn concurrent_reports_of_transactions_count_once(store: &SharedStore) {
    let (one, click) = forwarding_shop(store).await;
    at_once(&one, &one, &click).await;
    assert_rebuild_changes_nothing(store).await;
}

/// Like [`concurrent_reports_of_transactions_count_once`], with two nodes on one database.
pub async fn nodes_at_once_count_once(store: &SharedStore, node: &SharedStore) {
    let (one, click) = forwarding_shop(store).await;
    let other = one.through(node);
    at_once(&one, &other, &click).await;
    meeting(&one, &other).await;
    assert_rebuild_changes_nothing(store).await;
}

/// SQL that undoes the matching of duplicates and deletes the keys used for it, as if an older
/// version had written the rows.
pub const UNDO_MATCHING_SQL: &str =
    "update events set duplicate_of = null, uncounted = null where source = 'sdk';
     update events set dedup_root = null;
     delete from billing_keys where lookup_key like 'transaction:%';
     delete from event_keys where source = 'web' and fingerprint is null;";

/// Stores two pairs of matching events (SDK and billing, SDK and web), and a billing event without
/// an SDK event.
pub async fn store_pairs(store: &SharedStore) -> ForwardingApp {
    let (one, click) = forwarding_shop(store).await;
    one.report_sdk_event("phone", payment("t1", "9", "USD", 100))
        .await;
    one.notify(one.paid("phone", "t1", 110)).await;
    one.report_sdk_event("tablet", payment("w1", "7", "USD", 100))
        .await;
    one.post_web_event(purchase(&click, "w1", "8")).await;
    one.notify(one.paid("watch", "t2", 110)).await;
    one
}

/// Asserts that a rebuild matches the pairs that were stored before the upgrade, and that a later
/// SDK event matches an older billing event through the migrated keys.
pub async fn assert_pairs_corrected(store: &SharedStore, one: &ForwardingApp) {
    super::fixtures::rebuild(store).await;
    for id in ["t1", "w1"] {
        let sdk = one.event(EventSource::Sdk, id).await;
        assert!(sdk.duplicate_of.is_some() && !sdk.first_payment, "{id}");
        assert_eq!(sdk.dedup_root, None, "deduplication ids never change");
    }
    assert_eq!(one.purchase_totals().await, (3, 3, 28));
    one.report_sdk_event("watch", payment("t2", "9", "USD", 100))
        .await;
    let sdk = one.event(EventSource::Sdk, "t2").await;
    assert_duplicate_of(&sdk, &one.billing_event("t2").await);
    assert_eq!(one.purchase_totals().await, (3, 3, 28));
    assert_rebuild_changes_nothing(store).await;
}
