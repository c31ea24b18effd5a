//! URLs and hosts that operators configure. Destinations are only ever taken from here.

use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::text::reject_nul;
use url::{Host, Url};

/// The longest URL that is kept.
pub const URL_CHARS_MAX: usize = 2_000;

/// How an https URL begins.
const SCHEME: &str = "https://";

/// Schemes that run code or read local files in whatever opens them. A deep link is refused under any
/// of these; every other custom scheme is the operator's own business.
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
    // The URL parser drops tabs, line breaks and outer spaces and reads `\` as `/`. A person who sees the
    // text would read another URL than the browser does, so such texts are refused, not repaired.
    if text
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || c == '\\')
    {
        return Err(Problem::new(
            FaultCode::InvalidCharacter,
            "Must have no white space, control characters or backslashes.",
        ));
    }
    Url::parse(text).map_err(|_| Problem::new(FaultCode::InvalidFormat, "Must be an absolute URL."))
}

/// An `https` URL without credentials, in its canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpsUrl(String);

impl HttpsUrl {
    /// Reads a URL such as `https://example.com/pricing?plan=yearly`.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let url = parse(text)?;
        if url.scheme() != "https" {
            return Err(Problem::new(
                FaultCode::InvalidFormat,
                "Must begin with https://.",
            ));
        }
        // The URL parser also reads `https:host` and `https:///host`, which other readers take for paths.
        let has_authority = text.get(..SCHEME.len()).is_some_and(|start| {
            start.eq_ignore_ascii_case(SCHEME) && !text[SCHEME.len()..].starts_with('/')
        });
        if !has_authority {
            return Err(Problem::new(
                FaultCode::InvalidFormat,
                "Must begin with https:// and a host.",
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Problem::new(
                FaultCode::InvalidFormat,
                "Must not hold a user name or password.",
            ));
        }
        if url.as_str().len() > URL_CHARS_MAX {
            let message = format!("Must have at most {URL_CHARS_MAX} characters when encoded.");
            return Err(Problem::new(FaultCode::TooLong, message));
        }
        Ok(Self(url.into()))
    }

    /// Reads a URL that we will send requests to for a tenant: also no address literal and no odd port,
    /// because a tenant must not be able to point us at our own network.
    pub fn parse_outbound(text: &str) -> Result<Self, Problem> {
        let this = Self::parse(text)?;
        let url = parse(&this.0)?;
        if !matches!(url.host(), Some(Host::Domain(_))) {
            return Err(Problem::new(
                FaultCode::InvalidFormat,
                "Must name a host, not an address.",
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

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> WebOrigin {
        // Canonical, without a user: what stands before the path is the origin.
        let host = "https://".len();
        let end = self.0[host..]
            .find('/')
            .map_or(self.0.len(), |at| host + at);
        WebOrigin(self.0[..end].to_owned())
    }

    /// Reads the URL of a page as a verified website names it: nothing but scheme, host, port and path. What
    /// follows in an address bar may be a person's.
    pub fn parse_without_query(text: &str) -> Result<Self, Problem> {
        let this = Self::parse(text)?;
        // In canonical text these two stand nowhere else.
        if this.0.contains(['?', '#']) {
            return Err(Problem::new(
                FaultCode::InvalidFormat,
                "Must have no query and no fragment.",
            ));
        }
        Ok(this)
    }
}

/// Scheme, host and port of an https URL, in their canonical form: what browsers compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin(String);

impl WebOrigin {
    /// Reads an origin that was kept.
    pub fn from_stored(text: &str) -> Option<Self> {
        let origin = HttpsUrl::parse(text).ok()?.origin();
        (origin.0 == text).then_some(origin)
    }

    /// As it is kept: `https://shop.example.com`, and the port where it is not the usual one.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where an installed app is sent: an https URL or a URL of the app's own scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeepLink(String);

impl DeepLink {
    /// Reads a deep link such as `runner://offer/42`.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let url = parse(text)?;
        if url.scheme() == "https" {
            return HttpsUrl::parse(text).map(|url| Self(url.0));
        }
        if DANGEROUS_SCHEMES.contains(&url.scheme()) {
            return Err(Problem::new(
                FaultCode::NotAllowed,
                "Must be an https URL or a URL of the app's own scheme, for example runner://offer.",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A host name of the operator's own, in its canonical (lower-case, ASCII) form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

/// The longest name DNS can carry.
const HOST_NAME_CHARS_MAX: usize = 253;

impl HostName {
    /// Reads a name such as `go.example.com`: no scheme, no port, no path, at least one dot.
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

    /// The name.
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
    fn origins(#[case] url: &str, #[case] expected: &str) {
        let origin = HttpsUrl::parse(url).unwrap().origin();
        assert_eq!(origin.as_str(), expected);
        let defined = Url::parse(url).unwrap().origin().ascii_serialization();
        assert_eq!(defined, expected);
        assert_eq!(WebOrigin::from_stored(expected), Some(origin));
    }

    #[rstest]
    #[case::no_origin("example.com")]
    #[case::a_whole_url("https://example.com/")]
    #[case::plain_http("http://example.com")]
    fn what_was_never_kept_as_an_origin(#[case] text: &str) {
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
    fn clean_urls(#[case] text: &str, #[case] taken: bool) {
        assert_eq!(HttpsUrl::parse_without_query(text).is_ok(), taken);
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
    fn https_urls(#[case] text: &str, #[case] expected: Result<&str, FaultCode>) {
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
    fn tenants_cannot_point_us_at_addresses(#[case] text: &str, #[case] accepted: bool) {
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
    fn deep_links(#[case] text: &str, #[case] accepted: bool) {
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
    fn host_names(#[case] text: &str, #[case] expected: Result<&str, FaultCode>) {
        let parsed = HostName::parse(text);
        assert_eq!(
            parsed.as_ref().map(HostName::as_str).map_err(|p| p.code),
            expected
        );
    }
}
