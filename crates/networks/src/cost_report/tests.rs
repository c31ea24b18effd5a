//! Requests for cost reports, and their responses.

use super::*;
use crate::samples::{response, with_header};
use rstest::rstest;
use tributary_domain::vocabulary::id::AppId;

const NOW: Timestamp = Timestamp::from_millis(1_794_657_600_000);

fn account(
    network: Network,
    settings: &[(&str, &str)],
    secrets: &[(&str, &str)],
) -> CostReportAccount {
    let mut source = CostSource::new(AppId::from_bytes([1; 16]), network);
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    };
    source.settings = pairs(settings).into_iter().collect();
    let secrets = pairs(secrets).into_iter();
    let secrets = secrets
        .map(|(name, text)| (name, Secret::new(text)))
        .collect();
    CostReportAccount::open(&source, &secrets).unwrap()
}

fn meta() -> CostReportAccount {
    let secrets = [("accessToken", "EAAtoken&1"), ("appSecret", "hushhush")];
    account(Network::A, &[("accountId", "77")], &secrets)
}

fn google() -> CostReportAccount {
    let settings = [
        ("accountId", "123"),
        ("loginAccountId", "9"),
        ("clientId", "5-x"),
    ];
    let secrets = [
        ("developerToken", "DEVELOPER"),
        ("clientSecret", "CLIENTSECRET"),
        ("refreshToken", "REFRESH"),
    ];
    account(Network::B, &settings, &secrets)
}

fn tiktok() -> CostReportAccount {
    account(
        Network::C,
        &[("accountId", "55")],
        &[("accessToken", "TTTOKEN")],
    )
}

fn span() -> DaySpan {
    DaySpan {
        from: Day::parse("2026-11-01").unwrap(),
        to: Day::parse("2026-11-14").unwrap(),
    }
}

fn read(account: &CostReportAccount, status: u16, body: &str) -> ReportRuling {
    let outcome = SendOutcome::Response(response(status, body));
    account.read(span(), &outcome, NOW)
}

/// Describes a ruling in one line.
fn told(ruling: &ReportRuling) -> String {
    match ruling {
        ReportRuling::Page { rows, next } => {
            let row = |row: &ReportedCost| {
                let currency = row.currency.as_str();
                format!("{} {} {} {currency}", row.day, row.campaign, row.amount)
            };
            let rows: Vec<String> = rows.iter().map(row).collect();
            format!(
                "{} next {}",
                rows.join(", "),
                next.as_deref().unwrap_or("-")
            )
        }
        ReportRuling::Retry { code, .. } => format!("retry {code}"),
        ReportRuling::Refused { code, .. } => format!("refused {code}"),
        ReportRuling::TokenRefused { code, .. } => format!("token {code}"),
    }
}

#[test]
fn requests_ask_for_spend_by_campaign_and_day() {
    let request = meta().request(span(), Some("c1"), None);
    assert_eq!(request.path(), "/v26.0/act_77/insights");
    let query = &request.path_and_query;
    for part in [
        "level=campaign",
        "time_increment=1",
        "time_range=%7B%22since%22%3A%222026-11-01%22%2C%22until%22%3A%222026-11-14%22%7D",
        "access_token=EAAtoken%261",
        "appsecret_proof=",
        "after=c1",
    ] {
        assert!(query.contains(part), "{part}");
    }
    let token = Secret::new("ya29");
    let request = google().request(span(), Some("P"), Some(&token));
    assert_eq!(
        request.path_and_query,
        "/v26/customers/123/googleAds:search"
    );
    let body = String::from_utf8(request.body.clone()).unwrap();
    assert!(
        body.contains("BETWEEN '2026-11-01' AND '2026-11-14'")
            && body.contains(r#""pageToken":"P""#)
    );
    let headers: Vec<(&str, &str)> = request
        .headers
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect();
    let expected = [
        ("authorization", "Bearer ya29"),
        ("content-type", "application/json"),
        ("developer-token", "DEVELOPER"),
        ("login-customer-id", "9"),
    ];
    assert_eq!(headers, expected);
    let request = tiktok().request(span(), None, None);
    assert_eq!(request.headers, [("access-token", "TTTOKEN".to_owned())]);
    assert!(
        request
            .path_and_query
            .starts_with("/open_api/v1.3/report/integrated/get/?advertiser_id=55&")
    );
    assert!(
        request
            .path_and_query
            .ends_with("start_date=2026-11-01&end_date=2026-11-14&page=1&page_size=1000")
    );
    for account in [meta(), google(), tiktok()] {
        let shown = format!(
            "{account:?} {:?}",
            account.request(span(), None, Some(&token))
        );
        for secret in [
            "EAAtoken",
            "hush",
            "DEVELOPER",
            "CLIENTSECRET",
            "REFRESH",
            "TTTOKEN",
            "ya29",
        ] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}

#[rstest]
#[case::rows(200, r#"{"data":[{"campaign_id":"7","spend":"5339.5","account_currency":"EUR","date_start":"2026-11-02","date_stop":"2026-11-02"}],"paging":{"cursors":{"before":"a","after":"b"}}}"#, "2026-11-02 7 5339.5 EUR next -")]
#[case::more(200, r#"{"data":[],"paging":{"cursors":{"after":"b"},"next":"https://elsewhere.example/?access_token=x"}}"#, " next b")]
#[case::exact(200, r#"{"data":[{"campaign_id":"7","spend":"9007199254.740993","account_currency":"USD","date_start":"2026-11-02","date_stop":"2026-11-02"}]}"#, "2026-11-02 7 9007199254.740993 USD next -")]
#[case::several_days(200, r#"{"data":[{"campaign_id":"7","spend":"1","account_currency":"EUR","date_start":"2026-11-02","date_stop":"2026-11-03"}]}"#, "retry unreadable_report")]
#[case::other_day(200, r#"{"data":[{"campaign_id":"7","spend":"1","account_currency":"EUR","date_start":"2025-11-02","date_stop":"2025-11-02"}]}"#, "retry unreadable_report")]
#[case::number_for_text(200, r#"{"data":[{"campaign_id":"7","spend":1.5,"account_currency":"EUR","date_start":"2026-11-02","date_stop":"2026-11-02"}]}"#, "retry unreadable_report")]
#[case::no_cursor(
    200,
    r#"{"data":[],"paging":{"next":"https://x"}}"#,
    "retry unreadable_report"
)]
#[case::expired(
    400,
    r#"{"error":{"message":"expired","code":190,"error_subcode":463}}"#,
    "refused 190/463"
)]
#[case::no_access(403, r#"{"error":{"message":"no","code":200}}"#, "refused 200")]
#[case::unknown_account(
    400,
    r#"{"error":{"message":"no","code":100,"error_subcode":33}}"#,
    "refused 100/33"
)]
#[case::throttled(400, r#"{"error":{"message":"slow","code":17}}"#, "retry 17")]
#[case::throttled_by_use_case(400, r#"{"error":{"message":"slow","code":80000}}"#, "retry 80000")]
#[case::temporary(
    500,
    r#"{"error":{"message":"oops","code":1,"is_transient":true}}"#,
    "retry 1"
)]
#[case::html(502, "<html>", "retry 502")]
#[case::html_success(200, "<html>", "retry unreadable_report")]
fn reads_answers_of_meta(#[case] status: u16, #[case] body: &str, #[case] expected: &str) {
    assert_eq!(told(&read(&meta(), status, body)), expected);
}

#[rstest]
#[case::rows(200, r#"{"results":[{"campaign":{"resourceName":"x","id":"7"},"metrics":{"costMicros":"1230000"},"segments":{"date":"2026-11-02"},"customer":{"currencyCode":"JPY"}}],"nextPageToken":"P2"}"#, "2026-11-02 7 1.23 JPY next P2")]
#[case::nothing(200, r#"{"fieldMask":"campaign.id"}"#, " next -")]
#[case::no_cost(200, r#"{"results":[{"campaign":{"id":"7"},"segments":{"date":"2026-11-02"},"customer":{"currencyCode":"JPY"}}]}"#, "retry unreadable_report")]
#[case::token(
    401,
    r#"{"error":{"code":401,"status":"UNAUTHENTICATED","message":"x"}}"#,
    "token UNAUTHENTICATED"
)]
#[case::denied(403, r#"{"error":{"code":403,"status":"PERMISSION_DENIED","details":[{"errors":[{"errorCode":{"authorizationError":"USER_PERMISSION_DENIED"},"message":"no"}]}]}}"#, "refused USER_PERMISSION_DENIED")]
#[case::invalid(
    400,
    r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"x"}}"#,
    "refused INVALID_ARGUMENT"
)]
#[case::retired(404, "<html>", "refused 404")]
#[case::quota(
    429,
    r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"x"}}"#,
    "retry RESOURCE_EXHAUSTED"
)]
#[case::unavailable(503, "", "retry 503")]
#[case::not_an_object(200, "[]", "retry unreadable_report")]
fn reads_answers_of_google(#[case] status: u16, #[case] body: &str, #[case] expected: &str) {
    assert_eq!(told(&read(&google(), status, body)), expected);
}

#[rstest]
#[case::rows(200, r#"{"code":0,"message":"OK","data":{"list":[{"dimensions":{"campaign_id":"18","stat_time_day":"2026-11-02 00:00:00"},"metrics":{"spend":"5.00","currency":"USD"}}],"page_info":{"page":1,"total_page":2}}}"#, "2026-11-02 18 5 USD next 2")]
#[case::last_page(
    200,
    r#"{"code":0,"data":{"list":[],"page_info":{"page":2,"total_page":2}}}"#,
    " next -"
)]
#[case::no_page_info(200, r#"{"code":0,"data":{"list":[]}}"#, "retry unreadable_report")]
#[case::no_currency(200, r#"{"code":0,"data":{"list":[{"dimensions":{"campaign_id":"18","stat_time_day":"2026-11-02 00:00:00"},"metrics":{"spend":"5.00"}}],"page_info":{"page":1,"total_page":1}}}"#, "retry unreadable_report")]
#[case::token(200, r#"{"code":40105,"message":"x"}"#, "refused 40105")]
#[case::permission(200, r#"{"code":40001,"message":"x"}"#, "refused 40001")]
#[case::parameter(200, r#"{"code":40002,"message":"x"}"#, "refused 40002")]
#[case::throttled(200, r#"{"code":40100,"message":"x"}"#, "retry 40100")]
#[case::internal(200, r#"{"code":50000,"message":"x"}"#, "retry 50000")]
#[case::html(503, "<html>", "retry 503")]
fn reads_answers_of_tiktok(#[case] status: u16, #[case] body: &str, #[case] expected: &str) {
    assert_eq!(told(&read(&tiktok(), status, body)), expected);
}

#[test]
fn waits_as_long_as_the_network_asks() {
    let body = r#"{"error":{"message":"slow","code":17}}"#;
    let usage = r#"{"77":[{"estimated_time_to_regain_access":7}]}"#;
    let answer = with_header(response(400, body), "x-business-use-case-usage", usage);
    let answer = with_header(answer, "retry-after", "30");
    let ruling = meta().read(span(), &SendOutcome::Response(answer), NOW);
    let wait = match ruling {
        ReportRuling::Retry { wait, .. } => wait,
        _ => None,
    };
    assert_eq!(wait, Some(Duration::from_mins(7)));
}

#[test]
fn messages_contain_no_secrets() {
    let echo = r#"{"error":{"message":"bad EAAtoken&1 and EAAtoken%261, hushhush","code":190}}"#;
    let shown = format!("{:?}", read(&meta(), 400, echo));
    assert!(shown.contains("bad *** and ***, ***"), "{shown}");
    let echo =
        r#"{"error":{"code":400,"status":"DEVELOPER","message":"REFRESH CLIENTSECRET DEVELOPER"}}"#;
    let shown = format!("{:?}", read(&google(), 400, echo));
    for secret in ["DEVELOPER", "CLIENTSECRET", "REFRESH"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let echo = format!(
        r#"{{"code":40105,"message":"{} TTTOKEN"}}"#,
        "x".repeat(9_000)
    );
    let shown = format!("{:?}", read(&tiktok(), 200, &echo));
    assert!(!shown.contains("TTTOKEN") && shown.len() < 600, "{shown}");
}
