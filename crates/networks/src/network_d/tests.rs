//! Tests the reference's example requests, and every row in its response table.

use super::encode::minor_units;
use crate::ruling::{RetryAdvice, Ruling};
use crate::samples::{
    EMAIL, EXTERNAL_ID, ON, USER_HASH, account, body, encoded, header, identified_event, judged,
    response, revenue, sdk_event, web_event, web_purchase, web_trial, with_advertising_id,
    with_consent, with_header,
};
use crate::{SendOutcome, check, encode, judge};
use rstest::rstest;
use serde_json::{Value, json};
use tributary_domain::device::{Platform, Tracking};
use tributary_domain::forwarding::Conversion;
use tributary_domain::integration::Network::D;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::money::Amount;

#[test]
fn example_a_website_purchase() {
    let request = encode(&account(D, &[]), &[web_purchase("order_created")], None);
    assert_eq!(request.path_and_query, "/v1/events?pid=px_1");
    assert_eq!(header(&request, "authorization"), Some("Bearer hush-key"));
    insta::assert_json_snapshot!(body(&request));
}

#[test]
fn example_b_website_start_trial() {
    let request = encode(&account(D, &[]), &[web_trial("trial_started")], None);
    insta::assert_json_snapshot!(body(&request));
}

#[test]
fn example_c_app_install() {
    let mut install = sdk_event("install", "app_installed");
    "874121413b83175b1957aa90d6688b39".clone_into(&mut install.dedup_id);
    let request = encode(&account(D, &[]), &[install], None);
    insta::assert_json_snapshot!(body(&request));
}

#[rstest]
#[case::dollars("29.99", "USD", 2_999)]
#[case::a_cent("0.01", "USD", 1)]
#[case::the_limit("2000.00", "USD", 200_000)]
#[case::half_up("0.005", "USD", 1)]
#[case::less_than_half("0.004999", "USD", 0)]
#[case::half_away_from_zero("-0.005", "USD", -1)]
#[case::yen("1234.5", "JPY", 1_235)]
#[case::dinars("1.2345", "KWD", 1_235)]
#[case::four_digits("1.23456", "CLF", 12_346)]
fn converts_amounts_to_minor_units(
    #[case] amount: &str,
    #[case] currency: &str,
    #[case] expected: i64,
) {
    let amount = Amount::parse(amount).unwrap();
    let currency = Currency::from_stored(currency).unwrap();
    assert_eq!(minor_units(amount, currency), expected);
}

#[rstest]
#[case(
    "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    1
)]
#[case("BHD IQD JOD KWD LYD OMR TND", 1_000)]
#[case("CLF UYW", 10_000)]
#[case("USD EUR GBP CHF ZZZ", 100)]
fn knows_the_minor_units_of_currencies(#[case] currencies: &str, #[case] units: i64) {
    for code in currencies.split(' ') {
        let one = Amount::parse("1").unwrap();
        let currency = Currency::from_stored(code).unwrap();
        assert_eq!(minor_units(one, currency), units, "{code}");
    }
}

#[rstest]
#[case::not_asked(None, None, None)]
#[case::both(Some(true), Some(true), None)]
#[case::no_personal_ads(Some(true), Some(false), Some(true))]
fn sends_opt_out_without_personalisation(
    #[case] user_data: Option<bool>,
    #[case] personal: Option<bool>,
    #[case] expected: Option<bool>,
) {
    let conversion = with_consent(sdk_event("install", "app_installed"), user_data, personal);
    let event = encoded(&account(D, &[]), conversion, "events");
    assert_eq!(event.get("opt_out").and_then(Value::as_bool), expected);
}

#[rstest]
#[case::android(Platform::Android, None, true)]
#[case::android_no(Platform::Android, Some(Tracking::Denied), false)]
#[case::ios_is_not_supported(Platform::Ios, Some(Tracking::Authorized), false)]
fn sends_android_advertising_ids_only(
    #[case] platform: Platform,
    #[case] tracking: Option<Tracking>,
    #[case] is_sent: bool,
) {
    let install = sdk_event("install", "app_installed");
    let conversion = with_advertising_id(install, platform, tracking);
    let event = encoded(&account(D, &[]), conversion, "events");
    let expected = is_sent.then(|| json!("6f9619ff-8b86-4011-b42d-00c04fc964ff"));
    assert_eq!(
        event["user"].get("android_advertising_id"),
        expected.as_ref()
    );
}

#[rstest]
#[case::bought("order_created", json!([{"id": "pro.monthly"}]), Value::Null)]
#[case::subscribed("subscription_created", Value::Null, json!("pro.monthly"))]
#[case::custom("boss_defeated", json!([{"id": "pro.monthly"}]), Value::Null)]
#[case::signed_up("registration_completed", Value::Null, Value::Null)]
fn sends_match_quality_fields(#[case] kind: &str, #[case] contents: Value, #[case] plan: Value) {
    let event = encoded(
        &account(D, &[]),
        identified_event("purchase", kind),
        "events",
    );
    let user = &event["user"];
    assert_eq!(user["external_ids_sha256"], json!([EXTERNAL_ID, USER_HASH]));
    assert_eq!(user["countries"], json!(["US"]));
    assert_eq!(
        (&event["data"]["contents"], &event["data"]["plan_id"]),
        (&contents, &plan)
    );
}

#[test]
fn custom_events_have_a_name() {
    let mut conversion = sdk_event("boss_defeated", "Boss Defeated");
    conversion.event.revenue = Some(revenue("0.01", None));
    conversion.matching.phone = Some("1".repeat(64));
    let captured = &mut conversion.click.as_mut().unwrap().captured;
    captured.browser_ids.obref = Some("ob-1".to_owned());
    let event = encoded(&account(D, &[]), conversion, "events");
    assert_eq!(event["type"], "custom");
    assert_eq!(event["custom_event_name"], "boss_defeated");
    let data = json!({"type": "custom", "amount": 1, "currency": "USD"});
    assert_eq!(event["data"], data);
    assert_eq!(event["user"]["obref"], "ob-1");
    assert_eq!(
        event["user"]["phone_numbers_sha256"],
        json!(["1".repeat(64)])
    );
}

#[test]
fn installs_are_app_events_from_any_source() {
    let event = encoded(
        &account(D, &[]),
        web_event("install", "app_installed"),
        "events",
    );
    assert_eq!(event["action_source"], "mobile_app");
    assert_eq!(event.get("source_url"), None);
}

#[test]
fn test_requests_are_only_validated() {
    let testing = account(D, &[("testMode", ON)]);
    let request = encode(&testing, &[sdk_event("install", "app_installed")], None);
    assert_eq!(body(&request)["validate_only"], true);
    assert!(testing.is_test_mode());
}

fn changed(change: impl FnOnce(&mut Conversion)) -> Conversion {
    let mut conversion = sdk_event("install", "app_installed");
    conversion.event.device = None;
    let click = conversion.click.as_mut().unwrap();
    click.captured.click_ids.oppref = None;
    change(&mut conversion);
    conversion
}

#[rstest]
#[case::by_click_id(sdk_event("install", "app_installed"), None)]
#[case::by_address_and_agent(changed(|_| ()), Some("insufficient_identity"))]
#[case::by_phone(
    changed(|one| one.matching.phone = Some("1".repeat(64))), Some("insufficient_identity")
)]
#[case::by_hash(changed(|one| one.matching.email = Some(EMAIL.to_owned())), None)]
#[case::by_cookie(changed(|one| {
    let captured = &mut one.click.as_mut().unwrap().captured;
    captured.browser_ids.obref = Some("ob-1".to_owned());
}), None)]
#[case::blank_cookie(changed(|one| {
    let captured = &mut one.click.as_mut().unwrap().captured;
    captured.browser_ids.obref = Some(" ".to_owned());
}), Some("insufficient_identity"))]
#[case::no_name(sdk_event("install", "日本"), Some("invalid_event_name"))]
#[case::app_without_page({
    let mut install = sdk_event("install", "app_installed");
    install.page_url = None;
    install
}, None)]
#[case::website_without_page({
    let mut purchase = web_purchase("order_created");
    purchase.page_url = None;
    purchase
}, Some("no_source_url"))]
#[case::purchase_without_money(
    web_event("purchase", "order_created"),
    Some("amount_not_forwardable")
)]
#[case::consent_refused(
    with_consent(sdk_event("install", "app_installed"), Some(false), None),
    Some("consent")
)]
fn checks_what_can_be_sent(#[case] conversion: Conversion, #[case] expected: Option<&str>) {
    let refused = check(&account(D, &[]), &conversion).err();
    assert_eq!(refused.map(|refused| refused.code), expected);
}

fn error(param: &str, message: &str) -> String {
    format!(
        r#"{{"error":{{"message":"{message}","param":{param},"code":"c","type":"server_error"}}}}"#
    )
}

fn retry_maybe_processed() -> Ruling {
    Ruling::Retry(RetryAdvice {
        may_be_processed: true,
        ..RetryAdvice::default()
    })
}

fn named(named: &[usize]) -> Ruling {
    Ruling::Rejected {
        named: named.to_vec(),
    }
}

const WITHIN: &str = r#"{"error": {"message": "One or more events are invalid.", "param": null,
    "errors": [{"param": "events[1].data.type"}, {"param": "events[0].id"}]}}"#;

const BY_PATH: &str = r#"{"detail": [
    {"type": "missing", "loc": ["body", "events", 1, "data", "type"], "msg": "Field required", "input": {}}]}"#;
const BY_PATH_OF_THE_REQUEST: &str = r#"{"detail": [
    {"type": "missing", "loc": ["body", "events"], "msg": "Field required"}]}"#;
const BY_PATH_OF_THE_QUERY: &str =
    r#"{"detail": [{"type": "string_type", "loc": ["query", "pid"], "msg": "Not a string"}]}"#;
const BY_INDEX: &str =
    r#"{"error": {"message": "m", "code": "invalid_event", "details": [{"index": 1}]}}"#;

#[test]
fn errors_with_paths_have_code_and_message() {
    let judgement = judged(D, 2, 422, BY_PATH);
    assert_eq!(judgement.code.as_deref(), Some("missing"));
    assert_eq!(judgement.message.as_deref(), Some("Field required"));
}

#[rstest]
#[case::by_path(422, BY_PATH, named(&[1]))]
#[case::by_path_of_the_request(422, BY_PATH_OF_THE_REQUEST, Ruling::Pause)]
#[case::by_path_of_the_query(422, BY_PATH_OF_THE_QUERY, Ruling::Pause)]
#[case::by_index(422, BY_INDEX, named(&[1]))]
#[case::by_dots(422, &error("\"events.1.data\"", "m"), named(&[1]))]
#[case::accepted_without_body(200, "", Ruling::Delivered)]
#[case::accepted(202, "<html>", Ruling::Delivered)]
#[case::named(400, &error("\"events[1]\"", "m"), named(&[1]))]
#[case::named_field(422, &error("\"events[0].timestamp_ms\"", "m"), named(&[0]))]
#[case::named_within(400, WITHIN, named(&[0, 1]))]
#[case::named_outside(400, &error("\"events[7]\"", "m"), named(&[]))]
#[case::not_named(400, &error("null", "m"), named(&[]))]
#[case::not_named_422(422, &error("null", "m"), named(&[]))]
#[case::no_body(400, "", named(&[]))]
#[case::pid_missing(400, &error("\"pid\"", "Missing query parameter"), Ruling::Pause)]
#[case::pid_missing_in_words(400, &error("null", "Missing required parameter: 'pid'."), Ruling::Pause)]
#[case::events_missing(400, &error("\"events\"", "events is required"), Ruling::Pause)]
#[case::events_missing_in_words(400, &error("null", "Field required: events"), Ruling::Pause)]
#[case::events_otherwise(400, &error("\"events\"", "Too many events"), named(&[]))]
#[case::not_authenticated(401, "", Ruling::Pause)]
#[case::not_permitted(403, &error("null", "403: unknown pid"), Ruling::Pause)]
#[case::not_found(404, "", Ruling::Pause)]
#[case::no_such_method(405, "", Ruling::Pause)]
#[case::too_large(413, "", Ruling::TooLarge)]
#[case::timeout(408, "", Ruling::retry())]
#[case::too_many(429, "", Ruling::throttled())]
#[case::server_error(500, "", Ruling::retry())]
#[case::authentication_backend(503, &error("null", "Authentication backend failure"), Ruling::retry())]
#[case::html_502(502, "<html>", retry_maybe_processed())]
#[case::html_504(504, "<html>", retry_maybe_processed())]
fn judges_responses(#[case] status: u16, #[case] body: &str, #[case] expected: Ruling) {
    assert_eq!(judged(D, 2, status, body).ruling, expected);
}

#[test]
fn errors_have_code_message_and_trace_id() {
    let body = r#"{"error": {"message": "One or more events are invalid.", "code": null,
        "errors": [{"message": "data.type is required", "code": "missing_event_data_type"}]}}"#;
    let response = with_header(response(400, body), "x-request-id", "req_1");
    let judgement = judge(&account(D, &[]), 1, &SendOutcome::Response(response));
    assert_eq!(judgement.code.as_deref(), Some("missing_event_data_type"));
    let message = "One or more events are invalid. data.type is required";
    assert_eq!(judgement.message.as_deref(), Some(message));
    assert_eq!(judgement.trace_id.as_deref(), Some("req_1"));
}
