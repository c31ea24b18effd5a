//! What an answer means.

use crate::account::Account;
use crate::answer::Answer;
use crate::retry_after::RetryAfter;
use std::time::Duration;

/// What is to be done about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// The network took every event of it.
    Delivered,
    /// The network took all events but these, by their place in the batch.
    DeliveredExcept {
        /// In order, each once, at least one.
        failed: Vec<usize>,
    },
    /// The network took none of it, and may later.
    Retry(Retry),
    /// The network refused all of it because of these events, by their place in the batch. None named: an event may be
    /// the cause, or the account.
    Rejected {
        /// In order, each once.
        named: Vec<usize>,
    },
    /// The network refused all of it because of an event that it does not name. Halving the batch finds it.
    InvalidEvent,
    /// Too much at once: halve it.
    TooLarge,
    /// The access token was refused: get a new one and repeat once. A second time in a row is [`Self::Pause`].
    TokenRefused,
    /// Credentials, permissions or configuration are wrong; nothing else will be taken either.
    Pause,
    /// The network may have taken it.
    Unknown,
}

/// How to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retry {
    /// Too many requests: the whole queue waits, not this batch.
    pub throttled: bool,
    /// The shortest wait.
    pub at_least: Option<Duration>,
    /// A gateway answered in the network's place, which may have taken it all the same.
    pub may_be_processed: bool,
    /// Wait as long as one ever waits, and tell the operator.
    pub longest: bool,
}

impl Ruling {
    /// Try again, with nothing special about it.
    pub fn retry() -> Self {
        Self::Retry(Retry::default())
    }

    pub(crate) fn throttled() -> Self {
        Self::Retry(Retry {
            throttled: true,
            ..Retry::default()
        })
    }

    pub(crate) fn after(at_least: Duration) -> Self {
        Self::Retry(Retry {
            at_least: Some(at_least),
            ..Retry::default()
        })
    }

    pub(crate) const fn unnamed() -> Self {
        Self::Rejected { named: Vec::new() }
    }

    /// By the status alone, where the body says nothing: an answer of something in front of the network, mostly. What
    /// is refused there has nothing to do with one event.
    pub(crate) fn by_status(status: u16) -> Self {
        match status {
            200..=299 => Self::Unknown,
            401 | 403 | 404 | 405 | 407 => Self::Pause,
            413 => Self::TooLarge,
            429 => Self::throttled(),
            408 => Self::retry(),
            400..=499 => Self::unnamed(),
            _ => Self::retry(),
        }
    }
}

/// How fast the next requests may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// Half as fast, until an answer says nothing of it any more.
    Slow,
    /// Not at all for so long. The engine bounds it.
    Wait(Duration),
}

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
    pub words: Option<String>,
    /// What the network knows the request by. On `network_b` it is what [`crate::network_b::status_request`] asks for.
    pub trace: Option<String>,
    /// How fast to go on.
    pub pace: Option<Pace>,
    /// When to come back, as a header says it.
    pub retry_after: Option<RetryAfter>,
    /// What the operator should know, whatever the ruling.
    pub warning: Option<String>,
}

impl Judgement {
    pub(crate) const fn of(ruling: Ruling) -> Self {
        Self {
            ruling,
            status: None,
            code: None,
            words: None,
            trace: None,
            pace: None,
            retry_after: None,
            warning: None,
        }
    }

    /// With what is read alike from every network's answers.
    pub(crate) fn completed(mut self, account: &Account, answer: &Answer) -> Self {
        if let Ruling::Retry(retry) = &mut self.ruling {
            retry.may_be_processed = matches!(answer.status, 502 | 504);
        }
        let clean = |text: String| account.redacted(&text);
        Self {
            status: Some(answer.status),
            code: self.code.map(clean),
            words: self.words.map(clean),
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
            .field("has_words", &self.words.is_some())
            .field("trace", &self.trace)
            .field("pace", &self.pace)
            .field("retry_after", &self.retry_after)
            .field("has_warning", &self.warning.is_some())
            .finish()
    }
}
