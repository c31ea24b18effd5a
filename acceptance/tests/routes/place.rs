//! What routes are called on.

use super::device;
use crate::outbox::{Outcome, connect, settle};
use crate::website::{START, Website};
use reqwest::Method;
use serde_json::{Value, json};
use tributary_testkit::TestServer;

/// An app with a link and a device in both environments, to call routes on.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) app: String,
    pub(crate) link: String,
    /// Live and test.
    pub(crate) sdk_keys: [String; 2],
    /// A click that website events can name, where there is a website.
    pub(crate) click: Option<String>,
    /// A delivery that failed, where there is a website; one that does not exist otherwise.
    pub(crate) delivery: String,
}

impl Place {
    /// Makes them, and a website whose events are taken and forwarded, though one was not.
    pub(crate) async fn with_website(server: &TestServer, key: &str) -> Self {
        let place = Self::new(server, key).await;
        let app = format!("/api/v1/apps/{}", place.app);
        let base = format!("http://{}", server.address);
        let site = Website::of(base, key.to_owned(), app).await;
        connect(&site).await;
        site.accepted(&site.purchase("place-1", "1")).await;
        let failed = settle(server, &site.app, &Outcome::FAILED).await;
        Self {
            delivery: failed.into_iter().next().unwrap(),
            click: Some(site.click),
            ..place
        }
    }

    /// A body that names a click, with this place's, at its time.
    pub(crate) fn fill(&self, mut body: Value) -> Value {
        if let (Some(click), Some(sent)) = (&self.click, body.get_mut("arClickId")) {
            *sent = json!(click);
            // An event is not earlier than its click.
            body["timestampMs"] = json!(START);
        }
        body
    }

    /// Makes them.
    pub(crate) async fn new(server: &TestServer, key: &str) -> Self {
        let path = server.app(key).await;
        let link = server
            .post(&format!("{path}/links"), key, json!({"name": "Spring"}))
            .await;
        let link = link.expect(201).data()["id"].as_str().unwrap().to_owned();
        let sdk = server.get(&path, key).await.expect(200).data()["sdk"].clone();
        let sdk_keys = ["liveKey", "testKey"].map(|name| sdk[name].as_str().unwrap().to_owned());
        for sdk_key in &sdk_keys {
            let request = server.request(Method::POST, "/api/track/configure");
            let request = request.header("x-tributary-key", sdk_key);
            let request = request.header("content-type", "application/json");
            server
                .send(request.body(device().to_string()))
                .await
                .expect(200);
        }
        let app = path.rsplit('/').next().unwrap().to_owned();
        Self {
            app,
            link,
            sdk_keys,
            click: None,
            delivery: "dlv_01k9z3v7q8e4r9m2x5c6b7n8d0".to_owned(),
        }
    }
}
