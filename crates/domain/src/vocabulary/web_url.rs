//! URLs and hosts that operators configure. Redirect destinations are built only from these types.

use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::text::reject_nul;
use std::net::{Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// Maximum length of a URL in characters.
pub const URL_CHARS_MAX: usize = 2_000;

/// Schemes that run code or read local files. No deep link uses them. An app's settings limit deep
/// links further (`link::check_deep_link`); this list also applies to stored ones.
const DANGEROUS_SCHEMES: &[&str] = &[
    "about",
    "blob",
    "content",
    "data",
    "file",
    "filesystem",
    "ftp",
    "http",
    "intent",
    "jar",
    "javascript",
    "mailto",
    "sms",
    "tel",
    "vbscript",
    "view-source",
    "ws",
    "wss",
];

fn parse(text: &str) -> Result<Url, Problem> {
    reject_nul(text)?;
    if text.chars().count() > URL_CHARS_MAX {
        let message = format!("Must have at most {URL_CHARS_MAX} characters.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    // The URL parser drops tabs, line breaks and outer spaces and reads `\` as `/`. Such texts look
    // different to a person than to a browser, so they are rejected.
    if text
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || c == '\\')
    {
        return Err(Problem::new(
            FaultCode::InvalidCharacter,
            "Must not contain white space, control characters or backslashes.",
        ));
    }
    Url::parse(text).map_err(|_| Problem::new(FaultCode::InvalidFormat, "Must be an absolute URL."))
}

/// An `https` URL without credentials, in its canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpsUrl(String);

impl HttpsUrl {
    /// Parses a URL such as `https://example.com/pricing?plan=yearly`.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let url = parse(text)?;
        if url.scheme() != "https" {
            return Err(Problem::new(
                FaultCode::InvalidFormat,
                "Must begin with https://.",
            ));
        }
        check_authority(text, &url)?;
        Ok(Self(url.into()))
    }

    /// Parses a URL that the server sends requests to for a tenant. Also rejects address literals
    /// and custom ports, so that a tenant cannot reach the internal network.
    pub fn parse_outbound(text: &str) -> Result<Self, Problem> {
        let this = Self::parse(text)?;
        let url = parse(&this.0)?;
        if !matches!(url.host(), Some(Host::Domain(_))) {
            return Err(Problem::new(
                FaultCode::InvalidFormat,
                "Must have a host name, not an IP address.",
            ));
        }
        if url.port().is_some() {
            return Err(Problem::new(
                FaultCode::InvalidFormat,
                "Must use the default port, 443.",
            ));
        }
        Ok(this)
    }

    /// Returns the canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns scheme, host and port.
    pub fn origin(&self) -> WebOrigin {
        WebOrigin::of_canonical(&self.0)
    }
}

/// Rejects a URL without a host directly after its scheme, with credentials, or one that is too long
/// when encoded.
fn check_authority(text: &str, url: &Url) -> Result<(), Problem> {
    // The URL parser also accepts `https:host` and `https:///host`, which other parsers read as
    // paths.
    let scheme = format!("{}://", url.scheme());
    let has_authority = text.get(..scheme.len()).is_some_and(|start| {
        start.eq_ignore_ascii_case(&scheme) && !text[scheme.len()..].starts_with('/')
    });
    if !has_authority {
        let message = format!("Must begin with {scheme} and a host.");
        return Err(Problem::new(FaultCode::InvalidFormat, message));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Problem::new(
            FaultCode::InvalidFormat,
            "Must not contain a user name or password.",
        ));
    }
    if url.as_str().len() > URL_CHARS_MAX {
        let message = format!("Must have at most {URL_CHARS_MAX} characters when encoded.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    Ok(())
}

/// URL of a web page: an `https` URL, or an `http` URL of the visitor's own computer, where
/// developers try out their pages. Only test links lead to the latter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageUrl(String);

impl PageUrl {
    /// Parses a URL such as `https://example.com/pricing` or `http://localhost:3000/`.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let url = parse(text)?;
        if url.scheme() == "http" && is_own_computer(&url) {
            check_authority(text, &url)?;
            return Ok(Self(url.into()));
        }
        HttpsUrl::parse(text).map(Self::from)
    }

    /// Parses a URL of scheme, host, port and path only. Rejects query and fragment, which may
    /// contain personal data.
    pub fn parse_without_query(text: &str) -> Result<Self, Problem> {
        let this = Self::parse(text)?;
        // In canonical text these characters only start a query or a fragment.
        if this.0.contains(['?', '#']) {
            return Err(Problem::new(
                FaultCode::InvalidFormat,
                "Must not contain a query or a fragment.",
            ));
        }
        Ok(this)
    }

    /// Returns the canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this is an `http` URL of the visitor's own computer.
    pub fn is_local(&self) -> bool {
        self.0.starts_with("http://")
    }

    /// Returns scheme, host and port.
    pub fn origin(&self) -> WebOrigin {
        WebOrigin::of_canonical(&self.0)
    }
}

impl From<HttpsUrl> for PageUrl {
    fn from(url: HttpsUrl) -> Self {
        Self(url.0)
    }
}

/// Returns whether a URL's host is the computer that opens the URL, whatever its network.
fn is_own_computer(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address == Ipv4Addr::LOCALHOST,
        Some(Host::Ipv6(address)) => address == Ipv6Addr::LOCALHOST,
        None => false,
    }
}

/// Scheme, host and port of a page's URL in canonical form, as browsers compare origins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin(String);

impl WebOrigin {
    /// Reads a stored origin.
    pub fn from_stored(text: &str) -> Option<Self> {
        let origin = PageUrl::parse(text).ok()?.origin();
        (origin.0 == text).then_some(origin)
    }

    /// Returns the origin of a canonical URL without a user: everything before the path.
    fn of_canonical(url: &str) -> Self {
        let host = url.find("://").map_or(0, |at| at + "://".len());
        let end = url[host..].find('/').map_or(url.len(), |at| host + at);
        Self(url[..end].to_owned())
    }

    /// Returns the stored form: `https://shop.example.com`, with the port if it is not 443.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Target inside an installed app: an https URL or a URL with the app's own scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeepLink(String);

impl DeepLink {
    /// Parses a deep link such as `runner://offer/42`.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let url = parse(text)?;
        if url.scheme() == "https" {
            return HttpsUrl::parse(text).map(|url| Self(url.0));
        }
        if DANGEROUS_SCHEMES.contains(&url.scheme()) {
            return Err(Problem::new(
                FaultCode::NotAllowed,
                "Must be an https URL or use the app's own scheme, for example runner://offer.",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the scheme in lower case.
    pub fn scheme(&self) -> String {
        let end = self.0.find(':').unwrap_or(self.0.len());
        self.0[..end].to_ascii_lowercase()
    }
}

/// A host name that an operator configured, in canonical form (lower case, ASCII).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

/// Maximum length of a DNS name in characters.
const HOST_NAME_CHARS_MAX: usize = 253;

impl HostName {
    /// Parses a name such as `go.example.com`: no scheme, port or path, at least one dot.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let invalid = || {
            Problem::new(
                FaultCode::InvalidFormat,
                "Must be a host name without scheme, port or path, for example go.example.com.",
            )
        };
        reject_nul(text)?;
        let Ok(Host::Domain(name)) = Host::parse(text) else {
            return Err(invalid());
        };
        let labels_fit = name.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        });
        if name.len() > HOST_NAME_CHARS_MAX || !name.contains('.') || !labels_fit {
            return Err(invalid());
        }
        Ok(Self(name))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::path_and_all("https://example.com/a?b=c#d", "https://example.com")]
    #[case::the_usual_port("https://EXAMPLE.com:443/", "https://example.com")]
    #[case::another_port("https://example.com:8443/x", "https://example.com:8443")]
    #[case::international("https://exämple.com/", "https://xn--exmple-cua.com")]
    #[case::no_path("https://example.com", "https://example.com")]
    #[case::a_query_at_once("https://example.com?a=/b", "https://example.com")]
    #[case::an_address("https://[2001:DB8::1]:8443/x", "https://[2001:db8::1]:8443")]
    #[case::own_computer("http://LOCALHOST:80/x", "http://localhost")]
    #[case::own_computer_and_port("http://127.0.0.1:3000?a=/b", "http://127.0.0.1:3000")]
    fn origins_are_canonical(#[case] url: &str, #[case] expected: &str) {
        let origin = PageUrl::parse(url).unwrap().origin();
        assert_eq!(origin.as_str(), expected);
        let defined = Url::parse(url).unwrap().origin().ascii_serialization();
        assert_eq!(defined, expected);
        assert_eq!(WebOrigin::from_stored(expected), Some(origin));
    }

    #[rstest]
    #[case::no_origin("example.com")]
    #[case::a_whole_url("https://example.com/")]
    #[case::plain_http("http://example.com")]
    fn rejects_text_that_is_not_a_stored_origin(#[case] text: &str) {
        assert_eq!(WebOrigin::from_stored(text), None);
    }

    #[rstest]
    #[case::path("https://example.com/pricing", true)]
    #[case::query("https://example.com/?a=b", false)]
    #[case::empty_query("https://example.com/?", false)]
    #[case::fragment("https://example.com/#a", false)]
    #[case::credentials("https://you@example.com/", false)]
    #[case::no_slashes("https:example.com/x", false)]
    #[case::one_slash("https:/example.com/x", false)]
    #[case::three_slashes("https:///example.com/x", false)]
    #[case::capitals("HTTPS://example.com/x", true)]
    fn rejects_queries_and_fragments(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(PageUrl::parse_without_query(text).is_ok(), accepted);
    }

    /// Whether a page's URL is accepted, and as one of the visitor's own computer.
    #[rstest]
    #[case::https("https://example.com/", Ok(false))]
    #[case::https_on_localhost("https://localhost:3000/", Ok(false))]
    #[case::localhost("http://localhost/", Ok(true))]
    #[case::capitals_and_a_port("HTTP://LocalHost:3000/shop?a=b#c", Ok(true))]
    #[case::version_four("http://127.0.0.1:8080/", Ok(true))]
    #[case::version_four_in_hex("http://0x7f.1/", Ok(true))]
    #[case::version_six("http://[::1]:3000/", Ok(true))]
    #[case::another_loopback("http://127.0.0.2/", Err(FaultCode::InvalidFormat))]
    #[case::any_address("http://0.0.0.0/", Err(FaultCode::InvalidFormat))]
    #[case::private_network("http://192.168.0.2/", Err(FaultCode::InvalidFormat))]
    #[case::below_localhost("http://shop.localhost/", Err(FaultCode::InvalidFormat))]
    #[case::begins_like_it("http://localhost.example.com/", Err(FaultCode::InvalidFormat))]
    #[case::as_the_user("http://localhost@example.com/", Err(FaultCode::InvalidFormat))]
    #[case::credentials("http://you@localhost/", Err(FaultCode::InvalidFormat))]
    #[case::no_slashes("http:localhost/", Err(FaultCode::InvalidFormat))]
    #[case::three_slashes("http:///localhost/", Err(FaultCode::InvalidFormat))]
    #[case::plain_http("http://example.com/", Err(FaultCode::InvalidFormat))]
    #[case::backslash("http:\\\\localhost/", Err(FaultCode::InvalidCharacter))]
    fn pages_are_https_or_on_the_visitors_own_computer(
        #[case] text: &str,
        #[case] expected: Result<bool, FaultCode>,
    ) {
        let parsed = PageUrl::parse(text).map(|url| url.is_local());
        assert_eq!(parsed.map_err(|problem| problem.code), expected);
        if expected == Ok(true) {
            assert!(HttpsUrl::parse(text).is_err());
        }
    }

    #[rstest]
    #[case::plain("https://example.com/a?b=c#d", Ok("https://example.com/a?b=c#d"))]
    #[case::canonical("HTTPS://EXAMPLE.com:443", Ok("https://example.com/"))]
    #[case::international("https://exämple.com/", Ok("https://xn--exmple-cua.com/"))]
    #[case::plain_http("http://example.com", Err(FaultCode::InvalidFormat))]
    #[case::no_scheme("//example.com", Err(FaultCode::InvalidFormat))]
    #[case::script("javascript:alert(1)", Err(FaultCode::InvalidFormat))]
    #[case::credentials("https://you@example.com", Err(FaultCode::InvalidFormat))]
    #[case::password("https://you:me@example.com", Err(FaultCode::InvalidFormat))]
    #[case::backslash("https:\\\\example.com", Err(FaultCode::InvalidCharacter))]
    #[case::line_break("https://example.com/\r\nX: y", Err(FaultCode::InvalidCharacter))]
    #[case::nul("https://example.com/\0", Err(FaultCode::InvalidCharacter))]
    #[case::empty("", Err(FaultCode::InvalidFormat))]
    #[case::no_host("https://", Err(FaultCode::InvalidFormat))]
    fn parses_https_urls(#[case] text: &str, #[case] expected: Result<&str, FaultCode>) {
        let parsed = HttpsUrl::parse(text);
        assert_eq!(
            parsed.as_ref().map(HttpsUrl::as_str).map_err(|p| p.code),
            expected
        );
    }

    #[test]
    fn a_url_has_at_most_2000_characters_also_when_encoded() {
        let with_path = |path: String| HttpsUrl::parse(&format!("https://example.com/{path}"));
        assert!(with_path("a".repeat(1_980)).is_ok());
        assert!(with_path("a".repeat(1_981)).is_err());
        assert!(with_path("ä".repeat(1_000)).is_err());
    }

    #[rstest]
    #[case::named("https://hooks.example.com/x", true)]
    #[case::loopback("https://127.0.0.1/x", false)]
    #[case::loopback_in_hex("https://0x7f.1/x", false)]
    #[case::loopback_as_number("https://2130706433/x", false)]
    #[case::version_six("https://[::1]/x", false)]
    #[case::odd_port("https://example.com:8443/x", false)]
    fn outbound_urls_have_a_host_name_and_the_default_port(
        #[case] text: &str,
        #[case] accepted: bool,
    ) {
        assert_eq!(HttpsUrl::parse_outbound(text).is_ok(), accepted);
    }

    #[rstest]
    #[case::own_scheme("runner://offer/42", true)]
    #[case::https("https://example.com/offer", true)]
    #[case::http("http://example.com/offer", false)]
    #[case::script("javascript:alert(1)", false)]
    #[case::script_in_capitals("JavaScript:alert(1)", false)]
    #[case::data("data:text/html,x", false)]
    #[case::file("file:///etc/passwd", false)]
    #[case::intent("intent://x#Intent;end", false)]
    #[case::tab_inside("java\tscript:alert(1)", false)]
    #[case::no_scheme("offer/42", false)]
    fn rejects_dangerous_deep_links(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(DeepLink::parse(text).is_ok(), accepted);
    }

    #[rstest]
    #[case::plain("go.example.com", Ok("go.example.com"))]
    #[case::capitals("Go.Example.COM", Ok("go.example.com"))]
    #[case::international("gö.example.com", Ok("xn--g-1ga.example.com"))]
    #[case::one_label("localhost", Err(FaultCode::InvalidFormat))]
    #[case::address("127.0.0.1", Err(FaultCode::InvalidFormat))]
    #[case::port("go.example.com:8080", Err(FaultCode::InvalidFormat))]
    #[case::path("go.example.com/x", Err(FaultCode::InvalidFormat))]
    #[case::trailing_dot("go.example.com.", Err(FaultCode::InvalidFormat))]
    #[case::underscore("go_.example.com", Err(FaultCode::InvalidFormat))]
    #[case::empty("", Err(FaultCode::InvalidFormat))]
    fn parses_host_names(#[case] text: &str, #[case] expected: Result<&str, FaultCode>) {
        let parsed = HostName::parse(text);
        assert_eq!(
            parsed.as_ref().map(HostName::as_str).map_err(|p| p.code),
            expected
        );
    }
}
