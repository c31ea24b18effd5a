//! `/setup/{token}` — creates an account with a one-time link. The first owner also gets an API key.
//!
//! The token is the only credential, so every handler requires a [`ValidLink`]. All invalid links
//! show the same page.

mod form_page;
mod redeem;
mod show;

pub(crate) use redeem::redeem;
pub(crate) use show::show;

use crate::access::link_token;
use crate::failure::Failure;
use crate::pages::single_sign_on::provider_instead_of_password;
use crate::state::DashboardHandles;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::person::SetupLink;
use tributary_domain::vocabulary::digest::Digest;
use tributary_store::StoreResult;

/// A setup link that exists, is unused and has not expired.
pub(crate) struct ValidLink {
    link: SetupLink,
    digest: Digest,
}

impl ValidLink {
    /// Returns the page where the invited person signs in, if the organization allows no password.
    /// The invitation applies there, too.
    async fn provider(&self, handles: &DashboardHandles) -> StoreResult<Option<String>> {
        let (organization, role) = (self.link.organization, self.link.role);
        provider_instead_of_password(handles, organization, role).await
    }
}

impl FromRequestParts<DashboardHandles> for ValidLink {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        handles: &DashboardHandles,
    ) -> Result<Self, Failure> {
        let token = link_token(parts, handles, KeyKind::Setup).await;
        let token = token.ok_or(Failure::LinkInvalid)?;
        let digest = token.digest();
        let found = handles.store.setup_link(digest).await?;
        let link = found
            .filter(|link| link.is_valid(handles.runtime.now()))
            .ok_or(Failure::LinkInvalid)?;
        Ok(Self { link, digest })
    }
}
