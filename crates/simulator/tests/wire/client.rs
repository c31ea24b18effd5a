//! A running simulator, and the requests that tests send to it.

use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use tributary_simulator::{RunningSimulator, SimulatedNetwork, Simulator, SimulatorConfig};

pub(crate) const EMAIL: &str = "b5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72";
pub(crate) const DEVICE: &str = "cdbb6e6f5ba2362d283df2601ac2c5b0f0d44f222eda457f1cb86108c68eacb6";
pub(crate) const SHA256_OF_NOTHING: &str =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
pub(crate) const AGENT: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X)";
pub(crate) const DAY: i64 = 24 * 60 * 60 * 1_000;

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Self {
        let status = response.status().as_u16();
        let text = response.text().await.expect("a response");
        let body = serde_json::from_str(&text).unwrap_or_default();
        Self { status, text, body }
    }
}

/// A simulator and a client.
pub(crate) struct World {
    pub(crate) running: RunningSimulator,
    pub(crate) client: Client,
}

pub(crate) async fn world() -> World {
    world_with(SimulatorConfig::default()).await
}

pub(crate) async fn world_with(options: SimulatorConfig) -> World {
    let running = Simulator::start(options).await.expect("a free port");
    // In a workspace build, the client has TLS without a provider, and requires a provider even
    // though TLS is not used here. Installing it a second time fails harmlessly.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().build().expect("a client");
    World { running, client }
}

impl World {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.running.base_url())
    }

    /// Returns the simulator's time.
    pub(crate) fn now(&self) -> i64 {
        let state = self.running.control().state();
        state["nowMs"].as_i64().expect("a time")
    }

    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(self.url(path))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let response = self.client.get(self.url(path)).send().await;
        Answer::of(response.expect("a response")).await
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Answer {
        Answer::of(request.send().await.expect("a response")).await
    }

    pub(crate) async fn to_a(&self, body: &Value) -> Answer {
        self.send(self.request_a(body)).await
    }

    pub(crate) fn request_a(&self, body: &Value) -> RequestBuilder {
        self.post("/v26.0/1029384756/events?access_token=T")
            .json(body)
    }

    pub(crate) async fn token(&self) -> String {
        let form = "client_id=C&client_secret=S&refresh_token=R&grant_type=refresh_token";
        let answer = self.send(self.token_request(form)).await;
        let token = answer.body["access_token"].as_str();
        token.expect("a token").to_owned()
    }

    pub(crate) fn token_request(&self, form: &str) -> RequestBuilder {
        self.post("/token")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.to_owned())
    }

    pub(crate) async fn to_b(&self, body: &Value) -> Answer {
        let token = self.token().await;
        let request = self.post("/v1/events:ingest").bearer_auth(token);
        self.send(request.json(body)).await
    }

    pub(crate) async fn to_c(&self, body: &Value) -> Answer {
        let request = self
            .post("/open_api/v1.3/event/track/")
            .header("access-token", "T");
        self.send(request.json(body)).await
    }

    pub(crate) async fn to_d(&self, body: &Value) -> Answer {
        let request = self.post("/v1/events?pid=P").bearer_auth("K");
        self.send(request.json(body)).await
    }

    pub(crate) fn totals(&self, network: SimulatedNetwork) -> Value {
        self.running.control().state()["networks"][network.label()].clone()
    }

    /// Returns the counted, duplicate and refused events.
    pub(crate) fn counts(&self, network: SimulatedNetwork) -> (u64, u64, u64) {
        let totals = self.totals(network);
        let figure = |name: &str| totals[name].as_u64().expect("a figure");
        (figure("counted"), figure("duplicates"), figure("refused"))
    }

    pub(crate) fn fault(&self, network: SimulatedNetwork, fault: Value, times: Option<u32>) {
        let injection = json!({"network": network, "fault": fault, "times": times});
        self.running
            .control()
            .inject_fault(injection)
            .expect("a fault");
    }
}

/// Sets a field by its JSON pointer; `null` removes it.
pub(crate) fn changed(mut body: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = body.pointer_mut(parent).expect("its parent");
    match parent {
        Value::Object(fields) if value.is_null() => drop(fields.remove(name)),
        Value::Object(fields) => drop(fields.insert(name.to_owned(), value)),
        Value::Array(entries) => {
            let index: usize = name.parse().expect("an index");
            if index == entries.len() {
                entries.push(value);
            } else {
                entries[index] = value;
            }
        }
        _ => panic!("{pointer} cannot be set"),
    }
    body
}

pub(crate) fn purchase_a(now: i64) -> Value {
    json!({
        "data": [{
            "event_name": "Purchase", "event_time": now / 1_000, "event_id": "ord_20261114_000731",
            "action_source": "website", "event_source_url": "https://shop.example.com/checkout/thanks",
            "user_data": {
                "em": [EMAIL], "external_id": [DEVICE], "client_ip_address": "203.0.113.24",
                "client_user_agent": AGENT, "fbc": "fb.1.1794561330250.IwAR2kZ8q_AbCd-1"
            },
            "custom_data": {"value": 29.99, "currency": "USD", "order_id": "ord_20261114_000731"}
        }],
        "partner_agent": "tributary"
    })
}

pub(crate) fn rfc3339(now: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(now).expect("a time");
    time.to_string()
}

pub(crate) fn purchase_b(now: i64) -> Value {
    json!({
        "destinations": [{
            "operatingAccount": {"accountType": "GOOGLE_ADS", "accountId": "1234567890"},
            "loginAccount": {"accountType": "GOOGLE_ADS", "accountId": "9876543210"},
            "productDestinationId": "6677889900"
        }],
        "events": [{
            "transactionId": "ord_20261114_000731", "eventTimestamp": rfc3339(now),
            "eventSource": "WEB", "adIdentifiers": {"gclid": "EAIaIQobChMI-example_gclid"},
            "conversionValue": 29.99, "currency": "USD",
            "userData": {"userIdentifiers": [{"emailAddress": EMAIL}]},
            "consent": {"adUserData": "CONSENT_GRANTED", "adPersonalization": "CONSENT_GRANTED"}
        }],
        "encoding": "HEX", "validateOnly": false
    })
}

pub(crate) fn purchase_c(now: i64) -> Value {
    json!({
        "event_source": "web", "event_source_id": "C0EXAMPLEPIXELCODE00",
        "data": [{
            "event": "Purchase", "event_time": now / 1_000, "event_id": "ord_20261114_000731",
            "user": {
                "email": EMAIL, "external_id": DEVICE, "ttclid": "E.C.P.example-ttclid_01",
                "ip": "203.0.113.24", "user_agent": AGENT
            },
            "page": {"url": "https://shop.example.com/checkout/thanks"},
            "properties": {"value": 29.99, "currency": "USD", "order_id": "ord_20261114_000731"}
        }]
    })
}

pub(crate) fn purchase_d(now: i64) -> Value {
    json!({
        "integration_source": "tributary", "validate_only": false,
        "events": [{
            "id": "ord_20261114_000731", "type": "order_created", "timestamp_ms": now,
            "action_source": "web", "source_url": "https://shop.example.com/checkout/thanks",
            "oppref": "oppref_example_01",
            "user": {
                "emails_sha256": [EMAIL], "external_ids_sha256": [DEVICE],
                "ip_address": "203.0.113.24", "user_agent": AGENT
            },
            "data": {"type": "contents", "amount": 2999, "currency": "USD"}
        }]
    })
}
