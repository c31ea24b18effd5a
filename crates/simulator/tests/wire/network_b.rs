//! Tests `network_b`, from section 6 of the reference.

use crate::client::{
    Answer, DAY, EMAIL, SHA256_OF_NOTHING, World, changed, purchase_b, rfc3339, world, world_with,
};
use rstest::rstest;
use serde_json::{Value, json};
use tributary_simulator::{SimulatedNetwork, SimulatorConfig};

const B: SimulatedNetwork = SimulatedNetwork::NetworkB;

fn trial(now: i64) -> Value {
    json!({
        "destinations": [{"operatingAccount": {"accountType": "GOOGLE_ADS", "accountId": "1234567890"},
            "productDestinationId": "6677889911"}],
        "events": [{
            "transactionId": "trial_20261114_000118", "eventTimestamp": rfc3339(now),
            "eventSource": "WEB", "adIdentifiers": {"wbraid": "Cj4KCQiA-example_wbraid"},
            "conversionValue": 9.99, "currency": "USD",
            "consent": {"adUserData": "CONSENT_GRANTED", "adPersonalization": "CONSENT_DENIED"}
        }],
        "encoding": "HEX", "validateOnly": false
    })
}

fn install(now: i64) -> Value {
    json!({
        "destinations": [{"operatingAccount": {"accountType": "GOOGLE_ADS", "accountId": "1234567890"},
            "productDestinationId": "6677889922"}],
        "events": [{
            "transactionId": "8df69d5c786b456eeab30859463ffed2", "eventTimestamp": rfc3339(now),
            "eventSource": "APP", "adIdentifiers": {"gclid": "EAIaIQobChMI-example_gclid"}
        }],
        "encoding": "HEX", "validateOnly": false
    })
}

fn reasons(answer: &Answer) -> Vec<(String, String)> {
    let details = answer.body["error"]["details"].as_array().expect("details");
    let bad = details.iter().find(|one| one["fieldViolations"].is_array());
    let list = bad.expect("violations")["fieldViolations"]
        .as_array()
        .cloned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pair = |one: &Value| (text(&one["field"]), text(&one["reason"]));
    list.unwrap_or_default().iter().map(pair).collect()
}

async fn status(world: &World, request_id: &str) -> Answer {
    let url = world.url(&format!(
        "/v1/requestStatus:retrieve?requestId={request_id}"
    ));
    let request = world.client.get(url).bearer_auth(world.token().await);
    world.send(request).await
}

#[tokio::test]
async fn the_examples_are_counted_and_restated_by_id() {
    let world = world().await;
    let now = world.now();
    for body in [purchase_b(now), trial(now), install(now)] {
        for _ in 0..2 {
            let answer = world.to_b(&body).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            assert!(answer.body["requestId"].is_string());
        }
    }
    assert_eq!(world.counts(B), (3, 3, 0));
    let restated = changed(purchase_b(now), "/events/0/conversionValue", json!(19.5));
    assert_eq!(world.to_b(&restated).await.status, 200);
    assert_eq!(
        (world.counts(B), &world.totals(B)["restated"]),
        ((3, 3, 0), &json!(1))
    );
    let control = world.running.control();
    let kept = control.conversions(B, None, Some("ord_20261114_000731"), 10);
    assert_eq!(
        (kept.len(), &kept[0]["money"], &kept[0]["times"]),
        (1, &json!("19.5 USD"), &json!(3))
    );
    assert_eq!(kept[0]["eventName"], "6677889900");
}

#[rstest]
#[case("/destinations", json!([]), "REQUIRED_FIELD_MISSING")]
#[case("/destinations/0/operatingAccount", json!(null), "REQUIRED_FIELD_MISSING")]
#[case("/destinations/0/operatingAccount/accountType", json!("ADS"), "INVALID_ENUM_VALUE")]
#[case("/destinations/0/operatingAccount/accountId", json!("123-456-7890"), "INVALID_FORMAT")]
#[case("/destinations/0/operatingAccount/accountId", json!(1_234_567_890), "INVALID_FORMAT")]
#[case("/destinations/0/productDestinationId", json!("customers/1/conversionActions/2"), "INVALID_FORMAT")]
#[case("/destinations/0/productDestinationId", json!(null), "REQUIRED_FIELD_MISSING")]
#[case("/events", json!([]), "REQUIRED_FIELD_MISSING")]
#[case("/events/0/transactionId", json!(null), "REQUIRED_FIELD_MISSING")]
#[case("/events/0/transactionId", json!(7), "INVALID_FORMAT")]
#[case("/events/0/transactionId", json!("joe@example.com"), "INVALID_FORMAT")]
#[case("/events/0/eventTimestamp", json!(1_794_657_600), "INVALID_FORMAT")]
#[case("/events/0/eventTimestamp", json!("2026-11-14T12:00:00+01:00"), "INVALID_FORMAT")]
#[case("/events/0/eventTimestamp", json!("2026-11-14 12:00:00Z"), "INVALID_FORMAT")]
#[case("/events/0/eventSource", json!(null), "REQUIRED_FIELD_MISSING")]
#[case("/events/0/eventSource", json!("web"), "INVALID_ENUM_VALUE")]
#[case("/events/0/adIdentifiers/gbraid", json!("x"), "INVALID_EVENT")]
#[case("/events/0/adIdentifiers", json!({}), "NO_IDENTIFIERS_PROVIDED")]
#[case("/events/0/conversionValue", json!("29.99"), "INVALID_NUMBER_FORMAT")]
#[case("/events/0/conversionValue", json!(-1.5), "INVALID_NUMBER_FORMAT")]
#[case("/events/0/conversionValue", json!(null), "REQUIRED_FIELD_MISSING")]
#[case("/events/0/currency", json!(null), "REQUIRED_FIELD_MISSING")]
#[case("/events/0/currency", json!("usd"), "INVALID_CURRENCY_CODE")]
#[case("/events/0/userData/userIdentifiers/0/emailAddress", json!("joe@example.com"), "INVALID_HEX_ENCODING")]
#[case("/events/0/userData/userIdentifiers/0/emailAddress", json!("abcd"), "INVALID_SHA256_FORMAT")]
#[case("/events/0/userData/userIdentifiers/0/emailAddress", json!(SHA256_OF_NOTHING), "INVALID_SHA256_FORMAT")]
#[case("/events/0/userData/userIdentifiers/0/phoneNumber", json!(EMAIL), "INVALID_EVENT")]
#[case("/events/0/userData/userIdentifiers", json!(vec![json!({"emailAddress": EMAIL}); 11]), "TOO_MANY_USER_IDENTIFIERS")]
#[case("/events/0/consent/adUserData", json!("GRANTED"), "INVALID_ENUM_VALUE")]
#[case("/events/0/eventName", json!("purchase"), "INVALID_FORMAT")]
#[case("/encoding", json!(null), "REQUIRED_FIELD_MISSING")]
#[case("/encoding", json!("hex"), "INVALID_ENUM_VALUE")]
#[case("/validateOnly", json!("false"), "INVALID_FORMAT")]
#[case("/surprise", json!(1), "INVALID_FORMAT")]
#[tokio::test]
async fn one_wrong_field_refuses_the_request(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] reason: &str,
) {
    let world = world().await;
    let answer = world
        .to_b(&changed(purchase_b(world.now()), pointer, value))
        .await;
    assert_eq!(
        (answer.status, &answer.body["error"]["status"]),
        (400, &json!("INVALID_ARGUMENT"))
    );
    assert_eq!(reasons(&answer)[0].1, reason, "{answer:?}");
    assert_eq!(world.counts(B).0, 0);
}

#[tokio::test]
async fn names_the_bad_event_and_accepts_nothing() {
    let world = world().await;
    let good = purchase_b(world.now());
    let event = |number: usize| {
        changed(
            good["events"][0].clone(),
            "/transactionId",
            json!(number.to_string()),
        )
    };
    let events: Vec<_> = (0..5).map(event).collect();
    let body = changed(good.clone(), "/events", json!(events));
    let bad = changed(body, "/events/3/currency", json!("XXX"));
    let answer = world.to_b(&bad).await;
    let expected = (
        "events.events[3].currency".to_owned(),
        "INVALID_CURRENCY_CODE".to_owned(),
    );
    assert_eq!(reasons(&answer), [expected]);
    assert_eq!(world.counts(B), (0, 0, 5));
    let many = vec![event(1); 2_001];
    let answer = world.to_b(&changed(good, "/events", json!(many))).await;
    assert_eq!(reasons(&answer)[0].1, "TOO_MANY_EVENTS");
}

#[rstest]
#[case(-91 * DAY, 400)]
#[case(-89 * DAY, 200)]
#[case(120_000, 400)]
#[tokio::test]
async fn checks_the_event_time(#[case] shift: i64, #[case] status: u16) {
    let world = world().await;
    let answer = world.to_b(&install(world.now() + shift)).await;
    assert_eq!(answer.status, status, "{answer:?}");
    if status == 400 {
        assert_eq!(reasons(&answer)[0].1, "EVENT_TIME_INVALID");
    }
}

#[tokio::test]
async fn validating_stores_nothing() {
    let world = world().await;
    let body = changed(purchase_b(world.now()), "/validateOnly", json!(true));
    let answer = world.to_b(&body).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        (world.counts(B), &world.totals(B)["validated"]),
        ((0, 0, 0), &json!(1))
    );
    let request_id = answer.body["requestId"].as_str().expect("an id");
    assert_eq!(status(&world, request_id).await.status, 404);
}

#[tokio::test]
async fn the_request_status_can_be_queried_and_scripted() {
    let world = world().await;
    let answer = world.to_b(&purchase_b(world.now())).await;
    let request_id = answer.body["requestId"].as_str().expect("an id").to_owned();
    let settled = status(&world, &request_id).await.body;
    let first = &settled["requestStatusPerDestination"][0];
    assert_eq!(first["requestStatus"], "SUCCESS");
    assert_eq!(first["eventsIngestionStatus"]["recordCount"], "1");
    assert!(first.get("errorInfo").is_none());

    let processing = json!({"kind": "request_status", "status": "PROCESSING"});
    world.fault(B, processing, Some(1));
    let reason = "PROCESSING_ERROR_REASON_TOO_RECENT_CLICK";
    let partial = json!({"kind": "request_status", "status": "PARTIAL_SUCCESS", "reason": reason,
        "count": 2});
    world.fault(B, partial, Some(1));
    let first = status(&world, &request_id).await.body;
    assert_eq!(
        first["requestStatusPerDestination"][0]["requestStatus"],
        "PROCESSING"
    );
    let second = status(&world, &request_id).await.body;
    let counts = &second["requestStatusPerDestination"][0]["errorInfo"]["errorCounts"];
    assert_eq!(counts, &json!([{"recordCount": "2", "reason": reason}]));
    assert_eq!(status(&world, "unknown").await.status, 404);
}

#[tokio::test]
async fn events_without_consent_are_discarded_later() {
    let world = world().await;
    let body = changed(
        install(world.now()),
        "/consent",
        json!({"adUserData": "CONSENT_DENIED"}),
    );
    let answer = world.to_b(&body).await;
    assert_eq!((answer.status, world.counts(B)), (200, (0, 0, 1)));
    let request_id = answer.body["requestId"].as_str().expect("an id");
    let outcome = status(&world, request_id).await.body["requestStatusPerDestination"][0].clone();
    assert_eq!(outcome["requestStatus"], "FAILED");
    let counts = &outcome["errorInfo"]["errorCounts"][0]["reason"];
    assert_eq!(counts, "PROCESSING_ERROR_REASON_DENIED_CONSENT");
    let own = json!({"adUserData": "CONSENT_GRANTED"});
    let body = changed(body, "/events/0/consent", own);
    assert_eq!(world.to_b(&body).await.status, 200);
    assert_eq!(
        world.counts(B).0,
        1,
        "the event's own consent takes precedence"
    );
}

#[rstest]
#[case::client(
    "client_id=badC&client_secret=S&refresh_token=R&grant_type=refresh_token",
    401,
    "invalid_client"
)]
#[case::secret(
    "client_id=C&client_secret=badS&refresh_token=R&grant_type=refresh_token",
    401,
    "invalid_client"
)]
#[case::token(
    "client_id=C&client_secret=S&refresh_token=badR&grant_type=refresh_token",
    400,
    "invalid_grant"
)]
#[case::missing(
    "client_id=C&client_secret=S&grant_type=refresh_token",
    400,
    "invalid_request"
)]
#[case::grant("grant_type=password", 400, "unsupported_grant_type")]
#[case::assertion(
    "grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=x",
    400,
    "invalid_grant"
)]
#[tokio::test]
async fn the_token_endpoint_rejects_bad_requests(
    #[case] form: &str,
    #[case] status: u16,
    #[case] error: &str,
) {
    let world = world().await;
    let answer = world.send(world.token_request(form)).await;
    assert_eq!(
        (answer.status, &answer.body["error"]),
        (status, &json!(error)),
        "{answer:?}"
    );
}

#[tokio::test]
async fn tokens_expire_by_time_and_by_fault() {
    let world = world().await;
    let token = world.token().await;
    let send = async || {
        let body = install(world.now());
        let request = world
            .post("/v1/events:ingest")
            .bearer_auth(&token)
            .json(&body);
        world.send(request).await.status
    };
    assert_eq!(send().await, 200);
    world.running.control().set_clock_ahead(3_600_000);
    assert_eq!(send().await, 401);
    world.running.control().set_clock_ahead(0);
    assert_eq!(send().await, 200);
    world.fault(B, json!({"kind": "expire_tokens"}), None);
    assert_eq!(send().await, 401);
    assert_eq!(
        world.to_b(&install(world.now())).await.status,
        200,
        "a new token is valid"
    );
    let foreign = world.post("/v1/events:ingest").bearer_auth("ya29.foreign");
    assert_eq!(
        world.send(foreign.json(&install(world.now()))).await.status,
        401
    );
}

#[tokio::test]
async fn checks_conversion_actions_against_the_account() {
    let options = SimulatorConfig {
        open: false,
        ..SimulatorConfig::default()
    };
    let world = world_with(options).await;
    let account = json!({
        "network": "network_b", "operatingAccountId": "1234567890", "loginAccountId": "9876543210",
        "clientId": "C", "clientSecret": "S", "refreshToken": "R",
        "enhancedConversionsTermsSigned": false,
        "conversionActions": [
            {"id": "6677889900"}, {"id": "6677889911", "onePerClick": true},
            {"id": "6677889922", "acceptsApp": false}, {"id": "6677889933", "createdRecently": true},
        ],
    });
    world
        .running
        .control()
        .register(account)
        .expect("registered");
    let now = world.now();
    let reason = async |body: Value| {
        let answer = world.to_b(&body).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        reasons(&answer)[0].1.clone()
    };
    let purchase = changed(purchase_b(now), "/events/0/userData", Value::Null);
    assert_eq!(world.to_b(&purchase).await.status, 200);
    assert_eq!(
        reason(install(now)).await,
        "EVENT_SOURCE_AND_DESTINATION_MISMATCH"
    );
    let terms = "DESTINATION_ACCOUNT_ENHANCED_CONVERSIONS_TERMS_NOT_SIGNED";
    assert_eq!(reason(purchase_b(now)).await, terms);
    let action = |id: &str| {
        changed(
            purchase.clone(),
            "/destinations/0/productDestinationId",
            json!(id),
        )
    };
    assert_eq!(reason(action("1")).await, "INVALID_CONVERSION_ACTION_ID");
    assert_eq!(
        reason(action("6677889933")).await,
        "CONVERSION_ACTION_TOO_RECENTLY_CREATED"
    );
    let login = changed(
        purchase,
        "/destinations/0/loginAccount/accountId",
        json!("1"),
    );
    assert_eq!(
        reason(login).await,
        "OPERATING_ACCOUNT_LOGIN_ACCOUNT_MISMATCH"
    );
    let other = changed(
        install(now),
        "/destinations/0/operatingAccount/accountId",
        json!("5"),
    );
    assert_eq!(reason(other).await, "DESTINATION_ACCOUNT_NOT_FOUND");

    let answer = world.to_b(&trial(now)).await;
    let request_id = answer.body["requestId"].as_str().expect("accepted");
    let outcome = status(&world, request_id).await.body["requestStatusPerDestination"][0].clone();
    let reason = outcome["errorInfo"]["errorCounts"][0]["reason"].as_str();
    assert!(
        reason.is_some_and(|reason| reason.contains("ONE_PER_CLICK")),
        "{outcome}"
    );
}

#[tokio::test]
async fn too_many_requests_name_their_quota() {
    let world = world().await;
    let account = json!({"network": "network_b", "operatingAccountId": "1234567890",
        "requestsPerSecond": 0});
    world
        .running
        .control()
        .register(account)
        .expect("registered");
    let answer = world.to_b(&purchase_b(world.now())).await;
    assert_eq!(answer.status, 429);
    let quota = &answer.body["error"]["details"][0]["metadata"]["quota_limit"];
    assert_eq!(quota, "IngestionMutateRequestsPerMinutePerProject");
}
