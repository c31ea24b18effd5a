//! `POST /sign-out` — ends the session.

use crate::access::{FormSubmission, cookie};
use crate::failure::Failure;
use crate::pages::sign_in::with_cookies;
use crate::response::see_other;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use tributary_domain::access::AnalyticsRead;

/// Header that makes browsers delete what they keep of a site. They ignore it without TLS.
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");
/// The storage with drafts of forms. Pages are not cached. The cookie of a known browser stays, so that
/// guesses by others do not delay the next sign-in.
const CLEARED: &str = "\"storage\"";

/// Ends the session in the store and deletes the cookie.
pub(crate) async fn sign_out(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    handles
        .store
        .end_session(submission.session.token_digest, submission.origin(&handles))
        .await?;
    let cookies = [cookie::clear(&handles)];
    let mut response = with_cookies(see_other("/sign-in"), cookies);
    let everything = HeaderValue::from_static(CLEARED);
    response.headers_mut().insert(CLEAR_SITE_DATA, everything);
    Ok(response)
}
