//! Device details, `GET /api/v1/apps/{appId}/devices/{deviceId}`: the attribution and its evidence.

use super::track::SdkFixture;
use serde_json::{Value, json};
use tributary_testkit::on_both_engines;

const IDFA: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";
const HASH: &str = "0c7e6a405862e402eb76a70f8a26fc732d07c32931e9fae9ab1582911d2e8a3b";

async fn read_device(sdk: &SdkFixture, device: &str) -> Value {
    let path = format!("{}/devices/{device}", sdk.app);
    sdk.server.get(&path, &sdk.key).await.expect(200).data()
}

on_both_engines! {
    async fn shows_the_attribution_and_its_evidence(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let link = sdk.link("spring", json!({"network": "network_a"})).await;
        let token = sdk.tap("/c/spring?fbclid=f1").await;
        let configured = sdk.configure("d1", json!({"arClickId": token, "timezone": "Europe/Berlin"})).await;
        sdk.send("d1", json!([{"eventId": "e1", "name": "sign_up"}])).await;
        let details = read_device(&sdk, "d1").await;
        let attribution = &details["attribution"];
        for (field, value) in configured["attribution"].as_object().unwrap() {
            assert_eq!(attribution[field], *value, "same as in the configure response: {field}");
        }
        assert_eq!((&attribution["state"], &attribution["revision"]), (&json!("attributed"), &json!(1)));
        assert_eq!((&attribution["supersedes"], &attribution["flags"]), (&json!(null), &json!([])));
        assert_eq!(attribution["evidence"], json!({
            "referrer": null, "adServices": null, "clickToken": "valid", "addressClass": "other",
            "attestation": null, "attestationFailure": null,
        }));
        assert_eq!(attribution["settings"], json!({"clickWindowHours": 168, "probabilistic": true, "windowHours": 24}));
        let winner = &attribution["candidates"][0];
        assert_eq!(*winner, json!({
            "clickId": token, "linkId": link["id"], "network": "network_a", "clickedAt": winner["clickedAt"],
            "ageSeconds": 300, "method": "click_id", "score": null, "signals": null, "accepted": true, "rejected": null,
        }));
        let device = &details["device"];
        assert_eq!((&device["platform"], &device["model"], &device["osVersion"]), (&json!("android"), &json!("Pixel 8"), &json!("14")));
        assert_eq!((&device["timezone"], &device["hasAdvertisingId"]), (&json!("Europe/Berlin"), &json!(false)));
        assert_eq!((&details["deviceId"], &details["environment"]), (&json!("d1"), &json!("live")));
        assert_eq!(details["events"], json!(sdk.log("&deviceId=d1").await), "the same events as in the log");
        assert_eq!(details["hasMoreEvents"], false);
    }

    async fn two_equal_clicks_are_shown_with_their_scores(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({"network": "network_a"})).await;
        let tokens = [sdk.tap("/c/spring?fbclid=f1").await, sdk.tap("/c/spring?fbclid=f2").await];
        sdk.configure("d1", json!({})).await;
        let details = read_device(&sdk, "d1").await;
        let candidates = details["attribution"]["candidates"].as_array().unwrap();
        assert_eq!(candidates.len(), 2);
        for candidate in candidates {
            assert!(tokens.iter().any(|token| candidate["clickId"] == token.as_str()));
            assert_eq!((&candidate["method"], &candidate["score"]), (&json!("probabilistic"), &json!(80)));
            assert_eq!(candidate["signals"], json!({
                "address": 40, "osVersion": 20, "model": 10, "timezone": null, "language": 10, "screen": null,
            }));
            assert_eq!((&candidate["accepted"], &candidate["rejected"]), (&json!(false), &json!("ambiguous")));
        }
        assert_eq!(details["attribution"]["state"], "unavailable", "the app sent no store evidence, and the clicks are ambiguous");
    }

    async fn a_better_decision_names_the_one_it_replaced(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({"network": "network_a"})).await;
        let token = sdk.tap("/c/spring?fbclid=f1").await;
        let first = sdk.configure("d1", json!({})).await["attribution"].clone();
        assert_eq!(first["matchType"], "probabilistic");
        sdk.configure("d1", json!({"arClickId": token})).await;
        let attribution = read_device(&sdk, "d1").await["attribution"].clone();
        assert_eq!((&attribution["matchType"], &attribution["revision"]), (&json!("click_id"), &json!(2)));
        assert_eq!(attribution["supersedes"], json!({"matchType": "probabilistic", "decidedAt": first["decidedAt"]}));
    }

    async fn shows_which_personal_data_exists_but_not_its_values(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let body = json!({
            "deviceId": "d1", "platform": "ios", "idfa": IDFA, "idfv": "AAAAAAAA-1111", "userId": "u1", "adServicesToken": "hush",
            "consent": {"adUserData": true, "tracking": "authorized"}, "screen": {"width": 390, "height": 844, "scale": 2.5},
        });
        sdk.call("configure", &sdk.live, &body).await.expect(200);
        let person = json!({"deviceId": "d1", "matching": {"email": HASH}});
        sdk.call("identify", &sdk.live, &person).await.expect(204);
        let answer = sdk.server.get(&format!("{}/devices/d1", sdk.app), &sdk.key).await.expect(200);
        for hidden in [IDFA, "AAAAAAAA-1111", HASH, "203.0.113.9", "hush"] {
            assert!(!answer.text.contains(hidden), "{hidden}: {}", answer.text);
        }
        let details = answer.data();
        assert_eq!(details["userId"], "u1");
        assert_eq!(details["matching"], json!({"email": true, "emailGoogle": false, "phone": false, "phoneE164": false}));
        assert_eq!(details["device"]["hasAdvertisingId"], true);
        assert_eq!(details["device"]["screen"], json!({"width": 390, "height": 844, "scale": 2.5}));
        assert_eq!(details["device"]["consent"], json!({"adUserData": true, "adPersonalization": null, "tracking": "authorized"}));
        assert_eq!(details["attribution"]["evidence"]["adServices"], "pending");
    }

    async fn a_device_that_never_configured_has_events_only(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let events: Vec<Value> = (0..60).map(|number| json!({"eventId": format!("e{number}"), "name": "a"})).collect();
        sdk.send("a/b c", json!(events)).await;
        let details = read_device(&sdk, "a%2Fb%20c").await;
        assert_eq!((&details["deviceId"], &details["device"], &details["attribution"]), (&json!("a/b c"), &json!(null), &json!(null)));
        assert_eq!((details["events"].as_array().unwrap().len(), &details["hasMoreEvents"]), (50, &json!(true)));
    }

    async fn a_device_is_visible_in_its_environment_to_keys_with_apps_read(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.configure("d1", json!({})).await;
        let path = format!("{}/devices/d1", sdk.app);
        assert_eq!(sdk.server.get(&path, &sdk.test_key).await.expect(404).code(), "device_not_found");
        assert_eq!(sdk.server.get(&path, &sdk.analytics_key).await.expect(403).code(), "insufficient_permission");
        for unknown in ["unknown", "%00", "00000000-0000-0000-0000-000000000000"] {
            let answer = sdk.server.get(&format!("{}/devices/{unknown}", sdk.app), &sdk.key).await.expect(404);
            assert_eq!(answer.code(), "device_not_found", "{unknown}");
        }
    }
}
