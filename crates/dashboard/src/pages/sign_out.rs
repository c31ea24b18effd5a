//! `POST /sign-out` — ends the session.

use crate::access::{FormSubmission, cookie};
use crate::failure::Failure;
use crate::pages::sign_in::with_cookies;
use crate::response::see_other;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::AnalyticsRead;

/// Ends the session in the store and deletes the cookie.
pub(crate) async fn sign_out(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    handles
        .store
        .end_session(submission.session.token_digest)
        .await?;
    let cookies = [cookie::clear(&handles)];
    Ok(with_cookies(see_other("/sign-in"), cookies))
}
