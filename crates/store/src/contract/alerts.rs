//! Alerts.

use super::fixtures::{SharedStore, at, is_due, origin, unique};
use super::outbox_fixtures::{LEASE, ends_with, forwarding_app, settled};
use tributary_domain::app::AppChange;
use tributary_domain::due_work::WorkKind;
use tributary_domain::forwarding::alert::AlertKind;
use tributary_domain::forwarding::{AttemptVerdict, DeliveryStatus};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::HttpsUrl;

/// Many failures within an hour raise one alert.
pub async fn many_failures_raise_one_alert(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    let ids: Vec<String> = (0..100).map(|number| format!("s{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    one.send_events("phone", &ids, "sign_up", 11).await;
    one.lease(LEASE, 12, 100).await.expect("a lease");
    for round in 0..2 {
        let taken = one.take_due(LEASE, 13).await.expect("deliveries");
        let failed = |pending| {
            settled(
                pending,
                AttemptVerdict::Terminal,
                ends_with(DeliveryStatus::Failed),
                at(13),
            )
        };
        let mut settlement = one.settlement(taken.iter().map(failed).collect(), 14 + round);
        settlement.failure_alert = Some(one.alert(AlertKind::DeliveriesFailing, 14 + round));
        assert!(one.settle(LEASE, settlement).await);
    }
    assert!(is_due(store, WorkKind::Alerts, 20).await);
    let alerts = store
        .lease_alerts(at(20), at(80), 10)
        .await
        .expect("alerts");
    assert_eq!(alerts.len(), 1);
    assert_eq!(alerts[0].url, None, "the app has no webhook");
    assert_eq!(
        store
            .lease_alerts(at(21), at(80), 10)
            .await
            .expect("alerts"),
        [],
        "leased"
    );
    assert!(!is_due(store, WorkKind::Alerts, 21).await);
    let alert = &alerts[0].alert;
    store
        .settle_alert(alert.app, alert.id, Some(at(90)))
        .await
        .expect("settled");
    assert_eq!(
        store
            .lease_alerts(at(90), at(99), 10)
            .await
            .expect("alerts")[0]
            .attempts,
        2
    );
    store
        .settle_alert(alert.app, alert.id, None)
        .await
        .expect("settled");
    assert_eq!(
        store
            .lease_alerts(at(999), at(9_999), 10)
            .await
            .expect("alerts"),
        []
    );
}

/// Every app with a webhook gets the alert, at most once per period.
pub async fn alerts_reach_every_app_with_a_webhook(store: &SharedStore) {
    let (one, other) = (forwarding_app(store).await, forwarding_app(store).await);
    let change = AppChange {
        alert_webhook_url: Change::Set(
            HttpsUrl::parse("https://alerts.example.com").expect("a URL"),
        ),
        ..AppChange::default()
    };
    let (writer, app) = (&one.tenant.writer, one.queue.app);
    let changed = store.update_app(writer, app, change, Precondition::None, origin(5));
    changed.await.expect("the app is changed");
    let raise = async |since, now| {
        let message = "The rates are old.".to_owned();
        let kind = AlertKind::RatesStale;
        store
            .raise_alert_everywhere(
                kind,
                message,
                at(since),
                at(now),
                unique()[..8].try_into().expect("eight"),
            )
            .await
            .expect("raised")
    };
    assert_eq!(raise(0, 10).await, 1, "the other app has no webhook");
    assert_eq!(raise(5, 11).await, 0, "raised a moment ago");
    assert_eq!(raise(11, 100).await, 1, "the period is over");
    let alerts = store
        .lease_alerts(at(101), at(200), 10)
        .await
        .expect("alerts");
    assert_eq!(alerts.len(), 2);
    for one in alerts {
        assert_eq!(
            (one.alert.app, one.alert.kind),
            (app, AlertKind::RatesStale)
        );
        assert!(one.url.is_some() && one.alert.app != other.queue.app);
    }
}
