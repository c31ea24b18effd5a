//! The other headers of a click: how little of them is kept.

use super::USER_AGENT_CHARS_MAX;
use super::encoding::cleaned;
use url::Url;

/// Letters of the name of a language, without its region.
const LANGUAGE_CHARS: std::ops::RangeInclusive<usize> = 2..=3;
/// Characters of an origin that is kept. The longest name that DNS has is shorter.
const ORIGIN_CHARS_MAX: usize = 300;
/// Pages whose origin is worth knowing. An app that opened the link names itself under its own scheme.
const REFERER_SCHEMES: &[&str] = &["https", "http", "android-app"];

/// The first language that a browser asks for in `Accept-Language`, without its region, in lower case.
pub fn first_language(accept_language: &str) -> Option<String> {
    let first = accept_language.split([',', ';']).next()?.trim();
    let language = first.split(['-', '_']).next()?;
    let fits = LANGUAGE_CHARS.contains(&language.len())
        && language.bytes().all(|byte| byte.is_ascii_alphabetic());
    fits.then(|| language.to_ascii_lowercase())
}

/// The origin of the page in `Referer`; its path is nobody's business here.
pub fn referer_origin(referer: &str) -> Option<String> {
    let url = Url::parse(referer).ok()?;
    let host = url.host_str().filter(|host| !host.is_empty())?;
    let port = url
        .port()
        .map_or_else(String::new, |port| format!(":{port}"));
    let is_page = REFERER_SCHEMES.contains(&url.scheme());
    let origin = format!("{}://{host}{port}", url.scheme());
    (is_page && origin.len() <= ORIGIN_CHARS_MAX).then_some(origin)
}

/// The user agent as it is kept.
pub fn clean_user_agent(user_agent: &str) -> Option<String> {
    cleaned(user_agent, USER_AGENT_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::usual("en-US,en;q=0.9,de;q=0.8", Some("en"))]
    #[case::alone("de", Some("de"))]
    #[case::capitals("DE-at", Some("de"))]
    #[case::underscore("pt_BR", Some("pt"))]
    #[case::script("zh-Hant-TW", Some("zh"))]
    #[case::three_letters("fil-PH", Some("fil"))]
    #[case::any("*", None)]
    #[case::empty("", None)]
    #[case::too_long("english", None)]
    #[case::not_letters("12-34", None)]
    fn languages(#[case] header: &str, #[case] expected: Option<&str>) {
        assert_eq!(first_language(header).as_deref(), expected);
    }

    #[rstest]
    #[case::path_is_dropped("https://l.example.com/x?secret=1#y", Some("https://l.example.com"))]
    #[case::port("http://example.com:8080/", Some("http://example.com:8080"))]
    #[case::credentials("https://you:me@example.com/", Some("https://example.com"))]
    #[case::app(
        "android-app://com.example.app/",
        Some("android-app://com.example.app")
    )]
    #[case::script("javascript:alert(1)", None)]
    #[case::data("data:text/html,x", None)]
    #[case::relative("/x", None)]
    #[case::empty("", None)]
    fn referers(#[case] header: &str, #[case] expected: Option<&str>) {
        assert_eq!(referer_origin(header).as_deref(), expected);
    }

    #[test]
    fn an_origin_longer_than_any_name_is_dropped() {
        let long = format!("android-app://{}/", "a".repeat(300));
        assert_eq!(referer_origin(&long), None);
    }

    #[test]
    fn a_user_agent_is_cut() {
        let kept = clean_user_agent(&"ä".repeat(501)).unwrap();
        assert_eq!(kept.chars().count(), 500);
        assert_eq!(clean_user_agent(" "), None);
    }
}
