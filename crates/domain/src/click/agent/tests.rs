//! User agents as browsers send them.

use super::*;
use proptest::prelude::*;
use rstest::rstest;

const NO_HINTS: ClientHints<'static> = ClientHints {
    platform: None,
    platform_version: None,
    model: None,
};

#[rstest]
#[case::safari(
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
    Some("17.5.1"),
    None
)]
#[case::safari_26_freezes_the_os_version(
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1",
    Some("26.0"),
    None
)]
#[case::safari_27_freezes_it_too(
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/27.1.2 Mobile/15E148 Safari/604.1",
    Some("27.1.2"),
    None
)]
#[case::safari_18_6_is_real(
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
    Some("18.6"),
    None
)]
#[case::frozen_or_real_is_unknown(
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile/15E148 Safari/604.1",
    None,
    None
)]
#[case::chrome_before(
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/126.0 Mobile/15E148 Safari/604.1",
    Some("17.4"),
    None
)]
#[case::facebook(
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [FBAN/FBIOS;FBAV/466.0.0;FBBV/1;FBDV/iPhone15,2;FBMD/iPhone;FBSN/iOS;FBSV/26.1;FBSS/3;FBID/phone;FBLC/en_US;FBOP/5]",
    Some("26.1"),
    Some("iPhone15,2")
)]
#[case::instagram(
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Instagram 335.0.0.0 (iPhone16,1; iOS 17_5_1; en_US; en; scale=3.00; 1179x2556; 611)",
    Some("17.5.1"),
    Some("iPhone16,1")
)]
#[case::ipad_that_says_so(
    "Mozilla/5.0 (iPad; CPU OS 16_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/16.6 Mobile/15E148 Safari/604.1",
    Some("16.6"),
    None
)]
fn reads_apple_user_agents(
    #[case] user_agent: &str,
    #[case] version: Option<&str>,
    #[case] model: Option<&str>,
) {
    let agent = Agent::read(Some(user_agent), NO_HINTS);
    assert_eq!(agent.platform, Platform::Ios);
    assert_eq!(agent.os_version.as_deref(), version);
    assert_eq!(agent.model.as_deref(), model);
}

#[rstest]
#[case::filler(
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36",
    None,
    None
)]
#[case::filler_in_a_web_view(
    "Mozilla/5.0 (Linux; Android 10; K; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/126.0.0.0 Mobile Safari/537.36",
    None,
    None
)]
#[case::a_phone_that_runs_10(
    "Mozilla/5.0 (Linux; Android 10; SM-G960F) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/100.0 Mobile Safari/537.36",
    Some("10"),
    Some("SM-G960F")
)]
#[case::web_view(
    "Mozilla/5.0 (Linux; Android 13; SM-S918B Build/TP1A.220624.014; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/125.0 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/466.0.0.0;]",
    Some("13"),
    Some("SM-S918B")
)]
#[case::network_as_own_agent(
    "[FBAN/FB4A;FBAV/400.0;FBDM/{density=2.6};FBLC/en_US;FBDV/Pixel 8;FBSV/14;FBOP/1] Android",
    Some("14"),
    Some("Pixel 8")
)]
#[case::model_with_brackets(
    "Mozilla/5.0 (Linux; Android 8.1.0; Moto G (5) Plus) AppleWebKit/537.36 Chrome/100.0 Mobile Safari/537.36",
    Some("8.1.0"),
    Some("Moto G (5) Plus")
)]
#[case::locale_before_the_model(
    "Mozilla/5.0 (Linux; U; Android 4.4.2; en-us; SCH-I535 Build/KOT49H) AppleWebKit/534.30 Version/4.0 Mobile Safari/534.30",
    Some("4.4.2"),
    Some("SCH-I535")
)]
#[case::firefox(
    "Mozilla/5.0 (Android 14; Mobile; rv:127.0) Gecko/127.0 Firefox/127.0",
    Some("14"),
    None
)]
#[case::no_version("Mozilla/5.0 (Linux; Android) Gecko", None, None)]
fn reads_android_user_agents_without_hints(
    #[case] user_agent: &str,
    #[case] version: Option<&str>,
    #[case] model: Option<&str>,
) {
    let agent = Agent::read(Some(user_agent), NO_HINTS);
    assert_eq!(agent.platform, Platform::Android);
    assert_eq!(agent.os_version.as_deref(), version);
    assert_eq!(agent.model.as_deref(), model);
}

#[rstest]
#[case::both("\"14.0.0\"", "\"Pixel 8\"", Some("14"), Some("Pixel 8"))]
#[case::inner_zero("\"8.1.0\"", "\"A\"", Some("8.1"), Some("A"))]
#[case::ten("\"10\"", "\"K\"", Some("10"), Some("K"))]
#[case::empty("\"\"", "\"\"", None, None)]
#[case::not_quoted("14", "Pixel", None, None)]
#[case::quoted_quote("\"14\"", r#""A\"B\\C""#, Some("14"), Some(r#"A"B\C"#))]
fn client_hints_take_precedence(
    #[case] platform_version: &str,
    #[case] model: &str,
    #[case] expected_version: Option<&str>,
    #[case] expected_model: Option<&str>,
) {
    let reduced = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/126.0.0.0";
    let hints = ClientHints {
        platform: Some("\"Android\""),
        platform_version: Some(platform_version),
        model: Some(model),
    };
    let agent = Agent::read(Some(reduced), hints);
    assert_eq!(agent.os_version.as_deref(), expected_version);
    assert_eq!(agent.model.as_deref(), expected_model);
}

#[rstest]
#[case::ipad_as_macintosh(
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15"
)]
#[case::windows(
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36"
)]
#[case::windows_phone(
    "Mozilla/5.0 (Windows Phone 10.0; Android 4.2.1; Microsoft; Lumia 950) AppleWebKit/537.36 like iPhone OS 7_0_3 Mac OS X Edge/14"
)]
#[case::nonsense("x")]
#[case::empty("")]
fn everything_else_is_the_web(#[case] user_agent: &str) {
    let expected = Agent {
        platform: Platform::Web,
        os_version: None,
        model: None,
    };
    assert_eq!(Agent::read(Some(user_agent), NO_HINTS), expected);
    assert_eq!(Agent::read(None, NO_HINTS), expected);
}

#[test]
fn cuts_and_cleans_long_texts() {
    let user_agent = format!(
        "[FBAN/FBIOS;FBDV/{}\u{7};FBSV/17.5] iPhone",
        "x".repeat(300)
    );
    let agent = Agent::read(Some(&user_agent), NO_HINTS);
    assert_eq!(agent.model, Some("x".repeat(TRAIT_CHARS_MAX)));
}

proptest! {
    #[test]
    fn nothing_panics(prefix in "(iPhone|Android |Android 1|FBSV/|Version/2|)", text in ".*", hint in ".*") {
        let hints = ClientHints { platform: Some(&hint), platform_version: Some(&hint), model: Some(&hint) };
        let _any_outcome_is_fine = Agent::read(Some(&format!("{prefix}{text}")), hints);
        let _any_outcome_is_fine = Agent::read(Some(&format!("{text}{prefix}{text}")), hints);
    }
}
