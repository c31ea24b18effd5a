//! Wiping test data: `tributary admin test-data wipe`.

use super::ownership::run_command;
use super::track::SdkFixture;
use serde_json::{Value, json};
use tributary_testkit::on_both_engines;

const DEVICE: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

/// Records an install from an opened link, and events, with one of the SDK keys.
async fn use_app(sdk: &SdkFixture, sdk_key: &str) {
    let body = json!({
        "deviceId": DEVICE, "platform": "android", "userId": "user-42",
        "openedUrl": "https://t.example.com/c/spring?fbclid=f1",
    });
    let configured = sdk.call("configure", sdk_key, &body).await.expect(200);
    assert_eq!(configured.data()["firstOpen"], true, "{configured:?}");
    let events = json!([
        {"eventId": "e1", "name": "sign_up"},
        {"eventId": "e2", "name": "purchase", "revenue": 9.99, "currency": "USD"},
    ]);
    let body = json!({"deviceId": DEVICE, "events": events});
    let sent = sdk.call("events", sdk_key, &body).await.expect(202).data();
    for (event, id) in sent.as_array().unwrap().iter().zip(["e1", "e2"]) {
        assert_eq!(*event, json!({"eventId": id, "status": "accepted"}));
    }
}

/// Reads lists and reports.
async fn read_all(sdk: &SdkFixture, key: &str) -> Vec<Value> {
    let days = "from=2025-12-31&to=2026-01-03";
    let mut found = Vec::new();
    for path in [
        "events?limit=500".to_owned(),
        "held".to_owned(),
        format!("stats?{days}&groupBy=network"),
        format!("stats?{days}&groupBy=event"),
        format!("stats?{days}&groupBy=country"),
        format!("overview?{days}"),
        format!("cohorts?{days}"),
        format!("export?kind=clicks&format=ndjson&{days}"),
    ] {
        let answer = sdk.server.get(&format!("{}/{path}", sdk.app), key).await;
        found.push(json!(answer.expect(200).text));
    }
    found
}

on_both_engines! {
    async fn a_wipe_leaves_live_data_and_nothing_else(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({"network": "network_a"})).await;
        let empty = read_all(&sdk, &sdk.test_key).await;
        for sdk_key in [&sdk.live, &sdk.test] {
            use_app(&sdk, sdk_key).await;
        }
        let live = read_all(&sdk, &sdk.key).await;
        assert_ne!(read_all(&sdk, &sdk.test_key).await, empty);
        let device = format!("{}/devices/{DEVICE}", sdk.app);
        sdk.server.get(&device, &sdk.test_key).await.expect(200);

        let app = sdk.app.rsplit('/').next().unwrap();
        let command = format!("test-data wipe --app {app}");
        let before = read_all(&sdk, &sdk.test_key).await;
        let refused = run_command(&sdk.server, &command).unwrap_err();
        assert!(refused.contains("--yes"), "{refused}");
        assert_eq!(read_all(&sdk, &sdk.test_key).await, before);
        let command = format!("{command} --yes");
        let wiped = run_command(&sdk.server, &command).unwrap();
        assert!(wiped.starts_with("Removed devices: 1, events: 3, clicks: 1, "), "{wiped}");
        assert_eq!(read_all(&sdk, &sdk.test_key).await, empty);
        assert_eq!(sdk.server.get(&device, &sdk.test_key).await.expect(404).code(), "device_not_found");
        assert_eq!(read_all(&sdk, &sdk.key).await, live);
        sdk.server.get(&device, &sdk.key).await.expect(200);

        let again = run_command(&sdk.server, &command).unwrap();
        let nothing = "Removed devices: 0, events: 0, clicks: 0, billing notifications: 0, rows of figures: 0.\n";
        assert_eq!(again, nothing);
        // Test keys read entries about test data only.
        for key in [&sdk.key, &sdk.test_key] {
            let log = sdk.server.get("/api/v1/audit-log?limit=1", key).await.expect(200).json();
            let entry = &log["data"][0];
            assert_eq!(entry["action"], "test_data.wiped");
            assert_eq!(entry["appId"], entry["target"]);
        }
        // The device, its click and its event ids are new again.
        use_app(&sdk, &sdk.test).await;
        assert_ne!(read_all(&sdk, &sdk.test_key).await, empty);
        assert_eq!(read_all(&sdk, &sdk.key).await, live);
    }
}
