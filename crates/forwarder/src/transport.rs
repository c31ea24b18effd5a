//! Interface for sending requests, implemented by the server.

use async_trait::async_trait;
use std::time::Duration;
use tributary_domain::integration::Network;
use tributary_networks::{NetworkRequest, SendOutcome};

/// A request's recipient. The operator configures the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestTarget {
    /// A network.
    Network(Network),
    /// Google's token endpoint (`network_b`).
    TokenEndpoint,
    /// A network's cost report.
    Reports(Network),
}

/// Outcome and duration of a request.
#[derive(Debug)]
pub struct TransportOutcome {
    /// Outcome of sending.
    pub outcome: SendOutcome,
    /// Time from DNS to the last byte.
    pub duration: Duration,
}

/// Sends requests.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request within the timeout.
    async fn send(
        &self,
        service: RequestTarget,
        request: NetworkRequest,
        timeout: Duration,
    ) -> TransportOutcome;
}
