//! Helpers for the tests of billing webhooks: an app and the notifications of its providers.

use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment, Permission};
use tributary_domain::report::Figures;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_testkit::{TestResponse, TestServer};

use crate::website::START;

/// Value of the `Authorization` header that the provider sends.
pub(crate) const SECRET: &str = "Bearer of a secret, 0123456789";
/// User agent of an Android phone, which gets its click id in the store URL.
const PHONE: &str = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) \
     Chrome/141.0.0.0 Mobile Safari/537.36";
/// Milliseconds per minute.
pub(crate) const MINUTE: i64 = 60_000;

/// An app whose subscriptions a billing provider reports.
pub(crate) struct Shop<'a> {
    pub(crate) server: &'a TestServer,
    pub(crate) key: String,
    pub(crate) test_key: String,
    /// API path of the app.
    pub(crate) app: String,
    pub(crate) id: String,
    pub(crate) sdk_key: String,
    pub(crate) reader: Authorized<AnalyticsRead>,
}

impl<'a> Shop<'a> {
    /// Creates an app with a `RevenueCat` secret.
    pub(crate) async fn open(server: &'a TestServer) -> Self {
        let shop = Self::without_billing(server).await;
        shop.update_app(json!({"billing": {"revenuecat": {"secret": SECRET}}}))
            .await;
        shop
    }

    /// Creates an app without a billing provider.
    pub(crate) async fn without_billing(server: &'a TestServer) -> Self {
        let organization = server.organization("Example").await;
        let key = server
            .key(organization, Permission::Full, Environment::Live)
            .await;
        let test_key = server
            .key(organization, Permission::Full, Environment::Test)
            .await;
        let app = server.app(&key).await;
        let shown = server.get(&app, &key).await.expect(200).data();
        Self {
            server,
            key,
            test_key,
            id: app.rsplit('/').next().unwrap().to_owned(),
            app,
            sdk_key: shown["sdk"]["liveKey"].as_str().unwrap().to_owned(),
            reader: Authorized::operator(organization),
        }
    }

    /// Changes settings of the app.
    pub(crate) async fn update_app(&self, change: Value) {
        self.server
            .patch(&self.app, &self.key, change)
            .await
            .expect(200);
    }

    /// Returns the path of the provider's webhook.
    pub(crate) fn webhook_path(&self, provider: &str) -> String {
        format!("/api/webhook/{provider}/{}", self.id)
    }

    /// Posts a body to the provider's webhook.
    pub(crate) async fn post(
        &self,
        provider: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TestResponse {
        let mut request = self
            .server
            .request(Method::POST, &self.webhook_path(provider));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.server.send(request.body(body.to_owned())).await
    }

    /// Posts an event as `RevenueCat` does.
    pub(crate) async fn send(&self, event: &Value) -> TestResponse {
        let body = json!({"api_version": "1.0", "event": event}).to_string();
        self.post("revenuecat", &[("authorization", SECRET)], &body)
            .await
    }

    /// Posts an event that must be accepted. Returns whether it was a duplicate.
    pub(crate) async fn send_accepted(&self, event: &Value) -> bool {
        let answer = self.send(event).await.expect(200);
        let data = answer.data();
        assert_eq!(data["received"], true, "{answer:?}");
        data["duplicate"].as_bool().unwrap()
    }

    /// Returns the event log, oldest first.
    pub(crate) async fn log(&self) -> Vec<Value> {
        self.log_with_key(&self.key).await
    }

    pub(crate) async fn log_with_key(&self, key: &str) -> Vec<Value> {
        let path = format!("{}/events?limit=500", self.app);
        let mut events = self.server.get(&path, key).await.expect(200).data();
        let events = events.as_array_mut().unwrap();
        events.reverse();
        std::mem::take(events)
    }

    /// Returns the logged event with this id.
    pub(crate) async fn logged_event(&self, id: &str) -> Value {
        let log = self.log().await;
        let found = log.iter().find(|one| one["eventId"] == id);
        found
            .unwrap_or_else(|| panic!("no event {id}: {log:#?}"))
            .clone()
    }

    /// Returns the figures of the whole history by network.
    pub(crate) async fn figures(&self) -> BTreeMap<String, Figures> {
        let app = AppId::parse(&self.id).unwrap();
        let (from, until) = (Timestamp::from_millis(0), Timestamp::from_millis(START * 2));
        let store = &self.server.store;
        let figures = store
            .figures_by_network(&self.reader, app, (from, until))
            .await;
        figures.unwrap().into_iter().collect()
    }

    /// Returns revenue minus refunds by network, in millionths of a dollar.
    pub(crate) async fn net(&self) -> BTreeMap<String, i64> {
        let figures = self.figures().await.into_iter();
        figures
            .map(|(network, one)| (network, one.revenue_micros - one.refunded_micros))
            .filter(|(_, net)| *net != 0)
            .collect()
    }

    /// Returns the health of the provider's webhook.
    pub(crate) async fn health(&self, provider: &str) -> Value {
        let path = format!("{}/billing", self.app);
        let data = self.server.get(&path, &self.key).await.expect(200).data();
        let all = data["providers"].as_array().unwrap();
        all.iter()
            .find(|one| one["provider"] == provider)
            .unwrap()
            .clone()
    }

    /// Calls an SDK endpoint.
    pub(crate) async fn track(&self, endpoint: &str, body: Value) -> TestResponse {
        let request = self
            .server
            .request(Method::POST, &format!("/api/track/{endpoint}"));
        let request = request
            .header("x-tributary-key", &self.sdk_key)
            .header("content-type", "application/json");
        self.server.send(request.body(body.to_string())).await
    }

    /// Configures a device whose install is attributed to a click of `network_a`.
    pub(crate) async fn install(&self, device: &str) {
        self.install_with(device, json!({})).await;
    }

    /// Does the same with more fields in the request.
    pub(crate) async fn install_with(&self, device: &str, fields: Value) {
        let fallback = json!({"name": "L", "androidUrl": "https://play.google.com/store/apps/details?id=com.example"});
        let links = format!("{}/links", self.app);
        let link = self
            .server
            .post(&links, &self.key, fallback)
            .await
            .expect(201)
            .data();
        let tap = format!("/c/{}?fbclid=E.C.P.1", link["id"].as_str().unwrap());
        let tap = self
            .server
            .request(Method::GET, &tap)
            .header("user-agent", PHONE);
        let tapped = self.server.send(tap).await;
        let location = tapped.header("location").unwrap();
        let (_, rest) = location.split_once("ar_click_id%3D").unwrap();
        let click = rest.split('&').next().unwrap();
        let mut body = json!({
            "deviceId": device, "platform": "android", "osVersion": "14", "model": "Pixel 8",
            "installReferrer": {"referrer": format!("ar_click_id={click}")},
        });
        body = with(body, fields);
        let answer = self.track("configure", body).await.expect(200).data();
        assert_eq!(answer["attribution"]["network"], "network_a", "{answer}");
    }

    /// Connects the app to `network_a`. No forwarder runs, so deliveries stay queued.
    pub(crate) async fn connect(&self) {
        let path = format!("{}/integrations/network_a", self.app);
        let body = json!({
            "enabled": true, "settings": {"pixelId": "900001"},
            "credentials": {"accessToken": "EAAB0123456789abcdef"},
        });
        self.server.patch(&path, &self.key, body).await.expect(200);
    }

    /// Returns the status of each delivery by event id and event name at the network.
    pub(crate) async fn deliveries(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for event in self.log().await {
            for one in event["deliveries"].as_array().unwrap() {
                let id = event["eventId"].as_str().unwrap();
                let name = one["networkEvent"].as_str().unwrap_or("-");
                if one["status"] != "skipped" {
                    let status = one["status"].as_str().unwrap();
                    found.insert(format!("{id} {name}"), status.to_owned());
                }
            }
        }
        found
    }
}

/// Builds a `RevenueCat` event at this minute of the test clock.
pub(crate) fn event(kind: &str, id: &str, minute: i64) -> Value {
    json!({
        "type": kind, "id": id, "app_user_id": "person-1", "original_app_user_id": "person-1",
        "aliases": ["person-1"], "event_timestamp_ms": START + minute * MINUTE,
        "purchased_at_ms": START + minute * MINUTE, "product_id": "pro.weekly", "period_type": "NORMAL",
        "store": "PLAY_STORE", "environment": "PRODUCTION", "currency": "USD", "price": 0,
        "price_in_purchased_currency": 0, "original_transaction_id": "sub-1", "country_code": "DE",
        "subscriber_attributes": {"tributaryId": {"value": "phone-1", "updated_at_ms": START}},
    })
}

/// Replaces fields of an event. Null removes a field.
pub(crate) fn with(mut event: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else {
        panic!("fields are an object")
    };
    for (name, value) in fields {
        if value.is_null() {
            event.as_object_mut().unwrap().remove(&name);
        } else {
            event[name] = value;
        }
    }
    event
}

/// Adds a transaction and its price to an event.
pub(crate) fn with_payment(event: Value, transaction: &str, price: f64) -> Value {
    let money = json!({
        "price": price, "price_in_purchased_currency": price, "transaction_id": transaction,
    });
    with(event, money)
}

/// Returns the hexadecimal signature of `seconds.body`.
pub(crate) fn hex_mac(secret: &str, seconds: i64, body: &str) -> String {
    let mac = mac(secret.as_bytes(), &format!("{seconds}.{body}"));
    tributary_domain::vocabulary::digest::hex(&mac)
}

pub(crate) fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Returns the folder of the published samples, if it exists.
pub(crate) fn vectors() -> Option<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/vectors"));
    if folder.is_dir() {
        return Some(folder);
    }
    println!(
        "SKIPPED: the published samples are not at {}",
        folder.display()
    );
    None
}
