//! Parameters that were pasted, expanded, repeated or mangled.

use super::*;
use proptest::prelude::*;
use rstest::rstest;

fn pairs(query: &str) -> Vec<(String, String)> {
    ClickParameters::read(query)
        .all()
        .iter()
        .map(|parameter| (parameter.name.clone(), parameter.value.clone()))
        .collect()
}

fn value(query: &str, key: &str) -> Option<String> {
    ClickParameters::read(query).get(key)
}

#[rstest]
#[case::plain("fbclid=AbC", Some("AbC"))]
#[case::name_in_capitals("FBCLID=AbC", Some("AbC"))]
#[case::name_encoded("%66bclid=AbC", Some("AbC"))]
#[case::plus_stays("fbclid=a+b%2Bc", Some("a+b+c"))]
#[case::decoded_once("fbclid=a%252Fb", Some("a%2Fb"))]
#[case::trimmed("fbclid=%20%09a%0A", Some("a"))]
#[case::control_characters("fbclid=a%00b%0D%0Ac", Some("abc"))]
#[case::empty("fbclid=", None)]
#[case::no_value("fbclid", None)]
#[case::only_white_space("fbclid=%20", None)]
#[case::macro_of_network_a("fbclid={{fbclid}}", None)]
#[case::macro_of_network_a_encoded("fbclid=%7B%7Bfbclid%7D%7D", None)]
#[case::macro_of_network_b("fbclid={gclid}", None)]
#[case::macro_of_network_c("fbclid=__CLICKID__", None)]
#[case::half_a_macro("fbclid=x}", None)]
#[case::underscores_of_an_id("fbclid=__a.b__", Some("__a.b__"))]
#[case::underscores_alone("fbclid=____", Some("____"))]
#[case::macro_then_value("fbclid={{fbclid}}&fbclid=real", Some("real"))]
#[case::empty_then_value("fbclid=&fbclid=real", Some("real"))]
#[case::first_value_wins("fbclid=one&fbclid=two", Some("one"))]
#[case::first_spelling_wins("FbClId=one&fbclid=two", Some("one"))]
#[case::not_utf_8("fbclid=%ff", Some("\u{fffd}"))]
#[case::equals_sign_inside("fbclid=a=b", Some("a=b"))]
#[case::semicolon_separates_nothing("x=1;fbclid=a", None)]
fn cleans_click_ids(#[case] query: &str, #[case] expected: Option<&str>) {
    assert_eq!(value(query, "fbclid").as_deref(), expected);
}

#[rstest]
#[case::utm("utm_source", "a b")]
#[case::custom_utm("utm_id", "a b")]
#[case::campaign_name("campaign_name", "a b")]
#[case::unknown_parameter("invite", "a b")]
#[case::campaign_id("campaign_id", "a+b")]
#[case::browser_id("fbp", "a+b")]
fn a_plus_is_a_space_except_in_ids(#[case] name: &str, #[case] expected: &str) {
    assert_eq!(
        value(&format!("{name}=a+b"), name).as_deref(),
        Some(expected)
    );
}

#[rstest]
#[case::click_id("fbclid", 500)]
#[case::id("ad_id", 500)]
#[case::unknown("invite", 500)]
#[case::name("ad_name", 200)]
#[case::tag("utm_term", 200)]
fn cuts_long_values_by_characters(#[case] name: &str, #[case] chars: usize) {
    let query = |chars| format!("{name}={}", "%C3%A4".repeat(chars));
    let kept = |chars| value(&query(chars), name).map(|value| value.chars().count());
    assert_eq!(kept(chars), Some(chars));
    assert_eq!(kept(chars + 1), Some(chars));
}

#[rstest]
#[case::as_it_is("offer=trial", Some("trial"))]
#[case::escaped("offer=%74rial", Some("trial"))]
#[case::space_after("offer=trial%20", None)]
#[case::space_before("offer=+trial", None)]
#[case::control_character("offer=tri%00al", None)]
#[case::cut(&format!("offer={}", "x".repeat(201)), None)]
#[case::the_first_counts("offer=trial%20&offer=trial", None)]
#[case::absent("", None)]
fn a_value_is_exact_if_cleaning_changed_nothing(
    #[case] query: &str,
    #[case] expected: Option<&str>,
) {
    assert_eq!(ClickParameters::read(query).exact("offer"), expected);
}

#[test]
fn drops_the_fifty_first_parameter_unless_it_is_known() {
    let many: Vec<String> = (0..60).map(|n| format!("p{n}={n}")).collect();
    let kept = pairs(&many.join("&"));
    assert_eq!(kept.len(), 50);
    assert_eq!(kept[49].0, "p49");
    let kept = pairs(&format!("{}&fbclid=x", many.join("&")));
    assert_eq!(kept.len(), 50);
    assert_eq!(kept[48].0, "p48");
    assert_eq!(kept[49], ("fbclid".to_owned(), "x".to_owned()));
}

#[test]
fn drops_parameters_beyond_four_kibibytes_but_keeps_click_ids() {
    let long = "x".repeat(500);
    let many: Vec<String> = (0..9).map(|n| format!("p{n}={long}")).collect();
    let kept = pairs(&format!("{}&gclid={long}&small=1", many.join("&")));
    let bytes: usize = kept
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    assert!(bytes <= PARAMETERS_BYTES_MAX);
    assert_eq!(
        kept.len(),
        9,
        "seven long ones, the click id, the small one"
    );
    assert!(kept.iter().any(|(name, _)| name == "gclid"));
    assert!(kept.iter().any(|(name, _)| name == "small"));
}

#[test]
fn unknown_parameters_keep_their_spelling() {
    let kept = pairs("inviteCode=1&INVITECODE=2&UTM_Source=x&AdGroup_ID=3");
    let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["inviteCode", "utm_source", "adgroup_id"]);
}

proptest! {
    #[test]
    fn nothing_panics_and_limits_hold(query in ".*") {
        let kept = pairs(&query);
        prop_assert!(kept.len() <= PARAMETERS_MAX);
        for (name, value) in kept {
            prop_assert!(!name.is_empty() && !value.is_empty());
            prop_assert!(!name.chars().chain(value.chars()).any(char::is_control));
        }
    }

    #[test]
    fn bytes_of_any_kind_do_not_panic(bytes: Vec<u8>) {
        use std::fmt::Write as _;
        let mut query = String::from("fbclid=");
        for byte in bytes {
            write!(query, "%{byte:02x}").unwrap();
        }
        let _any_outcome_is_fine = pairs(&query);
    }
}
