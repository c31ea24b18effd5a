//! Published samples: each gives the expected event, is idempotent, and tolerates missing fields.

use crate::billing::{SECRET, Shop, vectors};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tributary_testkit::{Engine, TestServer, on_both_engines};

/// Reads the `RevenueCat` samples by name, and their expected results.
fn samples() -> Option<(BTreeMap<String, Value>, Value)> {
    let folder = vectors()?.join("revenuecat");
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let expected = read("expected.json");
    let names = expected.as_object().unwrap().keys();
    let bodies = names.map(|name| (name.clone(), read(name))).collect();
    Some((bodies, expected))
}

async fn post(shop: &Shop<'_>, body: &Value) -> u16 {
    let headers = [("authorization", SECRET)];
    let answer = shop.post("revenuecat", &headers, &body.to_string()).await;
    answer.status.as_u16()
}

fn number(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

async fn check_sample(server: &TestServer, name: &str, body: &Value, expected: &Value) {
    let shop = Shop::open(server).await;
    assert_eq!(post(&shop, body).await, 200, "{name}");
    assert_eq!(post(&shop, body).await, 200, "{name} again");
    let log = shop.log().await;
    if expected["event"].is_null() {
        assert_eq!(log, Vec::<Value>::new(), "{name}");
        return;
    }
    assert_eq!(log.len(), 1, "{name}: {log:#?}");
    let event = &log[0];
    assert_eq!(event["name"], expected["event"], "{name}");
    assert_eq!(event["eventId"], expected["eventId"], "{name}");
    let revenue = &event["revenue"];
    assert_eq!(
        number(&revenue["amount"]),
        number(&expected["amount"]),
        "{name}"
    );
    assert_eq!(number(&revenue["usd"]), number(&expected["usd"]), "{name}");
    if !expected["amount"].is_null() {
        assert_eq!(revenue["currency"], expected["currency"], "{name}");
    }
    println!("{name}: {} {revenue}", event["name"]);
}

/// Posts each sample once per field, without that field; returns the number of posts.
async fn post_without_each_field(engine: Engine, bodies: &BTreeMap<String, Value>) -> usize {
    let server = TestServer::start(engine).await;
    let shop = Shop::open(&server).await;
    let mut posted = 0;
    for body in bodies.values() {
        let fields: Vec<String> = body["event"].as_object().unwrap().keys().cloned().collect();
        for field in fields {
            let mut reduced = body.clone();
            let event = reduced["event"].as_object_mut().unwrap();
            event.insert("id".to_owned(), json!(format!("n-{posted}")));
            event.remove(&field);
            let expected = if matches!(field.as_str(), "id" | "type") {
                400
            } else {
                200
            };
            assert_eq!(
                post(&shop, &reduced).await,
                expected,
                "without {field}: {reduced}"
            );
            posted += 1;
        }
    }
    posted
}

on_both_engines! {
    async fn every_sample_gives_the_expected_event(engine: Engine) {
        let Some((bodies, expected)) = samples() else { return };
        let server = TestServer::start(engine).await;
        for (name, body) in &bodies {
            check_sample(&server, name, body, &expected[name]).await;
        }
        println!("{} samples with one field removed", post_without_each_field(engine, &bodies).await);
    }
}

#[test]
fn verifies_published_signatures() {
    use tributary_domain::billing::signature::{is_signed, is_standard_signed};
    use tributary_domain::vocabulary::time::Timestamp;
    let Some(folder) = vectors() else { return };
    let read = |name: &str| std::fs::read_to_string(folder.join("webhooks").join(name)).unwrap();
    let all: Value = serde_json::from_str(&read("signatures.json")).unwrap();
    let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let stripe = &all["stripe"];
    let header = text(&stripe["header"]);
    let header = header.split_once(": ").unwrap().1;
    let body = read(stripe["bodyFile"].as_str().unwrap());
    let seconds = stripe["timestamp"].as_i64().unwrap();
    let secret = text(&stripe["secret"]);
    assert!(is_signed(header, body.as_bytes(), &secret, at(seconds)));
    assert!(!is_signed(
        header,
        body.trim_end().as_bytes(),
        &secret,
        at(seconds)
    ));
    let svix = &all["svix"];
    let headers = &svix["headers"];
    let (id, time) = (text(&headers["svix-id"]), text(&headers["svix-timestamp"]));
    let signed = |body: &str| {
        let now = at(time.parse().unwrap());
        let signatures = text(&headers["svix-signature"]);
        is_standard_signed(
            &id,
            &time,
            &signatures,
            body.as_bytes(),
            &text(&svix["secret"]),
            now,
        )
    };
    assert!(signed(&text(&svix["body"])));
    assert!(!signed(&text(&svix["body"]).replace(' ', "")));
    let revenuecat =
        "t=1700000000,v1=158dbe561357d965c8e75ec1e89746c3a30fe89874c49c347609a910747ccc75";
    let body = br#"{"api_version":"1.0","event":{"id":"e1","type":"TEST"}}"#;
    assert!(is_signed(
        revenuecat,
        body,
        "rc_example_secret",
        at(1_700_000_000)
    ));
}
