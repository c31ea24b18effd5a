//! `POST /sign-out` — ends the session.

use crate::access::{Posted, cookie};
use crate::answer::see_other;
use crate::failure::Failure;
use crate::pages::sign_in::with_cookie;
use crate::state::Handles;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::AnalyticsRead;

/// Ends it, in the store and in the browser.
pub(crate) async fn sign_out(
    State(handles): State<Handles>,
    posted: Posted<AnalyticsRead>,
) -> Result<Response, Failure> {
    handles.store.end_session(posted.visitor.session).await?;
    Ok(with_cookie(see_other("/sign-in"), cookie::clear(&handles)))
}
