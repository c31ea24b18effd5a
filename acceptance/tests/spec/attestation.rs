//! Proof that a device runs the genuine app, end to end, with test keys instead of Apple's and
//! Google's.

use super::track::SdkFixture;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_domain::attestation::samples::{
    AppAttestSample, PLAY_DECRYPTION_KEY, app_attest_root, play_token, play_verdict,
    play_verification_key,
};
use tributary_domain::billing::certificate::TrustedRoots;
use tributary_testkit::{Engine, TestServerSettings, on_both_engines};

const APP_ID: &str = "ABCDE12345.com.example.runner";
const PACKAGE: &str = "com.example.runner";

/// Starts a server that trusts the test root, with an app that has this policy and forwards all
/// events to a network.
async fn start(engine: Engine, policy: &str) -> SdkFixture {
    let settings = TestServerSettings {
        app_attest_roots: TrustedRoots::of(vec![app_attest_root()]),
        ..TestServerSettings::default()
    };
    let sdk = SdkFixture::start_with(engine, settings).await;
    let keys = json!({
        "packageName": PACKAGE, "playDecryptionKey": PLAY_DECRYPTION_KEY,
        "playVerificationKey": play_verification_key(),
    });
    // `flag` keeps flagged installs apart from those without proof.
    sdk.change_app(json!({
        "ios": {"bundleId": PACKAGE, "teamId": "ABCDE12345"}, "android": keys,
        "sdk": {"attestation": policy}, "attribution": {"fraud": "flag"},
    }))
    .await;
    let path = format!("{}/integrations/network_d", sdk.app);
    let connected = json!({
        "enabled": true, "scope": "all", "settings": {"pixelId": "1"},
        "credentials": {"apiKey": "d-key-0123456789abcdef"},
    });
    sdk.server
        .patch(&path, &sdk.key, connected)
        .await
        .expect(200);
    sdk
}

async fn challenge(sdk: &SdkFixture, device: &str) -> Value {
    let body = json!({"deviceId": device});
    let answer = sdk.call("attestation-challenge", &sdk.live, &body).await;
    answer.expect(200).data()["challenge"].clone()
}

async fn challenge_text(sdk: &SdkFixture, device: &str) -> String {
    let challenge = challenge(sdk, device).await;
    challenge.as_str().unwrap().to_owned()
}

fn app_attest(sample: &AppAttestSample, challenge: &str) -> Value {
    json!({
        "type": "app_attest", "token": sample.token(), "keyId": sample.key_id(), "challenge": challenge,
    })
}

/// Configures an iPhone and sends an event.
async fn use_iphone(sdk: &SdkFixture, device: &str, attestation: Value) {
    let fields = json!({
        "platform": "ios", "osVersion": "17.5.1", "model": "iPhone15,2", "attestation": attestation,
    });
    sdk.configure(device, fields).await;
    sdk.send(device, json!([{"name": "sign_up"}])).await;
}

/// Returns outcome, failure and flags of a device.
async fn outcome(sdk: &SdkFixture, device: &str) -> Value {
    let path = format!("{}/devices/{device}", sdk.app);
    let details = sdk.server.get(&path, &sdk.key).await.expect(200).data();
    let attribution = &details["attribution"];
    let evidence = &attribution["evidence"];
    json!([
        evidence["attestation"],
        evidence["attestationFailure"],
        attribution["flags"]
    ])
}

/// Returns status and reason of the deliveries of a device's `sign_up` events, newest first.
async fn deliveries(sdk: &SdkFixture, device: &str) -> Vec<(String, Value)> {
    let log = sdk.log(&format!("&deviceId={device}&name=sign_up")).await;
    let delivery = |event: &Value| {
        let one = &event["deliveries"][0];
        (
            one["status"].as_str().unwrap().to_owned(),
            one["reason"].clone(),
        )
    };
    log.iter().map(delivery).collect()
}

fn pending() -> (String, Value) {
    ("pending".to_owned(), Value::Null)
}

fn withheld() -> (String, Value) {
    ("skipped".to_owned(), json!("attestation"))
}

on_both_engines! {
    async fn a_genuine_app_is_verified_and_its_events_are_forwarded(engine: Engine) {
        let sdk = start(engine, "require").await;
        let issued = challenge_text(&sdk, "iphone").await;
        let sample = AppAttestSample::new(APP_ID, &issued);
        use_iphone(&sdk, "iphone", app_attest(&sample, &issued)).await;
        assert_eq!(outcome(&sdk, "iphone").await, json!(["verified", null, []]));
        assert_eq!(deliveries(&sdk, "iphone").await, [pending()]);
        sdk.configure("iphone", json!({"platform": "ios"})).await;
        assert_eq!(outcome(&sdk, "iphone").await, json!(["verified", null, []]), "one token is enough");

        let issued = challenge_text(&sdk, "pixel").await;
        // The test clock starts at the beginning of 2026.
        let verdict = play_verdict(&issued, PACKAGE, 1_767_225_600_000, "");
        let attestation = json!({"type": "play_integrity", "token": play_token(&verdict), "challenge": issued});
        sdk.configure("pixel", json!({"attestation": attestation})).await;
        sdk.send("pixel", json!([{"name": "sign_up"}])).await;
        assert_eq!(outcome(&sdk, "pixel").await, json!(["verified", null, []]));
        assert_eq!(deliveries(&sdk, "pixel").await, [pending()]);
    }

    // The attack: a script with the public SDK key reports devices that do not exist.
    async fn invented_devices_are_not_forwarded(engine: Engine) {
        let sdk = start(engine, "require").await;
        sdk.send("silent", json!([{"name": "sign_up"}])).await;
        assert_eq!(deliveries(&sdk, "silent").await, [withheld()], "without `configure`");
        sdk.configure("browser", json!({"platform": "web"})).await;
        sdk.send("browser", json!([{"name": "sign_up"}])).await;
        assert_eq!(deliveries(&sdk, "browser").await, [withheld()], "as a browser");
        use_iphone(&sdk, "bare", Value::Null).await;
        assert_eq!(outcome(&sdk, "bare").await, json!(["missing", null, ["attestation_missing"]]));
        assert_eq!(deliveries(&sdk, "bare").await, [withheld()], "without a token");

        let genuine = challenge_text(&sdk, "genuine").await;
        let issued = challenge_text(&sdk, "forged").await;
        let mut forged = AppAttestSample::new(APP_ID, &issued);
        forged.root_key = 9;
        let own = challenge_text(&sdk, "other-app").await;
        let other_app = AppAttestSample::new("ABCDE12345.com.example.other", &own);
        let large = json!({"type": "app_attest", "token": "A".repeat(100_000), "challenge": genuine});
        let expired = challenge_text(&sdk, "expired").await;
        let cases = [
            ("forged", app_attest(&forged, &issued), "untrusted_certificate"),
            ("other-app", app_attest(&other_app, &own), "wrong_app"),
            ("replay", app_attest(&AppAttestSample::new(APP_ID, &genuine), &genuine), "invalid_challenge"),
            ("large", large, "too_large"),
            ("garbage", json!({"type": "app_attest", "token": "\u{0}", "challenge": []}), "malformed"),
        ];
        for (device, attestation, failure) in cases {
            use_iphone(&sdk, device, attestation).await;
            assert_eq!(outcome(&sdk, device).await, json!(["failed", failure, ["attestation_failed"]]));
            assert_eq!(deliveries(&sdk, device).await, [withheld()], "{device}");
        }
        sdk.server.clock.advance(Duration::from_mins(10));
        use_iphone(&sdk, "expired", app_attest(&AppAttestSample::new(APP_ID, &expired), &expired)).await;
        assert_eq!(outcome(&sdk, "expired").await, json!(["failed", "expired_challenge", ["attestation_failed"]]));
    }

    async fn earlier_events_are_forwarded_once_the_app_is_proven(engine: Engine) {
        let sdk = start(engine, "require").await;
        use_iphone(&sdk, "late", Value::Null).await;
        assert_eq!(deliveries(&sdk, "late").await, [withheld()]);
        let issued = challenge_text(&sdk, "late").await;
        let sample = AppAttestSample::new(APP_ID, &issued);
        use_iphone(&sdk, "late", app_attest(&sample, &issued)).await;
        assert_eq!(outcome(&sdk, "late").await, json!(["verified", null, []]));
        assert_eq!(deliveries(&sdk, "late").await, [pending(), pending()]);
    }

    async fn the_policy_flag_only_flags(engine: Engine) {
        let sdk = start(engine, "flag").await;
        use_iphone(&sdk, "bare", Value::Null).await;
        assert_eq!(outcome(&sdk, "bare").await, json!(["missing", null, ["attestation_missing"]]));
        assert_eq!(deliveries(&sdk, "bare").await, [pending()]);
        sdk.change_app(json!({"ios": {"teamId": null}})).await;
        let issued = challenge_text(&sdk, "bare").await;
        let sample = AppAttestSample::new(APP_ID, &issued);
        use_iphone(&sdk, "bare", app_attest(&sample, &issued)).await;
        assert_eq!(outcome(&sdk, "bare").await, json!(["failed", "not_configured", ["attestation_failed"]]));
    }

    async fn without_a_policy_tokens_are_ignored(engine: Engine) {
        let sdk = start(engine, "off").await;
        assert_eq!(challenge(&sdk, "bare").await, Value::Null);
        use_iphone(&sdk, "bare", json!({"type": "app_attest", "token": "x", "challenge": "y"})).await;
        assert_eq!(outcome(&sdk, "bare").await, json!([null, null, []]));
        assert_eq!(deliveries(&sdk, "bare").await, [pending()]);
        // Turning the policy on flags no existing install, but its events need proof from then on.
        sdk.change_app(json!({"sdk": {"attestation": "require"}})).await;
        use_iphone(&sdk, "bare", Value::Null).await;
        assert_eq!(outcome(&sdk, "bare").await, json!([null, null, []]));
        assert_eq!(deliveries(&sdk, "bare").await, [withheld(), pending()]);
    }

    async fn play_keys_are_not_shown(engine: Engine) {
        let sdk = start(engine, "flag").await;
        let app = sdk.server.get(&sdk.app, &sdk.key).await.expect(200);
        assert_eq!(app.data()["android"]["playDecryptionKey"], json!({"set": true}));
        assert_eq!(app.data()["android"]["playVerificationKey"], json!({"set": true}));
        assert!(!app.text.contains(PLAY_DECRYPTION_KEY) && !app.text.contains(&play_verification_key()));
        let removed = json!({"android": {"playDecryptionKey": null}});
        let app = sdk.server.patch(&sdk.app, &sdk.key, removed).await.expect(200).data();
        assert_eq!(app["android"]["playDecryptionKey"], json!({"set": false}));
    }
}
