//! One payment reported twice: by the app with its store transaction, and by a billing provider.

use crate::billing::{MINUTE, Shop, event, with_payment};
use crate::website::START;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_testkit::{TestServer, on_both_engines};

/// Who reports the payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reporter {
    Sdk,
    Billing,
}

async fn report(shop: &Shop<'_>, reporter: Reporter) {
    match reporter {
        Reporter::Sdk => {
            let purchase = json!({
                "eventId": "GPA.1", "name": "purchase", "timestampMs": START + MINUTE,
                "revenue": 8.99, "currency": "USD",
            });
            let body = json!({"deviceId": "phone-1", "events": [purchase]});
            let answer = shop.track("events", body).await.expect(202).json();
            assert!(answer.to_string().contains("\"accepted\""), "{answer}");
        }
        Reporter::Billing => {
            let purchase = with_payment(event("INITIAL_PURCHASE", "n1", 2), "GPA.1", 9.99);
            assert!(!shop.send_accepted(&purchase).await);
        }
    }
}

/// Lists the purchase deliveries: event id, status and deduplication id.
async fn purchase_deliveries(shop: &Shop<'_>) -> Vec<(String, String, String)> {
    let path = format!("{}/deliveries?limit=100", shop.app);
    let all = shop.server.get(&path, &shop.key).await.expect(200).data();
    let all = all.as_array().unwrap().iter();
    let purchases = all.filter(|one| one["networkEvent"] == "Purchase");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let deliveries = purchases.map(|one| {
        let (event, status) = (text(&one["eventId"]), text(&one["status"]));
        (event, status, text(&one["dedupId"]))
    });
    deliveries.collect()
}

on_both_engines! {
    async fn a_payment_reported_by_the_app_and_a_provider_counts_once(engine: Engine) {
        for order in [[Reporter::Sdk, Reporter::Billing], [Reporter::Billing, Reporter::Sdk]] {
            let server = TestServer::start(engine).await;
            let shop = Shop::open(&server).await;
            shop.update_app(json!({"sdk": {"revenue": "count"}})).await;
            shop.connect().await;
            shop.install("phone-1").await;
            server.clock.advance(Duration::from_mins(10));
            report(&shop, order[0]).await;
            let first = purchase_deliveries(&shop).await;
            assert_eq!(first.len(), 1, "{order:?}: {first:?}");
            report(&shop, order[1]).await;

            let (sdk, billed) = (shop.logged_event("GPA.1").await, shop.logged_event("n1").await);
            assert_eq!(sdk["duplicateOf"], billed["id"], "{order:?}");
            assert_eq!((&sdk["revenue"]["counted"], &sdk["revenue"]["reason"]), (&json!(false), &json!("duplicate_of_verified")));
            assert_eq!((&billed["duplicateOf"], &billed["revenue"]["counted"]), (&Value::Null, &json!(true)));
            let figures = shop.figures().await.remove("network_a").unwrap();
            assert_eq!((figures.purchases, figures.paying_devices, figures.revenue_micros), (1, 1, 9_990_000), "{order:?}");

            let deliveries = purchase_deliveries(&shop).await;
            let waiting: Vec<_> = deliveries.iter().filter(|(_, status, _)| status == "pending").collect();
            assert_eq!(waiting.len(), 1, "{order:?}: {deliveries:?}");
            assert!(deliveries.iter().all(|(_, _, id)| *id == first[0].2), "one deduplication id: {deliveries:?}");
            // Repeating either report changes nothing.
            for reporter in order {
                match reporter {
                    Reporter::Billing => assert!(shop.send_accepted(&with_payment(event("INITIAL_PURCHASE", "n1", 2), "GPA.1", 9.99)).await),
                    Reporter::Sdk => {
                        let again = json!({"deviceId": "phone-1", "events": [{"eventId": "GPA.1", "name": "purchase"}]});
                        let answer = shop.track("events", again).await.expect(202).json();
                        assert!(answer.to_string().contains("\"duplicate\""), "{answer}");
                    }
                }
            }
            assert_eq!(shop.figures().await["network_a"].purchases, 1);
        }
    }
}
