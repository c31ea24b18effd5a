//! Tests every row in the reference's table of immediate responses.

use crate::ruling::{RetryAdvice, Ruling};
use crate::samples::judged;
use rstest::rstest;
use std::time::Duration;
use tributary_domain::integration::Network::B;

fn violation(field: &str, reason: &str) -> String {
    format!(
        r#"{{"error": {{"code": 400, "status": "INVALID_ARGUMENT", "message": "There was a problem.", "details": [
        {{"@type": "type.googleapis.com/google.rpc.Help", "links": []}},
        {{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [
            {{"field": "{field}", "description": "Not supported.", "reason": "{reason}"}}]}},
        {{"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": "t-5c0d9e1f"}},
        {{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "INVALID_ARGUMENT"}}]}}}}"#
    )
}

fn reason(reason: &str) -> String {
    format!(
        r#"{{"error": {{"status": "S", "message": "m", "details": [
        {{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "{reason}"}}]}}}}"#
    )
}

fn quota(limit: &str) -> String {
    format!(
        r#"{{"error": {{"status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded", "details": [
        {{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RESOURCE_EXHAUSTED",
          "metadata": {{"quota_limit": "{limit}"}}}}]}}}}"#
    )
}

fn named(named: &[usize]) -> Ruling {
    Ruling::Rejected {
        named: named.to_vec(),
    }
}

fn wait(duration: Duration) -> Ruling {
    Ruling::Retry(RetryAdvice {
        throttled: true,
        at_least: Some(duration),
        ..RetryAdvice::default()
    })
}

fn retry_maybe_processed() -> Ruling {
    Ruling::Retry(RetryAdvice {
        may_be_processed: true,
        ..RetryAdvice::default()
    })
}

#[rstest]
#[case::taken(200, r#"{"requestId":"7d1f"}"#, Ruling::Delivered)]
#[case::no_request_id(200, "{}", Ruling::Unknown)]
#[case::unreadable(200, "<html>", Ruling::Unknown)]
#[case::named(400, &violation("events.events[3].currency", "INVALID_CURRENCY_CODE"), named(&[3]))]
#[case::short_prefix(400, &violation("events[0].transactionId", "FIELD_VALUE_TOO_LONG"), named(&[0]))]
#[case::unknown_reason(400, &violation("events[1].x", "BRAND_NEW"), named(&[1]))]
#[case::not_named(400, &violation("encoding", "INVALID_ENUM_VALUE"), named(&[]))]
#[case::no_details(400, r#"{"error":{"message":"m"}}"#, named(&[]))]
#[case::html_400(400, "<html>", named(&[]))]
#[case::too_many_events(400, &violation("events", "TOO_MANY_EVENTS"), Ruling::TooLarge)]
#[case::too_many_destinations(400, &reason("TOO_MANY_DESTINATIONS"), Ruling::TooLarge)]
#[case::wrong_action(400, &violation("destinations[0]", "INVALID_CONVERSION_ACTION_ID"), Ruling::Pause)]
#[case::wrong_type(400, &reason("INVALID_CONVERSION_ACTION_TYPE"), Ruling::Pause)]
#[case::wrong_destination(400, &reason("INVALID_DESTINATION"), Ruling::Pause)]
#[case::wrong_source(400, &violation("events[0].eventSource", "EVENT_SOURCE_AND_DESTINATION_MISMATCH"), Ruling::Pause)]
#[case::not_allowlisted(400, &reason("NOT_ALLOWLISTED"), Ruling::Pause)]
#[case::account(400, &reason("DESTINATION_ACCOUNT_DISABLED"), Ruling::Pause)]
#[case::accounts(400, &reason("OPERATING_ACCOUNT_LOGIN_ACCOUNT_MISMATCH"), Ruling::Pause)]
#[case::terms(400, &reason("TERMS_AND_CONDITIONS_NOT_SIGNED"), Ruling::Pause)]
#[case::declaration(400, &reason("EU_POLITICAL_ADVERTISING_DECLARATION_REQUIRED"), Ruling::Pause)]
#[case::declaration_at_an_event(
    400, &violation("events[0]", "EU_POLITICAL_ADVERTISING_DECLARATION_REQUIRED"), Ruling::Pause
)]
#[case::aborted(409, &reason("ABORTED"), Ruling::retry())]
#[case::aborted_html(409, "<html>", Ruling::retry())]
#[case::cancelled(499, &reason("CANCELLED"), Ruling::retry())]
#[case::only_the_destination(400, &violation("destinations[0].operatingAccount", "INVALID_FORMAT"), Ruling::Pause)]
#[case::forbidden(403, &reason("ACCESS_TOKEN_SCOPE_INSUFFICIENT"), Ruling::Pause)]
#[case::html_403(403, "<html>", Ruling::Pause)]
#[case::not_found(404, "", Ruling::Pause)]
#[case::too_new(400, &reason("CONVERSION_ACTION_TOO_RECENTLY_CREATED"), Ruling::after(Duration::from_hours(6)))]
#[case::not_authenticated(401, &reason("ACCESS_TOKEN_EXPIRED"), Ruling::TokenRefused)]
#[case::not_authenticated_html(401, "<html>", Ruling::TokenRefused)]
#[case::per_minute(429, &quota("IngestionMutateRequestsPerMinutePerProject"), wait(Duration::from_mins(1)))]
#[case::per_day(429, &quota("IngestionMutateRequestsPerDayPerProject"), wait(Duration::from_hours(1)))]
#[case::some_quota(429, &reason("RESOURCE_EXHAUSTED"), wait(Duration::from_mins(1)))]
#[case::server_error(500, "", Ruling::retry())]
#[case::server_error_with_json(503, &reason("SERVICE_UNAVAILABLE"), Ruling::retry())]
#[case::html_502(502, "<html>", retry_maybe_processed())]
#[case::html_504(504, "<html>", retry_maybe_processed())]
#[case::internal_error(400, &reason("INTERNAL_ERROR"), Ruling::retry())]
#[case::deadline(400, &reason("DEADLINE_EXCEEDED"), Ruling::retry())]
fn judges_responses(#[case] status: u16, #[case] body: &str, #[case] expected: Ruling) {
    assert_eq!(judged(B, 5, status, body).ruling, expected);
}

/// All reasons about a single event.
#[rstest]
#[case("REQUIRED_FIELD_MISSING INVALID_FORMAT INVALID_SHA256_FORMAT INVALID_HEX_ENCODING")]
#[case("INVALID_CURRENCY_CODE INVALID_NUMBER_FORMAT INVALID_EVENT INVALID_ENUM_VALUE")]
#[case("EVENT_TIME_INVALID NO_IDENTIFIERS_PROVIDED INVALID_AD_IDENTIFIER_FOR_ACCOUNT")]
#[case("INVALID_MOBILE_ID_FORMAT FIELD_VALUE_TOO_LONG TOO_MANY_USER_IDENTIFIERS")]
fn event_reasons_name_the_event(#[case] reasons: &str) {
    for reason in reasons.split(' ') {
        let judgement = judged(B, 5, 400, &violation("events.events[2].x", reason));
        assert_eq!(judgement.ruling, named(&[2]), "{reason}");
        assert_eq!(judgement.code.as_deref(), Some(reason));
    }
}

#[test]
fn errors_have_code_message_and_trace_id() {
    let body = violation("events.events[3].currency", "INVALID_CURRENCY_CODE");
    let judgement = judged(B, 5, 400, &body);
    assert_eq!(judgement.trace_id.as_deref(), Some("t-5c0d9e1f"));
    let message = "There was a problem. events.events[3].currency: Not supported.";
    assert_eq!(judgement.message.as_deref(), Some(message));
    let judgement = judged(B, 5, 403, &reason("ACCESS_TOKEN_SCOPE_INSUFFICIENT"));
    assert_eq!(
        judgement.code.as_deref(),
        Some("ACCESS_TOKEN_SCOPE_INSUFFICIENT")
    );
}

#[test]
fn a_success_has_a_request_id_and_warnings() {
    let body = r#"{"requestId": "7d1f", "fieldWarnings": [
        {"reason": "WARNING_REASON_GENERIC", "description": "d", "field": "f"}]}"#;
    let judgement = judged(B, 1, 200, body);
    assert_eq!(judgement.trace_id.as_deref(), Some("7d1f"));
    let warning = "f: d (WARNING_REASON_GENERIC)";
    assert_eq!(judgement.warning.as_deref(), Some(warning));
}
