//! Round trips: every resource that supports PATCH accepts its own GET response back.

use serde_json::{Value, json};
use tributary_testkit::{TestServer, on_both_engines};

/// Patches the whole document back: unchanged, with one change, and with a read-only field changed.
async fn check_round_trip(server: &TestServer, key: &str, path: &str, change: (&str, Value)) {
    let answer = server.get(path, key).await.expect(200);
    let (tag, document) = (answer.header("etag").map(str::to_owned), answer.data());
    let same = server.patch(path, key, document.clone()).await.expect(200);
    assert_eq!(same.header("etag"), tag.as_deref(), "{path}: unchanged");
    assert_eq!(same.data(), document, "{path}: unchanged");
    let mut changed = document.clone();
    *changed.pointer_mut(change.0).unwrap() = change.1.clone();
    let after = server.patch(path, key, changed).await.expect(200).data();
    assert_eq!(after.pointer(change.0), Some(&change.1), "{path}");
    let mut moved = after.clone();
    moved["updatedAt"] = json!("2020-01-01T00:00:00.000Z");
    let refused = server.patch(path, key, moved).await.expect(422);
    let expected = ("updatedAt".to_owned(), "not_allowed".to_owned());
    assert_eq!(refused.faults(), [expected], "{path}");
}

on_both_engines! {
    async fn accepts_its_own_document_back(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        check_round_trip(&server, &key, &app, ("/name", json!("Renamed"))).await;
        let secrets = json!({
            "attribution": {"socialReferrerKey": "a1b2c3d4"},
            "billing": {"revenuecat": {"secret": "0123456789abcdef"}},
        });
        server.patch(&app, &key, secrets).await.expect(200);
        check_round_trip(&server, &key, &app, ("/sdk/enabled", json!(false))).await;
        let document = server.get(&app, &key).await.expect(200).data();
        assert_eq!(document["attribution"]["socialReferrerKey"], json!({"set": true}));
        assert_eq!(document["billing"]["revenuecat"]["configured"], true);

        let link = json!({"name": "Spring", "network": "network_a", "fallbackUrl": "https://example.com/x"});
        let link = server.post(&format!("{app}/links"), &key, link).await.expect(201).data();
        let link = format!("{app}/links/{}", link["id"].as_str().unwrap());
        check_round_trip(&server, &key, &link, ("/active", json!(false))).await;

        for network in ["network_a", "network_b", "network_c", "network_d"] {
            let path = format!("{app}/integrations/{network}");
            check_round_trip(&server, &key, &path, ("/scope", json!("all"))).await;
        }
        let path = format!("{app}/integrations/network_a");
        let connected = json!({"credentials": {"accessToken": "EAAB0123456789f9f2c"}});
        server.patch(&path, &key, connected).await.expect(200);
        check_round_trip(&server, &key, &path, ("/settings/pixelId", json!("123"))).await;
        let mut stale = server.get(&path, &key).await.expect(200).data();
        stale["health"]["pending"] = json!(7);
        stale["statusReason"] = json!("Something else.");
        server.patch(&path, &key, stale).await.expect(200);

        let skan = format!("{app}/skan");
        let document = json!({"enabled": false, "windows": [{"index": 0, "enabled": true, "values": [{
            "name": "Paid", "fineValue": 40, "coarseValue": "high",
            "conditions": [{"event": "purchase", "minRevenue": 49.90}],
        }]}]});
        server.call("PUT", &skan, &key, Some(document)).await.expect(200);
        check_round_trip(&server, &key, &skan, ("/enabled", json!(true))).await;
    }

    async fn rejects_changes_to_read_only_fields(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let body = json!({
            "id": "app_x", "sdk": {"liveKey": "pk_live_x"}, "attribution": {"socialReferrerKey": {"set": true}},
            "billing": {"appstore": {"configured": true}, "revenuecat": {"url": null}},
        });
        let answer = server.patch(&app, &key, body).await.expect(422);
        let faults = answer.faults();
        let mut fields: Vec<&str> = faults.iter().map(|(field, _)| field.as_str()).collect();
        fields.sort_unstable();
        assert_eq!(fields, [
            "attribution.socialReferrerKey", "billing.appstore", "billing.revenuecat.url", "id", "sdk.liveKey",
        ]);
        let other = server.patch(&format!("{app}/skan"), &key, json!({"currency": "EUR"})).await.expect(422);
        assert_eq!(other.faults(), [("currency".to_owned(), "not_allowed".to_owned())]);
    }
}
