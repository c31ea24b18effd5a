//! Schemes that an app's deep links may use.
//!
//! Apps open a link's deep link as it is, so a scheme of another app would start that app. Only
//! `https` and the schemes that the app's settings list are accepted.

use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::text::reject_nul;
use crate::vocabulary::web_url::DeepLink;
use std::ops::RangeInclusive;

/// Maximum number of schemes per app. An app has one scheme per variant and platform.
pub const DEEP_LINK_SCHEMES_MAX: usize = 20;
/// Length of a scheme in characters. One letter is a drive on Windows; the reverse domain names
/// that some apps use as schemes fit into 64.
const SCHEME_CHARS: RangeInclusive<usize> = 2..=64;

/// Schemes that belong to browsers and operating systems: they run code, read files, install
/// software, start calls or leave the app. No app can list them.
const RESERVED_SCHEMES: &[&str] = &[
    "about",
    "android-app",
    "app-settings",
    "blob",
    "cid",
    "chrome",
    "chrome-extension",
    "content",
    "data",
    "facetime",
    "facetime-audio",
    "feed",
    "file",
    "filesystem",
    "ftp",
    "ftps",
    "geo",
    "googlechrome",
    "http",
    "https",
    "intent",
    "itms",
    "itms-apps",
    "itms-appss",
    "itms-services",
    "jar",
    "javascript",
    "livescript",
    "mailto",
    "market",
    "mhtml",
    "mms",
    "mocha",
    "moz-extension",
    "ms-appinstaller",
    "ms-settings",
    "prefs",
    "resource",
    "safari",
    "sftp",
    "shortcuts",
    "sms",
    "smsto",
    "ssh",
    "tel",
    "vbscript",
    "view-source",
    "webcal",
    "ws",
    "wss",
];

/// Parses a scheme for an app's allow list, such as `runner`. Schemes are compared in lower case.
pub fn deep_link_scheme(text: &str) -> Result<String, Problem> {
    reject_nul(text)?;
    let scheme = text.to_ascii_lowercase();
    let fits = SCHEME_CHARS.contains(&scheme.len())
        && scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.')
        });
    if !fits {
        return Err(Problem::new(
            FaultCode::InvalidFormat,
            "Must be a scheme without a colon, for example runner: 2–64 letters, digits, plus \
             signs, hyphens and dots, beginning with a letter.",
        ));
    }
    if RESERVED_SCHEMES.contains(&scheme.as_str()) {
        return Err(Problem::new(
            FaultCode::NotAllowed,
            "Must be the app's own scheme, not a scheme of browsers or operating systems.",
        ));
    }
    Ok(scheme)
}

/// Checks a link's deep link against the app's schemes. A deep link that was stored `before` the
/// change stays valid, so that a link can be changed after its scheme was removed from the list.
pub fn check_deep_link(
    deep_link: Option<&DeepLink>,
    before: Option<&DeepLink>,
    schemes: &[String],
) -> Result<(), Faults> {
    let Some(new) = deep_link.filter(|_| deep_link != before) else {
        return Ok(());
    };
    let scheme = new.scheme();
    if scheme == "https" || schemes.contains(&scheme) {
        return Ok(());
    }
    let mut faults = Faults::new();
    let message = "Must be an https URL or use a scheme in the app's deepLinkSchemes. Add the \
                   scheme to the app's settings first.";
    faults.add("deepLink", Problem::new(FaultCode::NotAllowed, message));
    Err(faults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("runner", Ok("runner"))]
    #[case::capitals("Runner", Ok("runner"))]
    #[case::reverse_domain("com.example.runner-beta", Ok("com.example.runner-beta"))]
    #[case::plus("runner+1", Ok("runner+1"))]
    #[case::longest(&"a".repeat(64), Ok("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))]
    #[case::too_long(&"a".repeat(65), Err(FaultCode::InvalidFormat))]
    #[case::one_letter("c", Err(FaultCode::InvalidFormat))]
    #[case::empty("", Err(FaultCode::InvalidFormat))]
    #[case::colon("runner:", Err(FaultCode::InvalidFormat))]
    #[case::url("runner://", Err(FaultCode::InvalidFormat))]
    #[case::digit_first("1runner", Err(FaultCode::InvalidFormat))]
    #[case::space(" runner", Err(FaultCode::InvalidFormat))]
    #[case::tab("java\tscript", Err(FaultCode::InvalidFormat))]
    #[case::other_letters("läufer", Err(FaultCode::InvalidFormat))]
    #[case::nul("runner\0", Err(FaultCode::InvalidCharacter))]
    #[case::script("javascript", Err(FaultCode::NotAllowed))]
    #[case::script_in_capitals("JavaScript", Err(FaultCode::NotAllowed))]
    #[case::data("data", Err(FaultCode::NotAllowed))]
    #[case::file("file", Err(FaultCode::NotAllowed))]
    #[case::intent("intent", Err(FaultCode::NotAllowed))]
    #[case::vbscript("vbscript", Err(FaultCode::NotAllowed))]
    #[case::blob("blob", Err(FaultCode::NotAllowed))]
    #[case::installer("itms-services", Err(FaultCode::NotAllowed))]
    #[case::https("https", Err(FaultCode::NotAllowed))]
    fn parses_schemes(#[case] text: &str, #[case] expected: Result<&str, FaultCode>) {
        let parsed = deep_link_scheme(text);
        let found = parsed.as_deref().map_err(|problem| problem.code);
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::none(None, None, true)]
    #[case::listed(Some("runner://offer"), None, true)]
    #[case::listed_in_capitals(Some("RUNNER://offer"), None, true)]
    #[case::https(Some("https://example.com/offer"), None, true)]
    #[case::of_another_app(Some("bank://pay"), None, false)]
    #[case::unchanged(Some("bank://pay"), Some("bank://pay"), true)]
    #[case::changed(Some("bank://pay/2"), Some("bank://pay"), false)]
    #[case::removed(None, Some("bank://pay"), true)]
    #[case::prefix_of_a_listed_one(Some("run://offer"), None, false)]
    fn accepts_listed_schemes_only(
        #[case] deep_link: Option<&str>,
        #[case] before: Option<&str>,
        #[case] accepted: bool,
    ) {
        let parse = |text: Option<&str>| text.map(|text| DeepLink::parse(text).unwrap());
        let schemes = ["runner".to_owned()];
        let (deep_link, before) = (parse(deep_link), parse(before));
        let checked = check_deep_link(deep_link.as_ref(), before.as_ref(), &schemes);
        assert_eq!(checked.is_ok(), accepted);
        if let Err(faults) = checked {
            assert!(format!("{faults:?}").contains("deepLink"));
        }
    }
}
