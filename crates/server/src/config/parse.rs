//! Parsers for setting values. Each returns the value, or a message that says what is expected.

use axum::http::HeaderName;
use std::net::SocketAddr;
use tracing_subscriber::EnvFilter;
use tributary_domain::node_role::NodeRoles;
use url::{Host, Url};

/// Length of the secret key in bytes.
pub const SECRET_KEY_BYTES: usize = 32;

/// Levels accepted in `log.level`.
const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];

/// The value, or a message that says what was expected.
pub(super) type ParseResult<T> = Result<T, &'static str>;

/// Parses an address and a port.
pub(super) fn socket_address(text: &str) -> ParseResult<SocketAddr> {
    text.parse()
        .map_err(|_| "must be an address and a port, such as 127.0.0.1:8080 or [::]:8080")
}

/// Parses the roles of a node.
pub(super) fn roles(names: &[&str]) -> ParseResult<NodeRoles> {
    NodeRoles::parse(names.iter().copied())
        .ok_or("must name one or more of the roles accept, forward and report")
}

/// Parses scheme, host and port, and nothing else.
pub(super) fn origin(text: &str) -> ParseResult<Url> {
    const EXPECTED: &str =
        "must be http:// or https:// with a host and an optional port; no path, query or fragment";
    let url = web_url(text, EXPECTED)?;
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if is_bare { Ok(url) } else { Err(EXPECTED) }
}

/// Parses the base URL of a service that the server calls.
pub(super) fn service_url(text: &str) -> ParseResult<Url> {
    const EXPECTED: &str = "must be an https:// (or, for a simulator, http://) URL without user, \
                            query or fragment";
    let url = web_url(text, EXPECTED)?;
    let is_bare = url.query().is_none() && url.fragment().is_none();
    if is_bare { Ok(url) } else { Err(EXPECTED) }
}

/// Parses the URL of a file to fetch.
pub(super) fn file_url(text: &str) -> ParseResult<Url> {
    web_url(
        text,
        "must be an https:// or http:// URL without user, or empty",
    )
}

fn web_url(text: &str, expected: &'static str) -> ParseResult<Url> {
    // The URL parser drops line breaks and reads `\` as `/`, so the result would differ from the
    // text.
    if text
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || c == '\\')
    {
        return Err(expected);
    }
    let url = Url::parse(text).map_err(|_| expected)?;
    let has_host = match url.host() {
        Some(Host::Domain(name)) => !name.is_empty(),
        Some(_) => true,
        None => false,
    };
    let is_web = matches!(url.scheme(), "http" | "https");
    let is_anonymous = url.username().is_empty() && url.password().is_none();
    if has_host && is_web && is_anonymous {
        Ok(url)
    } else {
        Err(expected)
    }
}

/// Parses a header name.
pub(super) fn header_name(text: &str) -> ParseResult<HeaderName> {
    text.parse()
        .map_err(|_| "must be a header name, such as CF-IPCountry, or empty")
}

/// Parses the secret key from hexadecimal digits.
pub(crate) fn secret_key(text: &str) -> ParseResult<[u8; SECRET_KEY_BYTES]> {
    tributary_domain::vocabulary::digest::from_hex(text)
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or("must be 64 hexadecimal digits, for example from `openssl rand -hex 32`")
}

/// Checks a command; an empty one is not set.
pub(super) fn command(arguments: &[&str]) -> ParseResult<()> {
    match arguments.first() {
        Some(&"") => Err("must begin with the program, such as [\"vault\", \"kv\", \"get\"]"),
        _ => Ok(()),
    }
}

/// Parses the log filter.
pub(crate) fn log_filter(text: &str) -> ParseResult<EnvFilter> {
    const EXPECTED: &str = "must be off, error, warn, info, debug or trace; modules can have their \
                            own level, as in info,tributary_api=debug";
    // The filter would read any bare word as a module name, so `inof` would log nothing.
    let is_known = |word: &str| LEVELS.contains(&word.trim()) || word.contains('=');
    if !text.split(',').all(is_known) {
        return Err(EXPECTED);
    }
    EnvFilter::try_new(text).map_err(|_| EXPECTED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::https("https://links.example.com", true)]
    #[case::port("http://127.0.0.1:8080", true)]
    #[case::slash("https://links.example.com/", true)]
    #[case::path("https://links.example.com/tributary", false)]
    #[case::query("https://links.example.com?x=1", false)]
    #[case::fragment("https://links.example.com#x", false)]
    #[case::user("https://me@links.example.com", false)]
    #[case::scheme("ftp://links.example.com", false)]
    #[case::no_scheme("links.example.com", false)]
    #[case::no_host("https://", false)]
    #[case::backslash("https:\\\\links.example.com", false)]
    #[case::line_break("https://links.\nexample.com", false)]
    fn parses_origins(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(origin(text).is_ok(), accepted);
    }

    #[rstest]
    #[case::host("https://graph.example.com", true)]
    #[case::simulator("http://127.0.0.1:9000/network_a", true)]
    #[case::query("https://graph.example.com?key=1", false)]
    #[case::password("https://me:secret@graph.example.com", false)]
    #[case::empty("", false)]
    fn parses_service_urls(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(service_url(text).is_ok(), accepted);
    }

    #[rstest]
    #[case::v4("127.0.0.1:8080", true)]
    #[case::v6("[::1]:8080", true)]
    #[case::any_port("127.0.0.1:0", true)]
    #[case::no_port("127.0.0.1", false)]
    #[case::a_name("localhost:8080", false)]
    #[case::port_too_high("127.0.0.1:65536", false)]
    fn parses_socket_addresses(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(socket_address(text).is_ok(), accepted);
    }

    #[rstest]
    #[case::lower(&"0a".repeat(32), true)]
    #[case::upper(&"0A".repeat(32), true)]
    #[case::short(&"0a".repeat(31), false)]
    #[case::long(&"0a".repeat(33), false)]
    #[case::odd(&"a".repeat(63), false)]
    #[case::other_letters(&"0g".repeat(32), false)]
    fn parses_secret_keys(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(secret_key(text).is_ok(), accepted);
    }

    #[rstest]
    #[case::level("debug", true)]
    #[case::parts("info,tributary_api=debug,hyper=off", true)]
    #[case::mistyped("inof", false)]
    #[case::unknown_level("tributary_api=loud", false)]
    #[case::empty("", false)]
    fn parses_log_levels(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(log_filter(text).is_ok(), accepted);
    }
}
