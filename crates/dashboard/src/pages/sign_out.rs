//! `POST /sign-out` — ends the session.

use crate::access::{FormSubmission, cookie};
use crate::failure::Failure;
use crate::pages::sign_in::with_cookie;
use crate::response::see_other;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::AnalyticsRead;

/// Ends it, in the store and in the browser.
pub(crate) async fn sign_out(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    handles
        .store
        .end_session(posted.session.token_digest)
        .await?;
    Ok(with_cookie(see_other("/sign-in"), cookie::clear(&handles)))
}
