//! Verified web events and the payment ledger.

use super::fixtures::{SharedStore, at, first_page, join_all, origin, refusal, unique};
use super::sdk_fixtures::{Tenant, tenant};
use tributary_domain::click::Click;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::web::{AcceptedWebEvent, WebEvent, WebEventKind};
use tributary_domain::event::{Event, EventFilter};
use tributary_domain::exchange::{Rate, RateBase, RateValue};
use tributary_domain::link::{LinkChange, LinkKind};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::{PageUrl, WebOrigin};

const SHOP: &str = "https://shop.example.com";

/// Creates a tenant whose link redirects to a shop, and a click on the link.
pub(super) async fn shop(store: &SharedStore) -> (Tenant, Click) {
    let mut tenant = tenant(store).await;
    let change = LinkChange {
        kind: Change::Set(LinkKind::WebFunnel),
        destination_url: Change::Set(PageUrl::parse(SHOP).expect("a URL")),
        ..LinkChange::default()
    };
    let (app, link) = (tenant.app.id, tenant.link.id);
    let changed = store.update_link(
        &tenant.writer,
        app,
        link,
        change,
        Precondition::None,
        origin(3),
    );
    tenant.link = changed.await.expect("a link is changed");
    let mut click = tenant.click(5);
    click.destination_origin = Some(SHOP.to_owned());
    store
        .record_click(click.clone())
        .await
        .expect("a click is recorded");
    (tenant, click)
}

pub(super) fn post(
    click: &Click,
    kind: WebEventKind,
    id: &str,
    amount: &str,
    parent: Option<&str>,
) -> WebEvent {
    WebEvent {
        app: click.app,
        id: EventId::new(at(100), unique()),
        external_id: id.to_owned(),
        click_text: click.id.to_string(),
        click: Some(click.id),
        device: DeviceKey::parse("visitor").expect("a device id"),
        occurred_at: at(100),
        kind,
        amount: Some(Amount::parse(amount).expect("an amount")),
        currency: Currency::from_stored("USD"),
        source_url: format!("{SHOP}/paid"),
        origin: WebOrigin::from_stored(SHOP).expect("an origin"),
        parent: parent.map(str::to_owned),
        email_sha256: Some("ab".repeat(32)),
        received_at: at(101),
    }
}

pub(super) fn purchase(click: &Click, id: &str, amount: &str) -> WebEvent {
    post(click, WebEventKind::Purchase, id, amount, None)
}

fn refund(click: &Click, id: &str, amount: &str, parent: &str) -> WebEvent {
    post(click, WebEventKind::Refund, id, amount, Some(parent))
}

async fn accept(store: &SharedStore, posted: WebEvent) -> AcceptedWebEvent {
    store
        .accept_web_event(posted)
        .await
        .expect("an event is accepted")
}

async fn log(tenant: &Tenant) -> Vec<Event> {
    let page = first_page("500");
    let log = tenant
        .store
        .events(&tenant.reader, tenant.app.id, EventFilter::default(), page);
    log.await.expect("the log is read").items
}

/// Purchases, renewals and refunds change revenue. The events are in the log with their credit.
pub async fn payments_and_refunds_move_revenue(store: &SharedStore) {
    let (tenant, click) = shop(store).await;
    accept(store, purchase(&click, "p1", "100")).await;
    let renewal = post(&click, WebEventKind::Renewal, "r1", "50", Some("p1"));
    accept(store, renewal).await;
    accept(store, refund(&click, "f1", "-30", "p1")).await;
    accept(store, refund(&click, "f2", "-50", "r1")).await;
    let figures = tenant.figures_of("network_a").await;
    assert_eq!(
        (figures.purchases, figures.renewals, figures.refunds),
        (1, 1, 2)
    );
    assert_eq!(
        (figures.revenue_micros, figures.refunded_micros),
        (150_000_000, 80_000_000)
    );
    assert_eq!(
        (figures.installs, figures.paying_devices, figures.events),
        (0, 1, 4)
    );
    let log = log(&tenant).await;
    assert_eq!(log.len(), 4);
    for event in log {
        assert_eq!(event.credit.and_then(|credit| credit.click), Some(click.id));
        assert_eq!(event.source.as_str(), "web");
    }
}

/// An event with the same id and payload is a duplicate; another payload with the same id is
/// refused.
pub async fn an_external_id_has_one_payload(store: &SharedStore) {
    let (tenant, click) = shop(store).await;
    let first = purchase(&click, "p1", "100");
    let accepted = accept(store, first.clone()).await;
    assert_eq!(
        (accepted.is_duplicate, accepted.received_at),
        (false, at(101))
    );
    let again = WebEvent {
        id: EventId::new(at(100), unique()),
        received_at: at(500),
        ..first
    };
    let repeated = accept(store, again).await;
    assert_eq!(
        (repeated.is_duplicate, repeated.received_at),
        (true, at(101))
    );
    let conflict = store.accept_web_event(purchase(&click, "p1", "99")).await;
    assert_eq!(conflicting(refusal(conflict)), ["revenue"]);
    // A renewal does not store the click id it names.
    let renewal = post(&click, WebEventKind::Renewal, "r1", "10", Some("p1"));
    accept(store, renewal.clone()).await;
    let other = WebEvent {
        click_text: "clk_other".to_owned(),
        device: DeviceKey::parse("another").expect("a device id"),
        ..renewal
    };
    let conflict = refusal(store.accept_web_event(other).await);
    assert_eq!(conflicting(conflict), ["arClickId", "deviceId"]);
    assert_eq!(
        tenant.figures_of("network_a").await.revenue_micros,
        110_000_000
    );
}

/// Returns the fields named in a conflict.
fn conflicting(refusal: Refusal) -> Vec<String> {
    match refusal {
        Refusal::EventIdConflict(faults) => {
            faults.iter().map(|fault| fault.field.clone()).collect()
        }
        other => panic!("expected a conflict, got {other:?}"),
    }
}

/// A refund is accepted once its payment exists. A refund whose parent is not a payment is always
/// refused.
pub async fn a_refund_is_accepted_once_its_payment_exists(store: &SharedStore) {
    let (_tenant, click) = shop(store).await;
    let early = refund(&click, "f1", "-10", "p1");
    let missing = store.accept_web_event(early.clone()).await;
    assert_eq!(refusal(missing), Refusal::OriginalTransactionUnavailable);
    accept(store, purchase(&click, "p1", "10")).await;
    assert!(
        !accept(store, early).await.is_duplicate,
        "the refund is accepted once its payment exists"
    );
    let mut sign_up = post(&click, WebEventKind::SignUp, "s1", "0", None);
    sign_up.currency = None;
    accept(store, sign_up).await;
    accept(
        store,
        post(&click, WebEventKind::CheckoutStarted, "c1", "5", None),
    )
    .await;
    accept(
        store,
        post(&click, WebEventKind::StartTrial, "t1", "5", None),
    )
    .await;
    // The parent is another web event that is not a payment, or the event itself.
    for parent in ["s1", "c1", "t1", "f1", "f2"] {
        let wrong = refund(&click, "f2", "-1", parent);
        let wrong = refusal(store.accept_web_event(wrong).await);
        assert_eq!(wrong, Refusal::OriginalTransactionInvalid, "{parent}");
        let wrong = post(&click, WebEventKind::Renewal, "f2", "1", Some(parent));
        let wrong = refusal(store.accept_web_event(wrong).await);
        assert_eq!(wrong, Refusal::OriginalTransactionInvalid, "{parent}");
    }
}

/// The total of a payment's refunds never exceeds the payment, even under concurrent calls.
pub async fn concurrent_refunds_never_exceed_their_payment(store: &SharedStore) {
    let (tenant, click) = shop(store).await;
    accept(store, purchase(&click, "p1", "100")).await;
    let refunds = (0..64)
        .map(|number| store.accept_web_event(refund(&click, &format!("f{number}"), "-10", "p1")));
    let mut accepted = 0;
    for outcome in join_all(refunds.collect()).await {
        match outcome {
            Ok(_) => accepted += 1,
            Err(error) => {
                let refused = refusal::<AcceptedWebEvent>(Err(error));
                assert_eq!(refused, Refusal::RefundExceedsPayment);
            }
        }
    }
    assert_eq!(accepted, 10);
    let figures = tenant.figures_of("network_a").await;
    assert_eq!(
        (figures.revenue_micros, figures.refunded_micros),
        (100_000_000, 100_000_000)
    );
}

/// Identical concurrent posts record one event. Of different posts with the same id, one is
/// accepted.
pub async fn concurrent_posts_record_one_event(store: &SharedStore) {
    let (tenant, click) = shop(store).await;
    let same = (0..64).map(|_| store.accept_web_event(purchase(&click, "same", "10")));
    let fresh = join_all(same.collect())
        .await
        .into_iter()
        .filter(|outcome| {
            let accepted = outcome.as_ref().expect("each is accepted");
            !accepted.is_duplicate
        });
    assert_eq!(fresh.count(), 1);
    let different = (1..=64)
        .map(|number| store.accept_web_event(purchase(&click, "other", &number.to_string())));
    let mut taken = 0;
    for outcome in join_all(different.collect()).await {
        match outcome {
            Ok(_) => taken += 1,
            Err(error) => {
                let fields = conflicting(refusal::<AcceptedWebEvent>(Err(error)));
                assert_eq!(fields, ["revenue"]);
            }
        }
    }
    assert_eq!(taken, 1);
    assert_eq!(tenant.figures_of("network_a").await.purchases, 2);
    assert_eq!(tenant.figures_of("network_a").await.paying_devices, 1);
}

/// A refund uses its payment's exchange rate, so a full refund nets to zero after any import.
pub async fn a_full_refund_nets_to_zero(store: &SharedStore) {
    let (tenant, click) = shop(store).await;
    let import = async |units: &str| {
        let rate = |currency: &str, units: &str| Rate {
            currency: Currency::from_stored(currency).expect("a currency"),
            day: Day::parse("2023-11-14").expect("a day"),
            base: RateBase::Usd,
            units: RateValue::parse(units).expect("a rate"),
            source: "file".to_owned(),
        };
        let imported = store.import_rates(vec![rate("XTS", units)], at(0));
        imported.await.expect("rates are imported");
    };
    let in_xts = |posted: WebEvent| WebEvent {
        currency: Currency::from_stored("XTS"),
        ..posted
    };
    import("3").await;
    accept(store, in_xts(purchase(&click, "p1", "100"))).await;
    import("7").await;
    for (id, amount) in [("f1", "-33.33"), ("f2", "-33.33"), ("f3", "-33.34")] {
        accept(store, in_xts(refund(&click, id, amount, "p1"))).await;
    }
    let figures = tenant.figures_of("network_a").await;
    assert_eq!(figures.revenue_micros, 33_333_333);
    assert_eq!(figures.refunded_micros, 33_333_333);
    let another = store
        .accept_web_event(refund(&click, "f4", "-1", "p1"))
        .await;
    assert_eq!(refusal(another), Refusal::CurrencyMismatch);
}

/// A web event is credited to the click it names, regardless of its device.
pub async fn a_web_event_is_credited_to_its_own_click(store: &SharedStore) {
    let (tenant, click) = shop(store).await;
    accept(store, purchase(&click, "p1", "100")).await;
    tenant
        .call_configure(tenant.configure("visitor", 200))
        .await;
    let figures = tenant.figures_of("network_a").await;
    assert_eq!(
        (figures.revenue_micros, figures.purchases),
        (100_000_000, 1)
    );
    accept(store, refund(&click, "f1", "-100", "p1")).await;
    let networks = log(&tenant).await.into_iter().map(|event| {
        let network = event.credit.map(|credit| credit.network.as_str());
        (event.name, network)
    });
    let expected = [
        ("install".to_owned(), Some("organic")),
        ("refund".to_owned(), Some("network_a")),
        ("purchase".to_owned(), Some("network_a")),
    ];
    let mut networks: Vec<_> = networks.collect();
    networks.sort_by_key(|(name, _)| expected.iter().position(|(other, _)| other == name));
    assert_eq!(networks, expected);
}

/// A click that an event refers to is not removed.
pub async fn a_click_with_a_web_event_is_not_removed(store: &SharedStore) {
    let (tenant, click) = shop(store).await;
    let unused = tenant.record_click(6).await;
    accept(store, purchase(&click, "p1", "100")).await;
    let removed = store.remove_clicks(at(50), 10).await;
    assert_eq!(removed.expect("clicks are removed"), 1);
    accept(store, purchase(&click, "p2", "100")).await;
    let gone = store.accept_web_event(purchase(&unused, "p3", "100")).await;
    assert_eq!(refusal(gone), Refusal::ClickNotVerified);
}
