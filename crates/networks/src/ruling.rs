//! A classified response.

use crate::account::Account;
use crate::response::NetworkResponse;
use crate::retry_after::RetryAfter;
pub use tributary_domain::forwarding::ruling::{NetworkPace, RetryAdvice, Ruling};

/// A classified response.
#[derive(Clone, PartialEq, Eq)]
pub struct Judgement {
    /// What to do next.
    pub ruling: Ruling,
    /// HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The network's code or reason.
    pub code: Option<String>,
    /// The network's full message, without the account's secrets. The caller has to redact
    /// `network_b`'s access token, which is not known here.
    pub message: Option<String>,
    /// The network's id for the request. For `network_b`, pass it to
    /// [`crate::network_b::status_request`].
    pub trace_id: Option<String>,
    /// Rate at which to continue.
    pub pace: Option<NetworkPace>,
    /// The `Retry-After` header.
    pub retry_after: Option<RetryAfter>,
    /// Message for the operator, independent of `ruling`.
    pub warning: Option<String>,
}

impl Judgement {
    /// Creates a classification without values from a response.
    pub const fn of(ruling: Ruling) -> Self {
        Self {
            ruling,
            status: None,
            code: None,
            message: None,
            trace_id: None,
            pace: None,
            retry_after: None,
            warning: None,
        }
    }

    /// Adds the values that are read in the same way from every network's response, and redacts the
    /// texts.
    pub(crate) fn with_response(mut self, account: &Account, response: &NetworkResponse) -> Self {
        if let Ruling::Retry(retry) = &mut self.ruling {
            retry.may_be_processed = matches!(response.status, 502 | 504);
        }
        let clean = |text: String| account.redact(&text);
        Self {
            status: Some(response.status),
            code: self.code.map(clean),
            message: self.message.map(clean),
            warning: self.warning.map(clean),
            retry_after: response.header("retry-after").and_then(RetryAfter::read),
            ..self
        }
    }
}

impl std::fmt::Debug for Judgement {
    /// Omits the message, which may repeat what was sent.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Judgement")
            .field("ruling", &self.ruling)
            .field("status", &self.status)
            .field("code", &self.code)
            .field("has_words", &self.message.is_some())
            .field("trace", &self.trace_id)
            .field("pace", &self.pace)
            .field("retry_after", &self.retry_after)
            .field("has_warning", &self.warning.is_some())
            .finish()
    }
}
