//! Error pages: what went wrong and what the user can do.

use crate::response::{page, see_other};
use crate::shell::Shell;
use askama::Template;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tributary_domain::access::person::Role;
use tributary_domain::refusal::Refusal;
use tributary_store::report_slots::SlotRejection;
use tributary_store::{ReportTimeout, StoreError};
use url::form_urlencoded;

/// `Retry-After` while the database is unavailable.
const RETRY_SECONDS: &str = "5";

/// Reason for an error page.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The setup link was used, has expired or never existed.
    LinkInvalid,
    /// The link for a new password was used, has expired or never existed.
    ResetLinkInvalid,
    /// The link to a shared report is unknown, has expired or was revoked.
    ShareClosed,
    /// Unknown static file.
    NoSuchFile,
    /// The page, app, link or other item in the URL does not exist.
    NotFound,
    /// The target of a form was opened as a page.
    FormAsPage,
    /// The user is not signed in. Contains the requested page's path.
    NotSignedIn(String),
    /// The organization requires a second factor, and the user has none.
    FactorMissing,
    /// The session ended, and htmx requested a fragment.
    SessionExpired,
    /// The user's role does not allow the request.
    Denied(Role),
    /// The form token belongs to another session or is missing.
    FormExpired,
    /// A rule rejected the change, and no single field is the cause.
    Refused(Refusal),
    /// The form was submitted from another origin. Contains our base URL.
    CrossOrigin(Arc<str>),
    /// The body is not a URL-encoded form.
    NotAForm,
    /// The form exceeds the size limit.
    TooLarge,
    /// The form did not arrive in time.
    TooSlow,
    /// The organization or user has too many reports at once. Contains the seconds to wait.
    TooManyReports(u64),
    /// The page got no slot for its report. Contains the page that tries again.
    Busy(Box<Response>),
    /// A sensitive action needs a recent proof of who the user is. Contains the page that asks.
    ProofNeeded(Box<Response>),
    /// The page's report took longer than its time limit.
    ReportTooSlow,
    /// The database is unavailable.
    Unavailable,
    /// An internal error, already logged.
    Internal,
}

/// The texts of an error page. A response carries them, so that `access::keep_menu` can add the menu.
#[derive(Clone, Template)]
#[template(path = "failure.html")]
pub(crate) struct FailurePage {
    title: &'static str,
    paragraphs: Vec<String>,
    /// Explanations, each with a command to run on the server.
    commands: &'static [(&'static str, &'static str)],
}

/// An error page with the menu.
#[derive(Template)]
#[template(path = "failure_in_app.html")]
pub(crate) struct FramedFailurePage {
    pub(crate) shell: Shell,
    pub(crate) failure: FailurePage,
}

impl Failure {
    /// Returns whether signed-in users get the menu with the error, because they may have followed a
    /// wrong address and want to go on elsewhere.
    const fn keeps_menu(&self) -> bool {
        matches!(self, Self::NotFound | Self::FormAsPage | Self::Denied(_))
    }

    const fn status(&self) -> StatusCode {
        match self {
            Self::LinkInvalid
            | Self::ResetLinkInvalid
            | Self::ShareClosed
            | Self::NoSuchFile
            | Self::NotFound => StatusCode::NOT_FOUND,
            Self::FormAsPage => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotSignedIn(_) | Self::FactorMissing => StatusCode::SEE_OTHER,
            Self::SessionExpired => StatusCode::UNAUTHORIZED,
            Self::Refused(_) => StatusCode::CONFLICT,
            Self::CrossOrigin(_) | Self::Denied(_) | Self::FormExpired | Self::ProofNeeded(_) => {
                StatusCode::FORBIDDEN
            }
            Self::NotAForm => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooManyReports(_) | Self::Busy(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::ReportTooSlow | Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "a table of texts, one entry per failure"
    )]
    fn page(&self) -> FailurePage {
        let (title, paragraphs) = match self {
            Self::LinkInvalid => (
                "This setup link is not valid",
                vec![
                    "It has been used, has expired or is incomplete. Check that you copied the \
                     whole link. If you did, ask the administrator of this server for a new one."
                        .to_owned(),
                ],
            ),
            Self::ResetLinkInvalid => (
                "This link for a new password is not valid",
                vec![
                    "It has been used, has expired or is incomplete. Check that you copied the \
                     whole link. If you did, ask for a new one."
                        .to_owned(),
                ],
            ),
            Self::ShareClosed => (
                "This link no longer works",
                vec![
                    "It has expired or was revoked, or its address is incomplete. Ask the person \
                     who sent it to you for a new one."
                        .to_owned(),
                ],
            ),
            Self::NoSuchFile => (
                "File not found",
                vec!["Reload the page that you came from.".to_owned()],
            ),
            Self::NotFound => (
                "Page not found",
                vec![
                    "The address is wrong, or the item was deleted or belongs to another \
                     organization. Check the address, or open the page below."
                        .to_owned(),
                ],
            ),
            Self::FormAsPage => (
                "This address is not a page",
                vec![
                    "It receives a form of the dashboard. Go back to the page with the form."
                        .to_owned(),
                ],
            ),
            Self::NotSignedIn(_) | Self::SessionExpired => (
                "You are signed out",
                vec!["Sign in to continue to the page that you requested.".to_owned()],
            ),
            Self::Denied(role) => (
                "Your role does not allow this",
                vec![format!(
                    "Your role is {}. Nothing was changed. An owner of your organization can \
                     change your role on the Team page.",
                    role.as_str()
                )],
            ),
            Self::FormExpired => (
                "This form has expired",
                vec![
                    "Nothing was changed. You opened this form before you last signed in. Go back \
                     and reload the page: it restores what you typed, except secrets. Then submit \
                     the form again."
                        .to_owned(),
                ],
            ),
            Self::Refused(refusal) => ("This change was rejected", vec![refusal.to_string()]),
            Self::CrossOrigin(base_url) => (
                "This form was not submitted from the dashboard",
                vec![
                    format!(
                        "Nothing was changed. Open {base_url} in a browser and submit the form \
                         there."
                    ),
                    format!(
                        "In a script, send the header Sec-Fetch-Site: same-origin, or, without any \
                         Sec-Fetch header, Origin: {base_url}."
                    ),
                ],
            ),
            Self::NotAForm => (
                "Unsupported form encoding",
                vec![
                    "Nothing was changed. Send the fields as application/x-www-form-urlencoded, as \
                     browsers do."
                        .to_owned(),
                ],
            ),
            Self::TooLarge => (
                "This form is too large",
                vec!["Nothing was changed. Go back and shorten your input.".to_owned()],
            ),
            Self::TooSlow => (
                "The form took too long to arrive",
                vec!["Nothing was changed. Go back and submit it again.".to_owned()],
            ),
            Self::TooManyReports(_) | Self::Busy(_) => (
                "Too many reports at once",
                vec![
                    "Several reports of your organization are still loading. Wait a few seconds \
                     and try again."
                        .to_owned(),
                ],
            ),
            Self::ReportTooSlow => (
                "This report took too long",
                vec!["It was stopped. Go back and choose a shorter period.".to_owned()],
            ),
            Self::Unavailable => (
                "The database is unavailable",
                vec![
                    "Wait a few seconds and try again. If you were setting up an account and the \
                     setup link no longer works, the account already exists: sign in, or create an \
                     API key with the command below."
                        .to_owned(),
                ],
            ),
            Self::FactorMissing => (
                "Set up a second factor",
                vec!["Your organization requires one. Nothing was changed.".to_owned()],
            ),
            Self::ProofNeeded(_) => (
                "Confirm that it is you",
                vec!["Nothing was changed. Enter your password to continue.".to_owned()],
            ),
            Self::Internal => (
                "Internal error",
                vec![
                    "Something went wrong on the server. To find the details, search the server's \
                     log for the value of this response's X-Request-Id header."
                        .to_owned(),
                ],
            ),
        };
        FailurePage {
            title,
            paragraphs,
            commands: self.commands(),
        }
    }

    const fn commands(&self) -> &'static [(&'static str, &'static str)] {
        const NEW_KEY: (&str, &str) = (
            "If the account exists but its key was lost, this command prints a new key:",
            "tributary admin key create --permission full",
        );
        match self {
            Self::LinkInvalid => &[
                (
                    "On the server, this command prints a new link:",
                    "tributary admin user create --email you@example.com --role owner",
                ),
                NEW_KEY,
            ],
            Self::ResetLinkInvalid => &[(
                "On the server, this command prints a new link:",
                "tributary admin user reset you@example.com",
            )],
            Self::Unavailable => &[NEW_KEY],
            _ => &[],
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(Refusal::SetupLinkInvalid) => Self::LinkInvalid,
            StoreError::Refused(Refusal::ResetLinkInvalid) => Self::ResetLinkInvalid,
            StoreError::Refused(
                Refusal::AppNotFound
                | Refusal::LinkNotFound
                | Refusal::NoticeNotFound
                | Refusal::DeviceNotFound
                | Refusal::AppUserNotFound
                | Refusal::DeliveryNotFound
                | Refusal::NetworkNotFound
                | Refusal::KeyNotFound,
            ) => Self::NotFound,
            StoreError::Refused(refusal) => Self::Refused(refusal),
            StoreError::Unavailable { during, source } if source.is::<ReportTimeout>() => {
                tracing::warn!(during, "report took too long");
                Self::ReportTooSlow
            }
            StoreError::Unavailable { during, source } => {
                tracing::error!(during, error = %source, "database unavailable");
                Self::Unavailable
            }
            corrupt @ StoreError::Corrupt { .. } => {
                tracing::error!(error = %corrupt, "failed to decode stored value");
                Self::Internal
            }
        }
    }
}

impl From<SlotRejection> for Failure {
    fn from(rejection: SlotRejection) -> Self {
        Self::TooManyReports(rejection.kind.retry_seconds())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if let Self::NotSignedIn(requested) = &self {
            let next = form_urlencoded::byte_serialize(requested.as_bytes());
            return see_other(&format!("/sign-in?next={}", next.collect::<String>()));
        }
        if matches!(self, Self::FactorMissing) {
            return see_other("/account/authenticator");
        }
        if let Self::Busy(page) | Self::ProofNeeded(page) = self {
            return *page;
        }
        let failure = self.page();
        let mut response = page(self.status(), &failure);
        if self.keeps_menu() {
            response.extensions_mut().insert(failure);
        }
        if let Self::TooManyReports(seconds) = self {
            let seconds = HeaderValue::from(seconds);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        let extra = match self {
            Self::Unavailable => Some((header::RETRY_AFTER, RETRY_SECONDS)),
            // Makes htmx reload the page, which redirects to the sign-in page.
            Self::SessionExpired => Some((HeaderName::from_static("hx-refresh"), "true")),
            // The rest of the body is unread, so the connection cannot be reused.
            Self::TooLarge | Self::TooSlow => Some((header::CONNECTION, "close")),
            _ => None,
        };
        if let Some((name, value)) = extra {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::unavailable(StoreError::unavailable("test", "disk full"), 503, Some("5"))]
    #[case::too_slow(StoreError::unavailable("stats", ReportTimeout), 503, None)]
    #[case::corrupt(StoreError::corrupt("users", "role", 1), 500, None)]
    #[case::used_meanwhile(Refusal::SetupLinkInvalid.into(), 404, None)]
    #[case::reset_meanwhile(Refusal::ResetLinkInvalid.into(), 404, None)]
    #[case::not_found(Refusal::KeyNotFound.into(), 404, None)]
    #[case::refused(Refusal::LastOwner.into(), 409, None)]
    fn store_errors_become_statuses(
        #[case] error: StoreError,
        #[case] status: u16,
        #[case] retry_after: Option<&str>,
    ) {
        let response = Failure::from(error).into_response();
        assert_eq!(response.status().as_u16(), status);
        let header = response.headers().get(header::RETRY_AFTER);
        assert_eq!(header.map(|value| value.to_str().unwrap()), retry_after);
    }

    #[tokio::test]
    async fn database_error_details_are_not_shown() {
        let failure = Failure::from(StoreError::unavailable("test", "disk full at /var/lib"));
        let body = axum::body::to_bytes(failure.into_response().into_body(), 100_000).await;
        let text = String::from_utf8(body.unwrap().to_vec()).unwrap();
        assert!(!text.contains("/var/lib"));
    }
}
