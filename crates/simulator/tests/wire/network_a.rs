//! Tests `network_a`, from section 5 of the reference.

use crate::client::{
    AGENT, DAY, DEVICE, EMAIL, SHA256_OF_NOTHING, World, changed, purchase_a, world, world_with,
};
use rstest::rstest;
use serde_json::{Value, json};
use tributary_simulator::{SimulatedNetwork, SimulatorConfig};

const A: SimulatedNetwork = SimulatedNetwork::NetworkA;

fn lead_in_app_mode(now: i64) -> Value {
    json!({
        "data": [{
            "event_name": "Lead", "event_time": now / 1_000,
            "event_id": "b86acd70fb880a9f5599081812f779c5", "action_source": "app",
            "user_data": {
                "external_id": [DEVICE], "anon_id": "5f0c9a52-3c1e-4b6f-9d7a-2e8b41c0d913",
                "client_ip_address": "203.0.113.24", "fbc": "fb.1.1794561330250.IwAR2kZ8q_AbCd-1"
            },
            "app_data": {
                "advertiser_tracking_enabled": 0, "application_tracking_enabled": 1,
                "extinfo": ["i2", "com.example.app", "3.2.0", "3.2.0 (412)", "18.1", "iPhone16,2",
                    "en_US", "EST", "", "1179", "2556", "3", "6", "256", "91", "America/New_York"]
            }
        }],
        "partner_agent": "tributary"
    })
}

fn trial(now: i64) -> Value {
    let mut body = purchase_a(now);
    body["data"][0]["event_name"] = json!("StartTrial");
    body["data"][0]["event_id"] = json!("trial_20261114_000118");
    body["data"][0]["custom_data"] =
        json!({"value": 9.99, "currency": "USD", "predicted_ltv": 9.99});
    body
}

fn install(now: i64) -> Value {
    let mut body = purchase_a(now);
    body["data"][0]["event_name"] = json!("Lead");
    body["data"][0]["event_id"] = json!("b86acd70fb880a9f5599081812f779c5");
    body["data"][0]["event_source_url"] = json!("https://go.example.com/l/k3x9");
    let body = changed(body, "/data/0/user_data/em", Value::Null);
    changed(body, "/data/0/custom_data", Value::Null)
}

#[tokio::test]
async fn the_examples_are_counted_once() {
    let world = world().await;
    let now = world.now();
    let all = [purchase_a(now), trial(now), install(now)];
    for body in &all {
        let answer = world.to_a(body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.body["events_received"], 1);
        assert_eq!(answer.body["messages"], json!([]));
        assert!(answer.body["fbtrace_id"].is_string());
    }
    assert_eq!(world.counts(A), (3, 0, 0));
    for body in &all {
        assert_eq!(world.to_a(body).await.status, 200);
    }
    // The same install id again in app mode, from another source.
    assert_eq!(world.to_a(&lead_in_app_mode(now)).await.status, 200);
    assert_eq!(world.counts(A), (3, 4, 0));
}

#[rstest]
#[case("/data/0/event_name", json!(null))]
#[case("/data/0/event_name", json!(""))]
#[case("/data/0/event_time", json!(null))]
#[case("/data/0/event_time", json!("1794657600"))]
#[case("/data/0/event_time", json!(1_794_657_600.5))]
#[case("/data/0/event_id", json!(7))]
#[case("/data/0/action_source", json!(null))]
#[case("/data/0/action_source", json!("web"))]
#[case("/data/0/event_source_url", json!(null))]
#[case("/data/0/event_source_url", json!("shop.example.com"))]
#[case("/data/0/user_data", json!(null))]
#[case("/data/0/user_data/em", json!(EMAIL))]
#[case("/data/0/user_data/em", json!([]))]
#[case("/data/0/user_data/em/0", json!("joe@example.com"))]
#[case("/data/0/user_data/em/0", json!(EMAIL.to_uppercase()))]
#[case("/data/0/user_data/em/0", json!(SHA256_OF_NOTHING))]
#[case("/data/0/user_data/external_id/0", json!(5))]
#[case("/data/0/user_data/client_ip_address", json!("203.0.113"))]
#[case("/data/0/user_data/client_user_agent", json!(null))]
#[case("/data/0/user_data/fbc", json!("IwAR2kZ8q_AbCd-1"))]
#[case("/data/0/user_data/fbc", json!("fb.1.1794561330.IwAR2kZ8q_AbCd-1"))]
#[case("/data/0/user_data/anon_id", json!("5f0c9a52"))]
#[case("/data/0/user_data/email", json!(EMAIL))]
#[case("/data/0/custom_data", json!(null))]
#[case("/data/0/custom_data/value", json!(null))]
#[case("/data/0/custom_data/value", json!("29.99"))]
#[case("/data/0/custom_data/value", json!(-1))]
#[case("/data/0/custom_data/currency", json!(null))]
#[case("/data/0/custom_data/currency", json!("usd"))]
#[case("/data/0/custom_data/currency", json!("DOLLARS"))]
#[case("/data/0/custom_data/order_id", json!(17))]
#[case("/data/0/custom_data/num_items", json!("2"))]
#[case("/data/0/opt_out", json!("true"))]
#[case("/data/0/data_processing_options", json!(["ldu"]))]
#[case("/data/0/data_processing_options", json!(["LDU"]))]
#[case("/data/0/data_processing_options_state", json!(999))]
#[case("/data/0/surprise", json!(1))]
#[case("/data/0", json!("an event"))]
#[case("/data", json!([]))]
#[case("/data", json!(null))]
#[case("/partner_agent", json!("a-name-that-is-far-too-long"))]
#[case("/partner_agent", json!("t1"))]
#[case("/test_event_code", json!(12345))]
#[case("/access_token", json!("T"))]
#[tokio::test]
async fn one_wrong_field_refuses_the_request(#[case] pointer: &str, #[case] value: Value) {
    let world = world().await;
    let answer = world
        .to_a(&changed(purchase_a(world.now()), pointer, value))
        .await;
    assert_eq!(
        (answer.status, &answer.body["error"]["code"]),
        (400, &json!(100)),
        "{answer:?}"
    );
    assert_eq!(answer.body["error"]["message"], "Invalid parameter");
    assert_eq!(world.counts(A).0, 0);
}

#[rstest]
#[case("/data/0/app_data", json!(null))]
#[case("/data/0/app_data/advertiser_tracking_enabled", json!(null))]
#[case("/data/0/app_data/advertiser_tracking_enabled", json!(true))]
#[case("/data/0/app_data/advertiser_tracking_enabled", json!(2))]
#[case("/data/0/app_data/extinfo", json!(["i2"]))]
#[case("/data/0/app_data/extinfo/0", json!("ios"))]
#[case("/data/0/app_data/extinfo/4", json!(""))]
#[case("/data/0/app_data/extinfo/9", json!(1179))]
#[case("/data/0/app_data/extinfo/16", json!("seventeen"))]
#[tokio::test]
async fn app_mode_requires_app_data(#[case] pointer: &str, #[case] value: Value) {
    let world = world().await;
    let good = lead_in_app_mode(world.now());
    assert_eq!(world.to_a(&good).await.status, 200);
    let answer = world.to_a(&changed(good, pointer, value)).await;
    assert_eq!(answer.body["error"]["code"], 100, "{answer:?}");
}

#[rstest]
#[case::old(-7 * DAY - 60_000, Some(2_804_003))]
#[case::nearly_old(-7 * DAY + 60_000, None)]
#[case::ahead(120_000, Some(0))]
#[case::a_little_ahead(30_000, None)]
#[tokio::test]
async fn checks_the_event_time(#[case] shift: i64, #[case] subcode: Option<u32>) {
    let world = world().await;
    let answer = world.to_a(&purchase_a(world.now() + shift)).await;
    match subcode {
        None => assert_eq!(answer.status, 200, "{answer:?}"),
        Some(subcode) => {
            assert_eq!(answer.body["error"]["code"], 100);
            let actual = answer.body["error"]["error_subcode"]
                .as_u64()
                .unwrap_or_default();
            assert_eq!(actual, u64::from(subcode));
        }
    }
}

#[rstest]
#[case(json!({"client_user_agent": AGENT}))]
#[case(json!({"client_user_agent": AGENT, "ct": EMAIL, "country": EMAIL}))]
#[case(json!({"client_user_agent": AGENT, "db": EMAIL}))]
#[tokio::test]
async fn weak_combinations_are_refused(#[case] person: Value) {
    let world = world().await;
    let body = changed(purchase_a(world.now()), "/data/0/user_data", person);
    let answer = world.to_a(&body).await;
    assert_eq!(
        answer.body["error"]["error_subcode"], 2_804_050,
        "{answer:?}"
    );
    let body = changed(
        body,
        "/data/0/user_data/client_ip_address",
        json!("203.0.113.24"),
    );
    assert_eq!(world.to_a(&body).await.status, 200);
}

#[tokio::test]
async fn one_bad_event_refuses_the_batch() {
    let world = world().await;
    let good = purchase_a(world.now());
    let events: Vec<_> = (0..7)
        .map(|number| {
            changed(
                good["data"][0].clone(),
                "/event_id",
                json!(format!("e{number}")),
            )
        })
        .collect();
    let body = changed(good, "/data", json!(events));
    let bad = changed(body.clone(), "/data/3/custom_data/currency", json!("XXX"));
    let answer = world.to_a(&bad).await;
    assert_eq!(
        answer.body["error"]["error_data"]["blame_field_specs"],
        json!([["data", "custom_data", "currency"]])
    );
    assert_eq!(world.counts(A), (0, 0, 7));
    assert_eq!(world.to_a(&body).await.body["events_received"], 7);
    assert_eq!(world.counts(A), (7, 0, 7));
}

#[rstest]
#[case::too_many(1_001, 400)]
#[case::most(1_000, 200)]
#[tokio::test]
async fn limits_a_batch_to_a_thousand_events(#[case] count: usize, #[case] status: u16) {
    let world = world().await;
    let body = purchase_a(world.now());
    let events = vec![body["data"][0].clone(); count];
    let answer = world.to_a(&changed(body, "/data", json!(events))).await;
    assert_eq!(answer.status, status);
}

#[tokio::test]
async fn limited_data_use_can_be_left_to_the_network() {
    let world = world().await;
    let mut body = purchase_a(world.now());
    body["data"][0]["data_processing_options"] = json!(["LDU"]);
    body["data"][0]["data_processing_options_country"] = json!(0);
    assert_eq!(world.to_a(&body).await.status, 200);
    body["data"][0]["data_processing_options_country"] = json!(1);
    assert_eq!(world.to_a(&body).await.status, 400, "the state is missing");
    body["data"][0]["data_processing_options_state"] = json!(1000);
    assert_eq!(world.to_a(&body).await.status, 200);
    body["data"][0]["data_processing_options"] = json!([]);
    assert_eq!(world.to_a(&body).await.status, 200);
}

async fn code(world: &World, path: &str, bearer: Option<&str>) -> (u16, Value, Value) {
    let mut request = world.post(path).json(&purchase_a(world.now()));
    if let Some(bearer) = bearer {
        request = request.bearer_auth(bearer);
    }
    let answer = world.send(request).await;
    let error = &answer.body["error"];
    (
        answer.status,
        error["code"].clone(),
        error["error_subcode"].clone(),
    )
}

#[tokio::test]
async fn credentials_are_checked_before_events() {
    let options = SimulatorConfig {
        open: false,
        ..SimulatorConfig::default()
    };
    let world = world_with(options).await;
    let account = json!({"network": "network_a", "pixelId": "1", "accessToken": "TOKEN",
        "appSecret": "SECRET"});
    world
        .running
        .control()
        .register(account)
        .expect("registered");
    let proof = "9bcde7f1d5e226d86e4692a62e5ec88f99306fb302d74b2dc3bff8a03770b63d";
    let good = format!("/v26.0/1/events?access_token=TOKEN&appsecret_proof={proof}");
    assert_eq!(code(&world, &good, None).await.0, 200);
    let by_bearer = format!("/v26.0/1/events?appsecret_proof={proof}");
    assert_eq!(code(&world, &by_bearer, Some("TOKEN")).await.0, 200);

    for (path, expected) in [
        (
            "/v26.0/1/events?access_token=OTHER",
            (json!(190), json!(463)),
        ),
        ("/v26.0/1/events", (json!(104), json!(null))),
        (
            "/v26.0/1/events?access_token=TOKEN",
            (json!(100), json!(null)),
        ),
        (
            "/v26.0/2/events?access_token=TOKEN",
            (json!(100), json!(33)),
        ),
        ("/1/events?access_token=TOKEN", (json!(2500), json!(null))),
        (
            "/26/1/events?access_token=TOKEN",
            (json!(2500), json!(null)),
        ),
    ] {
        let (status, code, subcode) = code(&world, path, None).await;
        assert_eq!((status, (code, subcode)), (400, expected), "{path}");
    }
}

#[tokio::test]
async fn in_open_mode_only_a_bad_token_is_refused() {
    let world = world().await;
    let bad = code(&world, "/v26.0/77/events?access_token=badT", None).await;
    assert_eq!(bad, (400, json!(190), json!(463)));
    assert_eq!(
        code(&world, "/v26.0/77/events?access_token=T", None)
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn accepts_the_forms_of_the_official_client() {
    let world = world().await;
    let mut event = purchase_a(world.now())["data"][0].clone();
    event["custom_data"]["currency"] = json!("usd");
    event["user_data"]["external_id"] = json!(["not-hashed"]);
    let data = json!([event.to_string()]).to_string();
    let form: String = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("data", &data)
        .append_pair("access_token", "T")
        .append_pair("partner_agent", "tributary")
        .finish();
    let request = world
        .post("/v26.0/5/events")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form);
    let answer = world.send(request).await;
    assert_eq!(answer.body["events_received"], 1, "{answer:?}");

    let multipart = format!(
        "--xyz\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{}\r\n--xyz--\r\n",
        json!([event])
    );
    let request = world
        .post("/v26.0/5/events?access_token=T")
        .header("content-type", "multipart/form-data; boundary=xyz")
        .body(multipart);
    assert_eq!(world.send(request).await.status, 200);
    assert_eq!(world.counts(A), (1, 1, 0));
    let kept = world.running.control().requests(A, 2);
    assert_eq!(kept[1]["body"]["access_token"], "***");
    assert_eq!(
        (&kept[1]["events"], &kept[0]["events"]),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn test_events_still_count_and_the_window_ends() {
    let world = world().await;
    let mut body = purchase_a(world.now());
    body["test_event_code"] = json!("TEST12345");
    assert_eq!(world.to_a(&body).await.status, 200);
    assert_eq!(
        (world.counts(A), &world.totals(A)["test"]),
        ((1, 0, 0), &json!(1))
    );
    world.running.control().set_clock_ahead(2 * DAY - 60_000);
    assert_eq!(world.to_a(&body).await.status, 200);
    assert_eq!(world.counts(A), (1, 1, 0));
    world.running.control().set_clock_ahead(2 * DAY + 60_000);
    assert_eq!(world.to_a(&body).await.status, 200);
    assert_eq!(world.counts(A), (2, 1, 0), "counted again");
}

#[tokio::test]
async fn reports_usage_and_throttles() {
    let world = world().await;
    let account = json!({"network": "network_a", "pixelId": "1029384756", "requestsPerSecond": 0});
    let request = world.request_a(&purchase_a(world.now()));
    let response = request.send().await.expect("a response");
    let usage = response.headers()["x-app-usage"].to_str().expect("text");
    assert!(usage.contains("\"call_count\":0"), "{usage}");

    world
        .running
        .control()
        .register(account)
        .expect("registered");
    let request = world.request_a(&purchase_a(world.now()));
    let response = request.send().await.expect("a response");
    let usage = response.headers()["x-business-use-case-usage"]
        .to_str()
        .expect("text");
    assert!(
        usage.contains("\"estimated_time_to_regain_access\":1"),
        "{usage}"
    );
    let body: Value = response.json().await.expect("JSON");
    assert_eq!(
        (&body["error"]["code"], &body["error"]["is_transient"]),
        (&json!(80004), &json!(true))
    );
}
