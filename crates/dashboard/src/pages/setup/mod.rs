//! `/setup/{token}` — creates an account and a first API key with a one-time link.
//!
//! The token is the only credential, so every handler requires a [`ValidLink`]. All invalid links
//! show the same page.

mod form_page;
mod redeem;
mod show;

pub(crate) use redeem::redeem;
pub(crate) use show::show;

use crate::failure::Failure;
use crate::state::DashboardHandles;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use tributary_domain::access::key::{KeyKind, KeyText};
use tributary_domain::access::person::SetupLink;
use tributary_domain::vocabulary::digest::Digest;

/// A setup link that exists, is unused and has not expired.
pub(crate) struct ValidLink {
    link: SetupLink,
    digest: Digest,
}

impl FromRequestParts<DashboardHandles> for ValidLink {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        handles: &DashboardHandles,
    ) -> Result<Self, Failure> {
        // A path that is not UTF-8 is not a token.
        let Path(token) = Path::<String>::from_request_parts(parts, handles)
            .await
            .map_err(|_| Failure::LinkInvalid)?;
        // Check the checksum first to save a database lookup.
        let token = KeyText::parse(&token)
            .ok()
            .filter(|token| token.kind == KeyKind::Setup)
            .ok_or(Failure::LinkInvalid)?;
        let digest = token.digest();
        let found = handles.store.setup_link(digest).await?;
        let link = found
            .filter(|link| link.is_valid(handles.runtime.now()))
            .ok_or(Failure::LinkInvalid)?;
        Ok(Self { link, digest })
    }
}
