//! What comes after a person was erased: nothing brings anybody back, and nothing is lost.

use super::erasure_fixtures::{
    DEVICE, PERSON, billing_notification, device, person, person_scenario,
};
use super::fixtures::{SharedStore, at, join_all, origin, refusal, unique};
use super::sdk_fixtures::{event, payment};
use crate::{NotificationOutcome, TokenOutcome};
use tributary_domain::access::Environment;
use tributary_domain::attribution::ad_services::AdServices;
use tributary_domain::billing::{NotificationMeaning, PaymentClaim};
use tributary_domain::device::AdvertisingId;
use tributary_domain::erasure::pseudonym;
use tributary_domain::event::EventFilter;
use tributary_domain::event::sdk::Acceptance;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::EventId;

/// A retry is a duplicate still. The app that is still installed is a new device, and one that never paid.
pub async fn what_comes_later_is_somebody_new(store: &SharedStore) {
    let life = person_scenario(store).await;
    let tenant = life.tenant();
    let tokens = store.lease_ad_services_tokens(at(300), at(330), 10).await;
    let token = tokens.expect("tokens").remove(0);
    let name = life.erase(400).await;
    let before = life.figures().await;
    let word = TokenOutcome::Final(AdServices::NotAttributed);
    let settled = store.settle_ad_services_token(token, word, at(401)).await;
    assert!(!settled.expect("an answer"), "its device is gone");
    let again = vec![
        event("sign-up", "sign_up", 30),
        payment("paid", "5", "USD", 90_000),
    ];
    let accepted = store.accept_sdk_events(tenant.arrival(DEVICE, 90_001), again);
    assert_eq!(
        accepted.await.expect("events are taken"),
        [Acceptance::Duplicate; 2]
    );
    let web = store
        .accept_web_event(life.web_purchase("web-1", "20"))
        .await;
    assert!(web.expect("an event is taken").is_duplicate);
    let first = NotificationMeaning::Payment(PaymentClaim::Start);
    let again = billing_notification(tenant, "first", "sub-1", 200, first);
    let answer = life.notify(&again).await;
    assert_eq!(answer, NotificationOutcome::Duplicate);
    assert_eq!(life.figures().await, before);
    assert_eq!(
        refusal(life.device_details(device(DEVICE)).await),
        Refusal::DeviceNotFound
    );

    let opened = tenant
        .call_configure(tenant.configure(DEVICE, 90_100))
        .await;
    assert!(opened.is_first_open);
    let paid = vec![payment("paid-again", "5", "USD", 90_200)];
    let accepted = store.accept_sdk_events(tenant.arrival(DEVICE, 90_200), paid);
    assert_eq!(
        accepted.await.expect("events are taken"),
        [Acceptance::Accepted]
    );
    let log = life.events_of_device(device(DEVICE)).await;
    assert_eq!(log.len(), 2, "an install and a payment");
    assert!(log["paid-again"].first_payment);
    assert!(
        life.events_of_device(name).await.len() > 4,
        "the others stay where they are"
    );
    life.assert_rebuild_keeps_figures().await;
}

/// A subscription stays with the pseudonym, whomever its provider names: a renewal keeps its credit, no network hears
/// of it, and nothing is kept of who it is about.
pub async fn a_subscription_goes_on_under_the_pseudonym(store: &SharedStore) {
    let life = person_scenario(store).await;
    let first = life.log(EventFilter::default()).await["first"].clone();
    let name = life.erase(400).await;
    let again = NotificationMeaning::Payment(PaymentClaim::Continuation);
    let mut renewal = billing_notification(life.tenant(), "renewed", "sub-1", 700_000, again);
    renewal.content.subscriber.device = Some(device(DEVICE));
    let accepted = life.notify(&renewal).await;
    let matched = NotificationOutcome::Stored {
        has_event: true,
        is_matched: true,
    };
    assert_eq!(accepted, matched);
    let log = life.log(EventFilter::default()).await;
    let renewed = &log["renewed"];
    assert_eq!(renewed.name, "renewal");
    assert_eq!(renewed.device, Some(name.clone()));
    assert_eq!((&renewed.user, &renewed.params), (&None, &None));
    assert_eq!(renewed.credit, first.credit);
    assert!(first.credit.is_some());
    assert!(!renewed.first_payment);
    // The trial becomes a subscription: networks are told that of everybody else.
    let conversion = NotificationMeaning::Payment(PaymentClaim::Conversion);
    life.notify(&billing_notification(
        life.tenant(),
        "converted",
        "sub-2",
        700_100,
        conversion,
    ))
    .await;
    let log = life.log(EventFilter::default()).await;
    assert_eq!(log["converted"].device, Some(name.clone()));
    // One that no device was found for belongs to nobody now, and so does what comes of it.
    let lonely = NotificationMeaning::Payment(PaymentClaim::Conversion);
    life.notify(&billing_notification(
        life.tenant(),
        "lonely-2",
        "sub-0",
        700_200,
        lonely,
    ))
    .await;
    let log = life.log(EventFilter::default()).await;
    let lonely = &log["lonely-2"];
    assert_eq!((&lonely.device, &lonely.user), (&None, &None));
    let standing = life.forwarding.delivery_statuses().await.into_iter();
    let mut ids = standing.map(|(id, ..)| id);
    assert!(ids.all(|id| id != "converted" && id != "renewed"));
    assert_eq!(
        refusal(life.device_details(device(DEVICE)).await),
        Refusal::DeviceNotFound
    );
    life.assert_rebuild_keeps_figures().await;
}

/// What a person has on another device stays that one's, and so does the person's id.
pub async fn another_device_of_the_person_stays(store: &SharedStore) {
    let life = person_scenario(store).await;
    let (tenant, live) = (life.tenant(), Environment::Live);
    let mut command = tenant.configure("the-other-phone", 300);
    command.identity.user = Some(person(PERSON));
    command.advertising_id = AdvertisingId::parse("6f9619ff-8b86-4011-b42d-00c04fc964ff");
    tenant.call_configure(command).await;
    life.forwarding
        .send_events("the-other-phone", &["theirs"], "sign_up", 310)
        .await;
    let before = life
        .device_details(device("the-other-phone"))
        .await
        .expect("a story");
    life.erase(400).await;
    let now = life.device_details(device("the-other-phone")).await;
    assert_eq!(now.expect("a story"), before);
    // It is still found by the person.
    let paid = NotificationMeaning::Payment(PaymentClaim::Start);
    life.notify(&billing_notification(tenant, "new", "sub-9", 500, paid))
        .await;
    let log = life.log(EventFilter::default()).await;
    assert_eq!(log["new"].device, Some(device("the-other-phone")));
    assert_eq!(log["new"].user, Some(person(PERSON)));
    assert_eq!(log["first"].user, None);
    assert_eq!(
        log["lonely"].user,
        Some(person(PERSON)),
        "it is of no device"
    );
    // A test device of the same name was never concerned.
    let mut test = tenant.configure(DEVICE, 600);
    test.environment = Environment::Test;
    tenant.call_configure(test).await;
    let found = store
        .device(&tenant.test_reader(), tenant.app.id, device(DEVICE))
        .await;
    assert!(found.is_ok());
    let eraser = life.eraser(live);
    let erased = store.erase_device(
        &eraser,
        tenant.app.id,
        device(DEVICE),
        pseudonym([9; 16]),
        origin(601),
    );
    assert_eq!(refusal(erased.await), Refusal::DeviceNotFound);
    life.assert_rebuild_keeps_figures().await;
}

/// Whoever erases while the device goes on talking meets nobody half-way: everything is the pseudonym's, or new.
pub async fn erasing_meets_a_busy_device(store: &SharedStore) {
    let life = person_scenario(store).await;
    let (tenant, app) = (life.tenant(), life.tenant().app.id);
    let tasks = (0..24_u8).map(|number| {
        let store = store.clone();
        let second = 1_000 + i64::from(number);
        let arrival = tenant.arrival(DEVICE, second);
        let one = payment(&format!("busy-{number}"), "1", "USD", second);
        let mut command = tenant.configure(DEVICE, second);
        command.identity.user = Some(person(PERSON));
        let mut web = life.web_purchase(&format!("web-busy-{number}"), "1");
        web.id = EventId::new(at(100), unique());
        let chain = format!("sub-busy-{number}");
        let start = NotificationMeaning::Payment(PaymentClaim::Start);
        let notified = billing_notification(tenant, &format!("n-{number}"), &chain, second, start);
        let eraser = life.eraser(Environment::Live);
        async move {
            match number % 6 {
                0 => {
                    let name = pseudonym([100 + number; 16]);
                    let erased =
                        store.erase_device(&eraser, app, device(DEVICE), name, origin(second));
                    match erased.await {
                        Ok(()) => {}
                        Err(error) => {
                            assert_eq!(refusal::<()>(Err(error)), Refusal::DeviceNotFound);
                        }
                    }
                }
                1 | 2 => {
                    let accepted = store.accept_sdk_events(arrival, vec![one]).await;
                    assert_eq!(accepted.expect("events are taken"), [Acceptance::Accepted]);
                }
                3 => {
                    store.configure(command).await.expect("a call is taken");
                }
                4 => {
                    store
                        .accept_web_event(web)
                        .await
                        .expect("an event is taken");
                }
                _ => {
                    store
                        .accept_notification(notified)
                        .await
                        .expect("it is kept");
                }
            }
        }
    });
    join_all(tasks.collect()).await;
    life.assert_rebuild_keeps_figures().await;
    let sums = life.figures().await;
    let (eraser, last) = (life.eraser(Environment::Live), pseudonym([200; 16]));
    // Whatever came after the last of them is erased in turn.
    match store
        .erase_device(&eraser, app, device(DEVICE), last, origin(5_000))
        .await
    {
        Ok(()) => {}
        Err(error) => assert_eq!(refusal::<()>(Err(error)), Refusal::DeviceNotFound),
    }
    assert!(life.events_of_device(device(DEVICE)).await.is_empty());
    assert_eq!(life.figures().await, sums);
    life.assert_rebuild_keeps_figures().await;
}
