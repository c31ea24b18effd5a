//! The requests of the load. Each names the events that it creates, so that they can be looked for.

use crate::site::{BILLING_SECRET, PHONE, SHOP, Site};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// How a request proves who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// The organization's key.
    Key,
    /// The SDK key of the live environment.
    Sdk,
    /// The SDK key of the test environment.
    TestSdk,
    /// The billing provider's secret.
    Billing,
}

/// An event that a request creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedEvent {
    /// Name in the account: the event id, or `install ` and the device id.
    pub key: String,
    /// Amount in millionths of a dollar; negative for a refund.
    pub micros: i64,
}

/// A request that may be repeated without changing its effect.
#[derive(Debug, Clone)]
pub struct LoadRequest {
    credential: Credential,
    path: String,
    body: String,
    /// Events in the live environment.
    pub creates: Vec<CreatedEvent>,
    /// Whether a rule may reject it, because a competing request may have been accepted.
    pub may_be_refused: bool,
}

/// What a client knows about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The response said that the request succeeded.
    Acknowledged,
    /// No response, or a response that asks to repeat the request.
    Unknown {
        /// Whether there was a response.
        answered: bool,
    },
    /// A rule rejected the request, as it may.
    Refused,
    /// A response that the request does not allow.
    Wrong(String),
}

impl Outcome {
    /// Returns whether the request needs no repetition.
    pub fn is_success(&self, request: &LoadRequest) -> bool {
        *self == Self::Acknowledged || (*self == Self::Refused && request.may_be_refused)
    }
}

/// Returns the current time in milliseconds. Server processes use the system clock.
#[expect(
    clippy::disallowed_methods,
    reason = "server processes use the system clock"
)]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

impl LoadRequest {
    /// Sends the request to a node and judges the response.
    pub async fn send(&self, site: &Site, base: &str) -> Outcome {
        let request = site
            .client
            .post(format!("{base}{}", self.path))
            .header("content-type", "application/json")
            .body(self.body.clone());
        let request = match self.credential {
            Credential::Key => request.bearer_auth(&site.key),
            Credential::Sdk => request.header("x-tributary-key", &site.sdk_key),
            Credential::TestSdk => request.header("x-tributary-key", &site.test_sdk_key),
            Credential::Billing => request.header("authorization", BILLING_SECRET),
        };
        let Ok(response) = request.header("user-agent", PHONE).send().await else {
            return Outcome::Unknown { answered: false };
        };
        let status = response.status().as_u16();
        let has_retry_after = response.headers().contains_key("retry-after");
        let Ok(body) = response.text().await else {
            return Outcome::Unknown { answered: false };
        };
        match status {
            200 | 202 => match rejected_event(&body) {
                Some(fault) => Outcome::Wrong(format!("{}: rejected an event: {fault}", self.path)),
                None => Outcome::Acknowledged,
            },
            503 | 429 if has_retry_after => Outcome::Unknown { answered: true },
            422 if self.may_be_refused => Outcome::Refused,
            _ => Outcome::Wrong(format!("{}: {status}, {body}", self.path)),
        }
    }

    /// Returns the request as a client writes it to a bare socket.
    pub fn to_http(&self, site: &Site) -> String {
        let credential = match self.credential {
            Credential::Key => format!("authorization: Bearer {}", site.key),
            Credential::Sdk => format!("x-tributary-key: {}", site.sdk_key),
            Credential::TestSdk => format!("x-tributary-key: {}", site.test_sdk_key),
            Credential::Billing => format!("authorization: {BILLING_SECRET}"),
        };
        format!(
            "POST {} HTTP/1.1\r\nhost: x\r\nuser-agent: {PHONE}\r\n{credential}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
            self.path,
            self.body.len(),
            self.body
        )
    }

    /// Describes the request by its endpoint.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Returns the first fault of an SDK batch that was accepted in part.
fn rejected_event(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    let rejected = body["data"]["rejected"].as_array()?;
    rejected.first().map(Value::to_string)
}

/// A web event in dollars.
pub struct WebEvent<'a> {
    id: &'a str,
    kind: &'static str,
    micros: i64,
    parent: Option<&'a str>,
    may_be_refused: bool,
}

impl<'a> WebEvent<'a> {
    /// A payment.
    pub fn purchase(id: &'a str, micros: i64) -> Self {
        Self {
            id,
            kind: "purchase",
            micros,
            parent: None,
            may_be_refused: false,
        }
    }

    /// A renewal of a purchase.
    pub fn renewal(id: &'a str, micros: i64, purchase: &'a str) -> Self {
        Self {
            kind: "renewal",
            parent: Some(purchase),
            ..Self::purchase(id, micros)
        }
    }

    /// A refund of a payment. It is refused if other refunds have used up the payment.
    pub fn refund(id: &'a str, micros: i64, payment: &'a str) -> Self {
        Self {
            kind: "refund",
            parent: Some(payment),
            may_be_refused: true,
            ..Self::purchase(id, -micros)
        }
    }

    /// Builds the request, for a click of this network.
    pub fn request(&self, site: &Site, network: usize, at: i64) -> LoadRequest {
        let mut body = json!({
            "eventId": self.id, "arClickId": site.clicks[network], "deviceId": format!("visitor-{}", self.id),
            "timestampMs": at, "eventType": self.kind, "sourceUrl": format!("{SHOP}/paid"),
            "revenue": decimal(self.micros), "currency": "USD",
        });
        if let Some(parent) = self.parent {
            body["originalTransactionId"] = json!(parent);
        }
        LoadRequest {
            credential: Credential::Key,
            path: format!("{}/web-events", site.app),
            body: body.to_string(),
            creates: vec![CreatedEvent {
                key: self.id.to_owned(),
                micros: self.micros,
            }],
            may_be_refused: self.may_be_refused,
        }
    }
}

/// Builds the first call of a device, whose install is attributed to the click if there is one.
pub fn configure(device: &str, click: Option<&str>) -> LoadRequest {
    let mut body =
        json!({"deviceId": device, "platform": "android", "osVersion": "14", "model": "Pixel 8"});
    if let Some(click) = click {
        body["installReferrer"] = json!({"referrer": format!("ar_click_id={click}")});
    }
    LoadRequest {
        credential: Credential::Sdk,
        path: "/api/track/configure".to_owned(),
        body: body.to_string(),
        creates: vec![CreatedEvent {
            key: format!("install {device}"),
            micros: 0,
        }],
        may_be_refused: false,
    }
}

/// Builds a batch of SDK events: progress in the app and a purchase.
pub fn sdk_events(device: &str, micros: i64) -> LoadRequest {
    let (level, purchase) = (format!("{device}-level"), format!("{device}-purchase"));
    let events = json!([
        {"eventId": level, "name": "level_up"},
        {"eventId": purchase, "name": "purchase", "revenue": decimal(micros), "currency": "USD"},
    ]);
    LoadRequest {
        credential: Credential::Sdk,
        path: "/api/track/events".to_owned(),
        body: json!({"deviceId": device, "events": events}).to_string(),
        creates: vec![
            CreatedEvent {
                key: level,
                micros: 0,
            },
            CreatedEvent {
                key: purchase,
                micros,
            },
        ],
        may_be_refused: false,
    }
}

/// Moves an SDK request to the test environment, where it must not reach figures and networks of the
/// live one.
pub fn in_test_environment(request: LoadRequest) -> LoadRequest {
    LoadRequest {
        credential: Credential::TestSdk,
        creates: Vec::new(),
        ..request
    }
}

/// The notifications of a subscriber: the first payment, a renewal and the renewal's refund.
pub fn subscription(site: &Site, device: &str, at: i64) -> [LoadRequest; 3] {
    let notification = |kind: &str, name: &str, transaction: &str, minute: i64, micros: i64| {
        let id = format!("{device}-{name}");
        let price = json!(dollars(micros));
        let event = json!({
            "type": kind, "id": id, "app_user_id": device, "original_app_user_id": device,
            "aliases": [device], "event_timestamp_ms": at + minute, "purchased_at_ms": at + minute,
            "product_id": "pro.weekly", "period_type": "NORMAL", "store": "PLAY_STORE",
            "environment": "PRODUCTION", "currency": "USD", "price": price,
            "price_in_purchased_currency": price, "transaction_id": format!("{device}-{transaction}"),
            "original_transaction_id": format!("{device}-t0"), "country_code": "DE",
            "cancel_reason": if kind == "CANCELLATION" { json!("CUSTOMER_SUPPORT") } else { Value::Null },
            "subscriber_attributes": {"tributaryId": {"value": device, "updated_at_ms": at}},
        });
        LoadRequest {
            credential: Credential::Billing,
            path: format!("/api/webhook/revenuecat/{}", site.id),
            body: json!({"api_version": "1.0", "event": event}).to_string(),
            creates: vec![CreatedEvent { key: id, micros }],
            may_be_refused: false,
        }
    };
    [
        notification("INITIAL_PURCHASE", "first", "t0", 0, 9_990_000),
        notification("RENEWAL", "renewal", "t1", 1, 9_990_000),
        notification("CANCELLATION", "refund", "t1", 2, -9_990_000),
    ]
}

/// Formats an amount as a decimal string.
fn decimal(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    format!("{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Parses an amount as a JSON number, as billing providers send it.
fn dollars(micros: i64) -> Value {
    serde_json::from_str(&decimal(micros)).expect("a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_decimal_strings() {
        assert_eq!(decimal(9_990_000), "9.990000");
        assert_eq!(decimal(-60_000_001), "-60.000001");
    }

    #[test]
    fn only_a_competing_request_may_be_refused() {
        let refund = LoadRequest {
            may_be_refused: true,
            ..sdk_events("d", 1)
        };
        assert!(Outcome::Refused.is_success(&refund));
        assert!(!Outcome::Refused.is_success(&sdk_events("d", 1)));
        assert!(!Outcome::Unknown { answered: true }.is_success(&refund));
    }
}
