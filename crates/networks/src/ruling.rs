//! A network's answer, read.

use crate::account::Account;
use crate::response::NetworkResponse;
use crate::retry_after::RetryAfter;
pub use tributary_domain::forwarding::ruling::{NetworkPace, RetryAdvice, Ruling};

/// An answer, read.
#[derive(Clone, PartialEq, Eq)]
pub struct Judgement {
    /// What is to be done.
    pub ruling: Ruling,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// The network's own code or reason.
    pub code: Option<String>,
    /// The network's words, without the account's secrets. They are as long as they came; `network_b`'s access token
    /// is not known here and has to be taken out by whoever knows it.
    pub message: Option<String>,
    /// What the network knows the request by. On `network_b` it is what [`crate::network_b::status_request`] asks for.
    pub trace_id: Option<String>,
    /// How fast to go on.
    pub pace: Option<NetworkPace>,
    /// When to come back, as a header says it.
    pub retry_after: Option<RetryAfter>,
    /// What the operator should know, whatever the ruling.
    pub warning: Option<String>,
}

impl Judgement {
    /// A ruling without an answer.
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

    /// With what is read alike from every network's answers.
    pub(crate) fn with_response(mut self, account: &Account, answer: &NetworkResponse) -> Self {
        if let Ruling::Retry(retry) = &mut self.ruling {
            retry.may_be_processed = matches!(answer.status, 502 | 504);
        }
        let clean = |text: String| account.redact(&text);
        Self {
            status: Some(answer.status),
            code: self.code.map(clean),
            message: self.message.map(clean),
            warning: self.warning.map(clean),
            retry_after: answer.header("retry-after").and_then(RetryAfter::read),
            ..self
        }
    }
}

impl std::fmt::Debug for Judgement {
    /// A network's words may repeat what was sent to it, so they do not print.
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
