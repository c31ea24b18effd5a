//! Cost reports: strict parameters, credentials, paging, faults and restated days.

use crate::client::{Answer, World, world, world_with};
use rstest::rstest;
use serde_json::{Value, json};
use tributary_simulator::SimulatorConfig;

const RANGE: &str = "%7B%22since%22%3A%222026-11-01%22%2C%22until%22%3A%222026-11-02%22%7D";

fn insights() -> String {
    format!(
        "/v26.0/act_77/insights?level=campaign&time_increment=1&fields=campaign_id,spend,account_currency\
         &time_range={RANGE}&limit=500&access_token=EAAgood"
    )
}

const INTEGRATED: &str = "/open_api/v1.3/report/integrated/get/?advertiser_id=77&service_type=AUCTION\
     &report_type=BASIC&data_level=AUCTION_CAMPAIGN&dimensions=%5B%22campaign_id%22%2C%22stat_time_day%22%5D\
     &metrics=%5B%22spend%22%2C%22currency%22%5D&start_date=2026-11-01&end_date=2026-11-02&page=1&page_size=1000";

const QUERY: &str = "SELECT campaign.id, segments.date, metrics.cost_micros, customer.currency_code \
     FROM campaign WHERE segments.date BETWEEN '2026-11-01' AND '2026-11-02' AND metrics.cost_micros > 0";

fn account(network: &str, micros: i64) -> Value {
    let row = |day: &str, campaign: &str, micros| json!({"day": day, "campaignId": campaign, "campaignName": "Brand", "micros": micros});
    json!({"network": network, "accountId": "77", "currency": "EUR", "pageRows": 2, "rows": [
        row("2026-11-01", "1", micros), row("2026-11-01", "2", 2_500_000),
        row("2026-11-02", "1", 1), row("2026-10-31", "1", 9_000_000),
    ]})
}

async fn open() -> World {
    let world = world().await;
    for network in ["network_a", "network_b", "network_c"] {
        let control = world.running.control();
        control
            .register_report(account(network, 1_000_000))
            .expect("registered");
    }
    world
}

async fn get(world: &World, path: &str) -> Answer {
    let request = world
        .client
        .get(world.url(path))
        .header("access-token", "TTgood");
    Answer::of(request.send().await.expect("an answer")).await
}

async fn search(world: &World, token: &str, body: Value) -> Answer {
    let request = world
        .client
        .post(world.url("/v26/customers/77/googleAds:search"));
    let request = request
        .bearer_auth(token)
        .header("developer-token", "DEV")
        .json(&body);
    Answer::of(request.send().await.expect("an answer")).await
}

async fn token(world: &World) -> String {
    let form = "client_id=5-x&client_secret=s&refresh_token=r&grant_type=refresh_token";
    let request = world.client.post(world.url("/token")).body(form);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = Answer::of(request.send().await.expect("an answer")).await;
    answer.body["access_token"]
        .as_str()
        .expect("a token")
        .to_owned()
}

#[tokio::test]
async fn reports_are_paged_and_restated() {
    let world = open().await;
    let first = get(&world, &insights()).await;
    assert_eq!(
        first.body["data"][0],
        json!({"campaign_id": "1", "spend": "1.00", "account_currency": "EUR",
        "date_start": "2026-11-01", "date_stop": "2026-11-01"})
    );
    assert!(first.body["paging"]["next"].is_string());
    let after = first.body["paging"]["cursors"]["after"]
        .as_str()
        .expect("a cursor");
    let second = get(&world, &format!("{}&after={after}", insights())).await;
    assert_eq!(second.body["data"][0]["spend"], "0.000001");
    assert_eq!(second.body["paging"]["next"], Value::Null);

    let token = token(&world).await;
    let first = search(&world, &token, json!({"query": QUERY})).await;
    assert_eq!(first.body["results"][1]["metrics"]["costMicros"], "2500000");
    let next = &first.body["nextPageToken"];
    let second = search(&world, &token, json!({"query": QUERY, "pageToken": next})).await;
    assert_eq!(second.body["results"].as_array().expect("rows").len(), 1);
    assert_eq!(second.body["nextPageToken"], Value::Null);

    let first = get(&world, INTEGRATED).await;
    assert_eq!(
        first.body["data"]["page_info"],
        json!({"page": 1, "page_size": 2, "total_number": 3, "total_page": 2})
    );
    let second = get(&world, &INTEGRATED.replace("&page=1", "&page=2")).await;
    assert_eq!(
        second.body["data"]["list"][0]["dimensions"]["stat_time_day"],
        "2026-11-02 00:00:00"
    );

    let control = world.running.control();
    control
        .register_report(account("network_a", 3_330_000))
        .expect("registered");
    let restated = get(&world, &insights()).await;
    assert_eq!(restated.body["data"][0]["spend"], "3.33");
}

#[rstest]
#[case::no_version(&insights().replace("/v26.0/act_77", "/26/act_77"), 2_500)]
#[case::retired_version(&insights().replace("v26.0", "v11.0"), 2_635)]
#[case::no_token(&insights().replace("&access_token=EAAgood", ""), 104)]
#[case::bad_token(&insights().replace("EAAgood", "bad1"), 190)]
#[case::no_prefix(&insights().replace("act_77", "77"), 100)]
#[case::unknown_field(&insights().replace("spend,", "spent,"), 100)]
#[case::unknown_parameter(&format!("{}&colour=red", insights()), 100)]
#[case::other_level(&insights().replace("level=campaign", "level=ad"), 100)]
#[case::no_increment(&insights().replace("&time_increment=1", ""), 100)]
#[case::backward_range(&insights().replace("2026-11-01", "2026-11-03"), 100)]
#[case::no_cursor(&format!("{}&after=x", insights()), 100)]
#[tokio::test]
async fn meta_rejects_invalid_requests(#[case] path: &str, #[case] code: u32) {
    let answer = get(&open().await, path).await;
    assert_eq!(
        (answer.status, &answer.body["error"]["code"]),
        (400, &json!(code)),
        "{}",
        answer.text
    );
}

#[rstest]
#[case::level("AUCTION_CAMPAIGN", "AUCTION_AD", 40_002)]
#[case::dimension("campaign_id%22%2C", "ad_id%22%2C", 40_002)]
#[case::metric("spend", "spent", 40_002)]
#[case::long_range("2026-11-01", "2026-10-01", 40_002)]
#[case::page_size("page_size=1000", "page_size=1001", 40_002)]
#[case::page("page=1&", "page=0&", 40_002)]
#[case::unknown("&page=", "&colour=red&page=", 40_002)]
#[case::account("advertiser_id=77", "advertiser_id=x", 40_001)]
#[tokio::test]
async fn tiktok_rejects_invalid_requests(
    #[case] part: &str,
    #[case] other: &str,
    #[case] code: u32,
) {
    let world = open().await;
    let answer = get(&world, &INTEGRATED.replace(part, other)).await;
    assert_eq!(
        (answer.status, &answer.body["code"]),
        (200, &json!(code)),
        "{}",
        answer.text
    );
    let without = world
        .client
        .get(world.url(INTEGRATED))
        .send()
        .await
        .expect("an answer");
    assert_eq!(Answer::of(without).await.body["code"], 40_104);
}

#[rstest]
#[case::page_size(json!({"query": QUERY, "pageSize": 5}), "PAGE_SIZE_NOT_SUPPORTED")]
#[case::unknown_field(json!({"query": QUERY.replace("campaign.id", "campaign.colour")}), "UNRECOGNIZED_FIELD")]
#[case::syntax(json!({"query": QUERY.replace("BETWEEN", "IN")}), "BAD_FIELD_NAME")]
#[case::dates(json!({"query": QUERY.replace("2026-11-01", "2026-13-01")}), "INVALID_VALUE_WITH_BETWEEN_OPERATOR")]
#[case::token(json!({"query": QUERY, "pageToken": "x"}), "INVALID_PAGE_TOKEN")]
#[tokio::test]
async fn google_rejects_invalid_requests(#[case] body: Value, #[case] reason: &str) {
    let world = open().await;
    let token = token(&world).await;
    let answer = search(&world, &token, body).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text.contains(reason), "{}", answer.text);
}

#[tokio::test]
async fn google_checks_token_developer_and_manager() {
    let world = open().await;
    let body = json!({"query": QUERY});
    assert_eq!(
        search(&world, "ya29.invented", body.clone()).await.status,
        401
    );
    let token = token(&world).await;
    let url = world.url("/v26/customers/77/googleAds:search");
    let without = world
        .client
        .post(&url)
        .bearer_auth(&token)
        .json(&body)
        .send()
        .await;
    let without = Answer::of(without.expect("an answer")).await;
    assert!(without.text.contains("DEVELOPER_TOKEN_PARAMETER_MISSING"));
    let old = world
        .client
        .post(url.replace("v26", "v9"))
        .bearer_auth(&token)
        .json(&body)
        .send()
        .await;
    assert!(
        Answer::of(old.expect("an answer"))
            .await
            .text
            .contains("UNSUPPORTED_VERSION")
    );
    let mut managed = account("network_b", 1);
    managed["loginAccountId"] = json!("9");
    world
        .running
        .control()
        .register_report(managed)
        .expect("registered");
    let denied = search(&world, &token, body).await;
    assert_eq!(denied.status, 403);
    assert!(denied.text.contains("USER_PERMISSION_DENIED"));
}

#[tokio::test]
async fn faults_and_unknown_accounts() {
    let world = open().await;
    let fault = json!({"network": "network_a", "endpoint": "reports", "times": 1,
        "fault": {"kind": "status", "status": 400, "body": {"error": {"code": 17, "message": "slow"}}}});
    world
        .running
        .control()
        .inject_fault(fault)
        .expect("injected");
    assert_eq!(get(&world, &insights()).await.body["error"]["code"], 17);
    assert_eq!(get(&world, &insights()).await.status, 200);
    let closed = world_with(SimulatorConfig {
        open: false,
        ..SimulatorConfig::default()
    })
    .await;
    assert_eq!(
        get(&closed, &insights()).await.body["error"]["error_subcode"],
        33
    );
    assert_eq!(get(&closed, INTEGRATED).await.body["code"], 40_001);
}
