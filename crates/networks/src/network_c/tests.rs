//! Tests the reference's example requests, and every row in its response table.

use crate::ruling::{RetryAdvice, Ruling};
use crate::samples::{
    EMAIL, EXTERNAL_ID, USER_HASH, account, body, encoded, header, identified_event, judged,
    sdk_event, test_mode, web_event, web_purchase, web_trial, with_advertising_id, with_consent,
};
use crate::{GroupKey, check, encode, group_key};
use rstest::rstest;
use serde_json::{Value, json};
use tributary_domain::device::{Platform, Tracking};
use tributary_domain::forwarding::Conversion;
use tributary_domain::integration::Network::C;

#[test]
fn example_a_website_purchase() {
    let request = encode(&account(C, &[]), &[web_purchase("Purchase")], None);
    assert_eq!(request.path_and_query, "/open_api/v1.3/event/track/");
    assert_eq!(header(&request, "access-token"), Some("hush-token"));
    assert_eq!(header(&request, "content-type"), Some("application/json"));
    insta::assert_json_snapshot!(body(&request));
}

#[test]
fn example_b_website_start_trial() {
    let request = encode(&account(C, &[]), &[web_trial("StartTrial")], None);
    insta::assert_json_snapshot!(body(&request));
}

#[test]
fn example_c_app_install() {
    let mut install = sdk_event("install", "Lead");
    "5bec4d2d1bc505222c41eaf993dabdf6".clone_into(&mut install.dedup_id);
    install.device = None;
    let request = encode(&account(C, &[]), &[install], None);
    insta::assert_json_snapshot!(body(&request));
}

#[rstest]
#[case::ios_yes(
    Platform::Ios, Some(Tracking::Authorized),
    json!({"idfa": "6F9619FF-8B86-4011-B42D-00C04FC964FF", "att_status": "AUTHORIZED",
        "idfv": "A1B2C3D4-0000-4000-8000-000000000001"})
)]
#[case::ios_no(Platform::Ios, Some(Tracking::Denied), json!({"att_status": "DENIED"}))]
#[case::ios_not_asked(
    Platform::Ios, Some(Tracking::NotDetermined),
    json!({"att_status": "NOT_DETERMINED", "idfv": "A1B2C3D4-0000-4000-8000-000000000001"})
)]
#[case::android(
    Platform::Android, None,
    json!({"gaid": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "idfv": "A1B2C3D4-0000-4000-8000-000000000001"})
)]
fn sends_device_identifiers(
    #[case] platform: Platform,
    #[case] tracking: Option<Tracking>,
    #[case] expected: Value,
) {
    let conversion = with_advertising_id(sdk_event("install", "Lead"), platform, tracking);
    let user = encoded(&account(C, &[]), conversion, "data")["user"].take();
    for name in ["idfa", "gaid", "idfv", "att_status"] {
        assert_eq!(user.get(name), expected.get(name), "{name}");
    }
    assert_eq!(user["locale"], "en-US");
}

#[test]
fn sends_match_quality_fields() {
    let event = encoded(
        &account(C, &[]),
        identified_event("purchase", "Purchase"),
        "data",
    );
    assert_eq!(
        event["user"]["external_id"],
        json!([EXTERNAL_ID, USER_HASH])
    );
    assert_eq!(
        event["user"].get("country"),
        None,
        "the network has no such field"
    );
    let contents = json!([{"content_id": "pro.monthly"}]);
    assert_eq!(event["properties"]["contents"], contents);
}

#[test]
fn sends_hash_cookie_and_search_fields() {
    let mut conversion = web_event("search", "Search");
    conversion.event.params = Some(r#"{"query":"shoes"}"#.to_owned());
    conversion.matching.phone = Some("1".repeat(64));
    conversion.matching.phone_e164 = Some("2".repeat(64));
    let captured = &mut conversion.click.as_mut().unwrap().captured;
    captured.browser_ids.ttp = Some("ttp-1".to_owned());
    let event = encoded(&account(C, &[]), conversion, "data");
    assert_eq!(event["properties"], json!({"query": "shoes"}));
    assert_eq!(event["user"]["phone"], json!("2".repeat(64)));
    assert_eq!(event["user"]["ttp"], "ttp-1");
}

#[rstest]
#[case::not_asked(None, None, None)]
#[case::both(Some(true), Some(true), None)]
#[case::no_personal_ads(Some(true), Some(false), Some(true))]
fn sends_limited_data_use_without_personalisation(
    #[case] user_data: Option<bool>,
    #[case] personal: Option<bool>,
    #[case] expected: Option<bool>,
) {
    let conversion = with_consent(sdk_event("install", "Lead"), user_data, personal);
    let event = encoded(&account(C, &[]), conversion, "data");
    let sent = event.get("limited_data_use").and_then(Value::as_bool);
    assert_eq!(sent, expected);
}

#[test]
fn test_events_have_a_code_and_are_not_batched() {
    let install = sdk_event("install", "Lead");
    let testing = account(C, &test_mode());
    assert_eq!(
        group_key(&testing, &install),
        GroupKey::Alone(install.delivery)
    );
    assert_eq!(group_key(&account(C, &[]), &install), GroupKey::Together);
    let request = encode(&testing, &[install], None);
    assert_eq!(body(&request)["test_event_code"], "TEST123");
}

fn changed(change: impl FnOnce(&mut Conversion)) -> Conversion {
    let mut conversion = sdk_event("install", "Lead");
    conversion.event.device = None;
    change(&mut conversion);
    conversion
}

fn without_ttclid(conversion: &mut Conversion) {
    let click = conversion.click.as_mut().unwrap();
    click.captured.click_ids.ttclid = None;
}

#[rstest]
#[case::by_click_id(changed(|_| ()), None)]
#[case::by_address_and_agent(changed(without_ttclid), None)]
#[case::by_address_alone(changed(|one| {
    without_ttclid(one);
    one.click.as_mut().unwrap().user_agent = None;
}), Some("insufficient_identity"))]
#[case::by_cookie(changed(|one| {
    without_ttclid(one);
    let click = one.click.as_mut().unwrap();
    click.user_agent = None;
    click.captured.browser_ids.ttp = Some("ttp-1".to_owned());
}), None)]
#[case::by_hash(changed(|one| {
    one.click = None;
    one.matching.email = Some(EMAIL.to_owned());
}), None)]
#[case::by_bad_hash(changed(|one| {
    one.click = None;
    one.matching.email = Some("joe@example.com".to_owned());
}), Some("insufficient_identity"))]
#[case::without_page(changed(|one| one.page_url = None), Some("no_source_url"))]
#[case::purchase_without_money(web_event("purchase", "Purchase"), Some("amount_not_forwardable"))]
#[case::consent_refused(
    with_consent(sdk_event("install", "Lead"), Some(false), None),
    Some("consent")
)]
fn checks_what_can_be_sent(#[case] conversion: Conversion, #[case] expected: Option<&str>) {
    let refused = check(&account(C, &[]), &conversion).err();
    assert_eq!(refused.map(|refused| refused.code), expected);
}

fn code(code: i64) -> String {
    format!(r#"{{"code": {code}, "message": "m", "request_id": "2026", "data": {{}}}}"#)
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

fn partial(failed: &str) -> String {
    format!(r#"{{"code":20001,"message":"Partial","data":{{"failed_events":[{failed}]}}}}"#)
}

fn all_but(failed: &[usize]) -> Ruling {
    Ruling::DeliveredExcept {
        failed: failed.to_vec(),
    }
}

#[test]
fn a_partial_success_has_error_messages() {
    let body = partial(r#"{"order_in_batch":0,"error_message":"bad time"}"#);
    let judgement = judged(C, 5, 200, &body);
    assert_eq!(judgement.message.as_deref(), Some("Partial bad time"));
    assert_eq!(judgement.warning, None);
    let unreadable = judged(C, 5, 200, &partial("{}"));
    assert!(unreadable.warning.is_some());
}

#[rstest]
#[case::taken(200, &code(0), Ruling::Delivered)]
#[case::code_as_text(200, r#"{"code":"0"}"#, Ruling::Delivered)]
#[case::partial(200, &code(20_001), Ruling::Delivered)]
#[case::named(200, r#"{"code":40002,"message":"Batch.3.properties.contents.0.content_id: Not a valid string"}"#, named(&[3]))]
#[case::several_named(200, r#"{"code":40002,"message":"Batch.3.event: x; Batch.1.event: y"}"#, named(&[1, 3]))]
#[case::named_outside(200, r#"{"code":40002,"message":"Batch.9.event: x"}"#, named(&[]))]
#[case::not_named(400, &code(40_002), named(&[]))]
#[case::wrong_pixel(
    200,
    r#"{"code":40002,"message":"Invalid pixel code: C0"}"#,
    Ruling::Pause
)]
#[case::wrong_source_id(
    200,
    r#"{"code":40002,"message":"event_source_id: Missing data for required field."}"#,
    Ruling::Pause
)]
#[case::pixel_of_an_event(200, r#"{"code":40002,"message":"Batch.2.pixel: Unknown field."}"#, named(&[2]))]
#[case::no_such_pixel(200, &code(40_007), Ruling::Pause)]
#[case::all_but_two(200, &partial(r#"{"order_in_batch":3,"error_message":"bad"},{"order_in_batch":"1"}"#), all_but(&[1, 3]))]
#[case::all_but_one_outside(200, &partial(r#"{"order_in_batch":5},{"order_in_batch":1}"#), Ruling::Delivered)]
#[case::partial_without_places(200, &partial(r#"{"error_message":"bad"}"#), Ruling::Delivered)]
#[case::no_permission(200, &code(40_001), Ruling::Pause)]
#[case::token(200, &code(40_105), Ruling::Pause)]
#[case::token_with_401(401, &code(40_105), Ruling::Pause)]
#[case::another_401xx(200, &code(40_102), Ruling::Pause)]
#[case::too_many(200, &code(40_100), Ruling::throttled())]
#[case::too_many_by_status(429, "", Ruling::throttled())]
#[case::code_40700(200, &code(40_700), Ruling::retry())]
#[case::code_5xxxx(200, &code(50_002), Ruling::retry())]
#[case::server_error(500, &code(40_002), Ruling::retry())]
#[case::html_502(502, "<html>", retry_maybe_processed())]
#[case::html_504(504, "<html>", retry_maybe_processed())]
#[case::other_4xxxx(200, &code(40_300), named(&[]))]
#[case::unknown(200, &code(61_000), Ruling::Unknown)]
#[case::no_code(200, r#"{"message":"OK"}"#, Ruling::Unknown)]
#[case::unreadable(200, "<html>", Ruling::Unknown)]
#[case::empty(200, "", Ruling::Unknown)]
#[case::html_403(403, "<html>", Ruling::Pause)]
#[case::html_413(413, "<html>", Ruling::TooLarge)]
fn judges_responses(#[case] status: u16, #[case] body: &str, #[case] expected: Ruling) {
    assert_eq!(judged(C, 5, status, body).ruling, expected);
}

#[rstest]
#[case(0, None, false)]
#[case(20_001, Some("20001"), true)]
#[case(40_300, Some("40300"), true)]
#[case(40_105, Some("40105"), false)]
fn warns_about_unknown_codes(
    #[case] answered: i64,
    #[case] expected_code: Option<&str>,
    #[case] warned: bool,
) {
    let judgement = judged(C, 1, 200, &code(answered));
    assert_eq!(judgement.code.as_deref(), expected_code);
    assert_eq!(judgement.trace_id.as_deref(), Some("2026"));
    assert_eq!(judgement.message.is_some(), expected_code.is_some());
    let names_trace = |warning: &String| warning.contains("2026");
    assert_eq!(judgement.warning.as_ref().is_some_and(names_trace), warned);
}
