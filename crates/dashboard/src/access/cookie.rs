//! The cookie of a session.

use crate::state::DashboardHandles;
use axum::http::{HeaderMap, HeaderValue, header};
use tributary_domain::access::key::{KeyKind, KeyText};
use tributary_domain::access::session::SESSION_LIFETIME;

/// Over TLS the name makes browsers see to it that only this very host, over TLS, can have set it.
const SECURE_NAME: &str = "__Host-tributary";
const PLAIN_NAME: &str = "tributary";

const fn name(handles: &DashboardHandles) -> &'static str {
    if handles.own_origin.is_tls() {
        SECURE_NAME
    } else {
        PLAIN_NAME
    }
}

/// The token that a browser sent. Two of them are as good as none: one of them is somebody else's.
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
    // A wrong checksum costs no look-up.
    let token = KeyText::parse(value).ok()?;
    (token.kind == KeyKind::Session).then_some(token)
}

/// Gives a browser its token. Scripts cannot read it, and other sites' forms do not carry it.
pub(crate) fn set(handles: &DashboardHandles, token: &KeyText) -> HeaderValue {
    format_cookie(handles, token.reveal(), SESSION_LIFETIME.as_secs())
}

/// Takes it away.
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
    // Letters, digits and the punctuation above.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}
