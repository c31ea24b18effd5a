//! Tests `network_d`, from section 8 of the reference.

use crate::client::{AGENT, DAY, EMAIL, SHA256_OF_NOTHING, changed, purchase_d, world, world_with};
use rstest::rstest;
use serde_json::{Value, json};
use tributary_simulator::{SimulatedNetwork, SimulatorConfig};

const D: SimulatedNetwork = SimulatedNetwork::NetworkD;

fn trial(now: i64) -> Value {
    let mut body = purchase_d(now);
    body["events"][0]["id"] = json!("trial_20261114_000118");
    body["events"][0]["type"] = json!("trial_started");
    body["events"][0]["data"] =
        json!({"type": "plan_enrollment", "amount": 999, "currency": "USD"});
    body
}

fn install(now: i64) -> Value {
    let mut body = purchase_d(now);
    body["events"][0]["id"] = json!("874121413b83175b1957aa90d6688b39");
    body["events"][0]["type"] = json!("app_installed");
    body["events"][0]["action_source"] = json!("mobile_app");
    body["events"][0]["data"] = json!({"type": "customer_action"});
    changed(body, "/events/0/source_url", Value::Null)
}

#[tokio::test]
async fn the_examples_are_counted_and_every_second_success_is_empty() {
    let world = world().await;
    let now = world.now();
    let mut empty = 0;
    for _ in 0..2 {
        for body in [purchase_d(now), trial(now), install(now)] {
            let answer = world.to_d(&body).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            empty += usize::from(answer.text.is_empty());
        }
    }
    assert_eq!((world.counts(D), empty), ((3, 3, 0), 3));
    let kept = world.running.control().conversions(D, Some("P"), None, 10);
    let money: Vec<_> = kept.iter().map(|one| one["money"].clone()).collect();
    assert_eq!(money, [json!(null), json!("9.99 USD"), json!("29.99 USD")]);
}

#[rstest]
#[case("/events/0/id", json!(""), "invalid_event_id")]
#[case("/events/0/id", json!(7), "invalid_event_id")]
#[case("/events/0/type", json!("purchase"), "invalid_event_type")]
#[case("/events/0/timestamp_ms", json!("1794657600123"), "invalid_event_timestamp_ms")]
#[case("/events/0/action_source", json!("website"), "invalid_event_action_source")]
#[case("/events/0/source_url", json!(null), "missing_event_source_url")]
#[case("/events/0/source_url", json!("shop.example.com/x"), "invalid_event_source_url")]
#[case("/events/0/oppref", json!(7), "invalid_event_oppref")]
#[case("/events/0/custom_event_name", json!("x"), "invalid_event_custom_event_name")]
#[case("/events/0/opt_out", json!(1), "invalid_event_opt_out")]
#[case("/events/0/user/emails_sha256", json!(EMAIL), "invalid_event_user_emails_sha256")]
#[case("/events/0/user/emails_sha256/0", json!(SHA256_OF_NOTHING), "invalid_event_user_emails_sha256")]
#[case("/events/0/user/obref", json!(" "), "invalid_event_user_obref")]
#[case("/events/0/user/android_advertising_id", json!("x"), "invalid_event_user_android_advertising_id")]
#[case("/events/0/user/email_sha256", json!(EMAIL), "unknown_parameter")]
#[case("/events/0/data", json!(null), "missing_event_data")]
#[case("/events/0/data/type", json!(null), "missing_event_data_type")]
#[case("/events/0/data/type", json!("customer_action"), "invalid_event_data_type")]
#[case("/events/0/data/amount", json!(29.99), "invalid_event_data_amount")]
#[case("/events/0/data/amount", json!("2999"), "invalid_event_data_amount")]
#[case("/events/0/data/amount", json!(-1), "invalid_event_data_amount")]
#[case("/events/0/data/currency", json!(null), "missing_event_data_currency")]
#[case("/events/0/data/plan_id", json!("p"), "unknown_parameter")]
#[case("/events/0/data/contents", json!([{"quantity": "1"}]), "invalid_event_data_contents_quantity")]
#[case("/events/0/surprise", json!(1), "unknown_parameter")]
#[tokio::test]
async fn one_wrong_field_of_an_event_refuses_the_request(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] code: &str,
) {
    let world = world().await;
    let answer = world
        .to_d(&changed(purchase_d(world.now()), pointer, value))
        .await;
    let error = &answer.body["error"];
    assert_eq!(
        (answer.status, &error["param"]),
        (400, &json!("events[0]")),
        "{answer:?}"
    );
    assert_eq!(error["errors"][0]["code"], code, "{answer:?}");
    assert_eq!(world.counts(D), (0, 0, 1));
}

#[rstest]
#[case("/events", json!(null), "missing_events")]
#[case("/events", json!([]), "invalid_events")]
#[case("/validate_only", json!("true"), "invalid_validate_only")]
#[case("/integration_source", json!("-x"), "invalid_integration_source")]
#[case("/integration_source", json!("two words"), "invalid_integration_source")]
#[case("/surprise", json!(1), "unknown_parameter")]
#[tokio::test]
async fn one_wrong_field_of_the_envelope_refuses_the_request(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] code: &str,
) {
    let world = world().await;
    let answer = world
        .to_d(&changed(purchase_d(world.now()), pointer, value))
        .await;
    assert_eq!(
        (answer.status, &answer.body["error"]["code"]),
        (400, &json!(code)),
        "{answer:?}"
    );
}

#[rstest]
#[case(-7 * DAY - 60_000, Some("event_timestamp_too_old"))]
#[case(-7 * DAY + 60_000, None)]
#[case(9 * 60_000, None)]
#[case(11 * 60_000, Some("event_timestamp_in_future"))]
#[tokio::test]
async fn checks_the_event_time(#[case] shift: i64, #[case] code: Option<&str>) {
    let world = world().await;
    let answer = world.to_d(&purchase_d(world.now() + shift)).await;
    assert_eq!(answer.body["error"]["code"].as_str(), code, "{answer:?}");
    if code.is_some() {
        assert_eq!(answer.body["error"]["param"], "events[0].timestamp_ms");
    }
}

#[tokio::test]
async fn deduplicates_custom_events_by_name() {
    let world = world().await;
    let mut body = purchase_d(world.now());
    body["events"][0]["type"] = json!("custom");
    body["events"][0]["data"] = json!({"type": "custom", "plan_id": "p", "level": 7});
    assert_eq!(world.to_d(&body).await.status, 400, "the name is missing");
    for name in ["level_complete", "Level_Complete", "search"] {
        body["events"][0]["custom_event_name"] = json!(name);
        assert_eq!(world.to_d(&body).await.status, 200);
    }
    assert_eq!(world.counts(D), (2, 1, 1));
    body["events"][0]["custom_event_name"] = json!("order_created");
    assert_eq!(world.to_d(&body).await.status, 400);
}

#[tokio::test]
async fn checks_the_source_of_app_events_and_the_identity() {
    let world = world().await;
    let web = changed(
        install(world.now()),
        "/events/0/action_source",
        json!("other"),
    );
    assert_eq!(world.to_d(&web).await.status, 400);
    let weak = json!({"ip_address": "203.0.113.24", "user_agent": AGENT});
    let body = changed(install(world.now()), "/events/0/user", weak);
    assert_eq!(world.to_d(&body).await.status, 200, "by oppref");
    assert_eq!(
        world
            .to_d(&changed(body, "/events/0/oppref", Value::Null))
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn validating_stores_nothing() {
    let world = world().await;
    let body = changed(purchase_d(world.now()), "/validate_only", json!(true));
    assert_eq!(world.to_d(&body).await.status, 200);
    assert_eq!(
        (world.counts(D), &world.totals(D)["validated"]),
        ((0, 0, 0), &json!(1))
    );
}

#[tokio::test]
async fn credentials_pixel_size_and_rate_are_checked() {
    let options = SimulatorConfig {
        open: false,
        ..SimulatorConfig::default()
    };
    let world = world_with(options).await;
    let account = json!({"network": "network_d", "pixelId": "P", "apiKey": "K"});
    world
        .running
        .control()
        .register(account)
        .expect("registered");
    let body = purchase_d(world.now());
    let send = async |path: &str, key: &str, body: &Value| {
        let request = world.post(path).bearer_auth(key).json(body);
        let answer = world.send(request).await;
        (answer.status, answer.body["error"]["message"].clone())
    };
    assert_eq!(send("/v1/events?pid=P", "K", &body).await.0, 200);
    assert_eq!(send("/v1/events?pid=P", "L", &body).await.0, 401);
    let unknown = send("/v1/events?pid=Q", "K", &body).await;
    assert_eq!(unknown, (403, json!("403: unknown pid")));
    assert_eq!(send("/v1/events", "K", &body).await.0, 400);
    let large = changed(
        body.clone(),
        "/events/0/oppref",
        json!("x".repeat(1024 * 1024)),
    );
    assert_eq!(send("/v1/events?pid=P", "K", &large).await.0, 413);
    let limited = json!({"network": "network_d", "pixelId": "P", "requestsPerSecond": 0});
    world
        .running
        .control()
        .register(limited)
        .expect("registered");
    assert_eq!(send("/v1/events?pid=P", "K", &body).await.0, 429);
}
