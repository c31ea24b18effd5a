//! What a network's response means for a request.

use std::time::Duration;

/// Meaning of a network's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// The network accepted every event.
    Delivered,
    /// The network accepted all events but these, given by index.
    DeliveredExcept {
        /// Indexes in ascending order; not empty.
        failed: Vec<usize>,
    },
    /// The network accepted nothing; a retry may succeed.
    Retry(RetryAdvice),
    /// The network rejected the request because of these events, given by index. If empty, an event
    /// or the account may be the cause.
    Rejected {
        /// Indexes in ascending order.
        named: Vec<usize>,
    },
    /// The network rejected the request because of an unnamed event. Splitting the batch finds it.
    InvalidEvent,
    /// The request is too large: split it.
    TooLarge,
    /// The access token was rejected: get a new one and retry once. A second rejection in a row is
    /// treated as [`Self::Pause`].
    TokenRefused,
    /// Credentials, permissions or configuration are wrong, so other requests would fail, too.
    Pause,
    /// The network may have accepted the events.
    Unknown,
}

/// How to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetryAdvice {
    /// Whether the network received too many requests. The whole queue then waits, not only this
    /// batch.
    pub throttled: bool,
    /// Minimum wait.
    pub at_least: Option<Duration>,
    /// Whether the response came from a gateway, so that the network may have processed the request
    /// despite the error.
    pub may_be_processed: bool,
    /// Whether to wait for the maximum back-off and alert the operator.
    pub needs_longest_wait: bool,
}

impl Ruling {
    /// Returns a plain retry.
    pub fn retry() -> Self {
        Self::Retry(RetryAdvice::default())
    }

    /// Returns a retry because of too many requests.
    pub fn throttled() -> Self {
        Self::Retry(RetryAdvice {
            throttled: true,
            ..RetryAdvice::default()
        })
    }

    /// Returns a retry after a minimum wait.
    pub fn after(at_least: Duration) -> Self {
        Self::Retry(RetryAdvice {
            at_least: Some(at_least),
            ..RetryAdvice::default()
        })
    }

    /// Returns a rejection that names no event.
    pub const fn unnamed() -> Self {
        Self::Rejected { named: Vec::new() }
    }

    /// Interprets the HTTP status of a response without a usable body, mostly from a proxy in front
    /// of the network. Such a rejection is not about a single event.
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

/// Rate limit requested by a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkPace {
    /// Send at half speed, until a response no longer asks to slow down.
    Slow,
    /// Send nothing for this long. The forwarder limits the wait.
    Wait(Duration),
}
