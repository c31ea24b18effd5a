//! Archived apps: links still redirect, nothing new is recorded, and lists omit the app.

use super::track::SdkFixture;
use serde_json::json;
use tributary_testkit::on_both_engines;

on_both_engines! {
    async fn an_archived_app_records_nothing(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.configure("d1", json!({})).await;
        let (server, key, app) = (&sdk.server, &sdk.key, &sdk.app);
        let link = json!({"name": "Spring", "slug": "spring-sale", "fallbackUrl": "https://example.com/x"});
        server.post(&format!("{app}/links"), key, link).await.expect(201);
        let body = json!({"archived": true, "webEvents": {"enabled": true}});
        server.patch(app, key, body).await.expect(200);

        let tapped = server.send(server.request(reqwest::Method::GET, "/c/spring-sale")).await.expect(302);
        assert_eq!(tapped.header("location"), Some("https://example.com/x"), "without a click id");
        let clicks = server.get(&format!("{app}/export?kind=clicks&format=ndjson"), key).await.expect(200);
        assert_eq!(clicks.text, "", "no click is recorded");

        let response = sdk.configure("d2", json!({})).await;
        assert_eq!(response["sdkEnabled"], false);
        let body = json!({"deviceId": "d1", "events": [{"eventId": "e1", "name": "open"}]});
        let refused = sdk.call("events", &sdk.live, &body).await.expect(403);
        assert_eq!(refused.code(), "sdk_disabled");
        let events = server.get(&format!("{app}/events"), key).await.expect(200).json();
        assert_eq!(events["data"].as_array().unwrap().len(), 1, "only the install from before archiving");

        let event = json!({
            "eventId": "order-1", "arClickId": "clk_x", "deviceId": "d1", "timestampMs": 1_767_225_600_000_i64,
            "eventType": "purchase", "revenue": "49.99", "currency": "USD", "sourceUrl": "https://example.com/x",
        });
        let refused = server.post(&format!("{app}/web-events"), key, event).await.expect(403);
        assert_eq!(refused.code(), "app_archived");

        for list in ["/api/v1/apps", "/api/v1/portfolio"] {
            let count = async |query: &str| {
                let list = server.get(&format!("{list}{query}"), key).await.expect(200).json();
                list["data"].as_array().unwrap().len()
            };
            assert_eq!((count("").await, count("?archived=true").await), (0, 1), "{list}");
        }
        assert_eq!(server.get(app, key).await.expect(200).data()["archived"], true);

        server.patch(app, key, json!({"archived": false})).await.expect(200);
        let tapped = server.send(server.request(reqwest::Method::GET, "/c/spring-sale")).await.expect(302);
        assert_eq!(tapped.header("location"), Some("https://example.com/x"));
        let clicks = server.get(&format!("{app}/export?kind=clicks&format=ndjson"), key).await.expect(200);
        assert_eq!(clicks.text.lines().count(), 1);
    }
}
