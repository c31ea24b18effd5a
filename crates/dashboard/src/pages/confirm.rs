//! `POST /account/confirm` — takes the proof of who the user is, and continues to a page.

use super::sign_in::local_path;
use crate::access::{FormSubmission, confirm_page};
use crate::failure::Failure;
use crate::response::see_other;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tributary_domain::access::AnalyticsRead;

/// Checks the password and redirects to the page.
pub(crate) async fn confirm(
    State(handles): State<DashboardHandles>,
    headers: HeaderMap,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    let asked = confirm_page(&submission.context, &submission.form, &headers, &handles).await?;
    let next = submission.form.field("next");
    Ok(asked.unwrap_or_else(|| see_other(local_path(&next))))
}
