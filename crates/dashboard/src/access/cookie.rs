//! The cookies of a session, of a known browser and of a sign-in that waits for its second step.

use crate::state::DashboardHandles;
use axum::http::{HeaderMap, HeaderValue, header};
use tributary_domain::access::factor::pending::{PENDING_SIGN_IN_LIFETIME, PendingSignIn};
use tributary_domain::access::key::{KeyKind, KeyText};
use tributary_domain::access::known_browser::{KNOWN_BROWSER_LIFETIME, KnownBrowser};
use tributary_domain::access::session::SESSION_LIFETIME;

/// Prefix of cookie names over TLS. Browsers accept it only from this host and over TLS.
const SECURE_PREFIX: &str = "__Host-";
const SESSION: &str = "tributary";
const BROWSER: &str = "tributary-browser";
const PENDING: &str = "tributary-pending";

/// Returns the value of a cookie. A request with two cookies of this name has no valid one, because
/// an attacker may have planted one of them.
pub(super) fn value<'a>(
    headers: &'a HeaderMap,
    handles: &DashboardHandles,
    name: &str,
) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE);
    let texts = lines.iter().filter_map(|line| line.to_str().ok());
    let pairs = texts.flat_map(|line| line.split(';')).map(str::trim);
    let has_name = |found: &str| {
        if handles.own_origin.is_tls() {
            found.strip_prefix(SECURE_PREFIX) == Some(name)
        } else {
            found == name
        }
    };
    let mut values = pairs
        .filter_map(|pair| pair.split_once('='))
        .filter(|(found, _)| has_name(found))
        .map(|(_, value)| value);
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// Returns the session token from a request.
pub(crate) fn token(headers: &HeaderMap, handles: &DashboardHandles) -> Option<KeyText> {
    // Check the checksum first to save a database lookup.
    let token = KeyText::parse(value(headers, handles, SESSION)?).ok()?;
    (token.kind == KeyKind::Session).then_some(token)
}

/// Returns the user who has signed in with this browser.
pub(crate) fn known_browser(
    headers: &HeaderMap,
    handles: &DashboardHandles,
) -> Option<KnownBrowser> {
    let now = handles.runtime.now();
    handles
        .known_browsers
        .verify(value(headers, handles, BROWSER)?, now)
}

/// Returns the `Set-Cookie` header for a token. Scripts cannot read the cookie, and browsers do
/// not send it with forms from other sites.
pub(crate) fn set(handles: &DashboardHandles, token: &KeyText) -> HeaderValue {
    let seconds = SESSION_LIFETIME.as_secs();
    format_cookie(handles, SESSION, token.reveal(), seconds)
}

/// Returns the `Set-Cookie` header for a browser that a user has signed in with.
pub(crate) fn set_known_browser(handles: &DashboardHandles, browser: &KnownBrowser) -> HeaderValue {
    let value = handles.known_browsers.sign(browser);
    let seconds = KNOWN_BROWSER_LIFETIME.as_secs();
    format_cookie(handles, BROWSER, &value, seconds)
}

/// Returns the sign-in that waits for its second step.
pub(crate) fn pending(headers: &HeaderMap, handles: &DashboardHandles) -> Option<PendingSignIn> {
    PendingSignIn::open(&handles.keyring, value(headers, handles, PENDING)?)
}

/// Returns the `Set-Cookie` header for a sign-in that waits for its second step.
pub(crate) fn set_pending(handles: &DashboardHandles, pending: &PendingSignIn) -> HeaderValue {
    let value = pending.seal(&handles.keyring, handles.runtime.random_bytes());
    let seconds = PENDING_SIGN_IN_LIFETIME.as_secs();
    format_cookie(handles, PENDING, &value, seconds)
}

/// Returns the `Set-Cookie` header that deletes the pending sign-in.
pub(crate) fn clear_pending(handles: &DashboardHandles) -> HeaderValue {
    format_cookie(handles, PENDING, "", 0)
}

/// Returns the `Set-Cookie` header that deletes the session cookie. The browser stays known.
pub(crate) fn clear(handles: &DashboardHandles) -> HeaderValue {
    format_cookie(handles, SESSION, "", 0)
}

pub(super) fn format_cookie(
    handles: &DashboardHandles,
    name: &str,
    value: &str,
    seconds: u64,
) -> HeaderValue {
    let (prefix, secure) = if handles.own_origin.is_tls() {
        (SECURE_PREFIX, "; Secure")
    } else {
        ("", "")
    };
    let text = format!(
        "{prefix}{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}"
    );
    // Name and value are ASCII, so this does not fail.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}
