//! Destinations of clicks, and attempts at open redirects.

use super::*;
use crate::app::AppCreation;
use crate::link::tests::any_link;
use crate::vocabulary::id::{AppId, OrganizationId};
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;
use proptest::prelude::*;
use rstest::rstest;
use url::Url;

const CLICK: &str = "clk_0123";
const LINK: &str = "ar_link_id=lnk_01040g2081040g2081040g2081";

fn runner() -> App {
    let creation = AppCreation {
        id: AppId::from_bytes([1; 16]),
        organization: OrganizationId::from_bytes([2; 16]),
        live_key: "pk_live_…".to_owned(),
        test_key: "pk_test_…".to_owned(),
        at: Timestamp::from_millis(1),
    };
    let mut app = App::new(creation, Name::parse("Runner").unwrap());
    app.ios.app_store_id = Some("123456789".to_owned());
    app.android.package_name = Some("com.example.runner".to_owned());
    app
}

#[expect(clippy::unnecessary_wraps, reason = "every field is an Option")]
fn https(url: &str) -> Option<HttpsUrl> {
    Some(HttpsUrl::parse(url).unwrap())
}

fn funnel(url: &str) -> Link {
    Link {
        kind: LinkKind::WebFunnel,
        destination_url: Some(PageUrl::parse(url).unwrap()),
        ..any_link()
    }
}

fn destination(
    link: &Link,
    app: &App,
    platform: Platform,
    query: &str,
    click: Option<&str>,
) -> Destination {
    let parameters = ClickParameters::read(query);
    let request = RedirectRequest {
        link,
        app,
        platform,
        parameters: &parameters,
        click,
    };
    request.destination()
}

fn to(link: &Link, platform: Platform, query: &str) -> String {
    match destination(link, &runner(), platform, query, Some(CLICK)) {
        Destination::Redirect(url) => url,
        Destination::Page => "(page)".to_owned(),
    }
}

#[rstest]
#[case::apple(Platform::Ios, "https://apps.apple.com/app/id123456789")]
#[case::android(
    Platform::Android,
    "https://play.google.com/store/apps/details?id=com.example.runner&referrer=ar_click_id%3Dclk_0123"
)]
#[case::anything_else(Platform::Web, "(page)")]
fn an_install_link_leads_to_the_store(#[case] platform: Platform, #[case] expected: &str) {
    assert_eq!(to(&any_link(), platform, "fbclid=x&offer=trial"), expected);
}

#[rstest]
#[case::apple(Platform::Ios, "https://example.com/ios?a=b#c")]
#[case::android(Platform::Android, "https://example.com/android")]
#[case::anything_else(Platform::Web, "https://example.com/")]
fn the_links_own_urls_take_precedence(#[case] platform: Platform, #[case] expected: &str) {
    let link = Link {
        ios_url: https("https://example.com/ios?a=b#c"),
        android_url: https("https://example.com/android"),
        fallback_url: https("https://example.com/"),
        ..any_link()
    };
    assert_eq!(to(&link, platform, "fbclid=x"), expected);
}

#[rstest]
#[case::apple(Platform::Ios)]
#[case::android(Platform::Android)]
#[case::anything_else(Platform::Web)]
fn without_a_store_falls_back_to_the_url_then_the_page(#[case] platform: Platform) {
    let mut app = runner();
    app.ios.app_store_id = None;
    app.android.package_name = None;
    let go = |link: &Link| destination(link, &app, platform, "", Some(CLICK));
    assert_eq!(go(&any_link()), Destination::Page);
    let link = Link {
        fallback_url: https("https://example.com/x"),
        ..any_link()
    };
    let fallback = "https://example.com/x".to_owned();
    assert_eq!(go(&link), Destination::Redirect(fallback));
}

#[rstest]
#[case::own_play_page(
    "https://play.google.com/store/apps/details?id=com.example.beta&hl=de",
    "https://play.google.com/store/apps/details?id=com.example.beta&hl=de&referrer=ar_click_id%3Dclk_0123"
)]
#[case::own_referrer_stays(
    "https://play.google.com/store/apps/details?id=com.example.beta&referrer=utm_source%3Dx%26ar_click_id%3Dold",
    "https://play.google.com/store/apps/details?id=com.example.beta&referrer=utm_source%3Dx%26ar_click_id%3Dclk_0123"
)]
#[case::looks_like_play(
    "https://play.google.com.example.com/store/apps/details?id=x",
    "https://play.google.com.example.com/store/apps/details?id=x"
)]
#[case::another_page_of_play(
    "https://play.google.com/store/apps/detailsx?id=x",
    "https://play.google.com/store/apps/detailsx?id=x"
)]
fn only_the_play_store_gets_a_referrer(#[case] url: &str, #[case] expected: &str) {
    let link = Link {
        android_url: https(url),
        ..any_link()
    };
    assert_eq!(to(&link, Platform::Android, ""), expected);
}

#[test]
fn a_click_that_was_not_stored_passes_no_id() {
    let go = |link: &Link| destination(link, &runner(), Platform::Android, "fbclid=x", None);
    let play = "https://play.google.com/store/apps/details?id=com.example.runner";
    assert_eq!(go(&any_link()), Destination::Redirect(play.to_owned()));
    let url = format!("https://example.com/?{LINK}&fbclid=x");
    let own = funnel("https://example.com/?ar_click_id=forged");
    assert_eq!(go(&own), Destination::Redirect(url));
}

#[rstest]
#[case::nothing("", "")]
#[case::trial("offer=trial", "&offer=trial")]
#[case::control("OFFER=control", "&offer=control")]
#[case::another_offer("offer=summer", "")]
#[case::click_id("fbclid=AbC%2Bd", "&fbclid=AbC%2Bd")]
#[case::click_id_in_capitals("FBCLID=x", "&fbclid=x")]
#[case::tags("utm_source=a+b&UTM_ID=7", "&utm_source=a%20b&utm_id=7")]
#[case::in_their_order("utm_term=1&gclid=2", "&utm_term=1&gclid=2")]
#[case::macros("fbclid={{fbclid}}&fbclid=real", "&fbclid=real")]
#[case::nothing_else("x=1&campaign_id=2&utmx=3&url=4", "")]
#[case::not_encoded_twice("fbclid=a%2520b", "&fbclid=a%2520b")]
fn a_funnel_keeps_its_query_and_adds_ours(#[case] query: &str, #[case] added: &str) {
    let expected =
        format!("https://example.com/a?b=c%20d&b=e&{LINK}&ar_click_id=clk_0123{added}#f?g");
    let link = funnel("https://example.com/a?b=c%20d&b=e#f?g");
    for platform in Platform::ALL {
        assert_eq!(to(&link, *platform, query), expected);
    }
}

#[rstest]
#[case::ours("ar_link_id=1&AR_CLICK_ID=2&a=b", "", "a=b&ar_link_id=L&ar_click_id=C")]
#[case::ours_encoded("ar%5Fclick%5Fid=2", "", "ar_link_id=L&ar_click_id=C")]
#[case::own_offer_stays("offer=summer", "", "offer=summer&ar_link_id=L&ar_click_id=C")]
#[case::own_offer_replaced(
    "offer=summer",
    "offer=trial",
    "ar_link_id=L&ar_click_id=C&offer=trial"
)]
#[case::passed_replaces(
    "utm_source=own",
    "utm_source=ad",
    "ar_link_id=L&ar_click_id=C&utm_source=ad"
)]
fn no_parameter_is_repeated(#[case] own: &str, #[case] query: &str, #[case] expected: &str) {
    let link = funnel(&format!("https://example.com/?{own}"));
    let expected = expected
        .replace("ar_link_id=L", LINK)
        .replace("ar_click_id=C", "ar_click_id=clk_0123");
    assert_eq!(
        to(&link, Platform::Web, query),
        format!("https://example.com/?{expected}")
    );
}

#[rstest]
#[case::exact_name("Invite", "invite=1", "&Invite=1")]
#[case::beginning("aff_*", "AFF_id=1&affid=2", "&AFF_id=1")]
#[case::ours_in_capitals("AR_CLICK_ID", "ar_click_id=forged", "")]
#[case::ours_by_their_beginning("AR_*", "ar_link_id=forged&ar_x=1", "&ar_x=1")]
#[case::offer_in_capitals("Offer", "offer=summer", "")]
#[case::odd_name("aff_*", "aff_%26a%3Db%23=1", "&aff_%26a%3Db%23=1")]
#[case::not_ascii("aff_*", "äff_x=1", "")]
fn passes_allowed_parameters(#[case] allowed: &str, #[case] query: &str, #[case] added: &str) {
    let link = Link {
        pass_params: vec![allowed.to_owned()],
        ..funnel("https://example.com/")
    };
    let expected = format!("https://example.com/?{LINK}&ar_click_id=clk_0123{added}");
    assert_eq!(to(&link, Platform::Web, query), expected);
}

#[test]
fn a_link_without_allowed_parameters_passes_none() {
    let link = Link {
        pass_params: Vec::new(),
        ..funnel("https://example.com/")
    };
    let url = to(&link, Platform::Web, "fbclid=x&utm_source=y");
    assert_eq!(
        url,
        format!("https://example.com/?{LINK}&ar_click_id=clk_0123")
    );
}

#[test]
fn leaves_out_parameters_that_do_not_fit() {
    let own = format!("https://example.com/?{}", "a".repeat(1_900));
    let tags: Vec<String> = (0..6)
        .map(|n| format!("utm_{n}={}", "%C3%A4".repeat(200)))
        .collect();
    let url = to(&funnel(&own), Platform::Web, &tags.join("&"));
    assert!(url.len() <= DESTINATION_BYTES_MAX, "{}", url.len());
    assert!(url.contains("ar_click_id=") && url.contains("utm_3=") && !url.contains("utm_5="));
}

/// Known techniques for open redirects.
#[rstest]
#[case::destination(
    "url=https://evil.test&destination=https://evil.test&destinationUrl=https://evil.test"
)]
#[case::our_field_names(
    "iosUrl=https://evil.test&androidUrl=//evil.test&fallbackUrl=https://evil.test"
)]
#[case::doubled("url=https://example.com&url=https://evil.test")]
#[case::encoded("utm_source=https%3A%2F%2Fevil.test")]
#[case::encoded_twice("utm_source=https%253A%252F%252Fevil.test")]
#[case::no_scheme("utm_source=//evil.test")]
#[case::backslash("utm_source=\\\\evil.test%5C%5Cevil.test")]
#[case::line_break("utm_source=x%0D%0ALocation:%20https://evil.test")]
#[case::userinfo("utm_source=@evil.test/&gclid=%40evil.test")]
#[case::fragment("utm_source=%23@evil.test&utm_%23@evil.test=1")]
#[case::international("utm_source=https://еvil.test&utm_ⅇ=1")]
#[case::full_stop_of_another_script("utm_source=https://evil。test")]
#[case::nul("utm_source=%00https://evil.test")]
#[case::question_marks("?utm_source=x?https://evil.test")]
fn no_query_parameter_changes_the_destination(#[case] query: &str) {
    let link = Link {
        fallback_url: https("https://example.com/x"),
        ..any_link()
    };
    for (link, platform) in [
        (&link, Platform::Web),
        (&any_link(), Platform::Ios),
        (&any_link(), Platform::Android),
    ] {
        assert_eq!(to(link, platform, query), to(link, platform, ""));
    }
    let url = to(&funnel("https://example.com/a#b"), Platform::Web, query);
    let url = Url::parse(&url).unwrap();
    assert_eq!(url.origin().ascii_serialization(), "https://example.com");
    assert_eq!((url.path(), url.fragment()), ("/a", Some("b")));
    assert_eq!((url.username(), url.password()), ("", None));
}

proptest! {
    #[test]
    fn random_queries_do_not_change_the_destination(query in ".*") {
        let url = to(&funnel("https://example.com/a?own=1#b"), Platform::Web, &query);
        prop_assert!(url.is_ascii() && url.len() <= DESTINATION_BYTES_MAX);
        prop_assert!(url.starts_with("https://example.com/a?own=1&ar_link_id="));
        prop_assert!(url.ends_with("#b"));
        prop_assert!(!url.contains(char::is_whitespace) && !url.contains(char::is_control));
    }

    #[test]
    fn passed_values_stay_values(value in ".{1,40}") {
        let query = format!("gclid={}", encode(&value));
        let url = to(&funnel("https://example.com/"), Platform::Web, &query);
        let passed = ClickParameters::read(&query).get("gclid");
        let found = Url::parse(&url).unwrap();
        let names: Vec<String> = found.query_pairs().map(|(name, _)| name.into_owned()).collect();
        let expected = if passed.is_some() { 3 } else { 2 };
        prop_assert_eq!(names.len(), expected);
    }
}
