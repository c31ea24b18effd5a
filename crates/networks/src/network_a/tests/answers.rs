//! Tests every row in the reference's response table.

use crate::ruling::{NetworkPace, RetryAdvice, Ruling};
use crate::samples::{account, judged, response, with_header};
use crate::{SendOutcome, judge};
use rstest::rstest;
use std::time::Duration;
use tributary_domain::integration::Network::A;

fn error(code: i64, more: &str) -> String {
    format!(r#"{{"error":{{"message":"m","code":{code}{more},"fbtrace_id":"A1"}}}}"#)
}

fn throttled() -> Ruling {
    Ruling::throttled()
}

fn rejected() -> Ruling {
    Ruling::unnamed()
}

fn retry_maybe_processed() -> Ruling {
    Ruling::Retry(RetryAdvice {
        may_be_processed: true,
        ..RetryAdvice::default()
    })
}

#[rstest]
#[case::accepted(
    200,
    r#"{"events_received":2,"messages":[],"fbtrace_id":"A"}"#,
    Ruling::Delivered
)]
#[case::accepted_without_messages(200, r#"{"events_received":2}"#, Ruling::Delivered)]
#[case::partly_accepted(200, r#"{"events_received":1,"messages":[]}"#, Ruling::Unknown)]
#[case::too_many_accepted(200, r#"{"events_received":3}"#, Ruling::Unknown)]
#[case::unreadable(200, "<html>", Ruling::Unknown)]
#[case::empty(200, "", Ruling::Unknown)]
#[case::no_object(200, "[]", Ruling::Unknown)]
#[case::unavailable_with_200(200, "Service Unavailable", Ruling::retry())]
#[case::error_with_200(200, &error(100, ""), rejected())]
#[case::unknown_error_with_200(200, &error(999, ""), rejected())]
#[case::code_1(400, &error(1, ""), Ruling::retry())]
#[case::code_2(500, &error(2, ""), Ruling::retry())]
#[case::code_5000(400, &error(5_000, ""), Ruling::retry())]
#[case::negative(400, &error(-3, ""), Ruling::retry())]
#[case::transient(400, &error(999, r#","is_transient":true"#), Ruling::retry())]
#[case::server_error(500, "", Ruling::retry())]
#[case::server_error_with_json(503, &error(999, ""), Ruling::retry())]
#[case::server_error_that_blames(500, &error(100, ""), Ruling::retry())]
#[case::html_502(502, "<html>Bad gateway</html>", retry_maybe_processed())]
#[case::html_504(504, "", retry_maybe_processed())]
#[case::code_4(400, &error(4, r#","error_subcode":1504022"#), throttled())]
#[case::code_17(400, &error(17, r#","error_subcode":2446079"#), throttled())]
#[case::code_341(400, &error(341, ""), throttled())]
#[case::code_613(400, &error(613, ""), throttled())]
#[case::code_613_with_subcode(400, &error(613, r#","error_subcode":5044001"#), throttled())]
#[case::code_80000(400, &error(80_000, ""), throttled())]
#[case::code_80003(400, &error(80_003, ""), throttled())]
#[case::code_80004(400, &error(80_004, r#","is_transient":true"#), throttled())]
#[case::code_80014(400, &error(80_014, ""), throttled())]
#[case::code_80001(400, &error(80_001, ""), throttled())]
#[case::code_80099(400, &error(80_099, ""), throttled())]
#[case::code_80100(400, &error(80_100, ""), rejected())]
#[case::code_32(400, &error(32, ""), throttled())]
#[case::data_set_not_ready(400, &error(21_009, ""), Ruling::retry())]
#[case::version_ended(400, &error(2_635, ""), Ruling::Pause)]
#[case::code_12(400, &error(12, ""), Ruling::Pause)]
#[case::code_803(404, &error(803, ""), Ruling::Pause)]
#[case::code_2500(400, &error(2_500, ""), Ruling::Pause)]
#[case::wrong_app_secret(
    400,
    r#"{"error":{"message":"Invalid appsecret_proof provided in the API argument","code":100}}"#,
    Ruling::Pause
)]
#[case::blocked(400, &error(368, ""), Ruling::Retry(RetryAdvice { needs_longest_wait: true, ..RetryAdvice::default() }))]
#[case::too_old(400, &error(100, r#","error_subcode":2804003"#), Ruling::InvalidEvent)]
#[case::weak_identity(400, &error(100, r#","error_subcode":2804050"#), Ruling::InvalidEvent)]
#[case::another_subcode(400, &error(100, r#","error_subcode":2804007"#), rejected())]
#[case::invalid_and_transient(400, &error(100, r#","is_transient":true"#), rejected())]
#[case::invalid(400, &error(100, ""), rejected())]
#[case::no_such_pixel(400, &error(100, r#","error_subcode":33"#), Ruling::Pause)]
#[case::no_such_pixel_either(404, &error(100, r#","error_subcode":34"#), Ruling::Pause)]
#[case::code_3(400, &error(3, ""), Ruling::Pause)]
#[case::code_10(403, &error(10, ""), Ruling::Pause)]
#[case::code_102(401, &error(102, ""), Ruling::Pause)]
#[case::code_104(400, &error(104, ""), Ruling::Pause)]
#[case::code_190(400, &error(190, r#","error_subcode":463"#), Ruling::Pause)]
#[case::code_190_transient(400, &error(190, r#","is_transient":true"#), Ruling::Pause)]
#[case::code_200(403, &error(200, ""), Ruling::Pause)]
#[case::code_294(400, &error(294, ""), Ruling::Pause)]
#[case::unknown_code(400, &error(999, ""), rejected())]
#[case::no_code(400, r#"{"error":{"message":"m"}}"#, rejected())]
#[case::html_400(400, "<html>", rejected())]
#[case::html_403(403, "<html>Blocked</html>", Ruling::Pause)]
#[case::html_429(429, "<html>", throttled())]
#[case::html_413(413, "<html>", Ruling::TooLarge)]
#[case::redirected(302, "", Ruling::retry())]
fn judges_responses(#[case] status: u16, #[case] body: &str, #[case] expected: Ruling) {
    assert_eq!(judged(A, 2, status, body).ruling, expected);
}

#[test]
fn errors_have_code_message_and_trace_id() {
    let body = r#"{"error": {"message": "Invalid parameter", "type": "OAuthException", "code": 100,
        "error_subcode": 2804003, "is_transient": false,
        "error_user_title": "Event Timestamp Too Old", "fbtrace_id": "A1"}}"#;
    let judgement = judged(A, 1, 400, body);
    assert_eq!(judgement.status, Some(400));
    assert_eq!(judgement.code.as_deref(), Some("100/2804003"));
    let message = "Invalid parameter – Event Timestamp Too Old";
    assert_eq!(judgement.message.as_deref(), Some(message));
    assert_eq!(judgement.trace_id.as_deref(), Some("A1"));
    assert_eq!(judgement.warning, None);
}

#[rstest]
#[case::blocked(368, true)]
#[case::unknown(999, true)]
#[case::token(190, false)]
fn warns_the_operator_about_some_codes(#[case] code: i64, #[case] warned: bool) {
    assert_eq!(
        judged(A, 1, 400, &error(code, "")).warning.is_some(),
        warned
    );
}

#[test]
fn reads_warning_and_pace_from_headers() {
    let response = response(200, r#"{"events_received":1,"fbtrace_id":"A9"}"#);
    let response = with_header(response, "x-ad-api-version-warning", "v26.0 is retired");
    let usage = r#"{"1":[{"call_count":100,"estimated_time_to_regain_access":2}]}"#;
    let response = with_header(response, "x-business-use-case-usage", usage);
    let judgement = judge(&account(A, &[]), 1, &SendOutcome::Response(response));
    assert_eq!(judgement.ruling, Ruling::Delivered);
    assert_eq!(judgement.trace_id.as_deref(), Some("A9"));
    assert_eq!(judgement.warning.as_deref(), Some("v26.0 is retired"));
    assert_eq!(
        judgement.pace,
        Some(NetworkPace::Wait(Duration::from_mins(2)))
    );
}

#[test]
fn a_truncated_response_is_unreadable() {
    let mut response = response(200, r#"{"events_received":1}"#);
    response.truncated = true;
    let judgement = judge(&account(A, &[]), 1, &SendOutcome::Response(response));
    assert_eq!(judgement.ruling, Ruling::Unknown);
}
