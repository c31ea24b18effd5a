//! A website whose verified events are sent: what the tests of that door share. It knows a server by its address
//! alone, so that it is the same for one in this process and one in a process of its own.

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

/// 2026-01-01T00:00:00Z, where the clock of every test begins.
pub(crate) const START: i64 = 1_767_225_600_000;
/// How long an event is sent again while the server is busy.
const DELIVERY_MAX: Duration = Duration::from_mins(1);
/// Between two times that it is sent.
const DELIVERY_PAUSE: Duration = Duration::from_millis(500);
/// Where the website is.
pub(crate) const SHOP: &str = "https://shop.example.com";
/// A person's browser.
pub(crate) const PERSON: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) \
     AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Mobile/15E148 Safari/604.1";

/// An app that takes website events, a `web_funnel` link to its website, and a click on it.
#[derive(Debug, Clone)]
pub(crate) struct Website {
    pub(crate) client: Client,
    pub(crate) base: String,
    pub(crate) key: String,
    /// The app's path.
    pub(crate) app: String,
    /// The link.
    pub(crate) link: String,
    /// A click of `network_a` on it.
    pub(crate) click: String,
    /// When its events happen.
    pub(crate) time: i64,
}

impl Website {
    /// One of a new organization's new app.
    pub(crate) async fn open(server: &TestServer) -> Self {
        let key = server.full_key().await;
        let app = server.app(&key).await;
        Self::of(format!("http://{}", server.address), key, app).await
    }

    /// One of a new organization's new app, and who may read its figures.
    pub(crate) async fn open_with_reader(server: &TestServer) -> (Self, Authorized<AnalyticsRead>) {
        let organization = server.organization("Example").await;
        let key = server
            .key(organization, Permission::Full, Environment::Live)
            .await;
        let site = Self::open_at(&format!("http://{}", server.address), &key).await;
        (site, Authorized::operator(organization))
    }

    /// The figures of its app since ever, by network, out of the roll-ups.
    pub(crate) async fn figures(
        &self,
        server: &TestServer,
        reader: &Authorized<AnalyticsRead>,
    ) -> BTreeMap<String, Figures> {
        let app = AppId::parse(self.app.rsplit('/').next().unwrap()).unwrap();
        let ever = (Timestamp::from_millis(0), Timestamp::from_millis(START * 2));
        let figures = server.store.figures_by_network(reader, app, ever).await;
        figures.unwrap().into_iter().collect()
    }

    /// One of a new app of a server that is known by its address.
    pub(crate) async fn open_at(base: &str, key: &str) -> Self {
        let app = call(
            &client(),
            "POST",
            &format!("{base}/api/v1/apps"),
            key,
            &json!({"name": "Shop"}),
        )
        .await;
        let id = app.expect(201).data()["id"].as_str().unwrap().to_owned();
        Self::of(
            base.to_owned(),
            key.to_owned(),
            format!("/api/v1/apps/{id}"),
        )
        .await
    }

    /// One of an app that is there.
    pub(crate) async fn of(base: String, key: String, app: String) -> Self {
        let mut site = Self {
            client: client(),
            base,
            key,
            app,
            link: String::new(),
            click: String::new(),
            time: START,
        };
        site.switch(true).await;
        site.link = site.funnel(&format!("{SHOP}/start")).await;
        site.click = site.tap(&site.link, "fbclid=f1&campaign_id=238").await;
        site
    }

    /// The same website on a server that has the real clock: an event is not earlier than its click.
    #[expect(
        clippy::disallowed_methods,
        reason = "a server in another process has the real clock"
    )]
    pub(crate) fn at_real_time(self) -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let time = i64::try_from(since.unwrap().as_millis()).unwrap();
        Self { time, ..self }
    }

    /// The same website, called through another server of the same database.
    pub(crate) fn through(&self, base: &str) -> Self {
        Self {
            base: base.to_owned(),
            ..self.clone()
        }
    }

    /// Turns the door on or off.
    pub(crate) async fn switch(&self, enabled: bool) {
        self.call("PATCH", "", json!({"webEvents": {"enabled": enabled}}))
            .await
            .expect(200);
    }

    /// Makes a `web_funnel` link; gives its id.
    pub(crate) async fn funnel(&self, destination: &str) -> String {
        self.make_link(json!({"name": "L", "type": "web_funnel", "destinationUrl": destination}))
            .await
    }

    /// Makes a link; gives its id.
    pub(crate) async fn make_link(&self, fields: Value) -> String {
        let link = self.call("POST", "/links", fields).await.expect(201).data();
        link["id"].as_str().unwrap().to_owned()
    }

    /// Taps a link as a person does; gives the click id that the website gets.
    pub(crate) async fn tap(&self, link: &str, query: &str) -> String {
        self.tap_as(link, query, PERSON).await
    }

    /// Taps a link with this browser.
    pub(crate) async fn tap_as(&self, link: &str, query: &str, agent: &str) -> String {
        let request = self
            .client
            .get(format!("{}/w/{link}?{query}", self.base))
            .header("user-agent", agent);
        let answer = request.send().await.unwrap();
        let location = answer.headers()["location"].to_str().unwrap();
        let (_, rest) = location
            .split_once("ar_click_id=")
            .unwrap_or_else(|| panic!("no click: {location}"));
        rest.split('&').next().unwrap().to_owned()
    }

    /// Calls something below the app.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> TestResponse {
        let url = format!("{}{}{path}", self.base, self.app);
        call(&self.client, method, &url, &self.key, &body).await
    }

    /// Calls something below the app; nothing when no whole answer came.
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
        self.try_send(event).await.expect("the server answers")
    }

    /// Sends an event; nothing when no whole answer came.
    pub(crate) async fn try_send(&self, event: &Value) -> Option<TestResponse> {
        let url = format!("{}{}/web-events", self.base, self.app);
        try_call(&self.client, "POST", &url, &self.key, event.to_string()).await
    }

    /// Sends a body as it stands.
    pub(crate) async fn send_text(&self, body: &str) -> TestResponse {
        let url = format!("{}{}/web-events", self.base, self.app);
        let answer = try_call(&self.client, "POST", &url, &self.key, body.to_owned()).await;
        answer.expect("the server answers")
    }

    /// Sends an event that is accepted for the first time.
    pub(crate) async fn accepted(&self, event: &Value) {
        let answer = self.send(event).await.expect(202);
        assert_eq!(answer.data()["duplicate"], false, "{event}: {answer:?}");
    }

    /// Sends an event as a backend does: again when the answer allows it, as a disk may stall beside other tests.
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

    /// Sends an event that is refused; gives status, code and whether it may be tried again.
    pub(crate) async fn refused(&self, event: &Value) -> (u16, String, bool) {
        let answer = self.send(event).await;
        let retryable = answer.json()["error"]["retryable"].as_bool();
        (
            answer.status.as_u16(),
            answer.code(),
            retryable.unwrap_or_else(|| panic!("{event}: {answer:?}")),
        )
    }

    /// The faults of an event's fields.
    pub(crate) async fn faults(&self, event: &Value) -> Vec<(String, String)> {
        let answer = self.send(event).await.expect(422);
        assert_eq!(answer.code(), "validation_failed", "{event}: {answer:?}");
        answer.faults()
    }

    /// An event of no money.
    pub(crate) fn event(&self, id: &str, kind: &str) -> Value {
        json!({
            "eventId": id, "arClickId": self.click, "deviceId": "visitor-1", "timestampMs": self.time,
            "eventType": kind, "sourceUrl": format!("{SHOP}/paid"),
        })
    }

    /// An event with a price or a payment in dollars.
    pub(crate) fn priced(&self, id: &str, kind: &str, revenue: &str) -> Value {
        let mut event = self.event(id, kind);
        event["revenue"] = json!(revenue);
        event["currency"] = json!("USD");
        event
    }

    /// An initial payment in dollars.
    pub(crate) fn purchase(&self, id: &str, revenue: &str) -> Value {
        self.priced(id, "purchase", revenue)
    }

    /// A renewal or refund in dollars.
    pub(crate) fn child(&self, id: &str, kind: &str, revenue: &str, parent: &str) -> Value {
        let mut event = self.priced(id, kind, revenue);
        event["originalTransactionId"] = json!(parent);
        event
    }

    /// A refund in dollars.
    pub(crate) fn refund(&self, id: &str, revenue: &str, payment: &str) -> Value {
        self.child(id, "refund", revenue, payment)
    }

    /// Every event of the log, read page by page, newest first.
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

    /// The one event of the log that its sender gave this id.
    pub(crate) async fn logged(&self, id: &str) -> Value {
        let mut log = self.log().await;
        log.retain(|event| event["eventId"] == id);
        assert_eq!(log.len(), 1, "{id}: {log:?}");
        log.remove(0)
    }
}

/// An event with one field otherwise.
pub(crate) fn with(event: &Value, field: &str, value: impl Into<Value>) -> Value {
    let mut event = event.clone();
    event[field] = value.into();
    event
}

/// An event without a field.
pub(crate) fn without(event: &Value, field: &str) -> Value {
    let mut event = event.clone();
    event.as_object_mut().unwrap().remove(field);
    event
}

/// An amount of an answer in millionths.
pub(crate) fn micros(number: &Value) -> i64 {
    let text = number.to_string();
    let amount = Amount::parse(text.trim_matches('"'));
    amount
        .unwrap_or_else(|_| panic!("no amount: {number}"))
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
    answer.expect("the server answers")
}
