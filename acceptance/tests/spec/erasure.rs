//! Erasing a person: `DELETE /api/v1/apps/{appId}/devices/{deviceId}`.

use super::track::SdkFixture;
use crate::outbox::connect;
use crate::website::Website;
use serde_json::{Value, json};
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{TestServer, on_both_engines};

const DEVICE: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";
const GAID: &str = "38400000-8cf0-11bd-b23e-10b96e40000d";
const HASH: &str = "0c7e6a405862e402eb76a70f8a26fc732d07c32931e9fae9ab1582911d2e8a3b";

/// Reads every kind of report.
async fn read_reports(sdk: &SdkFixture) -> Vec<Value> {
    let days = "from=2025-12-31&to=2026-01-03";
    let mut reports = Vec::new();
    for path in [
        format!("stats?{days}&groupBy=network"),
        format!("stats?{days}&groupBy=event"),
        format!("stats?{days}&groupBy=country"),
        format!("overview?{days}"),
        format!("cohorts?{days}"),
    ] {
        let answer = sdk
            .server
            .get(&format!("{}/{path}", sdk.app), &sdk.key)
            .await;
        reports.push(answer.expect(200).json());
    }
    reports
}

/// Creates a user who came from an ad, was identified and paid.
async fn create_user(sdk: &SdkFixture) {
    sdk.link("spring", json!({"network": "network_a"})).await;
    let token = sdk
        .tap("/c/spring?fbclid=f1&campaign_id=238&invite=me")
        .await;
    sdk.configure(
        DEVICE,
        json!({"arClickId": token, "gaid": GAID, "userId": "user-42"}),
    )
    .await;
    let person = json!({"deviceId": DEVICE, "matching": {"email": HASH}});
    sdk.call("identify", &sdk.live, &person).await.expect(204);
    let events = json!([
        {"eventId": "e1", "name": "sign_up", "params": {"name": "Jane Doe"}},
        {"eventId": "e2", "name": "purchase", "revenue": 9.99, "currency": "USD"},
    ]);
    sdk.send(DEVICE, events).await;
}

const TOKEN: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

on_both_engines! {
    async fn a_user_erases_their_own_device(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        create_user(&sdk).await;
        let erase = async |device: &str, token: &str| {
            sdk.call("erase", &sdk.live, &json!({"deviceId": device, "eraseToken": token})).await
        };
        let other = TOKEN.replace('A', "B");
        assert_eq!(erase(DEVICE, TOKEN).await.expect(403).code(), "invalid_erase_token", "none was sent");
        sdk.configure(DEVICE, json!({"eraseToken": "too short"})).await;
        sdk.configure(DEVICE, json!({"eraseToken": TOKEN})).await;
        sdk.configure(DEVICE, json!({"eraseToken": other})).await;
        for (device, token) in [(DEVICE, other.as_str()), ("another-phone", TOKEN)] {
            let refused = erase(device, token).await.expect(403);
            assert_eq!(refused.code(), "invalid_erase_token");
            assert!(!refused.text.contains(token) && !refused.text.contains(device));
        }
        let of_tests = json!({"deviceId": DEVICE, "eraseToken": TOKEN});
        assert_eq!(sdk.call("erase", &sdk.test, &of_tests).await.expect(403).code(), "invalid_erase_token");
        let faulty = sdk.call("erase", &sdk.live, &json!({"eraseToken": format!("{TOKEN}=")})).await.expect(422);
        let fields: Vec<String> = faulty.faults().into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["deviceId", "eraseToken"]);
        assert!(!faulty.text.contains(TOKEN));

        let before = read_reports(&sdk).await;
        // Erasure is the user's right, so it works even if the SDK is disabled.
        sdk.change_app(json!({"sdk": {"enabled": false}})).await;
        let path = format!("{}/devices/{DEVICE}", sdk.app);
        sdk.server.get(&path, &sdk.key).await.expect(200);
        for _ in 0..2 {
            let answer = erase(&DEVICE.to_uppercase(), TOKEN).await.expect(200);
            assert_eq!(answer.data(), json!({"status": "erased"}));
        }
        assert_eq!(read_reports(&sdk).await, before);
        assert_eq!(sdk.server.get(&path, &sdk.key).await.expect(404).code(), "device_not_found");
        assert!(sdk.log(&format!("&deviceId={DEVICE}")).await.is_empty());
        let audited = sdk.server.get("/api/v1/audit-log?limit=1", &sdk.key).await.expect(200);
        let entry = audited.json()["data"][0].clone();
        assert_eq!((&entry["action"], &entry["actor"]["kind"]), (&json!("device.erased"), &json!("device_user")));
        assert!(!audited.text.contains(DEVICE) && !audited.text.contains(TOKEN));
    }

    async fn erases_a_person_without_changing_a_report(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        create_user(&sdk).await;
        let path = format!("{}/devices/{DEVICE}", sdk.app);
        sdk.server.get(&path, &sdk.key).await.expect(200);
        let before = read_reports(&sdk).await;
        let answer = sdk.server.call("DELETE", &path, &sdk.key, None).await.expect(204);
        assert_eq!(answer.text, "");
        assert_eq!(read_reports(&sdk).await, before);

        assert_eq!(sdk.server.get(&path, &sdk.key).await.expect(404).code(), "device_not_found");
        let again = sdk.server.call("DELETE", &path, &sdk.key, None).await.expect(404);
        assert_eq!(again.code(), "device_not_found");
        assert!(!again.text.contains(DEVICE));
        assert!(sdk.log(&format!("&deviceId={DEVICE}")).await.is_empty());
        assert!(sdk.log("&userId=user-42").await.is_empty());
        let log = sdk.log("").await;
        assert_eq!(log.len(), 3, "the install and two events");
        let name = log[0]["deviceId"].as_str().unwrap().to_owned();
        assert!(name.starts_with("erased-"), "{name}");
        for event in &log {
            assert_eq!((&event["deviceId"], &event["userId"]), (&json!(name), &json!(null)));
            assert_eq!(event["attribution"]["network"], "network_a", "the credit is kept");
        }
        let details = sdk.server.get(&format!("{}/devices/{name}", sdk.app), &sdk.key).await.expect(200);
        for hidden in [DEVICE, GAID, HASH, "user-42", "Jane Doe", "Pixel 8", "invite", "203.0.113.9"] {
            assert!(!details.text.contains(hidden), "{hidden}: {}", details.text);
            assert!(!json!(log).to_string().contains(hidden), "{hidden}: {log:?}");
        }
        let audit = sdk.server.get("/api/v1/audit-log?limit=1", &sdk.key).await.expect(200);
        assert!(!audit.text.contains(DEVICE) && !audit.text.contains("user-42"), "{}", audit.text);
        let entry = &audit.json()["data"][0];
        assert_eq!((&entry["action"], &entry["target"]), (&json!("device.erased"), &json!(name)));
        assert_eq!(entry["changes"], json!([]));
    }

    async fn an_app_that_stays_installed_becomes_a_new_device(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        create_user(&sdk).await;
        let path = format!("{}/devices/{DEVICE}", sdk.app);
        sdk.server.call("DELETE", &path, &sdk.key, None).await.expect(204);
        let before = read_reports(&sdk).await;
        let answer = sdk.send(DEVICE, json!([{"eventId": "e1", "name": "sign_up"}])).await;
        assert_eq!(answer, json!([{"eventId": "e1", "status": "duplicate"}]));
        assert_eq!(read_reports(&sdk).await, before);
        let opened = sdk.configure(DEVICE, json!({})).await;
        assert_eq!(opened["firstOpen"], true);
        let details = sdk.server.get(&path, &sdk.key).await.expect(200).data();
        assert_eq!((&details["userId"], &details["hasMoreEvents"]), (&json!(null), &json!(false)));
        assert_eq!(details["events"].as_array().unwrap().len(), 1, "only the new install");
    }

    async fn erasing_requires_write_permission_and_the_right_environment(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let device = json!({"deviceId": DEVICE, "platform": "android"});
        for key in [&sdk.live, &sdk.test] {
            sdk.call("configure", key, &device).await.expect(200);
        }
        let path = format!("{}/devices/{DEVICE}", sdk.app);
        let erase = async |path: &str, key: &str| sdk.server.call("DELETE", path, key, None).await;
        let other_organization = sdk.server.organization("Another").await;
        let other_key = sdk.server.key(other_organization, Permission::Full, Environment::Live).await;
        assert_eq!(erase(&path, &other_key).await.expect(404).code(), "app_not_found");
        assert_eq!(erase(&path, &sdk.analytics_key).await.expect(403).code(), "insufficient_permission");
        for unknown in ["unknown", "%00", "00000000-0000-0000-0000-000000000000"] {
            let answer = erase(&format!("{}/devices/{unknown}", sdk.app), &sdk.key).await.expect(404);
            assert_eq!(answer.code(), "device_not_found", "{unknown}");
        }
        erase(&path, &sdk.test_key).await.expect(204);
        assert_eq!(sdk.server.get(&path, &sdk.test_key).await.expect(404).code(), "device_not_found");
        sdk.server.get(&path, &sdk.key).await.expect(200);
        erase(&path, &sdk.key).await.expect(204);
    }

    async fn erasure_cancels_pending_deliveries(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        let purchase = site.purchase("order-1", "49.99");
        let device = purchase["deviceId"].as_str().unwrap().to_owned();
        site.send_accepted(&purchase).await;
        let delivery = async || {
            let list = site.call("GET", "/deliveries", Value::Null).await.expect(200).data();
            list[0].clone()
        };
        assert_eq!(delivery().await["status"], "pending");
        let path = format!("{}/devices/{device}", site.app);
        server.call("DELETE", &path, &site.key, None).await.expect(204);
        let cancelled = delivery().await;
        assert_eq!((&cancelled["status"], &cancelled["reason"]), (&json!("cancelled"), &json!("erased")));
        let again = site.call("POST", "/web-events", purchase).await.expect(202);
        assert_eq!(again.data()["duplicate"], true);
        assert_eq!(delivery().await["status"], "cancelled", "a repeated event does not revive it");
    }
}
