//! Requests for each endpoint, spread over many apps and devices, with ids in no order.

use crate::load::Requests;
use crate::postbacks::mix::PreparedRequests;
use crate::recent_clicks::{CLICK_NETWORK, RecentClicks};
use crate::site::{BenchSite, WEBHOOK_SECRET};
use crate::template::{
    ADDRESS_PLACEHOLDER, CLICK_PLACEHOLDER, DEVICE_PLACEHOLDER, ID_PLACEHOLDER, IdOrder,
    RequestValues, TIME_PLACEHOLDER, Template, numbered_id_placeholder, scattered,
};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Events in a batch of the SDK.
const BATCH_EVENTS: u64 = 20;
/// First number of the addresses of devices without a click.
const OTHER_NETWORK: u8 = 152;
/// A renewal follows this many purchases after its own purchase, so that both are never in flight
/// at the same time.
const RENEWED_AFTER: u64 = 500;
/// Number of the first subscription whose purchase was not sent.
const EARLIER_SUBSCRIPTIONS: u64 = 1 << 32;
/// One in this many first opens of an app comes with each kind of evidence; the others are organic.
const EVIDENCE_EVERY: u64 = 8;

const OK: u16 = 200;
const FOUND: u16 = 302;
const ACCEPTED: u16 = 202;

/// User agent of a phone that names its model.
const PHONE: &str = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) \
                     Chrome/126.0.0.0 Mobile Safari/537.36";

/// A measured endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MeasuredEndpoint {
    /// `POST /api/v1/apps/{appId}/web-events`, a purchase.
    WebEvents,
    /// `GET /c/{link}`, a tap of an Android phone.
    Clicks,
    /// `POST /api/track/configure`, first opens: one in eight with a click id, one with a Play
    /// referrer, one with the address of a click, the others organic.
    Configure,
    /// `POST /api/track/events`, 20 events of one configured device.
    SdkEvents,
    /// `POST /api/webhook/revenuecat/{appId}`, a purchase and a renewal in turn.
    Billing,
    /// Apple's postbacks: genuine, forged and replayed.
    Postbacks,
}

/// Describes the traffic of one endpoint to the load generator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EndpointTraffic {
    pub(crate) endpoint: MeasuredEndpoint,
    pub(crate) sites: Vec<BenchSite>,
    pub(crate) clicks: RecentClicks,
    /// Number of configured devices.
    pub(crate) devices: u64,
}

/// Requests of an [`EndpointTraffic`].
#[derive(Debug)]
pub(crate) struct EndpointRequests {
    traffic: EndpointTraffic,
    /// Templates of each app.
    templates: Vec<Vec<Template>>,
    /// Signed ids of the recent clicks.
    tokens: Vec<String>,
    postbacks: PreparedRequests,
    server: SocketAddr,
}

/// Evidence for an install, which is also the index of the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    Organic,
    ClickId,
    Referrer,
    Address,
}

/// Which template a request uses, and the numbers that fill it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice {
    app: usize,
    template: usize,
    number: u64,
    device: u64,
    address: u64,
    click: Option<usize>,
}

impl EndpointRequests {
    pub(crate) fn new(traffic: EndpointTraffic, server: SocketAddr) -> anyhow::Result<Self> {
        let host = server.to_string();
        let of_site = |site: &BenchSite| templates(traffic.endpoint, site, &host);
        let needs_clicks = traffic.endpoint == MeasuredEndpoint::Configure;
        Ok(Self {
            templates: traffic.sites.iter().map(of_site).collect(),
            tokens: if needs_clicks {
                traffic.clicks.tokens(&traffic.sites)?
            } else {
                Vec::new()
            },
            postbacks: PreparedRequests::blocks(server, 0, 0),
            traffic,
            server,
        })
    }

    fn choose(&self, number: u64) -> Choice {
        let apps = (self.templates.len() as u64).max(1);
        let index = |number: u64| usize::try_from(number).unwrap_or_default();
        let (app, turn) = (number % apps, number / apps);
        let choice = Choice {
            app: index(app),
            template: 0,
            number,
            device: number,
            address: scattered(number),
            click: None,
        };
        match self.traffic.endpoint {
            MeasuredEndpoint::WebEvents
            | MeasuredEndpoint::Clicks
            | MeasuredEndpoint::Postbacks => choice,
            MeasuredEndpoint::SdkEvents => {
                let device = scattered(number) % self.traffic.devices.max(1);
                Choice {
                    app: index(device % apps),
                    device,
                    ..choice
                }
            }
            MeasuredEndpoint::Billing => {
                let (pair, is_renewal) = (turn / 2, turn % 2 == 1);
                let delay = (RENEWED_AFTER / apps).max(1);
                let subscription = match pair.checked_sub(delay) {
                    Some(purchased) if is_renewal => purchased,
                    None if is_renewal => pair + EARLIER_SUBSCRIPTIONS,
                    _ => pair,
                };
                Choice {
                    template: usize::from(is_renewal),
                    number: subscription * apps + app,
                    ..choice
                }
            }
            MeasuredEndpoint::Configure => {
                let (evidence, order) = evidence(turn);
                let clicks_of_app = self.traffic.clicks.count / apps;
                let click = order.checked_rem(clicks_of_app);
                let click = click
                    .filter(|_| evidence != Evidence::Organic)
                    .map(|turn| turn * apps + app);
                Choice {
                    template: click.map_or(Evidence::Organic, |_| evidence) as usize,
                    address: click.map_or(choice.address, RecentClicks::address),
                    click: click.map(index),
                    ..choice
                }
            }
        }
    }
}

/// Returns the evidence of an app's first open, and how many first opens with evidence precede it.
fn evidence(turn: u64) -> (Evidence, u64) {
    let all = [Evidence::ClickId, Evidence::Referrer, Evidence::Address];
    let (block, place) = (turn / EVIDENCE_EVERY, turn % EVIDENCE_EVERY);
    let found = usize::try_from(place).ok().and_then(|at| all.get(at));
    let evidence = found.copied().unwrap_or(Evidence::Organic);
    (evidence, block * all.len() as u64 + place)
}

impl Requests for EndpointRequests {
    fn request_bytes(&mut self, number: u64, millis: i64) -> &[u8] {
        if self.traffic.endpoint == MeasuredEndpoint::Postbacks {
            return self.postbacks.request_bytes(number, millis);
        }
        let choice = self.choose(number);
        let click = choice.click.and_then(|click| self.tokens.get(click));
        self.templates[choice.app][choice.template].fill(&RequestValues {
            number: choice.number,
            device: choice.device,
            address: choice.address,
            click: click.map_or(CLICK_PLACEHOLDER, String::as_str),
            millis,
        })
    }

    fn expected_status(&self, number: u64) -> u16 {
        match self.traffic.endpoint {
            MeasuredEndpoint::Postbacks => self.postbacks.expected_status(number),
            MeasuredEndpoint::Clicks => FOUND,
            MeasuredEndpoint::WebEvents | MeasuredEndpoint::SdkEvents => ACCEPTED,
            MeasuredEndpoint::Configure | MeasuredEndpoint::Billing => OK,
        }
    }

    fn prepare(&mut self, first: u64, count: u64) {
        if self.traffic.endpoint == MeasuredEndpoint::Postbacks {
            self.postbacks = PreparedRequests::covering(self.server, first, count);
        }
    }
}

/// Returns the templates of an app.
fn templates(endpoint: MeasuredEndpoint, site: &BenchSite, host: &str) -> Vec<Template> {
    let ids = IdOrder::Scattered;
    let post = |path: &str, headers: &str, body: &Value| {
        Template::post_with(host, path, headers, &body.to_string(), ids)
    };
    match endpoint {
        MeasuredEndpoint::Postbacks => Vec::new(),
        MeasuredEndpoint::WebEvents => vec![site.purchase(host, ids)],
        MeasuredEndpoint::Clicks => {
            let path = format!(
                "/c/{}?ttclid={ID_PLACEHOLDER}&campaign_id=238&campaign_name=Spring",
                site.install_link
            );
            let headers = format!(
                "User-Agent: {PHONE}\r\nAccept-Language: en-US,en;q=0.9\r\n\
                 X-Forwarded-For: {OTHER_NETWORK}{ADDRESS_PLACEHOLDER}\r\n"
            );
            vec![Template::get(host, &path, &headers, ids)]
        }
        MeasuredEndpoint::Configure => {
            let configure = |network: u8, evidence: Value| {
                let headers = sdk_headers(site, network);
                post("/api/track/configure", &headers, &first_open(evidence))
            };
            let referrer = format!("ar_click_id={CLICK_PLACEHOLDER}");
            // In the order of `Evidence`.
            vec![
                configure(OTHER_NETWORK, json!({})),
                configure(OTHER_NETWORK, json!({"arClickId": CLICK_PLACEHOLDER})),
                configure(
                    OTHER_NETWORK,
                    json!({"installReferrer": {"referrer": referrer}}),
                ),
                configure(CLICK_NETWORK, json!({})),
            ]
        }
        MeasuredEndpoint::SdkEvents => {
            let headers = sdk_headers(site, OTHER_NETWORK);
            vec![post("/api/track/events", &headers, &sdk_batch())]
        }
        MeasuredEndpoint::Billing => {
            let path = format!("/api/webhook/revenuecat/{}", site.app);
            let headers = format!("Authorization: Bearer {WEBHOOK_SECRET}\r\n");
            let notify = |body: Value| post(&path, &headers, &body);
            vec![
                notify(notification("INITIAL_PURCHASE", "purchase", "t")),
                notify(notification("RENEWAL", "renewal", "r")),
            ]
        }
    }
}

fn sdk_headers(site: &BenchSite, network: u8) -> String {
    let key = &site.sdk_key;
    format!("X-Tributary-Key: {key}\r\nX-Forwarded-For: {network}{ADDRESS_PLACEHOLDER}\r\n")
}

/// Returns the body of a first open with this evidence.
fn first_open(evidence: Value) -> Value {
    let mut body = json!({
        "deviceId": format!("phone-{DEVICE_PLACEHOLDER}"), "platform": "android", "osVersion": "14",
        "model": "Pixel 8", "manufacturer": "Google", "appVersion": "3.1.0", "locale": "en_US",
        "timezone": "America/New_York", "screen": {"width": 412, "height": 915}, "sdkVersion": "1.0.0",
    });
    if let (Value::Object(body), Value::Object(evidence)) = (&mut body, evidence) {
        body.extend(evidence);
    }
    body
}

/// Returns a batch of events of one device. One event has revenue.
fn sdk_batch() -> Value {
    let event = |index: u64| {
        let mut event = json!({
            "eventId": numbered_id_placeholder(index), "name": format!("quest_{}", index % 7),
            "timestampMs": TIME_PLACEHOLDER, "params": {"level": index, "mode": "hard"},
        });
        if index == BATCH_EVENTS {
            event["name"] = json!("purchase");
            event["revenue"] = json!(9.99);
            event["currency"] = json!("EUR");
        }
        event
    };
    let events: Vec<Value> = (1..=BATCH_EVENTS).map(event).collect();
    json!({"deviceId": format!("phone-{DEVICE_PLACEHOLDER}"), "events": events})
}

fn notification(kind: &str, id: &str, transaction: &str) -> Value {
    json!({"api_version": "1.0", "event": {
        "id": format!("{id}-{ID_PLACEHOLDER}"), "type": kind, "app_user_id": format!("person-{ID_PLACEHOLDER}"),
        "original_app_user_id": format!("$RCAnonymousID:{ID_PLACEHOLDER}"), "aliases": [format!("person-{ID_PLACEHOLDER}")],
        "event_timestamp_ms": TIME_PLACEHOLDER, "purchased_at_ms": TIME_PLACEHOLDER, "period_type": "NORMAL", "store": "APP_STORE",
        "environment": "PRODUCTION", "product_id": "pro.monthly", "price": 9.99, "currency": "EUR",
        "price_in_purchased_currency": 8.99, "tax_percentage": 0.19, "commission_percentage": 0.15,
        "transaction_id": format!("{transaction}-{ID_PLACEHOLDER}"), "original_transaction_id": format!("t-{ID_PLACEHOLDER}"),
        "country_code": "DE", "subscriber_attributes": {"tributaryId": {"value": format!("phone-{ID_PLACEHOLDER}")}},
    }})
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const APPS: usize = 3;

    fn requests(endpoint: MeasuredEndpoint) -> EndpointRequests {
        let site = |number: u8| BenchSite {
            key: "k".to_owned(),
            app: tributary_domain::vocabulary::id::AppId::from_bytes([number; 16]).to_string(),
            link: "lnk_1".to_owned(),
            click: "clk_1".to_owned(),
            install_link: "lnk_2".to_owned(),
            sdk_key: format!("pk_live_{number}"),
        };
        let traffic = EndpointTraffic {
            endpoint,
            sites: (1..).take(APPS).map(site).collect(),
            clicks: RecentClicks {
                count: 30,
                until: 1_760_000_000_000,
            },
            devices: 7,
        };
        let server = "127.0.0.1:1".parse().expect("valid address");
        EndpointRequests::new(traffic, server).expect("valid sites")
    }

    #[test]
    fn a_first_open_sends_a_click_of_its_own_app_once() {
        let requests = requests(MeasuredEndpoint::Configure);
        let clicks_of_app = 10;
        let (mut seen, mut organic) = (HashSet::new(), 0);
        // Until each app has used all its clicks.
        for number in 0.. {
            let choice = requests.choose(number);
            let Some(click) = choice.click else {
                organic += 1;
                assert_eq!(choice.template, Evidence::Organic as usize);
                continue;
            };
            if !seen.insert(click) {
                break;
            }
            assert_eq!(click % APPS, choice.app);
        }
        assert_eq!(seen.len(), clicks_of_app * APPS);
        assert!(organic > seen.len(), "{organic}");
    }

    #[test]
    fn events_come_from_a_device_of_the_app() {
        let (events, configure) = (
            requests(MeasuredEndpoint::SdkEvents),
            requests(MeasuredEndpoint::Configure),
        );
        let mut devices = HashSet::new();
        for number in 0..100 {
            let choice = events.choose(number);
            let configured = configure.choose(choice.device);
            assert_eq!(choice.app, configured.app);
            assert_eq!(choice.device, configured.device);
            devices.insert(choice.device);
        }
        assert_eq!(devices.len(), 7);
    }

    #[test]
    fn a_renewal_follows_its_purchase_once() {
        let requests = requests(MeasuredEndpoint::Billing);
        let (mut bought, mut renewed) = (HashSet::new(), HashSet::new());
        for number in 0..10 * RENEWED_AFTER {
            let choice = requests.choose(number);
            if choice.template == 0 {
                assert!(bought.insert(choice.number));
            } else {
                assert!(renewed.insert(choice.number));
                let is_earlier = choice.number >= EARLIER_SUBSCRIPTIONS;
                assert!(is_earlier || bought.contains(&choice.number));
            }
        }
        assert!(bought.intersection(&renewed).count() as u64 > RENEWED_AFTER);
    }

    #[test]
    fn each_batch_has_twenty_different_ids() {
        let mut requests = requests(MeasuredEndpoint::SdkEvents);
        let mut ids = HashSet::new();
        for number in 0..5 {
            let bytes = requests.request_bytes(number, 1_760_000_000_000).to_vec();
            let text = String::from_utf8(bytes).expect("text");
            let (_, body) = text.split_once("\r\n\r\n").expect("a body");
            let body: Value = serde_json::from_str(body).expect("JSON");
            for event in body["events"].as_array().expect("a list") {
                assert!(ids.insert(event["eventId"].to_string()), "{event}");
            }
        }
        assert_eq!(ids.len() as u64, 5 * BATCH_EVENTS);
    }
}
