//! Helpers for the tests of web events: an app with a website. They only need the server's address,
//! so they work with in-process servers and with server processes.

use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tributary_domain::access::{AnalyticsRead, Authorized, Environment, Permission};
use tributary_domain::report::Figures;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_testkit::{TestResponse, TestServer};

/// Start of the test clock: 2026-01-01T00:00:00Z.
pub(crate) const START: i64 = 1_767_225_600_000;
/// Maximum time to retry an event while the server is unavailable.
const DELIVERY_MAX: Duration = Duration::from_mins(1);
/// Pause between two attempts.
const DELIVERY_PAUSE: Duration = Duration::from_millis(500);
/// Origin of the website.
pub(crate) const SHOP: &str = "https://shop.example.com";
/// User agent of a browser.
pub(crate) const BROWSER: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) \
     AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Mobile/15E148 Safari/604.1";

/// An app with web events enabled, a `web_funnel` link to its website, and a click.
#[derive(Debug, Clone)]
pub(crate) struct Website {
    pub(crate) client: Client,
    pub(crate) base: String,
    pub(crate) key: String,
    /// API path of the app.
    pub(crate) app: String,
    /// Id of the link.
    pub(crate) link: String,
    /// Id of a click of `network_a` on the link.
    pub(crate) click: String,
    /// Time of its events, in milliseconds.
    pub(crate) time: i64,
}

impl Website {
    /// Creates an organization, an app and its website.
    pub(crate) async fn open(server: &TestServer) -> Self {
        let key = server.full_key().await;
        let app = server.app(&key).await;
        Self::for_app(format!("http://{}", server.address), key, app).await
    }

    /// Does the same and returns an authorization to read the app's figures.
    pub(crate) async fn open_with_reader(server: &TestServer) -> (Self, Authorized<AnalyticsRead>) {
        let organization = server.organization("Example").await;
        let key = server
            .key(organization, Permission::Full, Environment::Live)
            .await;
        let site = Self::open_at(&format!("http://{}", server.address), &key).await;
        (site, Authorized::operator(organization))
    }

    /// Returns the figures of the whole history by network, from the roll-ups.
    pub(crate) async fn figures(
        &self,
        server: &TestServer,
        reader: &Authorized<AnalyticsRead>,
    ) -> BTreeMap<String, Figures> {
        let app = AppId::parse(self.app.rsplit('/').next().unwrap()).unwrap();
        let whole_history = (Timestamp::from_millis(0), Timestamp::from_millis(START * 2));
        let figures = server
            .store
            .figures_by_network(reader, app, whole_history)
            .await;
        figures.unwrap().into_iter().collect()
    }

    /// Creates an app and its website on the server at this address.
    pub(crate) async fn open_at(base: &str, key: &str) -> Self {
        let app = call(
            &client(),
            "POST",
            &format!("{base}/api/v1/apps"),
            key,
            // Tests install within seconds of a click, which the default policy would hold.
            &json!({"name": "Shop", "attribution": {"fraud": "refuse"}}),
        )
        .await;
        let id = app.expect(201).data()["id"].as_str().unwrap().to_owned();
        Self::for_app(
            base.to_owned(),
            key.to_owned(),
            format!("/api/v1/apps/{id}"),
        )
        .await
    }

    /// Creates a website for an existing app.
    pub(crate) async fn for_app(base: String, key: String, app: String) -> Self {
        let mut site = Self {
            client: client(),
            base,
            key,
            app,
            link: String::new(),
            click: String::new(),
            time: START,
        };
        site.set_web_events(true).await;
        site.link = site.create_funnel_link(&format!("{SHOP}/start")).await;
        site.click = site.tap(&site.link, "fbclid=f1&campaign_id=238").await;
        site
    }

    /// Uses the current time for events, because an event must not be earlier than its click.
    #[expect(
        clippy::disallowed_methods,
        reason = "a server process uses the system clock"
    )]
    pub(crate) fn at_real_time(self) -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let time = i64::try_from(since.unwrap().as_millis()).unwrap();
        Self { time, ..self }
    }

    /// Uses another server with the same database.
    pub(crate) fn through(&self, base: &str) -> Self {
        Self {
            base: base.to_owned(),
            ..self.clone()
        }
    }

    /// Enables or disables web events.
    pub(crate) async fn set_web_events(&self, enabled: bool) {
        self.call("PATCH", "", json!({"webEvents": {"enabled": enabled}}))
            .await
            .expect(200);
    }

    /// Creates a `web_funnel` link. Returns its id.
    pub(crate) async fn create_funnel_link(&self, destination: &str) -> String {
        self.create_link(json!({"name": "L", "type": "web_funnel", "destinationUrl": destination}))
            .await
    }

    /// Creates a link. Returns its id.
    pub(crate) async fn create_link(&self, fields: Value) -> String {
        let link = self.call("POST", "/links", fields).await.expect(201).data();
        link["id"].as_str().unwrap().to_owned()
    }

    /// Taps a link in a browser. Returns the click id in the redirect.
    pub(crate) async fn tap(&self, link: &str, query: &str) -> String {
        self.tap_as(link, query, BROWSER).await
    }

    /// Taps a link with this user agent. Returns the click id in the redirect.
    pub(crate) async fn tap_as(&self, link: &str, query: &str, user_agent: &str) -> String {
        let request = self
            .client
            .get(format!("{}/w/{link}?{query}", self.base))
            .header("user-agent", user_agent);
        let answer = request.send().await.unwrap();
        let location = answer.headers()["location"].to_str().unwrap();
        let (_, rest) = location
            .split_once("ar_click_id=")
            .unwrap_or_else(|| panic!("no click id: {location}"));
        rest.split('&').next().unwrap().to_owned()
    }

    /// Calls an endpoint below the app's path.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> TestResponse {
        let url = format!("{}{}{path}", self.base, self.app);
        call(&self.client, method, &url, &self.key, &body).await
    }

    /// Calls an endpoint below the app's path. Returns `None` without a complete response.
    pub(crate) async fn try_call(
        &self,
        method: &str,
        path: &str,
        body: Value,
    ) -> Option<TestResponse> {
        let url = format!("{}{}{path}", self.base, self.app);
        try_call(&self.client, method, &url, &self.key, body.to_string()).await
    }

    /// Sends an event.
    pub(crate) async fn send(&self, event: &Value) -> TestResponse {
        self.try_send(event).await.expect("a response")
    }

    /// Sends an event. Returns `None` without a complete response.
    pub(crate) async fn try_send(&self, event: &Value) -> Option<TestResponse> {
        let url = format!("{}{}/web-events", self.base, self.app);
        try_call(&self.client, "POST", &url, &self.key, event.to_string()).await
    }

    /// Sends a raw body.
    pub(crate) async fn send_text(&self, body: &str) -> TestResponse {
        let url = format!("{}{}/web-events", self.base, self.app);
        let answer = try_call(&self.client, "POST", &url, &self.key, body.to_owned()).await;
        answer.expect("a response")
    }

    /// Sends an event that must be accepted and not be a duplicate.
    pub(crate) async fn send_accepted(&self, event: &Value) {
        let answer = self.send(event).await.expect(202);
        assert_eq!(answer.data()["duplicate"], false, "{event}: {answer:?}");
    }

    /// Sends an event and retries after 503, because other tests may slow down the disk.
    pub(crate) async fn deliver(&self, event: &Value) {
        let begun = Instant::now();
        loop {
            let answer = self.send(event).await;
            if answer.status == 503 && begun.elapsed() < DELIVERY_MAX {
                tokio::time::sleep(DELIVERY_PAUSE).await;
                continue;
            }
            answer.expect(202);
            return;
        }
    }

    /// Sends an event that must be refused. Returns status, error code and whether it is retryable.
    pub(crate) async fn send_refused(&self, event: &Value) -> (u16, String, bool) {
        let answer = self.send(event).await;
        let retryable = answer.json()["error"]["retryable"].as_bool();
        (
            answer.status.as_u16(),
            answer.code(),
            retryable.unwrap_or_else(|| panic!("{event}: {answer:?}")),
        )
    }

    /// Sends an invalid event. Returns the faults of its fields.
    pub(crate) async fn send_invalid(&self, event: &Value) -> Vec<(String, String)> {
        let answer = self.send(event).await.expect(422);
        assert_eq!(answer.code(), "validation_failed", "{event}: {answer:?}");
        answer.faults()
    }

    /// Builds an event without revenue.
    pub(crate) fn event(&self, id: &str, kind: &str) -> Value {
        json!({
            "eventId": id, "arClickId": self.click, "deviceId": "visitor-1", "timestampMs": self.time,
            "eventType": kind, "sourceUrl": format!("{SHOP}/paid"),
        })
    }

    /// Builds an event with revenue in dollars.
    pub(crate) fn priced(&self, id: &str, kind: &str, revenue: &str) -> Value {
        let mut event = self.event(id, kind);
        event["revenue"] = json!(revenue);
        event["currency"] = json!("USD");
        event
    }

    /// Builds a purchase in dollars.
    pub(crate) fn purchase(&self, id: &str, revenue: &str) -> Value {
        self.priced(id, "purchase", revenue)
    }

    /// Builds a renewal or refund in dollars.
    pub(crate) fn child(&self, id: &str, kind: &str, revenue: &str, parent: &str) -> Value {
        let mut event = self.priced(id, kind, revenue);
        event["originalTransactionId"] = json!(parent);
        event
    }

    /// Builds a refund in dollars.
    pub(crate) fn refund(&self, id: &str, revenue: &str, payment: &str) -> Value {
        self.child(id, "refund", revenue, payment)
    }

    /// Returns the whole event log, newest first.
    pub(crate) async fn log(&self) -> Vec<Value> {
        let (mut events, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/events?limit=500{cursor}");
            let page = self
                .call("GET", &path, Value::Null)
                .await
                .expect(200)
                .json();
            events.extend(page["data"].as_array().unwrap().iter().cloned());
            match page["meta"]["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return events,
            }
        }
    }

    /// Returns the only logged event with this id.
    pub(crate) async fn logged_event(&self, id: &str) -> Value {
        let mut log = self.log().await;
        log.retain(|event| event["eventId"] == id);
        assert_eq!(log.len(), 1, "{id}: {log:?}");
        log.remove(0)
    }
}

/// Replaces a field of an event.
pub(crate) fn with(event: &Value, field: &str, value: impl Into<Value>) -> Value {
    let mut event = event.clone();
    event[field] = value.into();
    event
}

/// Removes a field of an event.
pub(crate) fn without(event: &Value, field: &str) -> Value {
    let mut event = event.clone();
    event.as_object_mut().unwrap().remove(field);
    event
}

/// Parses an amount of a response into millionths.
pub(crate) fn micros(number: &Value) -> i64 {
    let text = number.to_string();
    let amount = Amount::parse(text.trim_matches('"'));
    amount
        .unwrap_or_else(|_| panic!("not an amount: {number}"))
        .micros()
}

fn client() -> Client {
    Client::builder()
        .timeout(std::time::Duration::from_mins(1))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap()
}

async fn try_call(
    client: &Client,
    method: &str,
    url: &str,
    key: &str,
    body: String,
) -> Option<TestResponse> {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = client.request(method, url).bearer_auth(key);
    if body != "null" {
        request = request
            .header("content-type", "application/json")
            .body(body);
    }
    let response = request.send().await.ok()?;
    let (status, headers) = (response.status(), response.headers().clone());
    Some(TestResponse {
        status,
        headers,
        text: response.text().await.ok()?,
    })
}

async fn call(client: &Client, method: &str, url: &str, key: &str, body: &Value) -> TestResponse {
    let answer = try_call(client, method, url, key, body.to_string()).await;
    answer.expect("a response")
}
