//! Tests the reference's example requests, and which conversions can be sent.

mod answers;

use super::encode::appsecret_proof;
use crate::samples::{
    EXTERNAL_ID, ON, USER_HASH, account, body, encoded, header, identified_event, integration,
    revenue, sdk_event, test_mode, text_setting, web_event, web_purchase, web_trial,
    with_advertising_id, with_consent,
};
use crate::{Account, Secret, check, encode};
use rstest::rstest;
use serde_json::{Value, json};
use tributary_domain::device::{Platform, Tracking};
use tributary_domain::event::EventSource;
use tributary_domain::forwarding::Conversion;
use tributary_domain::integration::Network::A;
use tributary_domain::ledger::UncountedReason;

fn app_mode() -> Account {
    account(A, &[("sdkEventMode", text_setting("app"))])
}

#[test]
fn example_a_website_purchase() {
    let request = encode(&account(A, &[]), &[web_purchase("Purchase")], None);
    assert_eq!(
        request.path_and_query,
        "/v26.0/1029384756/events?access_token=hush-token"
    );
    assert_eq!(header(&request, "content-type"), Some("application/json"));
    insta::assert_json_snapshot!(body(&request));
}

#[test]
fn example_b_website_start_trial() {
    let request = encode(&account(A, &[]), &[web_trial("StartTrial")], None);
    insta::assert_json_snapshot!(body(&request));
}

#[test]
fn example_c_app_install_in_website_mode() {
    let request = encode(&account(A, &[]), &[sdk_event("install", "Lead")], None);
    insta::assert_json_snapshot!(body(&request));
}

/// As in the reference, except for values that our SDKs do not collect: time zone abbreviation,
/// cores, storage.
#[test]
fn example_c_app_install_in_app_mode() {
    let request = encode(&app_mode(), &[sdk_event("install", "Lead")], None);
    insta::assert_json_snapshot!(body(&request));
}

#[test]
fn sends_a_proof_of_the_app_secret() {
    let check_value = "9bcde7f1d5e226d86e4692a62e5ec88f99306fb302d74b2dc3bff8a03770b63d";
    assert_eq!(appsecret_proof("SECRET", "TOKEN"), check_value);
    let (integration, mut secrets) = integration(A, &[]);
    secrets.insert("accessToken".to_owned(), Secret::new("TOKEN"));
    secrets.insert("appSecret".to_owned(), Secret::new("SECRET"));
    let account = Account::read(&integration, &secrets).unwrap();
    let path = encode(&account, &[sdk_event("install", "Lead")], None).path_and_query;
    assert!(path.ends_with(&format!(
        "?access_token=TOKEN&appsecret_proof={check_value}"
    )));
}

#[test]
fn test_requests_have_a_code() {
    let request = encode(&account(A, &test_mode()), &[web_purchase("Purchase")], None);
    assert_eq!(body(&request)["test_event_code"], "TEST123");
}

#[test]
fn limited_data_use_is_set_on_every_event() {
    let limited = account(A, &[("limitedDataUse", ON)]);
    let event = encoded(&limited, sdk_event("install", "Lead"), "data");
    assert_eq!(event["data_processing_options"], json!(["LDU"]));
    assert_eq!(event["data_processing_options_country"], 0);
    assert_eq!(event["data_processing_options_state"], 0);
    let event = encoded(&account(A, &[]), sdk_event("install", "Lead"), "data");
    assert_eq!(event.get("data_processing_options"), None);
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
    let conversion = with_consent(sdk_event("install", "Lead"), user_data, personal);
    let event = encoded(&account(A, &[]), conversion, "data");
    assert_eq!(event.get("opt_out").and_then(Value::as_bool), expected);
}

#[rstest]
#[case::ios_yes(Platform::Ios, Some(Tracking::Authorized), true)]
#[case::ios_no(Platform::Ios, Some(Tracking::Denied), false)]
#[case::android(Platform::Android, None, true)]
fn sends_advertising_ids_only_with_app_events(
    #[case] platform: Platform,
    #[case] tracking: Option<Tracking>,
    #[case] is_sent: bool,
) {
    let conversion = with_advertising_id(sdk_event("install", "Lead"), platform, tracking);
    let website = encoded(&account(A, &[]), conversion.clone(), "data");
    assert_eq!(website["user_data"].get("madid"), None);
    let app = encoded(&app_mode(), conversion, "data");
    let expected = is_sent.then(|| json!("6f9619ff-8b86-4011-b42d-00c04fc964ff"));
    assert_eq!(app["user_data"].get("madid"), expected.as_ref());
    assert_eq!(app["app_data"].get("vendor_id").is_some(), is_sent);
}

#[test]
fn sends_search_phone_and_cookie_fields() {
    let mut conversion = web_event("search", "Search");
    conversion.event.params = Some(r#"{"search_string":"shoes"}"#.to_owned());
    conversion.matching.phone = Some("1".repeat(64));
    let captured = &mut conversion.click.as_mut().unwrap().captured;
    captured.browser_ids.fbp = Some("fb.1.1794561000000.77".to_owned());
    let event = encoded(&account(A, &[]), conversion, "data");
    assert_eq!(event["custom_data"], json!({"search_string": "shoes"}));
    assert_eq!(event["user_data"]["ph"], json!(["1".repeat(64)]));
    assert_eq!(event["user_data"]["fbp"], "fb.1.1794561000000.77");
}

#[test]
fn sends_match_quality_fields() {
    let event = encoded(
        &account(A, &[]),
        identified_event("purchase", "Purchase"),
        "data",
    );
    let user = &event["user_data"];
    assert_eq!(user["external_id"], json!([EXTERNAL_ID, USER_HASH]));
    // SHA-256 of "us".
    let country = "79adb2a2fce5c6ba215fe5f27f532d4e7edbac4b6a5e09e1ef3a08084a904621";
    assert_eq!(user["country"], json!([country]));
    assert_eq!(event["custom_data"]["content_ids"], json!(["pro.monthly"]));
    assert_eq!(event["custom_data"]["content_type"], "product");
}

#[rstest]
#[case::priced("9.99", true)]
#[case::free("0", false)]
fn a_free_trial_has_no_predicted_value(#[case] price: &str, #[case] declared: bool) {
    let mut trial = web_trial("StartTrial");
    trial.event.revenue = Some(revenue(price, Some(UncountedReason::Zero)));
    let event = encoded(&account(A, &[]), trial, "data");
    assert!(event["custom_data"].get("value").is_some());
    let ltv = event["custom_data"].get("predicted_ltv");
    assert_eq!(ltv.is_some(), declared);
}

#[test]
fn the_sdk_on_a_web_page_counts_as_a_website() {
    let mut conversion = sdk_event("sign_up", "CompleteRegistration");
    conversion.event.platform = Some(Platform::Web);
    let event = encoded(&app_mode(), conversion, "data");
    assert_eq!(event["action_source"], "website");
}

fn changed(change: impl FnOnce(&mut Conversion)) -> Conversion {
    let mut conversion = sdk_event("install", "Lead");
    change(&mut conversion);
    conversion
}

/// Marks the event as coming from a billing provider.
fn billed(mut conversion: Conversion) -> Conversion {
    conversion.event.source = EventSource::Billing;
    conversion
}

fn without_click() -> Conversion {
    changed(|conversion| conversion.click = None)
}

/// Returns a conversion with a user agent but no identifiers.
fn agent_only() -> Conversion {
    changed(|conversion| {
        conversion.event.device = None;
        let click = conversion.click.as_mut().unwrap();
        click.address = None;
        click.captured.click_ids.fbclid = None;
    })
}

#[rstest]
#[case::website(account(A, &[]), sdk_event("install", "Lead"), None)]
#[case::website_without_agent(account(A, &[]), without_click(), Some("insufficient_identity"))]
#[case::website_with_agent_only(account(A, &[]), agent_only(), Some("insufficient_identity"))]
#[case::website_without_page(
    account(A, &[]), changed(|one| one.page_url = None), Some("no_source_url")
)]
#[case::app(app_mode(), sdk_event("install", "Lead"), None)]
#[case::app_without_click(app_mode(), without_click(), None)]
#[case::app_without_page(app_mode(), changed(|one| one.page_url = None), None)]
#[case::app_without_identity(app_mode(), agent_only(), Some("insufficient_identity"))]
#[case::app_without_device(
    app_mode(), changed(|one| one.device = None), Some("no_device_data")
)]
#[case::consent_refused(
    account(A, &[]), with_consent(sdk_event("install", "Lead"), Some(false), None), Some("consent")
)]
#[case::purchase(account(A, &[]), web_purchase("Purchase"), None)]
#[case::purchase_without_money(
    account(A, &[]), web_event("purchase", "Purchase"), Some("amount_not_forwardable")
)]
#[case::called_purchase_without_money(
    account(A, &[]), web_event("order", "Purchase"), Some("amount_not_forwardable")
)]
#[case::subscription_without_money(
    account(A, &[]), billed(sdk_event("subscribe", "Subscribe")), Some("amount_not_forwardable")
)]
#[case::wish_to_subscribe(account(A, &[]), sdk_event("subscribe", "Subscribe"), None)]
#[case::trial_without_money(account(A, &[]), web_event("start_trial", "StartTrial"), None)]
fn checks_what_can_be_sent(
    #[case] account: Account,
    #[case] conversion: Conversion,
    #[case] expected: Option<&str>,
) {
    let refused = check(&account, &conversion).err();
    assert_eq!(refused.map(|refused| refused.code), expected);
}
