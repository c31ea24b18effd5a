//! Conversion values, `/api/v1/apps/{appId}/skan`: types, field paths, versions and warnings over
//! HTTP. The domain crate tests each rule.

use reqwest::Method;
use serde_json::{Value, json};
use tributary_testkit::{TestResponse, TestServer, on_both_engines};

fn document(fine: u64) -> Value {
    json!({
        "enabled": true, "currency": "USD", "acceptTestSignals": false, "version": 99, "updatedAt": "ignored",
        "windows": [
            {"index": 0, "enabled": true, "lockOn": {"fineValue": 63}, "values": [
                {"name": "Paid 50 or more", "fineValue": 63, "coarseValue": "high", "lock": true,
                 "conditions": [{"event": "purchase", "minCount": 1, "minRevenue": 49.99}]},
                {"name": "Paid", "fineValue": fine, "coarseValue": "high",
                 "conditions": [{"event": "purchase", "minCount": 1, "maxRevenue": "9007199254.740993"}]},
                {"name": "Install", "fineValue": 0, "coarseValue": "low",
                 "conditions": [{"event": "install", "minCount": 1}]}]},
            {"index": 1, "values": [
                {"name": "Paid", "coarseValue": "high", "conditions": [{"event": "purchase", "minCount": 1}]}]},
        ],
    })
}

async fn put(
    server: &TestServer,
    path: &str,
    key: &str,
    tag: Option<&str>,
    body: &Value,
) -> TestResponse {
    let mut request = server.request(Method::PUT, path).bearer_auth(key);
    if let Some(tag) = tag {
        request = request.header("if-match", tag);
    }
    server
        .send(
            request
                .header("content-type", "application/json")
                .body(body.to_string()),
        )
        .await
}

on_both_engines! {
    async fn the_default_is_a_disabled_document_of_version_0(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = format!("{}/skan", server.app(&key).await);
        let answer = server.get(&path, &key).await.expect(200);
        assert_eq!(answer.json(), json!({
            "data": {"enabled": false, "currency": "USD", "acceptTestSignals": false, "version": 0,
                     "updatedAt": null, "windows": []},
            "meta": {"warnings": []},
        }));
    }

    async fn a_document_is_stored_exactly(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = format!("{}/skan", server.app(&key).await);
        let answer = put(&server, &path, &key, None, &document(40)).await.expect(200);
        let data = answer.data();
        assert_eq!((&data["version"], &data["enabled"]), (&json!(1), &json!(true)));
        assert!(answer.text.contains("\"minRevenue\":49.99"), "not rounded: {}", answer.text);
        assert!(answer.text.contains("\"maxRevenue\":9007199254.740993"), "past 2^53 micro-units");
        assert_eq!(data["windows"][0]["lockOn"], json!({"fineValue": 63}));
        assert_eq!(data["windows"][1]["enabled"], true);
        let read = server.get(&path, &key).await.expect(200);
        assert_eq!(read.json(), answer.json());
        assert_eq!(read.header("etag"), answer.header("etag"));
        // As text: a client that reads numbers as floats would round the larger amount itself.
        let sent_back = read.text.strip_prefix("{\"data\":").unwrap().split(",\"meta\":").next().unwrap();
        let request = server.request(Method::PUT, &path).bearer_auth(&key);
        let request = request.header("content-type", "application/json").body(sent_back.to_owned());
        assert_eq!(server.send(request).await.expect(200).header("etag"), read.header("etag"));
    }

    async fn changing_a_value_creates_a_version_and_renaming_does_not(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = format!("{}/skan", server.app(&key).await);
        let first = put(&server, &path, &key, None, &document(40)).await.expect(200);
        let same = put(&server, &path, &key, None, &document(40)).await.expect(200);
        assert_eq!((same.data()["version"].clone(), same.header("etag")), (json!(1), first.header("etag")));
        let mut renamed = document(40);
        renamed["windows"][0]["values"][1]["name"] = json!("Bought");
        let renamed = put(&server, &path, &key, None, &renamed).await.expect(200);
        assert_eq!(renamed.data()["version"], 1);
        assert_ne!(renamed.header("etag"), first.header("etag"), "concurrent renames conflict");
        let changed = put(&server, &path, &key, None, &document(41)).await.expect(200);
        assert_eq!(changed.data()["version"], 2);
    }

    async fn if_match_accepts_the_version_or_the_tag(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = format!("{}/skan", server.app(&key).await);
        put(&server, &path, &key, Some("\"0\""), &document(40)).await.expect(200);
        let stale = put(&server, &path, &key, Some("\"0\""), &document(41)).await.expect(409);
        assert_eq!(stale.code(), "version_conflict");
        let second = put(&server, &path, &key, Some("\"1\""), &document(41)).await.expect(200);
        let tag = second.header("etag").unwrap().to_owned();
        put(&server, &path, &key, Some(&tag), &document(42)).await.expect(200);
        put(&server, &path, &key, Some(&tag), &document(43)).await.expect(409);
    }

    async fn patch_changes_only_the_two_switches(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let path = format!("{app}/skan");
        put(&server, &path, &key, None, &document(40)).await.expect(200);
        let body = json!({"enabled": false, "acceptTestSignals": true});
        let data = server.patch(&path, &key, body).await.expect(200).data();
        assert_eq!((&data["enabled"], &data["acceptTestSignals"], &data["version"]), (&json!(false), &json!(true), &json!(1)));
        assert_eq!(server.get(&app, &key).await.data()["skanTestSignals"], true, "the app shows the same setting");
        let answer = server.patch(&path, &key, json!({"currency": "EUR"})).await.expect(422);
        assert_eq!(answer.code(), "validation_failed");
        server.patch(&path, &key, json!({"enabled": null, "acceptTestSignals": null})).await.expect(200);
        assert_eq!(server.get(&app, &key).await.data()["skanTestSignals"], false);
    }

    async fn reports_every_invalid_field_with_its_path(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = format!("{}/skan", server.app(&key).await);
        let condition = json!([{"event": "purchase", "minCount": 1}]);
        let faulty = json!({
            "enabled": "yes", "currency": "XAU", "surprise": 1,
            "windows": [
                {"index": 0, "lockOn": {"fineValue": 1, "event": "x"}, "values": [
                    {"name": "", "fineValue": 64, "coarseValue": "huge", "conditions": []},
                    {"name": "A", "coarseValue": "low", "conditions": condition},
                    {"name": "A", "fineValue": 1.5, "coarseValue": "low", "conditions": [
                        {"event": "x"}, {"event": "y", "minCount": 3, "maxCount": 2, "minRevenue": -1},
                        {"event": "z", "minCount": 1, "minRevenue": "0.0000001"}, {"event": "w", "minCount": 1}]}]},
                {"index": 0, "values": []},
                {"index": 1, "lockOn": {"fineValue": 5}, "values": [
                    {"name": "B", "fineValue": 5, "coarseValue": "low", "conditions": condition, "colour": "red"}]},
                {"index": 7}, "window",
            ],
        });
        let answer = put(&server, &path, &key, None, &faulty).await.expect(422);
        assert_eq!(answer.code(), "validation_failed");
        let fields: Vec<String> = answer.faults().into_iter().map(|(field, _)| field).collect();
        for field in [
            "enabled", "currency", "surprise", "windows", "windows[0].lockOn", "windows[0].values[0].name",
            "windows[0].values[0].fineValue", "windows[0].values[0].coarseValue", "windows[0].values[0].conditions",
            "windows[0].values[1].fineValue", "windows[0].values[2].name", "windows[0].values[2].fineValue",
            "windows[0].values[2].conditions", "windows[0].values[2].conditions[0]",
            "windows[0].values[2].conditions[1].maxCount", "windows[0].values[2].conditions[1].minRevenue",
            "windows[0].values[2].conditions[2].minRevenue", "windows[1].index", "windows[2].lockOn.fineValue",
            "windows[2].values[0].fineValue", "windows[2].values[0].colour", "windows[3].index", "windows[4]",
        ] {
            assert!(fields.iter().any(|one| one == field), "{field} is missing in {fields:?}");
        }
        assert_eq!(server.get(&path, &key).await.data()["version"], 0, "nothing was stored");
    }

    async fn warnings_do_not_reject_a_document(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = format!("{}/skan", server.app(&key).await);
        let shadowed = json!({"enabled": true, "windows": [{"index": 0, "values": [
            {"name": "Paid", "fineValue": 40, "coarseValue": "high", "conditions": [{"event": "purchase", "minCount": 1}]},
            {"name": "Paid often", "fineValue": 63, "coarseValue": "high", "conditions": [{"event": "purchase", "minCount": 5}]},
        ]}]});
        let answer = put(&server, &path, &key, None, &shadowed).await.expect(200).json();
        let warnings = answer["meta"]["warnings"].as_array().unwrap();
        let codes: Vec<&str> = warnings.iter().map(|one| one["code"].as_str().unwrap()).collect();
        for code in ["install_without_value", "shadowed_value", "rising_fine_value"] {
            assert!(codes.contains(&code), "{codes:?}");
        }
    }
}
