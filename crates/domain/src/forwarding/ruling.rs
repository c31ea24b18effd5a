//! What a network's answer means for the request that it answers.

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
    Retry(RetryAdvice),
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
pub struct RetryAdvice {
    /// Too many requests: the whole queue waits, not this batch.
    pub throttled: bool,
    /// The shortest wait.
    pub at_least: Option<Duration>,
    /// A gateway answered in the network's place, which may have taken it all the same.
    pub may_be_processed: bool,
    /// Wait as long as one ever waits, and tell the operator.
    pub needs_longest_wait: bool,
}

impl Ruling {
    /// Try again, with nothing special about it.
    pub fn retry() -> Self {
        Self::Retry(RetryAdvice::default())
    }

    /// Too many requests.
    pub fn throttled() -> Self {
        Self::Retry(RetryAdvice {
            throttled: true,
            ..RetryAdvice::default()
        })
    }

    /// Try again, but not before this wait is over.
    pub fn after(at_least: Duration) -> Self {
        Self::Retry(RetryAdvice {
            at_least: Some(at_least),
            ..RetryAdvice::default()
        })
    }

    /// Refused, and no event is named.
    pub const fn unnamed() -> Self {
        Self::Rejected { named: Vec::new() }
    }

    /// By the status alone, where the body says nothing: an answer of something in front of the network, mostly. What
    /// is refused there has nothing to do with one event.
    pub fn by_status(status: u16) -> Self {
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
pub enum NetworkPace {
    /// Half as fast, until an answer says nothing of it any more.
    Slow,
    /// Not at all for so long. The engine bounds it.
    Wait(Duration),
}
