//! The requests of the clients in the form that the server reads, and the meaning of its answers.

use crate::client::api_key;
use crate::model::{Key, Kind, Outcome};
use crate::node::{Answer, Call};
use crate::scenario::{BillingKind, Keys, Request, WebKind};
use crate::template::{BILLING_SECRET, CLICK_PARAMETERS, Instance, PHONE, SHOP};
use crate::world::{START, World};
use axum::http::StatusCode;
use serde_json::{Value, json};

/// Maximum difference between the times of two requests with the same content, in milliseconds.
const MINUTE: i64 = 60_000;
/// Bytes added to the URL of a web event's page, so that the WAL fills up.
const PADDING_BYTES: usize = 300;

/// Returns the event id of a web event.
pub(crate) fn web_event_id(number: u32) -> String {
    format!("web-{number}")
}

/// Returns the device of an erasure.
pub(crate) fn erased_device(number: u32) -> String {
    format!("erased-{number}")
}

fn device_name(device: u64) -> String {
    format!("device-{device}")
}

/// Returns the purchase of an erasure.
pub(crate) fn purchase_to_erase(number: u32) -> Request {
    Request::Web {
        kind: WebKind::Purchase,
        id_of: number,
        parent: None,
        cents: 500,
        network: 0,
        device: u64::MAX,
        keys: Keys::Live,
    }
}

/// Builds a request that records one thing; `None` for other requests.
pub(crate) fn build(
    world: &World,
    instance: &Instance,
    number: u32,
    request: &Request,
) -> Option<(Key, Call)> {
    match request {
        Request::Tap { network } => {
            let parameter = CLICK_PARAMETERS[*network];
            let link = &instance.links[*network];
            let path = format!("/c/{link}?{parameter}=E.C.P.1&campaign_id=tap{number}");
            let key = Key::new(Kind::Click, Keys::Live, format!("tap{number}"));
            Some((key, Call::new("GET", path).header("user-agent", PHONE)))
        }
        Request::Configure { device, tap, keys } => {
            let device = device_name(*device);
            let mut body = json!({
                "deviceId": device, "platform": "android", "osVersion": "14", "model": "Pixel 8",
            });
            let click = tap.and_then(|tap| world.ledger().click_ids.get(&tap).cloned());
            if let Some(click) = click {
                body["installReferrer"] = json!({"referrer": format!("ar_click_id={click}")});
            }
            let key = Key::new(Kind::Install, *keys, device);
            Some((key, track(instance, *keys, "configure", body)))
        }
        Request::Web { .. } => Some(build_web_event(instance, number, request)),
        Request::Billing {
            kind,
            subscription,
            payment,
            cents,
            keys,
        } => {
            let id = format!("notification-{number}");
            let body = billing_event(&id, *kind, (*subscription, *payment), *cents, *keys);
            let path = format!("/api/webhook/revenuecat/{}", instance.app);
            let call = Call::new("POST", path)
                .header("authorization", BILLING_SECRET)
                .json(json!({"api_version": "1.0", "event": body}));
            Some((Key::new(Kind::Notification, *keys, id), call))
        }
        _ => None,
    }
}

fn build_web_event(instance: &Instance, number: u32, request: &Request) -> (Key, Call) {
    let Request::Web {
        kind,
        id_of,
        parent,
        cents,
        network,
        device,
        keys,
    } = request
    else {
        unreachable!("only called for web events");
    };
    let id = web_event_id(*id_of);
    let device = match *device {
        u64::MAX => erased_device(number),
        device => device_name(device),
    };
    let page = format!("{SHOP}/{}", "x".repeat(PADDING_BYTES));
    let mut body = json!({
        "eventId": id, "arClickId": instance.clicks[*network], "deviceId": device,
        "timestampMs": START + MINUTE, "eventType": kind.name(), "sourceUrl": page,
    });
    let amount = format!("{}.{:02}", cents / 100, cents % 100);
    match kind {
        WebKind::SignUp => {}
        WebKind::Refund => body["revenue"] = json!(format!("-{amount}")),
        WebKind::Purchase | WebKind::Renewal => body["revenue"] = json!(amount),
    }
    if *kind != WebKind::SignUp {
        body["currency"] = json!("USD");
    }
    if let Some(parent) = parent {
        body["originalTransactionId"] = json!(web_event_id(*parent));
    }
    let path = format!("{}/web-events", instance.app_path());
    let call = Call::new("POST", path).key(api_key(instance, *keys));
    (Key::new(Kind::WebEvent, *keys, id), call.json(body))
}

fn track(instance: &Instance, keys: Keys, endpoint: &str, body: Value) -> Call {
    let key = match keys {
        Keys::Live => &instance.live_sdk_key,
        Keys::Test => &instance.test_sdk_key,
    };
    let path = format!("/api/track/{endpoint}");
    Call::new("POST", path)
        .header("x-tributary-key", key)
        .json(body)
}

/// Builds an event as RevenueCat sends it.
fn billing_event(
    id: &str,
    kind: BillingKind,
    (subscription, payment): (u64, u64),
    cents: u64,
    keys: Keys,
) -> Value {
    let person = format!("person-{subscription}");
    let at = START + MINUTE * i64::try_from(payment + 1).unwrap_or(1);
    let kind_name = match kind {
        BillingKind::Initial => "INITIAL_PURCHASE",
        BillingKind::Renewal => "RENEWAL",
        BillingKind::Refund => "CANCELLATION",
    };
    let amount = format!("{}.{:02}", cents / 100, cents % 100);
    let price: Value = match kind {
        BillingKind::Refund => serde_json::from_str(&format!("-{amount}")),
        _ => serde_json::from_str(&amount),
    }
    .expect("a number");
    let mut event = json!({
        "type": kind_name, "id": id, "app_user_id": person, "original_app_user_id": person,
        "aliases": [person], "event_timestamp_ms": at, "purchased_at_ms": at,
        "product_id": "pro.weekly", "period_type": "NORMAL", "store": "PLAY_STORE",
        "environment": if keys == Keys::Live { "PRODUCTION" } else { "SANDBOX" },
        "currency": "USD", "price": price, "price_in_purchased_currency": price,
        "transaction_id": format!("subscription-{subscription}-{payment}"),
        "original_transaction_id": format!("subscription-{subscription}"), "country_code": "DE",
        "subscriber_attributes": {
            "tributaryId": {"value": device_name(subscription), "updated_at_ms": START},
        },
    });
    if kind == BillingKind::Refund {
        event["cancel_reason"] = json!("CUSTOMER_SUPPORT");
    }
    event
}

/// Returns what an answer means, and the click id of a tap.
pub(crate) fn outcome(
    request: &Request,
    answer: &Answer,
) -> Result<(Outcome, Option<String>), String> {
    let data = &answer.body["data"];
    let acknowledged = |is_new: bool| Ok((Outcome::Acknowledged { is_new }, None));
    match (request, answer.status) {
        // Without a click id, the click may or may not be recorded.
        (Request::Tap { .. }, StatusCode::FOUND) => {
            let location = answer.location.as_deref().unwrap_or_default();
            let click = location.split_once("ar_click_id%3D");
            let click = click.and_then(|(_, rest)| rest.split('&').next());
            Ok(match click {
                Some(click) => {
                    let outcome = Outcome::Acknowledged { is_new: true };
                    (outcome, Some(click.to_owned()))
                }
                None => (Outcome::Unknown, None),
            })
        }
        (Request::Configure { .. }, StatusCode::OK) => acknowledged(data["firstOpen"] == true),
        (Request::Web { .. }, StatusCode::ACCEPTED) | (Request::Billing { .. }, StatusCode::OK) => {
            acknowledged(data["duplicate"] == false)
        }
        (_, StatusCode::SERVICE_UNAVAILABLE) => Ok((Outcome::Unknown, None)),
        (Request::Web { .. }, StatusCode::CONFLICT) => Ok((Outcome::RefusedForNow, None)),
        // Web events need a live key.
        (Request::Web { keys, .. }, StatusCode::FORBIDDEN)
            if *keys == Keys::Test && answer.code() == "production_only" =>
        {
            Ok((Outcome::Refused, None))
        }
        (Request::Web { .. }, StatusCode::UNPROCESSABLE_ENTITY) => Ok((Outcome::Refused, None)),
        _ => Err(format!("{} {}: {answer:?}", answer.status, answer.code())),
    }
}

/// Builds a batch of SDK events and the keys of its events.
pub(crate) fn build_sdk_events(
    world: &World,
    instance: &Instance,
    number: u32,
    request: &Request,
) -> (Vec<Key>, Call) {
    let Request::SdkEvents {
        device,
        count,
        keys,
    } = request
    else {
        unreachable!("only called for SDK events");
    };
    let at = world.true_now();
    let mut things = Vec::new();
    let mut events = Vec::new();
    for index in 0..*count {
        let id = format!("sdk-{number}-{index}");
        let name = if index % 2 == 0 {
            "sign_up"
        } else {
            "level_up"
        };
        events.push(json!({"eventId": id, "name": name, "timestampMs": at}));
        things.push(Key::new(Kind::SdkEvent, *keys, id));
    }
    let body = json!({"deviceId": device_name(*device), "events": events});
    (things, track(instance, *keys, "events", body))
}

/// Returns the outcomes of a batch of SDK events.
pub(crate) fn sdk_outcomes(answer: &Answer, count: usize) -> Result<Vec<Outcome>, String> {
    match answer.status {
        StatusCode::SERVICE_UNAVAILABLE => Ok(vec![Outcome::Unknown; count]),
        StatusCode::ACCEPTED => {
            let data = answer.body["data"].as_array();
            let outcomes = data.into_iter().flatten();
            let outcomes: Vec<_> = outcomes
                .map(|one| match one["status"].as_str() {
                    Some("accepted") => Outcome::Acknowledged { is_new: true },
                    Some("duplicate") => Outcome::Acknowledged { is_new: false },
                    _ => Outcome::Refused,
                })
                .collect();
            if outcomes.len() == count {
                Ok(outcomes)
            } else {
                Err(format!("{count} events: {answer:?}"))
            }
        }
        _ => Err(format!("SDK events: {answer:?}")),
    }
}
