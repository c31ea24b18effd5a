//! Errors of a running server, as the command line shows them.

use super::table::printable;
use crate::outbound::OutboundError;
use reqwest::StatusCode;
use serde::Deserialize;
use std::fmt;

/// Why a running server did not return what was asked for.
#[derive(Debug)]
pub enum RemoteError {
    /// The server did not answer, or the answer ended early.
    NoAnswer {
        /// Address of the server.
        server: String,
        /// Reason.
        cause: OutboundError,
    },
    /// The server answered with an error.
    Refused {
        /// Address of the server.
        server: String,
        /// HTTP status.
        status: StatusCode,
        /// The error. `None` if the answer does not come from the API, but perhaps from a proxy.
        error: Option<ApiErrorBody>,
    },
}

/// The error that the API returns.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiErrorBody {
    /// Code for programs.
    pub code: String,
    /// Message for people.
    pub message: String,
    /// Whether the same request may succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// Id of the request in the server's log.
    #[serde(default)]
    pub request_id: String,
    /// Faulty fields.
    #[serde(default)]
    pub details: Option<Vec<ApiErrorDetail>>,
}

/// A faulty field.
#[derive(Debug, Deserialize)]
pub struct ApiErrorDetail {
    /// Name of the field.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: ApiErrorBody,
}

impl RemoteError {
    /// Reads the body of an answer with an error.
    pub(super) fn refused(server: String, status: StatusCode, body: &[u8]) -> Self {
        let answer = serde_json::from_slice::<ErrorAnswer>(body).ok();
        Self::Refused {
            server,
            status,
            error: answer.map(|answer| answer.error),
        }
    }

    /// Returns whether the same command may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer { .. } => true,
            Self::Refused {
                error: Some(error), ..
            } => error.retryable,
            Self::Refused { status, .. } => status.is_server_error(),
        }
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer { server, cause } => {
                write!(formatter, "no complete answer from {server}: {cause}")
            }
            Self::Refused {
                server,
                status,
                error: None,
            } => write!(
                formatter,
                "{server} answered {status} without an error of the API; check --server"
            ),
            Self::Refused {
                server,
                status,
                error: Some(error),
            } => {
                let (code, message) = (printable(&error.code), printable(&error.message));
                write!(
                    formatter,
                    "{server} answered {} {code}: {message}",
                    status.as_u16()
                )?;
                for detail in error.details.iter().flatten() {
                    let (field, message) = (printable(&detail.field), printable(&detail.message));
                    write!(formatter, " `{field}`: {message}")?;
                }
                if *status == StatusCode::UNAUTHORIZED {
                    formatter.write_str(" Check TRIBUTARY_API_KEY or --key-file.")?;
                }
                if !error.request_id.is_empty() {
                    write!(formatter, " (request {})", printable(&error.request_id))?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for RemoteError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> RemoteError {
        let status = StatusCode::from_u16(status).unwrap();
        RemoteError::refused("http://t".to_owned(), status, body.as_bytes())
    }

    #[test]
    fn every_faulty_filter_is_named() {
        let body = r#"{"error": {"code": "validation_failed", "message": "See details.",
            "retryable": false, "requestId": "req_1", "details": [
            {"field": "from", "code": "invalid_format", "message": "Not a day."},
            {"field": "to", "code": "invalid_format", "message": "Not a day either."}]}}"#;
        let error = refused(422, body);
        assert_eq!(
            error.to_string(),
            "http://t answered 422 validation_failed: See details. `from`: Not a day. `to`: Not a \
             day either. (request req_1)"
        );
        assert!(!error.is_transient());
    }

    #[test]
    fn an_answer_that_is_not_of_the_api_is_recognised() {
        let error = refused(502, "<html>Bad Gateway</html>");
        assert!(error.is_transient() && error.to_string().contains("502 Bad Gateway"));
        let error = refused(404, "not here");
        assert!(!error.is_transient() && error.to_string().contains("--server"));
    }

    #[test]
    fn a_server_cannot_control_the_terminal() {
        let body = "{\"error\": {\"code\": \"a\", \"message\": \"\\u001b[2J\"}}";
        assert!(!refused(400, body).to_string().contains('\u{1b}'));
    }
}
