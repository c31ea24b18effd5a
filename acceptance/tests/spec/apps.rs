//! Apps: `/api/v1/apps` and `/api/v1/apps/{appId}`.

use reqwest::Method;
use serde_json::{Value, json};
use tributary_testkit::{TestResponse, TestServer, on_both_engines};

async fn patch_if_match(
    server: &TestServer,
    path: &str,
    key: &str,
    tag: &str,
    body: Value,
) -> TestResponse {
    let request = server
        .request(Method::PATCH, path)
        .bearer_auth(key)
        .header("if-match", tag)
        .header("content-type", "application/json")
        .body(body.to_string());
    server.send(request).await
}

on_both_engines! {
    async fn creates_an_app_from_a_name_alone(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let answer = server.post("/api/v1/apps", &key, json!({"name": "Runner"})).await.expect(201);
        let app = answer.data();
        let id = app["id"].as_str().unwrap();
        assert!(id.starts_with("app_"));
        let path = format!("/api/v1/apps/{id}");
        assert_eq!(answer.header("location"), Some(path.as_str()));
        assert_eq!(answer.header("etag"), Some("\"1\""));
        let key_of = |name: &str| app["sdk"][name].as_str().unwrap().to_owned();
        assert!(key_of("liveKey").starts_with("pk_live_"));
        assert!(key_of("testKey").starts_with("pk_test_"));
        let webhook = |provider| format!("https://t.example.com/api/webhook/{provider}/{id}");
        assert_eq!(app, json!({
            "id": id, "name": "Runner", "timezone": "UTC", "archived": false,
            "ios": {"bundleId": null, "appStoreId": null, "teamId": null},
            "android": {
                "packageName": null, "sha256CertFingerprints": [],
                "playDecryptionKey": {"set": false}, "playVerificationKey": {"set": false},
            },
            "webEvents": {"enabled": false},
            "linkDomain": null, "linkDomainVerification": null,
            "sdk": {
                "enabled": true, "revenue": "auto", "attestation": "off",
                "identity": "open", "identitySecret": {"set": false},
                "liveKey": key_of("liveKey"), "testKey": key_of("testKey"),
            },
            "attribution": {
                "clickWindowHours": 168,
                "probabilistic": {"ios": false, "android": true, "windowHours": 24},
                "fraud": "hold", "socialReferrerKey": {"set": false},
            },
            "qualifiedTrial": {"enabled": false, "delayHours": 2},
            "skanTestSignals": false, "revenueEvents": [], "deepLinkSchemes": [], "alertWebhookUrl": null,
            "billing": {
                "revenuecat": {"configured": false, "url": webhook("revenuecat")},
                "superwall": {"configured": false, "url": webhook("superwall")},
                "appstore": {"configured": false, "url": webhook("appstore")},
                "stripe": {"configured": false, "url": webhook("stripe")},
                "adapty": {"configured": false, "url": webhook("adapty")},
                "qonversion": {"configured": false, "url": webhook("qonversion")},
            },
            "createdAt": app["createdAt"], "updatedAt": app["createdAt"],
        }));
        assert!(app["createdAt"].as_str().unwrap().starts_with("2026-01-01T00:00:00."));
        assert_eq!(server.get(&path, &key).await.expect(200).data(), app);
        let list = server.get("/api/v1/apps", &key).await.expect(200).json();
        assert_eq!(list, json!({"data": [app], "meta": {"hasMore": false, "cursor": null}}));
    }

    async fn web_events_are_enabled_by_patch(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = server.app(&key).await;
        let answer = server.patch(&path, &key, json!({"webEvents": {"enabled": true}})).await.expect(200);
        assert_eq!(answer.data()["webEvents"]["enabled"], true);
        assert_eq!(answer.header("etag"), Some("\"2\""));
        let app = server.get(&path, &key).await.expect(200).data();
        assert_eq!(app["webEvents"]["enabled"], true);
        assert_eq!(app["name"], "Runner", "absent fields stay unchanged");
    }

    async fn absent_fields_stay_null_resets_and_lists_are_replaced(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = server.app(&key).await;
        let set = json!({
            "timezone": "europe/berlin",
            "ios": {"bundleId": "com.example.a", "appStoreId": "42", "teamId": "ABCDE12345"},
            "android": {"packageName": "com.example.a", "sha256CertFingerprints": ["ab".repeat(32)]},
            "linkDomain": "Go.Example.com",
            "sdk": {"enabled": false, "revenue": "ignore", "identity": "signed"},
            "attribution": {"clickWindowHours": 720, "probabilistic": {"ios": true}, "fraud": "flag"},
            "qualifiedTrial": {"enabled": true, "delayHours": 48},
            "skanTestSignals": true, "archived": true,
            "alertWebhookUrl": "https://hooks.example.com/x",
        });
        let app = server.patch(&path, &key, set).await.expect(200).data();
        assert_eq!(app["timezone"], "Europe/Berlin");
        assert_eq!(app["linkDomain"], "go.example.com");
        assert_eq!(app["android"]["sha256CertFingerprints"][0], ["AB"; 32].join(":"));
        assert_eq!(app["attribution"]["probabilistic"], json!({"ios": true, "android": true, "windowHours": 24}));

        let reset = json!({
            "timezone": null, "ios": {"teamId": null}, "android": null, "linkDomain": null,
            "sdk": {"enabled": null}, "attribution": {"clickWindowHours": null}, "alertWebhookUrl": null,
        });
        let app = server.patch(&path, &key, reset).await.expect(200).data();
        assert_eq!(app["timezone"], "UTC");
        assert_eq!(app["ios"], json!({"bundleId": "com.example.a", "appStoreId": "42", "teamId": null}));
        let android = &app["android"];
        assert_eq!((&android["packageName"], &android["sha256CertFingerprints"]), (&json!(null), &json!([])));
        assert_eq!(app["sdk"]["enabled"], true);
        assert_eq!(app["sdk"]["revenue"], "ignore");
        assert_eq!(app["attribution"]["clickWindowHours"], 168);
        assert_eq!(app["attribution"]["fraud"], "flag");
        assert_eq!((&app["linkDomain"], &app["alertWebhookUrl"]), (&json!(null), &json!(null)));
    }

    async fn reports_all_invalid_fields_at_once_and_changes_nothing(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = server.app(&key).await;
        let before = server.get(&path, &key).await.text;
        let faulty = json!({
            "name": "", "timezone": "Mars/Olympus", "archived": "yes", "webEvents": {"enabled": 1, "enbaled": true},
            "ios": {"bundleId": "not a bundle", "appStoreId": "id5", "teamId": "abc"},
            "android": {
                "packageName": "runner", "sha256CertFingerprints": ["zz"],
                "playDecryptionKey": "AAAA", "playVerificationKey": "AAAA",
            },
            "linkDomain": "https://go.example.com", "sdk": {"revenue": "sometimes", "attestation": "maybe"},
            "attribution": {
                "clickWindowHours": 721, "probabilistic": {"windowHours": 25}, "fraud": "ignore",
                "socialReferrerKey": "",
            },
            "qualifiedTrial": {"delayHours": 0}, "alertWebhookUrl": "https://127.0.0.1/x", "revenueEvents": ["add_to_cart"],
            "billing": {"revenuecat": {"secret": "short"}, "paypal": {}},
            "id": "app_x",
        });
        let answer = server.patch(&path, &key, faulty).await.expect(422);
        assert_eq!(answer.code(), "validation_failed");
        let mut fields: Vec<String> = answer.faults().into_iter().map(|(field, _)| field).collect();
        fields.sort();
        assert_eq!(fields, [
            "alertWebhookUrl", "android.packageName", "android.playDecryptionKey", "android.playVerificationKey",
            "android.sha256CertFingerprints", "archived",
            "attribution.clickWindowHours", "attribution.fraud", "attribution.probabilistic.windowHours",
            "attribution.socialReferrerKey", "billing.paypal", "billing.revenuecat.secret", "id",
            "ios.appStoreId", "ios.bundleId", "ios.teamId", "linkDomain", "name",
            "qualifiedTrial.delayHours", "revenueEvents", "sdk.attestation", "sdk.revenue", "timezone", "webEvents.enabled", "webEvents.enbaled",
        ]);
        assert_eq!(server.get(&path, &key).await.text, before);
    }

    async fn a_name_cannot_be_null(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = server.app(&key).await;
        let answer = server.patch(&path, &key, json!({"name": null})).await.expect(422);
        assert_eq!(answer.faults(), [("name".to_owned(), "required".to_owned())]);
        let answer = server.post("/api/v1/apps", &key, json!({})).await.expect(422);
        assert_eq!(answer.faults(), [("name".to_owned(), "required".to_owned())]);
    }

    async fn rejects_unknown_fields_by_name(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let body = json!({"name": "Runner", "nmae": "x"});
        let answer = server.post("/api/v1/apps", &key, body).await.expect(422);
        assert_eq!(answer.code(), "unknown_field");
        assert_eq!(answer.faults(), [("nmae".to_owned(), "unknown_field".to_owned())]);
        let apps = server.get("/api/v1/apps", &key).await.expect(200).data();
        assert_eq!(apps, json!([]), "no app was created");
    }

    async fn store_ids_are_unique_in_an_organization(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (one, other) = (server.full_key().await, server.full_key().await);
        let body = json!({"name": "A", "ios": {"appStoreId": "42"}});
        server.post("/api/v1/apps", &one, body.clone()).await.expect(201);
        server.post("/api/v1/apps", &other, body.clone()).await.expect(201);
        let answer = server.post("/api/v1/apps", &one, body).await.expect(409);
        assert_eq!(answer.code(), "store_id_taken");
        assert_eq!(answer.json()["error"]["retryable"], false);
    }

    async fn rejects_the_service_host_as_a_link_domain(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = server.app(&key).await;
        let answer = server.patch(&path, &key, json!({"linkDomain": "T.example.com"})).await.expect(422);
        assert_eq!(answer.faults(), [("linkDomain".to_owned(), "not_allowed".to_owned())]);
    }

    async fn honours_if_match_when_it_is_sent(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = server.app(&key).await;
        let rename = |name: &str| json!({"name": name});
        patch_if_match(&server, &path, &key, "\"1\"", rename("B")).await.expect(200);
        let answer = patch_if_match(&server, &path, &key, "\"1\"", rename("C")).await.expect(409);
        assert_eq!(answer.code(), "version_conflict");
        patch_if_match(&server, &path, &key, "\"7\", \"2\"", rename("D")).await.expect(200);
        patch_if_match(&server, &path, &key, "*", rename("E")).await.expect(200);
        patch_if_match(&server, &path, &key, "W/\"4\"", rename("F")).await.expect(409);
        let app = server.get(&path, &key).await.expect(200);
        assert_eq!(app.data()["name"], "E");
        assert_eq!(app.header("etag"), Some("\"4\""));
    }

    async fn secrets_are_write_only(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = server.app(&key).await;
        let secret = "canary-secret-0123456789";
        let body = json!({
            "attribution": {"socialReferrerKey": secret}, "billing": {"revenuecat": {"secret": secret}},
        });
        let answer = server.patch(&path, &key, body).await.expect(200);
        assert!(!answer.text.contains("canary"));
        assert_eq!(answer.data()["attribution"]["socialReferrerKey"], json!({"set": true}));
        assert_eq!(answer.data()["billing"]["revenuecat"]["configured"], true);
        assert_eq!(answer.data()["billing"]["superwall"]["configured"], false);
        let log = server.get("/api/v1/audit-log", &key).await.expect(200);
        assert!(log.text.contains("billing.revenuecat") && !log.text.contains("canary"));
        let answer = server.patch(&path, &key, json!({"billing": {"revenuecat": {"secret": null}}})).await;
        assert_eq!(answer.expect(200).data()["billing"]["revenuecat"]["configured"], false);
    }
}
