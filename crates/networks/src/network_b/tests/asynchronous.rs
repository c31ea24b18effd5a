//! Tests token requests, and the request status that is known later.

use crate::network_b::{
    GoogleAdsAccount, StatusProblems, StatusRuling, TokenRuling, judge_status, judge_token,
    status_request, token_request,
};
use crate::samples::{header, integration, response};
use crate::{RequestMethod, Secret, SendOutcome};
use rstest::rstest;
use std::time::Duration;
use tributary_domain::integration::Network::B;

fn account(service_account: bool) -> GoogleAdsAccount {
    let (integration, mut secrets) = integration(B, &[]);
    if service_account {
        let file = Secret::new(include_str!("../test_key.json"));
        secrets.insert("serviceAccountKey".to_owned(), file);
    }
    match crate::Account::read(&integration, &secrets).unwrap() {
        crate::Account::B(account) => account,
        _ => panic!("another network's account"),
    }
}

#[test]
fn requests_an_access_token_with_a_refresh_token() {
    let request = token_request(&account(false), 0);
    assert_eq!(
        (request.method, request.path()),
        (RequestMethod::Post, "/token")
    );
    let form = "application/x-www-form-urlencoded";
    assert_eq!(header(&request, "content-type"), Some(form));
    let expected = "client_id=4711-abc.apps.example.com&client_secret=hush-client\
                    &refresh_token=1%2F%2Fhush-refresh&grant_type=refresh_token";
    assert_eq!(String::from_utf8(request.body).unwrap(), expected);
}

#[test]
fn prefers_a_service_account_over_a_refresh_token() {
    let request = token_request(&account(true), 1_794_657_600);
    let body = String::from_utf8(request.body).unwrap();
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=ey";
    assert!(body.starts_with(grant));
    assert_eq!(body.matches('.').count(), 2);
}

#[test]
fn returns_the_quota_project() {
    let project = |service_account| crate::Account::B(account(service_account));
    assert_eq!(project(false).quota_project(), Some("4711"));
    assert_eq!(project(true).quota_project(), Some("example-project"));
}

fn token(seconds: u64) -> TokenRuling {
    TokenRuling::Token {
        access_token: Secret::new("ya29.a0"),
        expires_in: Duration::from_secs(seconds),
    }
}

fn refused(code: &str, message: Option<&str>) -> TokenRuling {
    TokenRuling::Pause {
        code: code.to_owned(),
        message: message.map(str::to_owned),
    }
}

#[rstest]
#[case::token(
    200,
    r#"{"access_token": "ya29.a0", "expires_in": 3599, "token_type": "Bearer"}"#,
    token(3_599)
)]
#[case::default_lifetime(200, r#"{"access_token": "ya29.a0"}"#, token(3_600))]
#[case::unreadable(200, "<html>", TokenRuling::Retry)]
#[case::no_token(200, "{}", TokenRuling::Retry)]
#[case::revoked(
    400,
    r#"{"error": "invalid_grant", "error_description": "Token has been expired or revoked."}"#,
    refused("invalid_grant", Some("Token has been expired or revoked."))
)]
#[case::no_such_client(401, r#"{"error": "invalid_client"}"#, refused("invalid_client", None))]
#[case::another_refusal(403, "<html>", refused("403", None))]
#[case::too_many(429, "", TokenRuling::Retry)]
#[case::server_error(503, "", TokenRuling::Retry)]
fn judges_token_responses(#[case] status: u16, #[case] body: &str, #[case] expected: TokenRuling) {
    assert_eq!(
        judge_token(&SendOutcome::Response(response(status, body))),
        expected
    );
}

#[test]
fn debug_output_has_no_token() {
    assert!(!format!("{:?}", token(1)).contains("ya29"));
}

#[test]
fn requests_the_status_by_request_id() {
    let request = status_request("7d1f 0c52", "ya29.a0");
    assert_eq!(request.method, RequestMethod::Get);
    assert_eq!(
        request.path_and_query,
        "/v1/requestStatus:retrieve?requestId=7d1f%200c52"
    );
    assert_eq!(header(&request, "authorization"), Some("Bearer ya29.a0"));
}

fn request_status(status: &str, errors: &str) -> String {
    format!(
        r#"{{"requestStatusPerDestination": [{{"destination": {{}}, "requestStatus": "{status}",
        "errorInfo": {{"errorCounts": [{errors}]}}, "eventsIngestionStatus": {{"recordCount": "40"}}}}]}}"#
    )
}

fn judged(status: u16, body: &str) -> StatusRuling {
    judge_status(&SendOutcome::Response(response(status, body)))
}

#[rstest]
#[case::processing(200, &request_status("PROCESSING", ""), StatusRuling::Processing)]
#[case::unknown(200, &request_status("REQUEST_STATUS_UNKNOWN", ""), StatusRuling::Processing)]
#[case::nothing_yet(200, "{}", StatusRuling::Processing)]
#[case::success(200, &request_status("SUCCESS", ""), StatusRuling::Success)]
#[case::success_without_info(
    200,
    r#"{"requestStatusPerDestination":[{"requestStatus":"SUCCESS"}]}"#,
    StatusRuling::Success
)]
#[case::unreadable(200, "<html>", StatusRuling::Retry)]
#[case::not_authenticated(401, "", StatusRuling::TokenRefused)]
#[case::not_known(404, "", StatusRuling::Unavailable)]
#[case::not_permitted(403, "", StatusRuling::Unavailable)]
#[case::too_many(429, "", StatusRuling::Retry)]
#[case::server_error(500, "", StatusRuling::Retry)]
fn judges_request_statuses(
    #[case] status: u16,
    #[case] body: &str,
    #[case] expected: StatusRuling,
) {
    assert_eq!(judged(status, body), expected);
}

#[test]
fn retries_failed_status_and_token_requests() {
    assert_eq!(judge_status(&SendOutcome::NotSent), StatusRuling::Retry);
    assert_eq!(judge_status(&SendOutcome::Interrupted), StatusRuling::Retry);
    assert_eq!(judge_token(&SendOutcome::NotSent), TokenRuling::Retry);
    assert_eq!(judge_token(&SendOutcome::Interrupted), TokenRuling::Retry);
}

const SIX_HOURS: Option<Duration> = Some(Duration::from_hours(6));
const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

#[rstest]
#[case::too_recent("TOO_RECENT_CLICK", SIX_HOURS, false, false)]
#[case::internal("INTERNAL_ERROR", AT_ONCE, false, false)]
#[case::duplicate("DUPLICATE_TRANSACTION_ID", None, true, false)]
#[case::duplicate_click("DUPLICATE_GCLID", None, true, false)]
#[case("DENIED_CONSENT", None, false, false)]
#[case("NO_CONSENT", None, false, false)]
#[case("UNKNOWN_CONSENT", None, false, false)]
#[case("EVENT_TOO_OLD", None, false, false)]
#[case("CONVERSION_PRECEDES_CLICK", None, false, false)]
#[case("CLICK_NOT_FOUND", None, false, false)]
#[case("INVALID_CLICK", None, false, false)]
#[case("INVALID_GCLID", None, false, false)]
#[case("INVALID_GBRAID", None, false, false)]
#[case("INVALID_WBRAID", None, false, false)]
#[case("INVALID_EVENT", None, false, false)]
#[case("INVALID_FORMAT", None, false, false)]
#[case("INVALID_OPERATING_ACCOUNT_FOR_CLICK", None, false, false)]
#[case("BRAND_NEW", None, false, false)]
#[case(
    "ONE_PER_CLICK_CONVERSION_ACTION_NOT_PERMITTED_WITH_BRAID",
    None,
    false,
    true
)]
#[case(
    "DESTINATION_ACCOUNT_ENHANCED_CONVERSIONS_TERMS_NOT_SIGNED",
    None,
    false,
    true
)]
#[case("EXTERNAL_ATTRIBUTION_DATA_MISSING", None, false, true)]
fn judges_processing_error_reasons(
    #[case] reason: &str,
    #[case] requeue_after: Option<Duration>,
    #[case] delivered: bool,
    #[case] alerts: bool,
) {
    let error = format!(r#"{{"recordCount": "2", "reason": "PROCESSING_ERROR_REASON_{reason}"}}"#);
    let failed = if delivered { 0..0 } else { 0..1 };
    let expected = StatusProblems {
        requeue_after,
        already_delivered: delivered,
        failed: failed.map(|_| (reason.to_owned(), 2)).collect(),
        alert: alerts.then(|| reason.to_owned()).into_iter().collect(),
    };
    let found = judged(200, &request_status("PARTIAL_SUCCESS", &error));
    assert_eq!(found, StatusRuling::Problems(expected));
}

#[test]
fn combines_several_reasons() {
    let errors = r#"{"recordCount": 1, "reason": "PROCESSING_ERROR_REASON_INTERNAL_ERROR"},
        {"recordCount": "3", "reason": "PROCESSING_ERROR_REASON_TOO_RECENT_CLICK"},
        {"recordCount": "9", "reason": "PROCESSING_ERROR_REASON_DUPLICATE_GCLID"},
        {"recordCount": "4", "reason": "PROCESSING_ERROR_OPERATING_ACCOUNT_MISMATCH_FOR_AD_IDENTIFIER"}"#;
    let count = |reason: &str, count| (reason.to_owned(), count);
    let expected = StatusProblems {
        requeue_after: SIX_HOURS,
        already_delivered: false,
        failed: vec![
            count("INTERNAL_ERROR", 1),
            count("TOO_RECENT_CLICK", 3),
            count("OPERATING_ACCOUNT_MISMATCH_FOR_AD_IDENTIFIER", 4),
        ],
        alert: Vec::new(),
    };
    let found = judged(200, &request_status("FAILED", errors));
    assert_eq!(found, StatusRuling::Problems(expected));
}

#[test]
fn a_failure_without_reasons_is_a_failure() {
    let body = r#"{"requestStatusPerDestination":[{"requestStatus":"FAILED"}]}"#;
    let expected = StatusProblems {
        failed: vec![("FAILED".to_owned(), 0)],
        ..StatusProblems::default()
    };
    assert_eq!(judged(200, body), StatusRuling::Problems(expected));
}
