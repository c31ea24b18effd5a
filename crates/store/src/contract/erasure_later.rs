//! Activity after an erasure: personal data does not come back, and nothing is lost.

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
use tributary_domain::event::sdk::SdkEventOutcome;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::EventId;

/// A retried event is still a duplicate. The app, still installed, becomes a new device that has
/// never paid.
pub async fn an_erased_device_returns_as_a_new_one(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let tenant = scenario.tenant();
    let tokens = store.lease_ad_services_tokens(at(300), at(330), 10).await;
    let token = tokens.expect("tokens").remove(0);
    let name = scenario.erase(400).await;
    let before = scenario.figures().await;
    let answer = TokenOutcome::Final(AdServices::NotAttributed);
    let settled = store.settle_ad_services_token(token, answer, at(401)).await;
    assert!(
        !settled.expect("the call succeeds"),
        "the token's device is erased"
    );
    let again = vec![
        event("sign-up", "sign_up", 30),
        payment("paid", "5", "USD", 90_000),
    ];
    let accepted = store.accept_sdk_events(tenant.arrival(DEVICE, 90_001), again);
    assert_eq!(
        accepted.await.expect("events are accepted"),
        [SdkEventOutcome::Duplicate; 2]
    );
    let web = store
        .accept_web_event(scenario.web_purchase("web-1", "20"))
        .await;
    assert!(web.expect("an event is accepted").is_duplicate);
    let first = NotificationMeaning::Payment(PaymentClaim::Start);
    let again = billing_notification(tenant, "first", "sub-1", 200, first);
    let answer = scenario.notify(&again).await;
    assert_eq!(answer, NotificationOutcome::Duplicate);
    assert_eq!(scenario.figures().await, before);
    assert_eq!(
        refusal(scenario.device_details(device(DEVICE)).await),
        Refusal::DeviceNotFound
    );

    let opened = tenant
        .call_configure(tenant.configure(DEVICE, 90_100))
        .await;
    assert!(opened.is_first_open);
    let paid = vec![payment("paid-again", "5", "USD", 90_200)];
    let accepted = store.accept_sdk_events(tenant.arrival(DEVICE, 90_200), paid);
    assert_eq!(
        accepted.await.expect("events are accepted"),
        [SdkEventOutcome::Accepted]
    );
    let log = scenario.events_of_device(device(DEVICE)).await;
    assert_eq!(log.len(), 2, "an install and a payment");
    assert!(log["paid-again"].first_payment);
    assert!(
        scenario.events_of_device(name).await.len() > 4,
        "the other events stay"
    );
    scenario.assert_rebuild_keeps_figures().await;
}

/// A subscription stays with the pseudonym, whatever ids its provider sends: a renewal keeps its
/// credit, is not sent to any network, and stores no subscriber.
pub async fn a_subscription_continues_under_the_pseudonym(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let first = scenario.log(EventFilter::default()).await["first"].clone();
    let name = scenario.erase(400).await;
    let again = NotificationMeaning::Payment(PaymentClaim::Continuation);
    let mut renewal = billing_notification(scenario.tenant(), "renewed", "sub-1", 700_000, again);
    renewal.content.subscriber.device = Some(device(DEVICE));
    let accepted = scenario.notify(&renewal).await;
    let matched = NotificationOutcome::Stored {
        has_event: true,
        is_matched: true,
    };
    assert_eq!(accepted, matched);
    let log = scenario.log(EventFilter::default()).await;
    let renewed = &log["renewed"];
    assert_eq!(renewed.name, "renewal");
    assert_eq!(renewed.device, Some(name.clone()));
    assert_eq!((&renewed.user, &renewed.params), (&None, &None));
    assert_eq!(renewed.credit, first.credit);
    assert!(first.credit.is_some());
    assert!(!renewed.first_payment);
    // The trial converts. Without the erasure, networks would get this event.
    let conversion = NotificationMeaning::Payment(PaymentClaim::Conversion);
    scenario
        .notify(&billing_notification(
            scenario.tenant(),
            "converted",
            "sub-2",
            700_100,
            conversion,
        ))
        .await;
    let log = scenario.log(EventFilter::default()).await;
    assert_eq!(log["converted"].device, Some(name.clone()));
    // A subscription without a device stays without one, and its later events have no device
    // either.
    let lonely = NotificationMeaning::Payment(PaymentClaim::Conversion);
    scenario
        .notify(&billing_notification(
            scenario.tenant(),
            "lonely-2",
            "sub-0",
            700_200,
            lonely,
        ))
        .await;
    let log = scenario.log(EventFilter::default()).await;
    let lonely = &log["lonely-2"];
    assert_eq!((&lonely.device, &lonely.user), (&None, &None));
    let statuses = scenario.forwarding.delivery_statuses().await.into_iter();
    let mut ids = statuses.map(|(id, ..)| id);
    assert!(ids.all(|id| id != "converted" && id != "renewed"));
    assert_eq!(
        refusal(scenario.device_details(device(DEVICE)).await),
        Refusal::DeviceNotFound
    );
    scenario.assert_rebuild_keeps_figures().await;
}

/// The data of the user's other device stays, including the user id.
pub async fn other_devices_of_the_user_stay(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let (tenant, live) = (scenario.tenant(), Environment::Live);
    let mut command = tenant.configure("the-other-phone", 300);
    command.identity.user = Some(person(PERSON));
    // Flagged like the first phone, so that the first phone keeps its subscriptions.
    command.traits.model = Some("iPhone15,2".to_owned());
    command.advertising_id = AdvertisingId::parse("6f9619ff-8b86-4011-b42d-00c04fc964ff");
    tenant.call_configure(command).await;
    scenario
        .forwarding
        .send_events("the-other-phone", &["theirs"], "sign_up", 310)
        .await;
    let before = scenario
        .device_details(device("the-other-phone"))
        .await
        .expect("device details");
    scenario.erase(400).await;
    let now = scenario.device_details(device("the-other-phone")).await;
    assert_eq!(now.expect("device details"), before);
    // A payment still finds the other device through its user.
    let paid = NotificationMeaning::Payment(PaymentClaim::Start);
    scenario
        .notify(&billing_notification(tenant, "new", "sub-9", 500, paid))
        .await;
    let log = scenario.log(EventFilter::default()).await;
    assert_eq!(log["new"].device, Some(device("the-other-phone")));
    assert_eq!(log["new"].user, Some(person(PERSON)));
    assert_eq!(log["first"].user, None);
    assert_eq!(
        log["lonely"].user,
        Some(person(PERSON)),
        "the event has no device"
    );
    // A test device with the same id is not affected.
    let mut test = tenant.configure(DEVICE, 600);
    test.environment = Environment::Test;
    tenant.call_configure(test).await;
    let found = store
        .device(&tenant.test_reader(), tenant.app.id, device(DEVICE))
        .await;
    assert!(found.is_ok());
    let eraser = scenario.eraser(live);
    let erased = store.erase_device(
        &eraser,
        tenant.app.id,
        device(DEVICE),
        pseudonym([9; 16]),
        origin(601),
    );
    assert_eq!(refusal(erased.await), Refusal::DeviceNotFound);
    scenario.assert_rebuild_keeps_figures().await;
}

/// When a device is erased while it is sending events, each event ends up either with the pseudonym
/// or with a new device.
pub async fn erasing_a_busy_device_keeps_figures_right(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let (tenant, app) = (scenario.tenant(), scenario.tenant().app.id);
    let tasks = (0..24_u8).map(|number| {
        let store = store.clone();
        let second = 1_000 + i64::from(number);
        let arrival = tenant.arrival(DEVICE, second);
        let one = payment(&format!("busy-{number}"), "1", "USD", second);
        let mut command = tenant.configure(DEVICE, second);
        command.identity.user = Some(person(PERSON));
        let mut web = scenario.web_purchase(&format!("web-busy-{number}"), "1");
        web.id = EventId::new(at(100), unique());
        let chain = format!("sub-busy-{number}");
        let start = NotificationMeaning::Payment(PaymentClaim::Start);
        let notified = billing_notification(tenant, &format!("n-{number}"), &chain, second, start);
        let eraser = scenario.eraser(Environment::Live);
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
                    assert_eq!(
                        accepted.expect("events are accepted"),
                        [SdkEventOutcome::Accepted]
                    );
                }
                3 => {
                    store.configure(command).await.expect("a call succeeds");
                }
                4 => {
                    store
                        .accept_web_event(web)
                        .await
                        .expect("an event is accepted");
                }
                _ => {
                    store
                        .accept_notification(notified)
                        .await
                        .expect("a notification is stored");
                }
            }
        }
    });
    join_all(tasks.collect()).await;
    scenario.assert_rebuild_keeps_figures().await;
    let sums = scenario.figures().await;
    let (eraser, last) = (scenario.eraser(Environment::Live), pseudonym([200; 16]));
    // Erases what arrived after the previous erasure.
    match store
        .erase_device(&eraser, app, device(DEVICE), last, origin(5_000))
        .await
    {
        Ok(()) => {}
        Err(error) => assert_eq!(refusal::<()>(Err(error)), Refusal::DeviceNotFound),
    }
    assert!(scenario.events_of_device(device(DEVICE)).await.is_empty());
    assert_eq!(scenario.figures().await, sums);
    scenario.assert_rebuild_keeps_figures().await;
}
