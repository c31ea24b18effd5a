//! The SDK endpoints, `/api/track/*`: keys, bodies, browsers and the kill switch.

use super::track::SdkFixture;
use reqwest::Method;
use serde_json::json;
use std::io::Write as _;
use tributary_api::RateSettings;
use tributary_domain::access::Environment;
use tributary_domain::access::key::{KeyKind, KeyText};
use tributary_testkit::{TestServer, TestServerSettings, on_both_engines};

on_both_engines! {
    async fn the_kill_switch_stops_everything(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.change_app(json!({"sdk": {"enabled": false}})).await;
        let body = json!({"deviceId": "d1", "platform": "ios"});
        let stopped = sdk.call("configure", &sdk.live, &body).await.expect(200).data();
        assert_eq!(stopped, json!({
            "sdkEnabled": false, "firstOpen": false, "attribution": null, "opened": null, "skan": null,
        }));
        let events = json!({"deviceId": "d1", "events": [{"name": "purchase"}]});
        assert_eq!(sdk.call("events", &sdk.live, &events).await.expect(403).code(), "sdk_disabled");
        let person = json!({"deviceId": "d1", "userId": "u1"});
        assert_eq!(sdk.call("identify", &sdk.test, &person).await.expect(403).code(), "sdk_disabled");
        let details = sdk.server.get(&format!("{}/devices/d1", sdk.app), &sdk.key).await.expect(404);
        assert_eq!(details.code(), "device_not_found", "nothing was recorded");
        assert!(sdk.names().await.is_empty());
        sdk.change_app(json!({"sdk": {"enabled": true}})).await;
        assert_eq!(sdk.call("configure", &sdk.live, &body).await.expect(200).data()["firstOpen"], true);
    }

    async fn identify_accepts_hashes_only(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let hash = "0C7E6A405862E402EB76A70F8A26FC732D07C32931E9FAE9AB1582911D2E8A3B";
        let body = json!({"deviceId": "d1", "userId": "u1", "matching": {"email": hash, "phoneE164": null, "fn": "x"}});
        let answer = sdk.call("identify", &sdk.live, &body).await.expect(204);
        assert_eq!(answer.text, "");
        sdk.send("d1", json!([{"name": "sign_up"}])).await;
        assert_eq!(sdk.log("").await[0]["userId"], "u1");
        let clear = json!({"deviceId": "d1", "userId": 5, "matching": {
            "email": "foo@bar.com", "emailGoogle": &hash[1..], "phone": "15551234567", "phoneE164": 15_551_234_567_i64,
        }});
        let answer = sdk.call("identify", &sdk.live, &clear).await.expect(422);
        let fields: Vec<String> = answer.faults().into_iter().map(|(field, _)| field).collect();
        let expected = ["userId", "matching.email", "matching.emailGoogle", "matching.phone", "matching.phoneE164"];
        assert_eq!(fields, expected);
        assert!(!answer.text.contains("foo@bar.com") && !answer.text.contains("15551234567"), "{}", answer.text);
    }

    async fn sends_the_conversion_values_to_the_device(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let get = async |tag: Option<&str>| {
            let request = sdk.server.request(Method::GET, "/api/track/skan").header("x-tributary-key", &sdk.live);
            let request = tag.into_iter().fold(request, |request, tag| request.header("if-none-match", tag));
            sdk.server.send(request).await
        };
        assert_eq!(get(None).await.expect(200).data()["version"], 0);
        let document = json!({"enabled": true, "windows": [{"index": 0, "values": [
            {"name": "Install", "fineValue": 0, "coarseValue": "low", "conditions": [{"event": "install", "minCount": 1}]},
        ]}]});
        let path = format!("{}/skan", sdk.app);
        let shown = sdk.server.call("PUT", &path, &sdk.key, Some(document)).await.expect(200).data();
        let answer = get(None).await.expect(200);
        let received = answer.data();
        assert_eq!((&received["version"], &received["maxAgeSeconds"]), (&shown["version"], &json!(604_800)));
        let value = json!({
            "fineValue": 0, "coarseValue": "low", "lock": false, "conditions": [{"event": "install", "minCount": 1}],
        });
        assert_eq!(received["windows"], json!([{"index": 0, "lockOn": null, "values": [value]}]), "names are not sent");
        assert_eq!((&received["rates"], &received["server"]), (&json!({}), &json!({})), "no condition needs them");
        let tag = answer.header("etag").unwrap();
        let unchanged = get(Some(tag)).await.expect(304);
        assert_eq!((unchanged.text.as_str(), unchanged.header("etag")), ("", Some(tag)));
        assert_eq!(unchanged.header("access-control-allow-origin"), Some("*"));
        get(Some("\"0.0\"")).await.expect(200);
        assert_eq!(sdk.configure("d1", json!({})).await["skan"], received);
    }

    async fn accepts_calls_from_any_origin(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        for endpoint in ["configure", "erase", "events", "identify", "skan", "attestation-challenge"] {
            let request = sdk.server.request(Method::OPTIONS, &format!("/api/track/{endpoint}"));
            let request = request.header("origin", "https://shop.example").header("access-control-request-method", "POST");
            let answer = sdk.server.send(request).await.expect(204);
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
            assert!(answer.header("access-control-allow-methods").unwrap().contains("POST"));
            let allowed = answer.header("access-control-allow-headers").unwrap().to_lowercase();
            assert!(allowed.contains("x-tributary-key") && allowed.contains("content-type"), "{allowed}");
            assert_eq!(answer.header("access-control-max-age"), Some("86400"));
            assert!(answer.header("x-request-id").is_some());
        }
        let unauthorized = sdk.call("events", "pk_live_nonsense", &json!({})).await.expect(401);
        let malformed = sdk.call("events", &sdk.live, &json!({})).await.expect(422);
        let unknown = sdk.call("unknown", &sdk.live, &json!({})).await.expect(404);
        let wrong_method = sdk.server.call("DELETE", "/api/track/events", &sdk.live, None).await.expect(405);
        for answer in [unauthorized, malformed, unknown, wrong_method] {
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{answer:?}");
        }
        let rest_api = sdk.server.get("/api/v1/apps", &sdk.key).await.expect(200);
        assert_eq!(rest_api.header("access-control-allow-origin"), None);
    }

    async fn accepts_plain_text_and_the_key_in_the_url_from_a_closing_page(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let send = async |content_type: &str, body: &[u8]| {
            let request = sdk.server.request(Method::POST, &format!("/api/track/events?x=1&key={}", sdk.live));
            sdk.server.send(request.header("content-type", content_type).body(body.to_vec())).await
        };
        let batch = json!({"deviceId": "d1", "events": [{"name": "closed"}]}).to_string();
        send("text/plain;charset=UTF-8", batch.as_bytes()).await.expect(202);
        send("application/json", batch.as_bytes()).await.expect(202);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(batch.as_bytes()).unwrap();
        let compressed = sdk.server.request(Method::POST, "/api/track/events").header("x-tributary-key", &sdk.live);
        let compressed = compressed.header("content-type", "application/json").header("content-encoding", "gzip");
        sdk.server.send(compressed.body(encoder.finish().unwrap())).await.expect(202);
        assert_eq!(sdk.names().await, ["closed", "closed", "closed"]);
        assert_eq!(send("application/x-www-form-urlencoded", b"a=b").await.expect(415).code(), "unsupported_media_type");
        assert_eq!(send("text/plain", b"not json").await.expect(400).code(), "malformed_json");
        let mut large = batch.clone().into_bytes();
        large.resize(tributary_api::BODY_BYTES_MAX + 1, b' ');
        assert_eq!(send("text/plain", &large).await.expect(413).code(), "payload_too_large");
        let missing = sdk.server.request(Method::POST, "/api/track/events?keys=1");
        let missing = sdk.server.send(missing.header("content-type", "text/plain").body(batch)).await;
        assert_eq!(missing.expect(401).code(), "missing_api_key");
    }

    async fn accepts_only_existing_sdk_keys(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let unknown = KeyText::generate(KeyKind::Sdk, Environment::Live, [9; 24]);
        let mistyped = format!("{}{}", &sdk.live[..sdk.live.len() - 1], if sdk.live.ends_with('0') { '1' } else { '0' });
        for key in [sdk.key.as_str(), unknown.reveal(), &mistyped, "nonsense", "", &sdk.live.replace("live", "test")] {
            let answer = sdk.call("configure", key, &json!({"deviceId": "d1", "platform": "ios"})).await.expect(401);
            assert_eq!(answer.code(), "invalid_api_key", "{key}");
            assert!(key.is_empty() || !answer.text.contains(key), "the response must not contain the key");
        }
    }

    async fn limits_invalid_keys_and_the_rate_of_each_key(engine: Engine) {
        let rates = RateSettings { per_key: 20, per_address: 0, failures_per_minute: 20 };
        let server = TestServer::start_with(engine, TestServerSettings { rates, ..TestServerSettings::default() }).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let sdk = server.get(&app, &key).await.data()["sdk"].clone();
        let ask = async |sdk_key: &str| {
            let request = server.request(Method::GET, "/api/track/skan").header("x-tributary-key", sdk_key);
            server.send(request).await
        };
        let limited = async |sdk_key: &str| {
            for _ in 0..200 {
                let answer = ask(sdk_key).await;
                if answer.status.as_u16() == 429 {
                    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
                    return answer;
                }
            }
            panic!("no request was rate limited");
        };
        let invalid = limited("nonsense").await;
        assert_eq!(invalid.header("ratelimit-policy"), Some("\"failures\";q=20;w=60"));
        let busy = limited(sdk["liveKey"].as_str().unwrap()).await;
        assert_eq!(busy.header("ratelimit-policy"), Some("\"key\";q=20;w=1"));
        ask(sdk["testKey"].as_str().unwrap()).await.expect(200);
    }

    async fn reports_every_invalid_field_and_ignores_unknown_ones(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let faulty = json!({"platform": "symbian", "osVersion": 17, "screen": [], "somethingNew": 1});
        let answer = sdk.call("configure", &sdk.live, &faulty).await.expect(422);
        let mut faults = answer.faults();
        faults.sort_unstable();
        let expected = [
            ("deviceId", "required"), ("osVersion", "wrong_type"), ("platform", "unknown_value"), ("screen", "wrong_type"),
        ];
        assert_eq!(faults, expected.map(|(field, code)| (field.to_owned(), code.to_owned())));
        let new = json!({"deviceId": "d1", "platform": "ios", "somethingNew": {"x": [1, 2, {"y": null}]}, "model": null});
        sdk.call("configure", &sdk.live, &new).await.expect(200);
        let long = json!({"deviceId": "d2", "platform": "ios", "model": "x".repeat(5_000), "timezone": "a\u{0}b"});
        sdk.call("configure", &sdk.live, &long).await.expect(200);
        let list = sdk.call("configure", &sdk.live, &json!([{"deviceId": "d3", "platform": "ios"}])).await.expect(422);
        assert_eq!(list.faults(), [("body".to_owned(), "wrong_type".to_owned())]);
        let shared = json!({"deviceId": "00000000-0000-0000-0000-000000000000", "platform": "ios"});
        let answer = sdk.call("configure", &sdk.live, &shared).await.expect(422);
        assert_eq!(answer.faults(), [("deviceId".to_owned(), "not_allowed".to_owned())]);
    }

    async fn an_invalid_optional_field_does_not_prevent_the_install(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let body = json!({
            "deviceId": "d1", "platform": "ios", "osVersion": 17, "model": ["iPhone15,2"], "manufacturer": "Apple",
            "locale": {}, "timezone": 1, "screen": "390x844", "userId": "u".repeat(256), "openedUrl": 5, "idfa": 0,
            "gaid": "x".repeat(5_000), "idfv": false, "arClickId": {}, "installReferrer": {"referrer": 1, "clickAtSeconds": "0"},
            "adServicesToken": 1, "consent": {"adUserData": "yes", "adPersonalization": true, "tracking": "restricted"},
        });
        let answer = sdk.call("configure", &sdk.live, &body).await.expect(200).data();
        assert_eq!(answer["firstOpen"], true);
        assert_eq!(sdk.names().await, ["install"]);
        let details = sdk.server.get(&format!("{}/devices/d1", sdk.app), &sdk.key).await.expect(200).data();
        let device = &details["device"];
        assert_eq!(device["consent"], json!({"adUserData": null, "adPersonalization": true, "tracking": "denied"}));
        assert_eq!((&device["manufacturer"], &device["model"]), (&json!("Apple"), &json!(null)));
        let unknown = json!({"deviceId": "d2", "platform": "android", "consent": {"tracking": "perhaps"}});
        sdk.call("configure", &sdk.live, &unknown).await.expect(200);
        let details = sdk.server.get(&format!("{}/devices/d2", sdk.app), &sdk.key).await.expect(200).data();
        assert_eq!(details["device"]["consent"]["tracking"], json!(null));
    }

    async fn uuid_device_ids_ignore_case(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let lower = "6f9619ff-8b86-4011-b42d-00c04fc964ff";
        let upper = lower.to_uppercase();
        assert_eq!(sdk.configure(&upper, json!({})).await["firstOpen"], true);
        assert_eq!(sdk.configure(lower, json!({})).await["firstOpen"], false);
        sdk.send(&upper, json!([{"name": "sign_up"}])).await;
        let log = sdk.log(&format!("&deviceId={upper}")).await;
        assert_eq!(log.iter().map(|event| &event["deviceId"]).collect::<Vec<_>>(), [lower, lower]);
        let details = sdk.server.get(&format!("{}/devices/{upper}", sdk.app), &sdk.key).await.expect(200).data();
        assert_eq!(details["deviceId"], lower);
        // Other device ids are case-sensitive.
        assert_eq!(sdk.configure("Phone", json!({})).await["firstOpen"], true);
        assert_eq!(sdk.configure("phone", json!({})).await["firstOpen"], true);
    }

    async fn any_value_in_any_field_gets_a_response(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let odd = [
            json!(null), json!(true), json!(0), json!(-1), json!(1.5), json!(1e300), json!(""), json!("\u{0}"),
            json!("\u{202e}<script>'; drop table events; --"), json!("é".repeat(5_000)), json!([]), json!([null]),
            json!({}), json!({"": ""}), json!(i64::MAX), json!(u64::MAX),
        ];
        let fields = [
            "osVersion", "model", "locale", "timezone", "screen", "userId", "openedUrl", "userAgent", "idfa", "idfv", "gaid",
            "arClickId", "installReferrer", "adServicesToken", "consent", "matching", "events",
        ];
        for (endpoint, base) in [
            ("configure", json!({"deviceId": "d1", "platform": "ios"})), ("identify", json!({"deviceId": "d1"})),
            ("events", json!({"deviceId": "d1", "events": [{"name": "a"}]})),
        ] {
            for field in fields {
                for value in &odd {
                    let mut body = base.clone();
                    body[field] = value.clone();
                    let status = sdk.call(endpoint, &sdk.live, &body).await.status.as_u16();
                    assert!(matches!(status, 200 | 202 | 204 | 422), "{endpoint} {field}={value}: {status}");
                    assert!(endpoint != "configure" || status == 200, "{field}={value} prevents the install: {status}");
                }
            }
        }
        for field in ["eventId", "name", "timestampMs", "revenue", "currency", "params"] {
            for value in &odd {
                let mut event = json!({"name": "a"});
                event[field] = value.clone();
                let answer = sdk.call("events", &sdk.live, &json!({"deviceId": "d1", "events": [event]})).await;
                assert_eq!(answer.status.as_u16(), 202, "{field}={value}: {answer:?}");
            }
        }
        sdk.log("").await;
        sdk.server.get(&format!("{}/devices/d1", sdk.app), &sdk.key).await.expect(200);
    }
}
