use super::*;
use crate::kind::{FieldKind, amount, choice, flag, integer_in, text, text_list, text_map};
use crate::{app, integration, link};
use rstest::rstest;
use std::collections::BTreeMap;
use std::fmt::Debug;
use tributary_domain::app::AppSecret;
use tributary_domain::integration::{Network, SettingValue};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::Problem;
use tributary_domain::vocabulary::text::Name;

#[rstest]
#[case::plain("email=you&password=x", "you")]
#[case::encoded("email=you%40example.com", "you@example.com")]
#[case::plus_is_space("email=a+b%2Bc", "a b+c")]
#[case::absent("password=x", "")]
#[case::first_of_two("email=a&email=b", "a")]
#[case::not_utf_8("email=%ff", "\u{fffd}")]
#[case::nothing("", "")]
fn decodes_bodies(#[case] body: &str, #[case] email: &str) {
    assert_eq!(Form::parse(body.as_bytes()).unwrap().field("email"), email);
}

/// Reads the field `a.x`.
fn change<T>(
    body: &str,
    kind: FieldKind<impl FnOnce(InputValue<'_>) -> Result<T, Problem>>,
) -> (Change<T>, Vec<String>) {
    let form = Form::parse(body.as_bytes()).unwrap();
    let (value, faults) = form.read(|fields| {
        let mut section = fields.section("a");
        let value = section.change("x", kind);
        section.finish();
        value
    });
    let faults = faults.iter();
    let faults = faults.map(|fault| format!("{}: {}", fault.field, fault.message));
    (value, faults.collect())
}

fn set<T>(value: T) -> (Change<T>, Vec<String>) {
    (Change::Set(value), Vec::new())
}

fn fault<T>(message: &str) -> (Change<T>, Vec<String>) {
    (Change::Keep, vec![format!("a.x: {message}")])
}

#[track_caller]
fn assert_read<T: Debug + PartialEq>(
    found: (Change<T>, Vec<String>),
    expected: (Change<T>, Vec<String>),
) {
    assert_eq!(found, expected);
}

#[rstest]
#[case::typed("a.x=y", set("y".to_owned()))]
#[case::trimmed("a.x=+y%0D%0A", set("y".to_owned()))]
#[case::empty("a.x=", (Change::Reset, Vec::new()))]
#[case::blank("a.x=++", (Change::Reset, Vec::new()))]
#[case::absent("x=y&a=y", (Change::Keep, Vec::new()))]
#[case::a_number("a.x=5", set("5".to_owned()))]
#[case::null_is_a_word("a.x=null", set("null".to_owned()))]
fn reads_text(#[case] body: &str, #[case] expected: (Change<String>, Vec<String>)) {
    assert_read(change(body, text()), expected);
}

#[rstest]
#[case::checked("a.x=on", true)]
#[case::any_value("a.x=false", true)]
#[case::unchecked("", false)]
#[case::empty("a.x=", false)]
fn reads_checkboxes(#[case] body: &str, #[case] expected: bool) {
    assert_read(change(body, flag()), set(expected));
}

#[rstest]
#[case::number("a.x=24", set(24))]
#[case::with_spaces("a.x=+24+", set(24))]
#[case::empty("a.x=", (Change::Reset, Vec::new()))]
#[case::too_large("a.x=25", fault("Must be a whole number from 1 to 24."))]
#[case::a_fraction("a.x=1.5", fault("Must be a whole number from 1 to 24."))]
#[case::words("a.x=a+day", fault("Must be a whole number from 1 to 24."))]
#[case::a_sign_alone("a.x=-", fault("Must be a whole number from 1 to 24."))]
#[case::absurd(
    "a.x=99999999999999999999",
    fault("Must be a whole number from 1 to 24.")
)]
fn reads_numbers(#[case] body: &str, #[case] expected: (Change<i64>, Vec<String>)) {
    assert_read(change(body, integer_in(1..=24)), expected);
}

#[rstest]
#[case::decimal("a.x=9.90", Change::Set("9.9".to_owned()))]
#[case::more_digits_than_money_has("a.x=0.30000000000000004", Change::Keep)]
fn amounts_are_exact(#[case] body: &str, #[case] expected: Change<String>) {
    let (found, _) = change(body, amount());
    assert_eq!(found.map(|amount| amount.to_string()), expected);
}

#[rstest]
#[case::lines("a.x=one%0D%0Atwo%0D%0A", set(vec!["one".to_owned(), "two".to_owned()]))]
#[case::commas("a.x=one,+two,,", set(vec!["one".to_owned(), "two".to_owned()]))]
#[case::only_commas("a.x=,+,", set(Vec::new()))]
#[case::empty("a.x=", (Change::Reset, Vec::new()))]
#[case::too_many("a.x=1,2,3", fault("Must have at most 2 items."))]
fn reads_lists(#[case] body: &str, #[case] expected: (Change<Vec<String>>, Vec<String>)) {
    assert_read(
        change(body, text_list(2, |text| Ok(text.to_owned()))),
        expected,
    );
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[rstest]
#[case::lines("a.x=k+%3D+v%0D%0A%0D%0Al%3Dw%3Dw", set(map(&[("k", "v"), ("l", "w=w")])))]
#[case::without_value("a.x=k%3D", set(map(&[("k", "")])))]
#[case::empty("a.x=", (Change::Reset, Vec::new()))]
#[case::no_equals_sign("a.x=k", fault("Each line must be `key = value`."))]
#[case::twice("a.x=k%3D1%0Ak%3D2", fault("Duplicate key."))]
fn reads_maps(
    #[case] body: &str,
    #[case] expected: (Change<BTreeMap<String, String>>, Vec<String>),
) {
    assert_read(change(body, text_map()), expected);
}

#[rstest]
#[case::typed("a.x=hush", set("hush".to_owned()))]
#[case::typed_and_removed("a.x=hush&a.x.remove=on", set("hush".to_owned()))]
#[case::left_empty("a.x=", (Change::Keep, Vec::new()))]
#[case::absent("", (Change::Keep, Vec::new()))]
#[case::removed("a.x=&a.x.remove=on", (Change::Reset, Vec::new()))]
#[case::removed_without_a_field("a.x.remove=on", (Change::Reset, Vec::new()))]
#[case::checkbox_unchecked("a.x=&a.x.remove=", (Change::Keep, Vec::new()))]
fn reads_secrets(#[case] body: &str, #[case] expected: (Change<String>, Vec<String>)) {
    assert_read(change(body, text().write_only()), expected);
}

#[test]
fn only_a_secret_can_be_removed_by_a_checkbox() {
    let found = change("a.x=&a.x.remove=on", text().may_be_blank());
    assert_read(found, (Change::Keep, Vec::new()));
}

#[test]
fn an_unknown_choice_is_answered_with_the_choices() {
    let found = change("a.x=c", choice(&["a", "b"], |word| word));
    assert_read(found, fault("Must be one of a, b."));
}

#[rstest]
#[case::blank_name(
    "name=+",
    Some("name: Must not be empty."),
    Some("name: Must not be empty.")
)]
#[case::absent_name("", Some("name: Must not be empty."), None)]
#[case::named("name=x&slug=", None, None)]
fn links_need_a_name_but_no_slug(
    #[case] body: &str,
    #[case] when_new: Option<&str>,
    #[case] when_changed: Option<&str>,
) {
    let form = Form::parse(body.as_bytes()).unwrap();
    let message = |faults: Faults| Some(faults.to_string()).filter(|text| !text.is_empty());
    let (new, faults) = form.read(link::read_new);
    assert_eq!(message(faults).as_deref(), when_new);
    assert_eq!(
        new.map(|(_, slug, _)| slug),
        when_new.is_none().then_some(None)
    );
    let (changed, faults) = form.read(link::read_change);
    assert_eq!(message(faults).as_deref(), when_changed);
    assert_eq!(changed.slug, None);
}

#[test]
fn a_form_reads_an_app_as_the_api_does() {
    let body = "token=t&tag=3&name=Runner&ios.bundleId=com.example.runner&ios.teamId=&\
                attribution.probabilistic.ios=on&attribution.clickWindowHours=999&\
                revenueEvents=a%0D%0Ab&attribution.socialReferrerKey=&\
                attribution.socialReferrerKey.remove=on";
    let form = Form::parse(body.as_bytes()).unwrap();
    let ((change, secrets), faults) = form.read(|fields| app::read_change(fields, ""));
    assert_eq!(change.name, Name::parse("Runner").ok());
    assert_eq!(
        change.ios_bundle_id,
        Change::Set("com.example.runner".to_owned())
    );
    assert_eq!(change.ios_team_id, Change::Reset);
    assert_eq!(change.timezone, Change::Keep);
    assert_eq!(change.probabilistic_ios, Change::Set(true));
    assert_eq!(change.probabilistic_android, Change::Set(false));
    let events = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(change.revenue_events, Change::Set(events));
    let removed: Vec<AppSecret> = secrets
        .into_iter()
        .filter(|(_, change)| *change == Change::Reset)
        .map(|(secret, _)| secret)
        .collect();
    assert_eq!(removed, [AppSecret::SocialReferrerKey]);
    let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(fields, ["attribution.clickWindowHours"]);
}

#[test]
fn a_form_reads_an_integration_as_the_api_does() {
    let body = "scope=all&settings.pixelId=123&credentials.accessToken=";
    let form = Form::parse(body.as_bytes()).unwrap();
    let read = |fields: &mut Fields<'_>| integration::read_change(fields, Network::A);
    let ((change, credentials), faults) = form.read(read);
    assert!(faults.is_empty(), "{faults}");
    assert_eq!(change.enabled, Change::Set(false));
    assert_eq!(
        change.event_mapping,
        Change::Keep,
        "the form has no such field"
    );
    let pixel = Change::Set(SettingValue::Text("123".to_owned()));
    assert_eq!(change.settings.get("pixelId"), Some(&pixel));
    assert!(
        credentials
            .iter()
            .all(|(_, change)| *change == Change::Keep)
    );
}

#[test]
fn rejects_a_form_with_too_many_fields() {
    let most = vec!["a"; FIELDS_MAX].join("&");
    assert_eq!(
        Form::parse(most.as_bytes()).unwrap().fields().count(),
        FIELDS_MAX
    );
    let more = format!("{most}&");
    assert!(Form::parse(more.as_bytes()).is_none());
}
