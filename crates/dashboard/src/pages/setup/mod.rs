//! `/setup/{token}` — a person with a one-time link makes an account and gets a first key.
//!
//! The token is the only proof there is, so it is asked for first and by type: no handler here gets by
//! without a [`ValidLink`]. All reasons for which a link does not work look alike.

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

/// A set-up link that exists, was not used and has not expired.
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
        // A path that is no text is no token either.
        let Path(token) = Path::<String>::from_request_parts(parts, handles)
            .await
            .map_err(|_| Failure::LinkInvalid)?;
        // A wrong checksum costs no look-up.
        let token = KeyText::parse(&token)
            .ok()
            .filter(|token| token.kind == KeyKind::Setup)
            .ok_or(Failure::LinkInvalid)?;
        let digest = token.digest();
        let found = handles.store.setup_link(digest).await?;
        let link = found
            .filter(|link| link.is_valid(handles.source.now()))
            .ok_or(Failure::LinkInvalid)?;
        Ok(Self { link, digest })
    }
}
