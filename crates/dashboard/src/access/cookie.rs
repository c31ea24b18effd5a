//! The session cookie.

use crate::state::DashboardHandles;
use axum::http::{HeaderMap, HeaderValue, header};
use tributary_domain::access::key::{KeyKind, KeyText};
use tributary_domain::access::session::SESSION_LIFETIME;

/// Cookie name over TLS. Browsers accept the `__Host-` prefix only from this host and over TLS.
const SECURE_NAME: &str = "__Host-tributary";
const PLAIN_NAME: &str = "tributary";

const fn name(handles: &DashboardHandles) -> &'static str {
    if handles.own_origin.is_tls() {
        SECURE_NAME
    } else {
        PLAIN_NAME
    }
}

/// Returns the session token from a request. A request with two cookies of this name has no valid
/// token, because an attacker may have planted one of them.
pub(crate) fn token(headers: &HeaderMap, handles: &DashboardHandles) -> Option<KeyText> {
    let lines = headers.get_all(header::COOKIE);
    let texts = lines.iter().filter_map(|line| line.to_str().ok());
    let pairs = texts.flat_map(|line| line.split(';')).map(str::trim);
    let mut values = pairs
        .filter_map(|pair| pair.split_once('='))
        .filter(|(found, _)| *found == name(handles))
        .map(|(_, value)| value);
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    // Check the checksum first to save a database lookup.
    let token = KeyText::parse(value).ok()?;
    (token.kind == KeyKind::Session).then_some(token)
}

/// Returns the `Set-Cookie` header for a token. Scripts cannot read the cookie, and browsers do
/// not send it with forms from other sites.
pub(crate) fn set(handles: &DashboardHandles, token: &KeyText) -> HeaderValue {
    format_cookie(handles, token.reveal(), SESSION_LIFETIME.as_secs())
}

/// Returns the `Set-Cookie` header that deletes the cookie.
pub(crate) fn clear(handles: &DashboardHandles) -> HeaderValue {
    format_cookie(handles, "", 0)
}

fn format_cookie(handles: &DashboardHandles, value: &str, seconds: u64) -> HeaderValue {
    let secure = if handles.own_origin.is_tls() {
        "; Secure"
    } else {
        ""
    };
    let name = name(handles);
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    // Name and token are ASCII, so this does not fail.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}
