//! Metadata of a request, and the log line that is written at its end.

use crate::client_address::client_address;
use crate::error::ApiError;
use crate::metrics::RouteMetrics;
use crate::state::ApiState;
use axum::extract::{ConnectInfo, Request};
use axum::http::Method;
use axum::http::request::Parts;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tracing::Span;
use tributary_domain::audit::Client;
use tributary_domain::vocabulary::id::{AppId, KeyId, OrganizationId};

/// Metadata about a request. Handlers read it from the request extensions.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext(Arc<RequestMetadata>);

/// The shared part of a [`RequestContext`], which the edge and the handler clone.
#[derive(Debug)]
pub(crate) struct RequestMetadata {
    /// Client address and request id. The id appears in logs, response headers and error bodies.
    pub(crate) client: Client,
    /// Time at which the request's head was read.
    pub(crate) started: Instant,
    /// Span that contains all log lines of the request.
    pub(crate) span: Span,
    key: OnceLock<LoggedKey>,
}

impl Deref for RequestContext {
    type Target = RequestMetadata;

    fn deref(&self) -> &RequestMetadata {
        &self.0
    }
}

/// The key to log.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LoggedKey {
    /// The id of a private key.
    Private(KeyId),
    /// The app of an SDK key.
    Sdk(AppId),
}

impl fmt::Display for LoggedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Private(key) => key.fmt(formatter),
            Self::Sdk(app) => app.fmt(formatter),
        }
    }
}

impl RequestContext {
    /// Assigns an id to a request and resolves its client. `route` is the route's template, because
    /// the path contains ids and arbitrary input.
    pub(crate) fn new(state: &ApiState, request: &Request, route: &str) -> Self {
        let peer = request
            .extensions()
            .get::<ConnectInfo<SocketAddr>>()
            .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
        let address = client_address(peer, request.headers(), |ip| (state.is_trusted_proxy)(ip));
        let request_id = state.runtime.request_id();
        let id = request_id.to_ascii();
        // An error-level span is enabled at every log level.
        let span = tracing::error_span!(
            "request",
            request.id = str::from_utf8(&id).unwrap_or_default(),
            http.method = %request.method(),
            http.route = route,
            organization = tracing::field::Empty
        );
        Self(Arc::new(RequestMetadata {
            client: Client {
                address,
                request_id,
            },
            started: Instant::now(),
            span,
            key: OnceLock::new(),
        }))
    }

    /// Records the key and its organization for the log.
    pub(crate) fn record_key(&self, key: LoggedKey, organization: OrganizationId) {
        let _first = self.key.set(key);
        record_organization(&self.span, organization);
    }
}

/// Returns the client of a request that passed the edge.
pub(crate) fn client_of(parts: &Parts) -> Result<&Client, ApiError> {
    let client = parts.extensions.get::<Client>();
    client.ok_or_else(ApiError::internal)
}

/// Records the organization in the request's span.
pub(crate) fn record_organization(span: &Span, organization: OrganizationId) {
    span.record("organization", tracing::field::display(organization));
}

/// Status logged for requests whose client disconnected before the response.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Writes a request's log line and metrics when dropped, so that requests whose client disconnects
/// are logged, too.
#[derive(Debug)]
pub(crate) struct RequestLog {
    pub(crate) context: RequestContext,
    method: Method,
    metrics: Arc<OnceLock<RouteMetrics>>,
    status: u16,
}

impl RequestLog {
    /// Begins a request on a route whose metrics are in `metrics`.
    pub(crate) fn new(
        context: RequestContext,
        method: Method,
        metrics: Arc<OnceLock<RouteMetrics>>,
    ) -> Self {
        Self {
            context,
            method,
            metrics,
            status: CLIENT_CLOSED_REQUEST,
        }
    }

    /// Ends the request with the response's status.
    pub(crate) fn finish(mut self, status: u16) {
        self.status = status;
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        let duration = self.context.started.elapsed();
        if let Some(metrics) = self.metrics.get() {
            metrics.record(&self.method, self.status, duration);
        }
        tracing::info!(
            parent: &self.context.span,
            http.status = self.status,
            duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
            key = self.context.key.get().map(ToString::to_string),
            "request"
        );
    }
}
