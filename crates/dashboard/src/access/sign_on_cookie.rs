//! The cookies of single sign-on: the sign-in that is under way, and the organization that the
//! browser was last signed in to.

use super::cookie::{format_cookie, value};
use crate::state::DashboardHandles;
use axum::http::{HeaderMap, HeaderValue};
use tributary_domain::access::known_browser::KNOWN_BROWSER_LIFETIME;
use tributary_domain::access::single_sign_on::{ATTEMPT_LIFETIME, SignOnAttempt};
use tributary_domain::vocabulary::id::OrganizationId;

const ATTEMPT: &str = "tributary-sign-on";
const ORGANIZATION: &str = "tributary-organization";

/// Returns the sign-in that is under way in this browser.
pub(crate) fn attempt(headers: &HeaderMap, handles: &DashboardHandles) -> Option<SignOnAttempt> {
    let text = value(headers, handles, ATTEMPT)?;
    SignOnAttempt::open(&handles.keyring, text, handles.runtime.now())
}

/// Returns the `Set-Cookie` header for a sign-in that begins.
pub(crate) fn set_attempt(handles: &DashboardHandles, attempt: &SignOnAttempt) -> HeaderValue {
    let sealed = attempt.seal(&handles.keyring, handles.runtime.random_bytes());
    format_cookie(handles, ATTEMPT, &sealed, ATTEMPT_LIFETIME.as_secs())
}

/// Returns the `Set-Cookie` header that ends the sign-in.
pub(crate) fn clear_attempt(handles: &DashboardHandles) -> HeaderValue {
    format_cookie(handles, ATTEMPT, "", 0)
}

/// Returns the organization whose provider was last used in this browser.
pub(crate) fn organization(
    headers: &HeaderMap,
    handles: &DashboardHandles,
) -> Option<OrganizationId> {
    OrganizationId::parse(value(headers, handles, ORGANIZATION)?).ok()
}

/// Returns the `Set-Cookie` header that offers the organization's provider on the sign-in page.
pub(crate) fn set_organization(
    handles: &DashboardHandles,
    organization: OrganizationId,
) -> HeaderValue {
    let seconds = KNOWN_BROWSER_LIFETIME.as_secs();
    format_cookie(handles, ORGANIZATION, &organization.to_string(), seconds)
}
