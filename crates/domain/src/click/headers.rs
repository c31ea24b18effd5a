//! Other headers of a click, reduced to what is stored.

use super::USER_AGENT_CHARS_MAX;
use super::encoding::cleaned;
use url::Url;

/// Length of a language code, without its region.
const LANGUAGE_CHARS: std::ops::RangeInclusive<usize> = 2..=3;
/// Maximum length of a stored origin. The longest DNS name is shorter.
const ORIGIN_CHARS_MAX: usize = 300;
/// Schemes whose origins are stored. An app that opened the link identifies itself by
/// `android-app`.
const REFERER_SCHEMES: &[&str] = &["https", "http", "android-app"];

/// Returns the first language in `Accept-Language`, without its region, in lower case.
pub fn first_language(accept_language: &str) -> Option<String> {
    let first = accept_language.split([',', ';']).next()?.trim();
    let language = first.split(['-', '_']).next()?;
    let fits = LANGUAGE_CHARS.contains(&language.len())
        && language.bytes().all(|byte| byte.is_ascii_alphabetic());
    fits.then(|| language.to_ascii_lowercase())
}

/// Returns the origin of the `Referer`, without its path.
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

/// Cleans and cuts a user agent for storage.
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
    fn reads_the_first_language(#[case] header: &str, #[case] expected: Option<&str>) {
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
    fn reduces_referers_to_origins(#[case] header: &str, #[case] expected: Option<&str>) {
        assert_eq!(referer_origin(header).as_deref(), expected);
    }

    #[test]
    fn drops_an_origin_longer_than_any_dns_name() {
        let long = format!("android-app://{}/", "a".repeat(300));
        assert_eq!(referer_origin(&long), None);
    }

    #[test]
    fn cuts_long_user_agents() {
        let kept = clean_user_agent(&"ä".repeat(501)).unwrap();
        assert_eq!(kept.chars().count(), 500);
        assert_eq!(clean_user_agent(" "), None);
    }
}
