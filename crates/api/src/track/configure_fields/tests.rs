use super::*;
use rstest::rstest;
use tributary_domain::device::Tracking;
use tributary_domain::vocabulary::fault::Faults;

/// Returns the parsed request, or all faults.
fn parse(body: &str) -> Result<ConfigureRequest, Vec<(String, &'static str)>> {
    let body = InputValue::Text(serde_json::from_str(body).unwrap());
    let mut faults = Faults::new();
    let request = read(&mut Fields::lenient(body, &mut faults));
    let found: Vec<(String, &'static str)> = faults
        .iter()
        .map(|fault| (fault.field.clone(), fault.code.as_str()))
        .collect();
    request.ok_or(found)
}

/// Parses a body with additional fields.
fn with(fields: &str) -> ConfigureRequest {
    parse(&format!(
        r#"{{"deviceId": "d1", "platform": "ios", {fields}}}"#
    ))
    .unwrap()
}

#[test]
fn only_device_id_and_platform_are_required() {
    let request = parse(r#"{"deviceId": "d1", "platform": "android"}"#).unwrap();
    assert_eq!(request.device.as_str(), "d1");
    assert_eq!(request.traits.platform, Platform::Android);
    assert_eq!(
        (request.traits.model, request.user, request.referrer),
        (None, None, None)
    );
    assert_eq!(request.times, ReferrerTimes::default());
}

#[test]
fn reports_all_faults_at_once() {
    let faulty = r#"{
        "deviceId": "", "platform": "symbian", "osVersion": 17, "screen": {"width": "wide", "height": []},
        "userId": ["x"], "openedUrl": {}, "userAgent": 1, "idfa": 1, "gaid": 1, "idfv": 1, "arClickId": 1, "adServicesToken": 1,
        "installReferrer": {"referrer": 1, "clickAtSeconds": "0", "installBeginAtServerSeconds": 1.5},
        "consent": {"adUserData": "yes", "tracking": "perhaps"}, "somethingNew": {"x": 1}
    }"#;
    let mut found = parse(faulty).unwrap_err();
    found.sort_unstable();
    let expected = [
        ("adServicesToken", "wrong_type"),
        ("arClickId", "wrong_type"),
        ("consent.adUserData", "wrong_type"),
        ("consent.tracking", "unknown_value"),
        ("deviceId", "too_short"),
        ("gaid", "wrong_type"),
        ("idfa", "wrong_type"),
        ("idfv", "wrong_type"),
        ("installReferrer.clickAtSeconds", "wrong_type"),
        ("installReferrer.installBeginAtServerSeconds", "wrong_type"),
        ("installReferrer.referrer", "wrong_type"),
        ("openedUrl", "wrong_type"),
        ("osVersion", "wrong_type"),
        ("platform", "unknown_value"),
        ("screen.height", "wrong_type"),
        ("screen.width", "wrong_type"),
        ("userAgent", "wrong_type"),
        ("userId", "wrong_type"),
    ];
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(field, code)| (field.as_str(), *code))
        .collect();
    assert_eq!(found, expected);
}

#[rstest]
#[case::os_version("osVersion", "17")]
#[case::model("model", "{}")]
#[case::locale("locale", "[1]")]
#[case::timezone("timezone", "true")]
#[case::screen("screen", r#""390x844""#)]
#[case::side_of_a_screen("screen", r#"{"width": "390", "height": 844, "scale": 3}"#)]
#[case::user("userId", "42")]
#[case::user_too_long("userId", &format!(r#""{}""#, "u".repeat(256)))]
#[case::user_with_nul("userId", r#""a\u0000b""#)]
#[case::opened_url("openedUrl", "{}")]
#[case::user_agent("userAgent", "[]")]
#[case::idfa("idfa", "1")]
#[case::idfa_too_long("idfa", &format!(r#""{}""#, "f".repeat(5_000)))]
#[case::idfv("idfv", "1")]
#[case::click_id("arClickId", "1")]
#[case::referrer("installReferrer", r#""utm_source=x""#)]
#[case::token("adServicesToken", "1")]
#[case::consent("consent", r#""yes""#)]
#[case::parts_of_consent(
    "consent",
    r#"{"adUserData": "yes", "adPersonalization": 1, "tracking": "perhaps"}"#
)]
fn an_invalid_optional_field_is_ignored(#[case] field: &str, #[case] value: &str) {
    let request = with(&format!(r#""manufacturer": "Apple", "{field}": {value}"#));
    assert_eq!(
        request.traits,
        Traits {
            manufacturer: Some("Apple".to_owned()),
            ..with(r#""model": null"#).traits
        }
    );
    assert!(request.user.is_none() && request.advertising_id.is_none() && request.idfv.is_none());
    assert_eq!(
        (request.consent, request.referrer),
        (Consent::default(), None)
    );
    assert_eq!(
        (
            request.opened_url,
            request.click_id,
            request.ad_services_token
        ),
        (None, None, None)
    );
}

#[rstest]
#[case::authorized(r#""authorized""#, Some(Tracking::Authorized))]
#[case::denied(r#""denied""#, Some(Tracking::Denied))]
#[case::not_asked(r#""notDetermined""#, Some(Tracking::NotDetermined))]
#[case::may_not_decide(r#""restricted""#, Some(Tracking::Denied))]
#[case::unknown_word(r#""perhaps""#, None)]
#[case::another_spelling(r#""Authorized""#, None)]
#[case::number_of_the_platform("3", None)]
fn answers_to_the_tracking_prompt(#[case] word: &str, #[case] expected: Option<Tracking>) {
    let request = with(&format!(
        r#""consent": {{"adUserData": true, "tracking": {word}}}"#
    ));
    assert_eq!(request.consent.tracking, expected);
    assert_eq!(
        request.consent.ad_user_data,
        Some(true),
        "the other fields are read"
    );
}

#[test]
fn both_required_fields_are_reported() {
    let expected = [
        ("deviceId".to_owned(), "required"),
        ("platform".to_owned(), "required"),
    ];
    assert_eq!(parse(r#"{"deviceId": null}"#).unwrap_err(), expected);
}

#[test]
fn long_texts_are_cut_and_control_characters_removed() {
    let request = with(&format!(
        r#""model": " a\u0000b\n{} ", "locale": "\t""#,
        "x".repeat(500)
    ));
    let model = request.traits.model.unwrap();
    assert_eq!(model.chars().count(), TRAIT_CHARS_MAX);
    assert!(model.starts_with("abx"));
    assert_eq!(request.traits.locale, None);
}

#[rstest]
#[case::whole(r#"{"width": 390, "height": 844, "scale": 3}"#, Some((844, 390, 300)))]
#[case::fractions(r#"{"width": 392.72727272727275, "height": 850.9, "scale": 2.75}"#, Some((851, 393, 275)))]
#[case::scale_is_truncated(r#"{"width": 412, "height": 915, "scale": 2.625}"#, Some((915, 412, 262)))]
#[case::unknown(r#"{"width": 0, "height": 0, "scale": 0}"#, None)]
#[case::incomplete(r#"{"width": 390, "height": 844}"#, None)]
#[case::negative(r#"{"width": -390, "height": 844, "scale": 3}"#, None)]
#[case::absurd(r#"{"width": 1e300, "height": 844, "scale": 3}"#, None)]
#[case::nothing("null", None)]
fn screens(#[case] screen: &str, #[case] expected: Option<(u32, u32, u32)>) {
    let request = with(&format!(r#""screen": {screen}"#));
    assert_eq!(request.traits.screen.map(Screen::parts), expected);
}

const ID: &str = "6F9619FF-8B86-4011-B42D-00C04FC964FF";

#[rstest]
#[case::apples_on_ios("ios", "idfa", "authorized", true)]
#[case::googles_on_ios("ios", "gaid", "authorized", false)]
#[case::googles_on_android("android", "gaid", "notDetermined", true)]
#[case::denied("android", "gaid", "denied", false)]
#[case::restricted("ios", "idfa", "restricted", false)]
#[case::on_the_web("web", "idfa", "authorized", false)]
fn advertising_ids(
    #[case] platform: &str,
    #[case] field: &str,
    #[case] tracking: &str,
    #[case] expected: bool,
) {
    let body = format!(
        r#"{{"deviceId": "d1", "platform": "{platform}", "{field}": "{ID}", "consent": {{"tracking": "{tracking}"}}}}"#
    );
    assert_eq!(parse(&body).unwrap().advertising_id.is_some(), expected);
}

#[test]
fn an_all_zero_advertising_id_is_ignored() {
    let request = with(r#""idfa": "00000000-0000-0000-0000-000000000000""#);
    assert!(request.advertising_id.is_none());
}

#[rstest]
#[case::none_sent("null", None)]
#[case::unavailable("{}", Some(Referrer::Unavailable))]
#[case::unavailable_with_null(r#"{"referrer": null}"#, Some(Referrer::Unavailable))]
#[case::unreadable(r#"{"referrer": 5}"#, Some(Referrer::Unavailable))]
#[case::no_object(r#""utm_source=x""#, None)]
#[case::empty(r#"{"referrer": ""}"#, Some(Referrer::Organic))]
#[case::ours(r#"{"referrer": "ar_click_id=clk_1"}"#, Some(Referrer::Ours("clk_1".to_owned())))]
fn referrers(#[case] referrer: &str, #[case] expected: Option<Referrer>) {
    assert_eq!(
        with(&format!(r#""installReferrer": {referrer}"#)).referrer,
        expected
    );
}

#[rstest]
#[case::seconds("1700000000", Some(1_700_000_000_000))]
#[case::float("1700000000.0", Some(1_700_000_000_000))]
#[case::exponent("1.7e9", Some(1_700_000_000_000))]
#[case::fraction("1700000000.5", None)]
#[case::text(r#""1700000000""#, None)]
#[case::zero_is_unknown("0", None)]
#[case::zero_of_a_float("0.0", None)]
#[case::negative("-1", None)]
#[case::beyond_all_time("9223372036854775807", None)]
#[case::beyond_all_numbers("99999999999999999999999", None)]
fn times(#[case] seconds: &str, #[case] expected: Option<i64>) {
    let request = with(&format!(
        r#""installReferrer": {{"clickAtServerSeconds": {seconds}}}"#
    ));
    assert_eq!(
        request.times.click_at_server,
        expected.map(Timestamp::from_millis)
    );
}

#[test]
fn an_empty_user_id_means_no_user() {
    assert!(with(r#""userId": """#).user.is_none());
    assert_eq!(with(r#""userId": "u1""#).user.unwrap().as_str(), "u1");
}

#[test]
fn accepts_a_token_only_on_ios_and_within_the_length_limit() {
    assert_eq!(
        with(r#""adServicesToken": "abc""#)
            .ad_services_token
            .as_deref(),
        Some("abc")
    );
    let long = format!(
        r#""adServicesToken": "{}""#,
        "x".repeat(AD_SERVICES_TOKEN_BYTES_MAX + 1)
    );
    assert_eq!(with(&long).ad_services_token, None);
    let android = r#"{"deviceId": "d1", "platform": "android", "adServicesToken": "abc"}"#;
    assert_eq!(parse(android).unwrap().ad_services_token, None);
}
