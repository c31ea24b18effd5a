//! Tests the reference's example requests, and which conversions can be sent.

use crate::ruling::Ruling;
use crate::samples::{
    EMAIL, ON, account, body, encoded, header, response, sdk_event, text_setting, web_event,
    web_purchase, web_trial, with_consent,
};
use crate::{Account, GroupKey, SendOutcome, check, encode, group_key, judge};
use rstest::rstest;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_domain::event::EventSource;
use tributary_domain::forwarding::Conversion;
use tributary_domain::integration::Network::B;
use tributary_domain::integration::SettingValue;

mod answers;
mod asynchronous;

fn with(more: &[(&str, SettingValue)]) -> Account {
    let actions = [
        ("purchase", "6677889900"),
        ("start_trial", "6677889911"),
        ("install", "6677889922"),
    ];
    let actions = actions.map(|(key, id)| (key.to_owned(), id.to_owned()));
    let actions = SettingValue::Map(actions.into());
    let mut settings = vec![("conversionActions", actions)];
    settings.extend_from_slice(more);
    account(B, &settings)
}

fn clicked(conversion: &mut Conversion, gclid: bool, gbraid: bool, wbraid: bool) {
    let ids = &mut conversion.click.as_mut().unwrap().captured.click_ids;
    let id = |on: bool, text: &str| on.then(|| text.to_owned());
    ids.gclid = id(gclid, "EAIaIQobChMI-example_gclid");
    ids.gbraid = id(gbraid, "example_gbraid");
    ids.wbraid = id(wbraid, "Cj4KCQiA-example_wbraid");
}

#[test]
fn example_a_website_purchase_with_user_data() {
    let account = with(&[
        ("loginAccountId", text_setting("9876543210")),
        ("userDataEnabled", ON),
    ]);
    let request = encode(&account, &[web_purchase("purchase")], Some("ya29.a0"));
    assert_eq!(request.path_and_query, "/v1/events:ingest");
    assert_eq!(header(&request, "authorization"), Some("Bearer ya29.a0"));
    insta::assert_json_snapshot!(body(&request));
}

/// The example denies personalised ads, which website events cannot express. The test therefore
/// uses an app whose events are sent as website events.
#[test]
fn example_b_start_trial_without_user_data() {
    let account = with(&[("sdkEventSource", text_setting("WEB"))]);
    let mut trial = web_trial("start_trial");
    trial.event.source = EventSource::Sdk;
    trial.device = Some(crate::samples::device());
    clicked(&mut trial, false, false, true);
    let trial = with_consent(trial, Some(true), Some(false));
    let request = encode(&account, &[trial], Some("t"));
    insta::assert_json_snapshot!(body(&request));
}

#[test]
fn example_c_app_install() {
    let mut install = sdk_event("install", "install");
    "8df69d5c786b456eeab30859463ffed2".clone_into(&mut install.dedup_id);
    let request = encode(&with(&[]), &[install], Some("t"));
    insta::assert_json_snapshot!(body(&request));
}

#[rstest]
#[case::gclid_first(web_event("purchase", "purchase"), (true, true, true), "gclid")]
#[case::web_by_wbraid(web_event("purchase", "purchase"), (false, true, true), "wbraid")]
#[case::web_by_gbraid(web_event("purchase", "purchase"), (false, true, false), "gbraid")]
#[case::app_by_gbraid(sdk_event("install", "install"), (false, true, true), "gbraid")]
#[case::app_by_wbraid(sdk_event("install", "install"), (false, false, true), "wbraid")]
fn sends_exactly_one_click_id(
    #[case] mut conversion: Conversion,
    #[case] ids: (bool, bool, bool),
    #[case] expected: &str,
) {
    clicked(&mut conversion, ids.0, ids.1, ids.2);
    let event = encoded(&with(&[]), conversion, "events");
    let identifiers = event["adIdentifiers"].as_object().unwrap();
    let names: Vec<&String> = identifiers.keys().collect();
    assert_eq!(names, [expected]);
}

#[test]
fn sends_user_data_in_googles_normalisation() {
    let mut conversion = web_event("purchase", "purchase");
    conversion.matching.email_google = Some("1".repeat(64));
    conversion.matching.phone = Some("2".repeat(64));
    conversion.matching.phone_e164 = Some("3".repeat(64));
    let off = encoded(&with(&[]), conversion.clone(), "events");
    assert_eq!(off.get("userData"), None);
    let on = encoded(&with(&[("userDataEnabled", ON)]), conversion, "events");
    let expected = json!([{"emailAddress": "1".repeat(64)}, {"phoneNumber": "3".repeat(64)}]);
    assert_eq!(on["userData"]["userIdentifiers"], expected);
}

#[rstest]
#[case::not_asked(None, None, None)]
#[case::both(Some(true), Some(true), Some(json!({"adUserData": "CONSENT_GRANTED", "adPersonalization": "CONSENT_GRANTED"})))]
#[case::no_personal_ads(Some(true), Some(false), Some(json!({"adUserData": "CONSENT_GRANTED", "adPersonalization": "CONSENT_DENIED"})))]
fn sends_consent(
    #[case] user_data: Option<bool>,
    #[case] personal: Option<bool>,
    #[case] expected: Option<Value>,
) {
    let conversion = with_consent(sdk_event("install", "install"), user_data, personal);
    let event = encoded(&with(&[]), conversion, "events");
    assert_eq!(event.get("consent"), expected.as_ref());
}

#[test]
fn groups_events_by_conversion_action() {
    let account = with(&[]);
    let key = |event: &str| group_key(&account, &sdk_event(event, event));
    assert_eq!(
        key("install"),
        GroupKey::ConversionAction("6677889922".to_owned())
    );
    assert_ne!(key("install"), key("purchase"));
}

fn without_click(name: &str) -> Conversion {
    let mut conversion = sdk_event(name, name);
    conversion.click = None;
    conversion
}

fn hashed(name: &str) -> Conversion {
    let mut conversion = without_click(name);
    conversion.matching.email = Some(EMAIL.to_owned());
    conversion
}

fn with_id_alone() -> Conversion {
    let mut conversion = without_click("install");
    conversion.network_click_id = Some(("gclid".to_owned(), "g-1".to_owned()));
    conversion
}

/// Returns an install from a device whose clock is behind.
fn clicked_after(after: Duration) -> Conversion {
    let mut conversion = sdk_event("install", "install");
    let clicked_at = conversion.event.occurred_at.plus(after);
    conversion.click.as_mut().unwrap().clicked_at = clicked_at;
    conversion
}

#[test]
fn the_event_time_is_not_before_the_click() {
    let conversion = clicked_after(Duration::from_mins(10));
    let clicked_at = crate::text::rfc3339(conversion.clicked_at().unwrap());
    let sent = body(&encode(&with(&[]), &[conversion], Some("t")));
    assert_eq!(sent["events"][0]["eventTimestamp"], clicked_at);
}

#[rstest]
#[case::by_click(false, sdk_event("install", "install"), None)]
#[case::by_click_a_moment_later(false, clicked_after(Duration::from_mins(10)), None)]
#[case::by_click_long_after(false, clicked_after(Duration::from_mins(11)), Some("no_click_id"))]
#[case::by_id_alone(false, with_id_alone(), None)]
#[case::without_click(false, without_click("install"), Some("no_click_id"))]
#[case::user_data_disabled(false, hashed("start_trial"), Some("no_click_id"))]
#[case::hash(true, hashed("start_trial"), None)]
#[case::no_hash(true, without_click("start_trial"), Some("no_click_id"))]
#[case::install_by_hash(true, hashed("install"), Some("no_click_id"))]
#[case::no_action(false, sdk_event("search", "search"), Some("no_conversion_action"))]
#[case::purchase_without_money(
    false,
    web_event("purchase", "purchase"),
    Some("amount_not_forwardable")
)]
#[case::consent_refused(
    false,
    with_consent(sdk_event("install", "install"), Some(false), None),
    Some("consent")
)]
fn checks_what_can_be_sent(
    #[case] user_data: bool,
    #[case] conversion: Conversion,
    #[case] expected: Option<&str>,
) {
    let account = with(&[("userDataEnabled", SettingValue::Flag(user_data))]);
    let refused = check(&account, &conversion).err();
    assert_eq!(refused.map(|refused| refused.code), expected);
}

#[test]
fn test_requests_are_only_validated() {
    let testing = with(&[("testMode", ON)]);
    let request = encode(&testing, &[sdk_event("install", "install")], Some("t"));
    assert_eq!(body(&request)["validateOnly"], true);
    let judgement = judge(&testing, 1, &SendOutcome::Response(response(200, "")));
    assert_eq!(judgement.ruling, Ruling::Delivered);
}

#[rstest]
#[case::not_asked_for(with(&[]), None)]
#[case::asked_for(
    with(&[("landingPageDeviceInfo", ON)]),
    Some(json!({"ipAddress": "203.0.113.24", "userAgent": crate::samples::USER_AGENT}))
)]
fn sends_the_browser_only_if_enabled(#[case] account: Account, #[case] expected: Option<Value>) {
    let event = encoded(&account, sdk_event("install", "install"), "events");
    let ids = &event["adIdentifiers"];
    assert_eq!(ids["gclid"], "EAIaIQobChMI-example_gclid");
    assert_eq!(ids.get("landingPageDeviceInfo"), expected.as_ref());
}
