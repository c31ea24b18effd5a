//! Data that a device gets for choosing conversion values: exchange rates, and purchases that only
//! the server knows.

use super::track::SdkFixture;
use crate::website::{START, Website, with};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_domain::exchange::RateValue;
use tributary_domain::vocabulary::money::Amount;
use tributary_testkit::on_both_engines;

/// One day in milliseconds.
const DAY_MS: i64 = 86_400_000;

async fn read_values(sdk: &SdkFixture, key: &str, query: &str) -> Value {
    let request = sdk
        .server
        .request(Method::GET, &format!("/api/track/skan{query}"));
    let request = request.header("x-tributary-key", key);
    sdk.server.send(request).await.expect(200).data()
}

/// Stores a document with revenue conditions in this currency.
async fn store_document(sdk: &SdkFixture, currency: &str) {
    let paid = |name: &str, fine: Value| {
        json!({
            "name": name, "fineValue": fine, "coarseValue": "high",
            "conditions": [{"event": "purchase", "minCount": 1, "minRevenue": 40}],
        })
    };
    let document = json!({"enabled": true, "currency": currency, "windows": [
        {"index": 0, "values": [paid("Paid", json!(40))]},
        {"index": 1, "values": [paid("Paid again", Value::Null)]},
        {"index": 2, "enabled": false, "values": []},
    ]});
    let path = format!("{}/skan", sdk.app);
    let put = sdk.server.call("PUT", &path, &sdk.key, Some(document));
    put.await.expect(200);
}

on_both_engines! {
    async fn server_side_purchases_count_for_conversion_values(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        store_document(&sdk, "USD").await;
        let site = Website::for_app(format!("http://{}", sdk.server.address), sdk.key.clone(), sdk.app.clone()).await;
        sdk.configure("visitor-1", json!({"platform": "ios"})).await;
        sdk.server.clock.advance(Duration::from_hours(1));
        let at = |ms: i64| json!(START + ms);
        site.send_accepted(&with(&site.purchase("order-1", "49.99"), "timestampMs", at(3_600_000))).await;
        sdk.server.clock.advance(Duration::from_hours(72));
        site.send_accepted(&with(&site.purchase("order-2", "5"), "timestampMs", at(3 * DAY_MS))).await;
        site.send_accepted(&with(&site.event("look-1", "sign_up"), "timestampMs", at(3 * DAY_MS))).await;
        let received = read_values(&sdk, &sdk.live, "?deviceId=visitor-1").await;
        assert_eq!(received["server"], json!({"purchase": [
            {"count": 1, "revenue": 49.99, "window": 0}, {"count": 1, "revenue": 5, "window": 1},
        ]}), "only events that the document uses");
        assert_eq!(sdk.configure("visitor-1", json!({"platform": "ios"})).await["skan"], received);
        for (key, query) in [(&sdk.live, ""), (&sdk.live, "?deviceId=visitor-2"), (&sdk.test, "?deviceId=visitor-1")] {
            assert_eq!(read_values(&sdk, key, query).await["server"], json!({}), "{query}");
        }
        // The app tracks the same purchase as well.
        sdk.send("visitor-1", json!([{
            "eventId": "own-1", "name": "purchase", "revenue": 5, "currency": "USD", "timestampMs": at(3 * DAY_MS + 1),
        }])).await;
        let received = read_values(&sdk, &sdk.live, "?deviceId=visitor-1").await;
        assert_eq!(received["server"], json!({"purchase": [{"count": 1, "revenue": 49.99, "window": 0}]}));
    }

    async fn amounts_are_in_the_currency_of_the_document(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        store_document(&sdk, "EUR").await;
        let site = Website::for_app(format!("http://{}", sdk.server.address), sdk.key.clone(), sdk.app.clone()).await;
        sdk.configure("visitor-1", json!({"platform": "ios"})).await;
        sdk.server.clock.advance(Duration::from_mins(2));
        site.send_accepted(&with(&site.purchase("order-1", "100"), "timestampMs", START + 120_000)).await;
        let received = read_values(&sdk, &sdk.live, "?deviceId=visitor-1").await;
        let rate = RateValue::parse(received["rates"]["USD"].as_str().unwrap()).unwrap();
        let revenue = Amount::parse(&received["server"]["purchase"][0]["revenue"].to_string()).unwrap();
        assert_eq!(revenue.micros(), (100 * rate.nanos() + 500) / 1_000, "{revenue} at {rate}");
        assert_eq!(received["rates"]["EUR"], Value::Null);
        let windows: Vec<i64> = received["windows"].as_array().unwrap().iter().map(|one| one["index"].as_i64().unwrap()).collect();
        assert_eq!(windows, [0, 1], "disabled windows are not sent");
    }

    async fn rejects_an_empty_device_id_and_ignores_unknown_parameters(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let get = async |query: &str| {
            let request = sdk.server.request(Method::GET, &format!("/api/track/skan{query}"));
            sdk.server.send(request.header("x-tributary-key", &sdk.live)).await
        };
        assert_eq!(get("?deviceId=").await.expect(422).faults()[0].0, "deviceId");
        get("?deviceId=visitor-1&device=1").await.expect(200);
    }
}
