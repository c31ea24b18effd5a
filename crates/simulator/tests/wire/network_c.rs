//! Tests `network_c`, from section 7 of the reference.

use crate::client::{DAY, EMAIL, SHA256_OF_NOTHING, changed, purchase_c, world, world_with};
use rstest::rstest;
use serde_json::{Value, json};
use tributary_simulator::{SimulatedNetwork, SimulatorConfig};

const C: SimulatedNetwork = SimulatedNetwork::NetworkC;

fn trial(now: i64) -> Value {
    let mut body = purchase_c(now);
    body["data"][0]["event"] = json!("StartTrial");
    body["data"][0]["event_id"] = json!("trial_20261114_000118");
    body["data"][0]["properties"] = json!({"value": 9.99, "currency": "USD"});
    body
}

fn install(now: i64) -> Value {
    let mut body = purchase_c(now);
    body["data"][0]["event"] = json!("Lead");
    body["data"][0]["event_id"] = json!("5bec4d2d1bc505222c41eaf993dabdf6");
    let body = changed(body, "/data/0/user/email", Value::Null);
    changed(body, "/data/0/properties", Value::Null)
}

#[tokio::test]
async fn the_examples_are_counted_once() {
    let world = world().await;
    let now = world.now();
    for _ in 0..2 {
        for body in [purchase_c(now), trial(now), install(now)] {
            let answer = world.to_c(&body).await;
            assert_eq!(
                (answer.status, &answer.body["code"]),
                (200, &json!(0)),
                "{answer:?}"
            );
            assert_eq!(
                (&answer.body["message"], &answer.body["data"]),
                (&json!("OK"), &json!({}))
            );
        }
    }
    assert_eq!(world.counts(C), (3, 3, 0));
}

#[rstest]
#[case("/event_source", json!("website"), "event_source: ")]
#[case("/event_source_id", json!(5), "event_source_id: Not a valid string")]
#[case("/data", json!([]), "data: ")]
#[case("/data/0/event", json!(null), "Batch.0.event: Missing data for required field")]
#[case("/data/0/event_time", json!("1794657600"), "Batch.0.event_time: Not a valid integer")]
#[case("/data/0/event_id", json!(7), "Batch.0.event_id: Not a valid string")]
#[case("/data/0/user", json!(null), "Batch.0.user: Missing")]
#[case("/data/0/user/email", json!("joe@example.com"), "Batch.0.user.email: ")]
#[case("/data/0/user/email", json!(SHA256_OF_NOTHING), "Batch.0.user.email: ")]
#[case("/data/0/user/email", json!([EMAIL, "x"]), "Batch.0.user.email.1: ")]
#[case("/data/0/user/phone", json!(EMAIL.to_uppercase()), "Batch.0.user.phone: ")]
#[case("/data/0/user/ttclid", json!(""), "Batch.0.user.ttclid: ")]
#[case("/data/0/user/ip", json!("localhost"), "Batch.0.user.ip: ")]
#[case("/data/0/user/idfa", json!("aaaaaaaa-3c1e-4b6f-9d7a-2e8b41c0d913"), "Batch.0.user.idfa: ")]
#[case("/data/0/user/att_status", json!("authorized"), "Batch.0.user.att_status: ")]
#[case("/data/0/user/name", json!("Joe"), "Batch.0.user.name: Unknown field")]
#[case("/data/0/user", json!({"ip": "203.0.113.24"}), "Batch.0.user: ")]
#[case("/data/0/page", json!(null), "Batch.0.page: Missing")]
#[case("/data/0/page/url", json!("/thanks"), "Batch.0.page.url: ")]
#[case("/data/0/properties/value", json!("29.99"), "Batch.0.properties.value: Not a valid number")]
#[case("/data/0/properties/currency", json!(null), "Batch.0.properties.currency: Missing")]
#[case("/data/0/properties/currency", json!("usd"), "Batch.0.properties.currency: ")]
#[case("/data/0/properties/contents", json!([{"content_id": 7}]), "Batch.0.properties.contents.0.content_id: Not a valid string")]
#[case("/data/0/limited_data_use", json!(1), "Batch.0.limited_data_use: Not a valid boolean")]
#[case("/data/0/surprise", json!(1), "Batch.0.surprise: Unknown field")]
#[case("/surprise", json!(1), "surprise: Unknown field")]
#[tokio::test]
async fn one_wrong_field_refuses_the_request_with_http_200(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] message: &str,
) {
    let world = world().await;
    let answer = world
        .to_c(&changed(purchase_c(world.now()), pointer, value))
        .await;
    assert_eq!(
        (answer.status, &answer.body["code"]),
        (200, &json!(40002)),
        "{answer:?}"
    );
    let actual = answer.body["message"].as_str().expect("a message");
    assert!(actual.starts_with(message), "{actual}");
    assert_eq!(world.counts(C).0, 0);
}

#[rstest]
#[case(-7 * DAY - 60_000, 40002)]
#[case(-7 * DAY + 60_000, 0)]
#[case(120_000, 40002)]
#[tokio::test]
async fn checks_the_event_time(#[case] shift: i64, #[case] code: u32) {
    let world = world().await;
    let answer = world.to_c(&purchase_c(world.now() + shift)).await;
    assert_eq!(answer.body["code"], code);
}

#[tokio::test]
async fn one_bad_event_refuses_the_batch() {
    let world = world().await;
    let body = purchase_c(world.now());
    let body = changed(body.clone(), "/data/1", body["data"][0].clone());
    let bad = changed(body, "/data/1/event_time", json!(null));
    let answer = world.to_c(&bad).await;
    let expected = "Batch.1.event_time: Missing data for required field";
    assert_eq!(
        (&answer.body["message"], world.counts(C)),
        (&json!(expected), (0, 0, 2))
    );
}

#[tokio::test]
async fn checks_credentials_and_the_trailing_slash() {
    let options = SimulatorConfig {
        open: false,
        ..SimulatorConfig::default()
    };
    let world = world_with(options).await;
    let code = async |pixel: &str, token: Option<&str>| {
        let body = changed(purchase_c(world.now()), "/event_source_id", json!(pixel));
        let mut request = world.post("/open_api/v1.3/event/track/").json(&body);
        if let Some(token) = token {
            request = request.header("access-token", token);
        }
        world.send(request).await.body["code"].clone()
    };
    let account = json!({"network": "network_c", "pixelCode": "P", "accessToken": "T"});
    world
        .running
        .control()
        .register(account)
        .expect("registered");
    assert_eq!(code("P", Some("T")).await, 0);
    assert_eq!(code("P", Some("Bearer T")).await, 40105);
    assert_eq!(code("P", Some("U")).await, 40105);
    assert_eq!(code("P", None).await, 40105);
    assert_eq!(code("Q", Some("T")).await, 40001);
    let request = world
        .post("/open_api/v1.3/event/track")
        .json(&purchase_c(world.now()));
    assert_eq!(world.send(request).await.status, 404);

    let limited = json!({"network": "network_c", "pixelCode": "P", "requestsPerSecond": 0});
    world
        .running
        .control()
        .register(limited)
        .expect("registered");
    assert_eq!(code("P", Some("T")).await, 40100);
}

#[tokio::test]
async fn test_events_are_not_stored_and_a_missing_id_falls_back_to_the_cookie() {
    let world = world().await;
    let body = purchase_c(world.now());
    let test = changed(body.clone(), "/test_event_code", json!("TEST1"));
    assert_eq!(world.to_c(&test).await.body["code"], 0);
    assert_eq!(
        (world.counts(C), &world.totals(C)["test"]),
        ((0, 0, 0), &json!(1))
    );
    let without = changed(body, "/data/0/event_id", Value::Null);
    let with_cookie = changed(without.clone(), "/data/0/user/ttp", json!("cookie"));
    for body in [&with_cookie, &with_cookie, &without, &without] {
        assert_eq!(world.to_c(body).await.body["code"], 0);
    }
    assert_eq!(world.counts(C), (3, 1, 0));
}
