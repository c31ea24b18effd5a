//! Objects that routes are called on.

use super::bodies::{configure_body, identify_body, key_body};
use crate::outbox::{Outcome, connect, settle};
use crate::website::{START, Website};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use tributary_testkit::TestServer;

/// Number of link domains used, so that each app gets its own.
static DOMAINS: AtomicU32 = AtomicU32::new(0);

/// An app with a link, and with a device and its user in both environments.
#[derive(Debug, Clone)]
pub(crate) struct RouteFixture {
    pub(crate) app: String,
    pub(crate) link: String,
    pub(crate) notice: String,
    /// A test key for analytics, which every full key may manage.
    pub(crate) key: String,
    /// The live and the test SDK key.
    pub(crate) sdk_keys: [String; 2],
    /// A replaced SDK key that nothing else uses.
    pub(crate) replaced_sdk_key: String,
    /// A click for web events, if the app has a website.
    pub(crate) click: Option<String>,
    /// A failed delivery if the app has a website, otherwise an id that does not exist.
    pub(crate) delivery: String,
}

impl RouteFixture {
    /// Creates the objects, a website with forwarded events, and one failed delivery.
    pub(crate) async fn with_website(server: &TestServer, key: &str) -> Self {
        let fixture = Self::new(server, key).await;
        let app = format!("/api/v1/apps/{}", fixture.app);
        let base = format!("http://{}", server.address);
        let site = Website::for_app(base, key.to_owned(), app).await;
        connect(&site).await;
        site.send_accepted(&site.purchase("fixture-1", "1")).await;
        let failed = settle(server, &site.app, &Outcome::FAILED).await;
        Self {
            delivery: failed.into_iter().next().unwrap(),
            click: Some(site.click),
            ..fixture
        }
    }

    /// Replaces the click in a body with the fixture's, and sets the time to match.
    pub(crate) fn fill(&self, mut body: Value) -> Value {
        if let (Some(click), Some(value)) = (&self.click, body.get_mut("arClickId")) {
            *value = json!(click);
            // An event must not be earlier than its click.
            body["timestampMs"] = json!(START);
        }
        if let Some(value @ Value::String(_)) = body.get_mut("key") {
            *value = json!(self.replaced_sdk_key);
        }
        body
    }

    /// Creates the objects.
    pub(crate) async fn new(server: &TestServer, key: &str) -> Self {
        let number = DOMAINS.fetch_add(1, Ordering::Relaxed);
        let body = json!({
            "name": "Runner", "linkDomain": format!("go{number}.example.com"), "attribution": {"fraud": "hold"},
            "deepLinkSchemes": ["runner"],
        });
        let created = server.post("/api/v1/apps", key, body).await.expect(201);
        let path = format!("/api/v1/apps/{}", created.data()["id"].as_str().unwrap());
        server.publish_record(&path, key).await;
        let link = server
            .post(&format!("{path}/links"), key, json!({"name": "Spring"}))
            .await;
        let link = link.expect(201).data()["id"].as_str().unwrap().to_owned();
        let notice = json!({
            "name": "Paused", "channel": "email", "recipients": ["team@example.com"], "topic": "integration_paused",
        });
        let notice = server.post(&format!("{path}/notices"), key, notice).await;
        let notice = notice.expect(201).data()["id"].as_str().unwrap().to_owned();
        let api_key = server.post("/api/v1/keys", key, key_body()).await;
        let api_key = api_key.expect(201).data()["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let sdk = server.get(&path, key).await.expect(200).data()["sdk"].clone();
        let sdk_keys = ["liveKey", "testKey"].map(|name| sdk[name].as_str().unwrap().to_owned());
        // The fixture's test key stays valid, whatever happens to its successors.
        let rotate = async || {
            let body = json!({"environment": "test", "overlapDays": 700});
            let rotated = server
                .post(&format!("{path}/sdk-keys/rotate"), key, body)
                .await;
            let keys = rotated.expect(201).data()["test"].clone();
            keys[0]["key"].as_str().unwrap().to_owned()
        };
        let replaced_sdk_key = rotate().await;
        rotate().await;
        for sdk_key in &sdk_keys {
            for (call, body, status) in [
                ("configure", configure_body(), 200),
                ("identify", identify_body(), 204),
            ] {
                let request = server.request(Method::POST, &format!("/api/track/{call}"));
                let request = request.header("x-tributary-key", sdk_key);
                let request = request.header("content-type", "application/json");
                let answer = server.send(request.body(body.to_string())).await;
                answer.expect(status);
            }
        }
        let app = path.rsplit('/').next().unwrap().to_owned();
        Self {
            app,
            link,
            notice,
            key: api_key,
            sdk_keys,
            replaced_sdk_key,
            click: None,
            delivery: "dlv_01k9z3v7q8e4r9m2x5c6b7n8d0".to_owned(),
        }
    }
}
