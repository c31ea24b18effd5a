//! From a click through the store to the first open, and the response that the app gets. Keys,
//! bodies and browsers are in `track_endpoints.rs`.

use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{Engine, TestResponse, TestServer, TestServerSettings, on_both_engines};

/// User agent of a phone that names its model.
const PHONE: &str = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) \
                     Chrome/126.0.0.0 Mobile Safari/537.36";
/// IP address of the phones in these tests.
const PHONE_ADDRESS: &str = "203.0.113.9";

/// An app with ids in both stores, and a client for its SDK endpoints.
pub(super) struct SdkFixture {
    pub(super) server: TestServer,
    /// Private keys: live, test, and live with analytics permission only.
    pub(super) key: String,
    pub(super) test_key: String,
    pub(super) analytics_key: String,
    /// The app's path.
    pub(super) app: String,
    /// The app's SDK keys.
    pub(super) live: String,
    pub(super) test: String,
}

impl SdkFixture {
    /// Starts a server that trusts the client address that localhost forwards.
    pub(super) async fn start(engine: Engine) -> Self {
        Self::start_with(engine, TestServerSettings::default()).await
    }

    /// Like [`Self::start`], with other settings.
    pub(super) async fn start_with(engine: Engine, settings: TestServerSettings) -> Self {
        let settings = TestServerSettings {
            proxies: vec!["127.0.0.1".parse().unwrap()],
            ..settings
        };
        let server = TestServer::start_with(engine, settings).await;
        let organization = server.organization("Example").await;
        let key = server
            .key(organization, Permission::Full, Environment::Live)
            .await;
        let test_key = server
            .key(organization, Permission::Full, Environment::Test)
            .await;
        let analytics_key = server
            .key(organization, Permission::Analytics, Environment::Live)
            .await;
        let app = server.app(&key).await;
        let ids = json!({
            "ios": {"appStoreId": "123456789"}, "android": {"packageName": "com.example.runner"},
        });
        let sdk = server.patch(&app, &key, ids).await.expect(200).data()["sdk"].clone();
        let sdk_key = |name: &str| sdk[name].as_str().unwrap().to_owned();
        Self {
            live: sdk_key("liveKey"),
            test: sdk_key("testKey"),
            server,
            key,
            test_key,
            analytics_key,
            app,
        }
    }

    pub(super) async fn link(&self, slug: &str, mut fields: Value) -> Value {
        fields["name"] = json!("Spring");
        fields["slug"] = json!(slug);
        let path = format!("{}/links", self.app);
        self.server
            .post(&path, &self.key, fields)
            .await
            .expect(201)
            .data()
    }

    pub(super) async fn change_app(&self, fields: Value) {
        self.server
            .patch(&self.app, &self.key, fields)
            .await
            .expect(200);
    }

    /// Taps a link on the phone and returns the click id that the store passes to the app.
    pub(super) async fn tap(&self, path: &str) -> String {
        let request = self
            .server
            .request(Method::GET, path)
            .header("user-agent", PHONE);
        let request = request
            .header("accept-language", "en-US")
            .header("x-forwarded-for", PHONE_ADDRESS);
        let answer = self.server.send(request).await.expect(302);
        let store = answer.header("location").unwrap();
        let (_, token) = store
            .split_once("referrer=ar_click_id%3D")
            .unwrap_or_default();
        assert!(token.starts_with("clk_"), "{store}");
        self.server.clock.advance(Duration::from_mins(5));
        token.to_owned()
    }

    /// Calls an SDK endpoint.
    pub(super) async fn call(&self, endpoint: &str, sdk_key: &str, body: &Value) -> TestResponse {
        let request = self
            .server
            .request(Method::POST, &format!("/api/track/{endpoint}"));
        let request = request
            .header("x-tributary-key", sdk_key)
            .header("x-forwarded-for", PHONE_ADDRESS);
        let request = request.header("content-type", "application/json");
        self.server.send(request.body(body.to_string())).await
    }

    /// Configures a live Android phone; `fields` adds to the body or overrides it.
    pub(super) async fn configure(&self, device: &str, fields: Value) -> Value {
        let mut body = json!({
            "deviceId": device, "platform": "android", "osVersion": "14", "model": "Pixel 8", "locale": "en_US",
        });
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        self.call("configure", &self.live, &body)
            .await
            .expect(200)
            .data()
    }

    /// Sends live events.
    pub(super) async fn send(&self, device: &str, events: Value) -> Value {
        let body = json!({"deviceId": device, "events": events});
        self.call("events", &self.live, &body)
            .await
            .expect(202)
            .data()
    }

    /// Reads the event log, newest first.
    pub(super) async fn log(&self, query: &str) -> Vec<Value> {
        let path = format!("{}/events?limit=500{query}", self.app);
        let list = self.server.get(&path, &self.key).await.expect(200).data();
        list.as_array().unwrap().clone()
    }

    /// Lists the event names of the log, newest first.
    pub(super) async fn names(&self) -> Vec<String> {
        let log = self.log("").await;
        log.iter()
            .map(|event| event["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

on_both_engines! {
    async fn attributes_an_install_to_the_click_that_led_to_the_store(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.change_app(json!({"deepLinkSchemes": ["runner"]})).await;
        let fields = json!({"network": "network_a", "deepLink": "runner://offer/42", "customData": {"invite": "abc"}});
        let link = sdk.link("spring", fields).await;
        let token = sdk.tap("/c/spring?fbclid=f1&campaign_id=238&campaign_name=Spring&coupon=x").await;
        let first = sdk.configure("d1", json!({"arClickId": token})).await;
        let attribution = &first["attribution"];
        assert!(attribution["id"].as_str().unwrap().starts_with("att_"));
        assert!(attribution["reason"].as_str().unwrap().contains("5 minutes"), "{attribution}");
        assert_eq!(*attribution, json!({
            "id": attribution["id"], "network": "network_a", "matchType": "click_id", "confidence": 1,
            "linkId": link["id"], "clickId": token,
            "campaign": {"id": "238", "name": "Spring", "adsetId": null, "adsetName": null, "adId": null, "adName": null},
            "deepLink": "runner://offer/42", "customData": {"invite": "abc"}, "queryParams": {"coupon": "x"},
            "reason": attribution["reason"], "decidedAt": attribution["decidedAt"],
        }));
        assert_eq!((&first["sdkEnabled"], &first["firstOpen"]), (&json!(true), &json!(true)));
        assert_eq!(first["opened"], json!(null));
        let request = sdk.server.request(Method::GET, "/api/track/skan?deviceId=d1").header("x-tributary-key", &sdk.live);
        let skan = sdk.server.send(request).await.expect(200).data();
        assert_eq!((&first["skan"], &skan["version"]), (&skan, &json!(0)), "the default document is sent too");
        let again = sdk.configure("d1", json!({})).await;
        assert_eq!(again["firstOpen"], false);
        assert_eq!(again["attribution"], *attribution, "the decision does not change");
        let log = sdk.log("").await;
        assert_eq!(log.len(), 1);
        assert_eq!((&log[0]["name"], &log[0]["attribution"]["clickId"]), (&json!("install"), &json!(token)));
    }

    async fn attributes_by_the_play_store_referrer(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({"network": "network_c"})).await;
        let token = sdk.tap("/c/spring?ttclid=t1").await;
        // 2026-01-01 is second 1,767,225,600; the click came just after it.
        let referrer = json!({
            "referrer": format!("ar_click_id={token}"), "clickAtSeconds": 0, "installBeginAtSeconds": 0,
            "clickAtServerSeconds": 1_767_225_630, "installBeginAtServerSeconds": 1_767_225_700,
        });
        let found = sdk.configure("d1", json!({"installReferrer": referrer})).await["attribution"].clone();
        assert_eq!((&found["matchType"], &found["network"]), (&json!("referrer"), &json!("network_c")));
        assert_eq!((&found["clickId"], &found["confidence"]), (&json!(token), &json!(1)));
    }

    async fn one_similar_click_matches_and_two_equal_ones_are_ambiguous(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({"network": "network_a"})).await;
        sdk.tap("/c/spring?fbclid=f1").await;
        let body = json!({
            "deviceId": "d1", "platform": "android", "osVersion": "14", "model": "Pixel 8", "locale": "en_US",
        });
        let answer = sdk.call("configure", &sdk.live, &body).await.expect(200);
        let found = answer.data()["attribution"].clone();
        assert_eq!((&found["matchType"], &found["network"]), (&json!("probabilistic"), &json!("network_a")));
        assert!(answer.text.contains("\"confidence\":0.85,"), "{}", answer.text);
        // The first click is used up. Two equal ones remain, so neither wins.
        sdk.tap("/c/spring?fbclid=f2").await;
        sdk.tap("/c/spring?fbclid=f3").await;
        let found = sdk.configure("d2", json!({})).await["attribution"].clone();
        assert_eq!((&found["matchType"], &found["network"]), (&json!("organic"), &json!("organic")));
        assert_eq!((&found["confidence"], &found["clickId"]), (&json!(null), &json!(null)));
        assert!(!found["reason"].as_str().unwrap().is_empty());
    }

    async fn an_install_without_evidence_is_organic_with_a_reason(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({})).await;
        let token = sdk.tap("/c/spring").await;
        let forged = format!("{}{}", &token[..token.len() - 1], if token.ends_with('0') { '1' } else { '0' });
        let organic = json!({"referrer": "utm_source=google-play&utm_medium=organic"});
        let other_device = json!({"osVersion": "9", "model": "Nokia 3"});
        for (device, mut fields) in [
            ("d1", json!({})), ("d2", json!({"installReferrer": organic})), ("d3", json!({"installReferrer": {}})),
            ("d4", json!({"arClickId": forged})), ("d5", json!({"arClickId": "nonsense"})),
        ] {
            fields.as_object_mut().unwrap().extend(other_device.as_object().unwrap().clone());
            let found = sdk.configure(device, fields).await["attribution"].clone();
            assert_eq!((&found["matchType"], &found["network"]), (&json!("organic"), &json!("organic")), "{device}");
            let reason = found["reason"].as_str().unwrap();
            assert!(reason.ends_with('.') && !reason.contains(PHONE_ADDRESS), "{reason}");
        }
    }

    async fn concurrent_calls_create_one_install(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({})).await;
        let token = sdk.tap("/c/spring").await;
        let call = || sdk.configure("d1", json!({"arClickId": token}));
        let answers = tokio::join!(call(), call(), call(), call(), call(), call());
        let answers = [answers.0, answers.1, answers.2, answers.3, answers.4, answers.5];
        let first = answers.iter().filter(|answer| answer["firstOpen"] == true).count();
        assert_eq!(first, 1, "{answers:?}");
        let decisions: BTreeSet<String> = answers.iter().map(|answer| answer["attribution"].to_string()).collect();
        assert_eq!(decisions.len(), 1, "one decision");
        assert_eq!(sdk.names().await, ["install"]);
    }

    async fn a_click_is_credited_with_one_install_only(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({"network": "network_a"})).await;
        let token = sdk.tap("/c/spring?fbclid=f1").await;
        let referrer = json!({"installReferrer": {"referrer": format!("ar_click_id={token}")}});
        assert_eq!(sdk.configure("d1", referrer.clone()).await["attribution"]["matchType"], "referrer");
        // After a reinstall the store still has the referrer, but the device has a new id.
        sdk.server.clock.advance(Duration::from_hours(1));
        let again = sdk.configure("d2", referrer.clone()).await;
        assert_eq!((&again["firstOpen"], &again["attribution"]["matchType"]), (&json!(true), &json!("organic")));
        let details = sdk.server.get(&format!("{}/devices/d2", sdk.app), &sdk.key).await.expect(200).data();
        assert_eq!(details["attribution"]["state"], "duplicate_click");
        // The same id again is the same device.
        let same = sdk.configure("d1", referrer).await;
        assert_eq!((&same["firstOpen"], &same["attribution"]["matchType"]), (&json!(false), &json!("referrer")));
        assert_eq!(sdk.names().await, ["install", "install"]);
    }

    async fn better_evidence_replaces_the_decision(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({"network": "network_a"})).await;
        let token = sdk.tap("/c/spring?fbclid=f1").await;
        let other = json!({"osVersion": "9", "model": "Nokia 3"});
        let organic = sdk.configure("d1", other).await["attribution"].clone();
        assert_eq!(organic["matchType"], "organic");
        let late = json!({"osVersion": "9", "model": "Nokia 3", "arClickId": token});
        let better = sdk.configure("d1", late).await["attribution"].clone();
        assert_eq!((&better["matchType"], &better["id"]), (&json!("click_id"), &organic["id"]));
        assert_eq!(sdk.log("").await[0]["attribution"]["network"], "network_a", "the install gets the new credit");
    }

    async fn a_link_that_opens_the_installed_app_records_a_click(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.change_app(json!({"deepLinkSchemes": ["runner"]})).await;
        let fields = json!({"network": "network_a", "deepLink": "runner://offer/42", "customData": {"invite": "abc"}});
        let link = sdk.link("spring", fields).await;
        let url = "https://t.example.com/c/spring?fbclid=f1&coupon=x";
        let first = sdk.configure("d1", json!({"openedUrl": url})).await;
        assert_eq!(first["opened"], json!({
            "linkId": link["id"], "deepLink": "runner://offer/42", "customData": {"invite": "abc"},
            "queryParams": {"coupon": "x"},
        }));
        assert_eq!((&first["attribution"]["matchType"], &first["attribution"]["network"]), (&json!("click_id"), &json!("network_a")));
        sdk.server.link_domain(&sdk.app, &sdk.key, "go.example.com").await;
        let later = sdk.configure("d1", json!({"openedUrl": format!("https://go.example.com/c/{}", link["id"].as_str().unwrap())})).await;
        assert_eq!((&later["opened"]["linkId"], &later["attribution"]), (&link["id"], &first["attribution"]));
        for url in ["https://evil.example/c/spring", "https://go.example.com/c/nothing", "https://go.example.com/", "x"] {
            assert_eq!(sdk.configure("d1", json!({"openedUrl": url})).await["opened"], json!(null), "{url}");
        }
        let path = format!("{}/links/{}", sdk.app, link["id"].as_str().unwrap());
        sdk.server.patch(&path, &sdk.key, json!({"active": false})).await.expect(200);
        assert_eq!(sdk.configure("d1", json!({"openedUrl": url})).await["opened"], json!(null), "the link is inactive");
        let other = json!({"openedUrl": "runner://x?ar_click_id=nonsense", "osVersion": "9", "model": "Nokia 3"});
        let other = sdk.configure("d2", other).await;
        assert_eq!((&other["opened"], &other["attribution"]["matchType"]), (&json!(null), &json!("organic")));
    }

    async fn the_click_of_an_opened_link_has_the_user_agent_of_the_web_view(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({"network": "network_a"})).await;
        let agents = async || {
            let rows = sdk.server.database.direct_connection().await.rows("select user_agent from clicks").await;
            rows.into_iter().map(|row| row[0].clone()).collect::<Vec<_>>()
        };
        let agent = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15";
        sdk.configure("d1", json!({"userAgent": agent})).await;
        assert_eq!(agents().await, Vec::<Option<String>>::new(), "no link was opened");
        let opened = json!({"openedUrl": "https://t.example.com/c/spring?fbclid=f1", "userAgent": agent});
        sdk.configure("d1", opened).await;
        assert_eq!(agents().await, [Some(agent.to_owned())]);
    }

    async fn a_repeated_open_is_one_click(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({"network": "network_a"})).await;
        let clicks = async || {
            let rows = sdk.server.database.direct_connection().await.rows("select count(*) from clicks").await;
            rows[0][0].clone().unwrap_or_default()
        };
        let url = json!({"openedUrl": "https://t.example.com/c/spring?fbclid=f1"});
        let first = sdk.configure("d1", url.clone()).await;
        for _ in 0..3 {
            sdk.server.clock.advance(Duration::from_mins(1));
            let again = sdk.configure("d1", url.clone()).await;
            assert_eq!((&again["opened"], &again["attribution"]), (&first["opened"], &first["attribution"]));
        }
        let call = || sdk.configure("d1", url.clone());
        tokio::join!(call(), call(), call(), call());
        assert_eq!(clicks().await, "1", "repeated calls are one click");
        sdk.configure("d2", url.clone()).await;
        assert_eq!(clicks().await, "2", "another device");
        sdk.configure("d1", json!({"openedUrl": "https://t.example.com/c/spring?fbclid=f2"})).await;
        assert_eq!(clicks().await, "3", "another tap");
        sdk.server.clock.advance(Duration::from_mins(10));
        sdk.configure("d1", url).await;
        assert_eq!(clicks().await, "4", "the same tap, later");
    }

    async fn ignores_links_of_another_app(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let other = sdk.server.app(&sdk.key).await;
        let body = json!({"name": "Theirs", "slug": "theirs"});
        sdk.server.post(&format!("{other}/links"), &sdk.key, body).await.expect(201);
        let found = sdk.configure("d1", json!({"openedUrl": "https://t.example.com/c/theirs"})).await;
        assert_eq!((&found["opened"], &found["attribution"]["matchType"]), (&json!(null), &json!("organic")));
    }

    async fn decrypts_the_meta_referrer_with_the_key_of_the_app(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let content = format!(
            r#"{{"app":1,"t":1767225000,"source":{{"data":"{META_DATA}","nonce":"a0a1a2a3a4a5a6a7a8a9aaab"}}}}"#
        );
        let referrer = json!({"installReferrer": {"referrer": format!("utm_source=apps.facebook.com&utm_content={content}")}});
        let found = sdk.configure("d1", referrer.clone()).await["attribution"].clone();
        assert_eq!((&found["network"], &found["matchType"]), (&json!("network_a"), &json!("referrer")));
        assert_eq!(found["campaign"]["id"], json!(null), "no key is set yet");
        sdk.change_app(json!({"attribution": {"socialReferrerKey": META_KEY}})).await;
        let found = sdk.configure("d2", referrer).await["attribution"].clone();
        assert_eq!(found["campaign"], json!({
            "id": "1", "name": "Spring", "adsetId": "11", "adsetName": "Runners", "adId": "21", "adName": "Blue",
        }));
    }

    async fn a_web_page_creates_no_install(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let body = json!({"deviceId": "page", "platform": "web"});
        let found = sdk.call("configure", &sdk.live, &body).await.expect(200).data();
        assert_eq!(found["firstOpen"], true);
        assert!(sdk.names().await.is_empty());
    }

    async fn live_and_test_data_are_separate(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({"network": "network_a"})).await;
        let token = sdk.tap("/c/spring?fbclid=f1").await;
        let body = json!({"deviceId": "d1", "platform": "android", "arClickId": token});
        let test = sdk.call("configure", &sdk.test, &body).await.expect(200).data();
        assert_eq!(test["attribution"]["matchType"], "click_id");
        let events = json!({"deviceId": "d1", "events": [{"eventId": "e1", "name": "purchase"}]});
        assert_eq!(sdk.call("events", &sdk.test, &events).await.expect(202).data()[0]["status"], "accepted");
        assert!(sdk.names().await.is_empty(), "live keys do not see test data");
        let path = format!("{}/events", sdk.app);
        let log = sdk.server.get(&path, &sdk.test_key).await.expect(200).data();
        assert_eq!(log.as_array().unwrap().len(), 2);
        assert_eq!(log[0]["environment"], "test");
        // A test device does not use up the click, and the same ids are free in live data.
        let live = sdk.call("configure", &sdk.live, &body).await.expect(200).data();
        assert_eq!((&live["firstOpen"], &live["attribution"]["matchType"]), (&json!(true), &json!("click_id")));
        assert_eq!(sdk.call("events", &sdk.live, &events).await.expect(202).data()[0]["status"], "accepted");
        assert_eq!(sdk.names().await, ["purchase", "install"]);
    }

    async fn keeps_events_of_a_device_that_has_not_configured_yet(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({"network": "network_a"})).await;
        let token = sdk.tap("/c/spring?fbclid=f1").await;
        sdk.send("d1", json!([{"name": "sign_up"}])).await;
        assert_eq!(sdk.log("").await[0]["attribution"], json!(null));
        sdk.configure("d1", json!({"arClickId": token})).await;
        let log = sdk.log("&name=sign_up").await;
        assert_eq!(log[0]["attribution"]["network"], "network_a", "earlier events are credited after configure");
    }
}

/// Referrer data, encrypted with [`META_KEY`]: campaign group 1 "Spring", campaign 11 "Runners",
/// ad group 21 "Blue".
const META_DATA: &str = concat!(
    "a51615481f2559deb51e0a784dc5a39ba4a18fd899ba0c76e1c4bdac8531cce7941f2b51637e4466a1cefa0d961fb414",
    "ccd705ad23058d9b696be24b9e926d52c91b9cb73c115c9d5c382f37f8bbf02716897dbd42c779171d17d59e9c4596c1",
    "901c674f19d0a331b37c7064b2ec3a32d70fad52de19a71035cdba3363573e3bae293e605fec141c786c0332498434f4",
    "3981111c864a5fe167e58406d4e7385901918235066e56ad32a2494cd5e541da4b0fc47d685060c6ab905a"
);
const META_KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
