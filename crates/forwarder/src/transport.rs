//! Sending, as the forwarder asks for it.

use async_trait::async_trait;
use std::time::Duration;
use tributary_domain::integration::Network;
use tributary_networks::{NetworkRequest, SendOutcome};

/// Whom a request is for. Where they are reached is the operator's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestTarget {
    /// A network.
    Network(Network),
    /// Whoever gives out the access tokens of `network_b`.
    TokenEndpoint,
}

/// What came of sending, and how long it took.
#[derive(Debug)]
pub struct TransportOutcome {
    /// What came of it.
    pub outcome: SendOutcome,
    /// From the name to the last byte.
    pub duration: Duration,
}

/// Sends requests.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends one; it takes no longer than the timeout.
    async fn send(
        &self,
        service: RequestTarget,
        request: NetworkRequest,
        timeout: Duration,
    ) -> TransportOutcome;
}
