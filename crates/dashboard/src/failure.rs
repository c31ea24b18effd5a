//! Why somebody gets another page than the one asked for, and what it tells them to do.

use crate::response::{page, see_other};
use askama::Template;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tributary_domain::access::person::Role;
use tributary_domain::refusal::Refusal;
use tributary_store::StoreError;
use url::form_urlencoded;

/// Seconds after which a database that was away may be back.
const RETRY_SECONDS: &str = "5";

/// Why there is another page.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The set-up link was used, has expired or never was.
    LinkInvalid,
    /// No such file.
    NoSuchFile,
    /// No such page, app, link or whatever else the address names.
    NotFound,
    /// Nobody is signed in. The page that was asked for.
    NotSignedIn(String),
    /// A part of a page was asked for, and nobody is signed in any more.
    SessionExpired,
    /// The person's role does not allow it.
    Denied(Role),
    /// A form of another session, or of none.
    FormExpired,
    /// What the rules say no to, where no field of a form is at fault.
    Refused(Refusal),
    /// A form that does not come from a page of ours, which are at this address.
    CrossOrigin(Arc<str>),
    /// Not what a browser sends when a form is submitted.
    NotAForm,
    /// A form of more bytes than its fields can have.
    TooLarge,
    /// A form that did not arrive in time.
    TooSlow,
    /// The database is away.
    Unavailable,
    /// A bug of ours, logged where it was noticed.
    Internal,
}

#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage {
    title: &'static str,
    paragraphs: Vec<String>,
    /// Something to type on the machine of the service, and what it does.
    commands: &'static [(&'static str, &'static str)],
}

impl Failure {
    const fn status(&self) -> StatusCode {
        match self {
            Self::LinkInvalid | Self::NoSuchFile | Self::NotFound => StatusCode::NOT_FOUND,
            Self::NotSignedIn(_) => StatusCode::SEE_OTHER,
            Self::SessionExpired => StatusCode::UNAUTHORIZED,
            Self::Refused(_) => StatusCode::CONFLICT,
            Self::CrossOrigin(_) | Self::Denied(_) | Self::FormExpired => StatusCode::FORBIDDEN,
            Self::NotAForm => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "a table of words, one entry a failure"
    )]
    fn page(&self) -> FailurePage {
        let (title, paragraphs) = match self {
            Self::LinkInvalid => (
                "This set-up link does not work",
                vec![
                    "It was used already, has expired, or is not complete. Check that the whole link \
                     was copied. If it was, ask whoever runs this service for a new one."
                        .to_owned(),
                ],
            ),
            Self::NoSuchFile => (
                "There is no such file",
                vec!["Load the page again that led here.".to_owned()],
            ),
            Self::NotFound => (
                "There is nothing here",
                vec![
                    "The address is mistyped, or what it named is gone, or belongs to another \
                     organization."
                        .to_owned(),
                ],
            ),
            Self::NotSignedIn(_) | Self::SessionExpired => (
                "You are not signed in",
                vec!["Sign in, and the page you asked for follows.".to_owned()],
            ),
            Self::Denied(role) => (
                "Your role does not allow this",
                vec![format!(
                    "Your role is {}. Nothing was changed. An owner of your organization can give you \
                     another role, on the page Team.",
                    role.as_str()
                )],
            ),
            Self::FormExpired => (
                "This form is no longer good",
                vec![
                    "Nothing was changed. It was made before you last signed in. Go back, load the page \
                     again, and send it once more."
                        .to_owned(),
                ],
            ),
            Self::Refused(refusal) => ("This was not done", vec![refusal.to_string()]),
            Self::CrossOrigin(base_url) => (
                "This form was not sent from its own page",
                vec![
                    format!(
                        "Nothing was done. Open the page in a browser, at {base_url}, and send the form \
                         from there."
                    ),
                    format!(
                        "A request is taken when it carries Sec-Fetch-Site: same-origin, as browsers \
                         send it, or, without any Sec-Fetch header, Origin: {base_url}."
                    ),
                ],
            ),
            Self::NotAForm => (
                "This is not a form",
                vec![
                    "Nothing was done. Send the fields as application/x-www-form-urlencoded, as \
                     browsers do."
                        .to_owned(),
                ],
            ),
            Self::TooLarge => (
                "This form is too large",
                vec!["Nothing was done. Go back and shorten what you entered.".to_owned()],
            ),
            Self::TooSlow => (
                "The form did not arrive in time",
                vec!["Nothing was done. Go back and send it again.".to_owned()],
            ),
            Self::Unavailable => (
                "The database cannot answer right now",
                vec![
                    "Wait a few seconds and try again. Should a set-up link then be said to be used, \
                     the account was made after all; a key for it is a command away."
                        .to_owned(),
                ],
            ),
            Self::Internal => (
                "Something went wrong here",
                vec![
                    "It is not your fault. The log of the service says more; the header X-Request-Id \
                     of this answer leads to the line."
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
            "The account is there, but its key was lost? This prints another one:",
            "tributary admin key create --permission full",
        );
        match self {
            Self::LinkInvalid => &[
                (
                    "On the machine of the service, this prints a new link:",
                    "tributary admin user create --email you@example.com --role owner",
                ),
                NEW_KEY,
            ],
            Self::Unavailable => &[NEW_KEY],
            _ => &[],
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(Refusal::SetupLinkInvalid) => Self::LinkInvalid,
            StoreError::Refused(
                Refusal::AppNotFound
                | Refusal::LinkNotFound
                | Refusal::DeviceNotFound
                | Refusal::DeliveryNotFound
                | Refusal::NetworkNotFound
                | Refusal::KeyNotFound,
            ) => Self::NotFound,
            StoreError::Refused(refusal) => Self::Refused(refusal),
            StoreError::Unavailable { during, source } => {
                tracing::error!(during, error = %source, "the database is unavailable");
                Self::Unavailable
            }
            corrupt @ StoreError::Corrupt { .. } => {
                tracing::error!(error = %corrupt, "a stored value cannot be read");
                Self::Internal
            }
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if let Self::NotSignedIn(asked) = &self {
            let next = form_urlencoded::byte_serialize(asked.as_bytes());
            return see_other(&format!("/sign-in?next={}", next.collect::<String>()));
        }
        let mut response = page(self.status(), &self.page());
        let extra = match self {
            Self::Unavailable => Some((header::RETRY_AFTER, RETRY_SECONDS)),
            // The whole page is asked for again, and that leads to the sign-in.
            Self::SessionExpired => Some((HeaderName::from_static("hx-refresh"), "true")),
            // The rest of the body is not read, so the connection cannot be used again.
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
    #[case::corrupt(StoreError::corrupt("users", "role", 1), 500, None)]
    #[case::used_meanwhile(Refusal::SetupLinkInvalid.into(), 404, None)]
    #[case::not_found(Refusal::KeyNotFound.into(), 404, None)]
    #[case::refused(Refusal::LastOwner.into(), 409, None)]
    fn failures_of_the_store(
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
    async fn what_the_database_said_stays_in_the_log() {
        let failure = Failure::from(StoreError::unavailable("test", "disk full at /var/lib"));
        let body = axum::body::to_bytes(failure.into_response().into_body(), 100_000).await;
        let text = String::from_utf8(body.unwrap().to_vec()).unwrap();
        assert!(!text.contains("/var/lib"));
    }
}
