//! Reads the token of a one-time link from the path.

use crate::state::DashboardHandles;
use axum::extract::{FromRequestParts as _, Path};
use axum::http::request::Parts;
use tributary_domain::access::key::{KeyKind, KeyText};

/// Returns the token if it is well-formed and of this kind. Its checksum saves a database lookup for
/// mistyped links.
pub(crate) async fn link_token(
    parts: &mut Parts,
    handles: &DashboardHandles,
    kind: KeyKind,
) -> Option<KeyText> {
    let path = Path::<String>::from_request_parts(parts, handles).await;
    // A path that is not UTF-8 is not a token.
    let Path(token) = path.ok()?;
    let token = KeyText::parse(&token).ok()?;
    (token.kind == kind).then_some(token)
}
