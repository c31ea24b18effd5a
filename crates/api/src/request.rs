//! Middleware for every request: request id, client address, deadline, log line and error body.

use crate::client_address::client_address;
use crate::error::{ApiError, Code};
use crate::metrics;
use crate::state::ApiState;
use axum::body::Body;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tracing::{Instrument as _, Span};
use tributary_domain::audit::Client;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::digest::hex;
use tributary_domain::vocabulary::id::OrganizationId;

/// Response header with the request id.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Metadata about a request. Handlers read it from the request extensions.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    /// Client address and request id. The id appears in logs, response headers and error bodies.
    pub(crate) client: Client,
    /// Key to log: the id of a private key, or the app of an SDK key.
    key: Arc<OnceLock<String>>,
    /// Span that contains all log lines of the request.
    span: Span,
}

impl RequestContext {
    /// Records the key and its organization for the log.
    pub(crate) fn record_key(&self, key: impl ToString, organization: OrganizationId) {
        let _first = self.key.set(key.to_string());
        record_organization(&self.span, organization);
    }
}

/// Returns the client of a request that passed [`observe`].
pub(crate) fn client_of(parts: &Parts) -> Result<&Client, ApiError> {
    let client = parts.extensions.get::<Client>();
    client.ok_or_else(ApiError::internal)
}

/// Records the organization in the request's span.
pub(crate) fn record_organization(span: &Span, organization: OrganizationId) {
    span.record("organization", tracing::field::display(organization));
}

/// Writes a request's log line and metrics when dropped, so that requests whose client disconnects
/// are logged, too.
struct RequestLog {
    started: Instant,
    method: Method,
    /// The route template. The path itself contains ids and arbitrary input.
    route: String,
    context: RequestContext,
    status: u16,
}

/// Status logged for requests whose client disconnected before the response.
const CLIENT_CLOSED_REQUEST: u16 = 499;

impl Drop for RequestLog {
    fn drop(&mut self) {
        let duration = self.started.elapsed();
        metrics::record_request(self.method.as_str(), &self.route, self.status, duration);
        tracing::info!(
            parent: &self.context.span,
            http.status = self.status,
            duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
            key = self.context.key.get(),
            "request"
        );
    }
}

/// Outermost layer: logs the request, applies the address limit and finishes the response.
pub(crate) async fn observe(
    State(state): State<ApiState>,
    mut request: Request,
    next: Next,
) -> Response {
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or_else(|| "(none)".to_owned(), |path| path.as_str().to_owned());
    let context = context_of(&state, &request, &route);
    let mut line = RequestLog {
        started: Instant::now(),
        method: request.method().clone(),
        route,
        context: context.clone(),
        status: CLIENT_CLOSED_REQUEST,
    };
    request.extensions_mut().insert(context.client.clone());
    request.extensions_mut().insert(context.clone());
    let response = match state.limits.count_address(context.client.address) {
        Ok(()) => {
            let answer = answer_in_time(&state, request, next);
            answer.instrument(context.span.clone()).await
        }
        Err(error) => error.into_response(),
    };
    let response = finish(response, &context, &state.base_url);
    line.status = response.status().as_u16();
    response
}

/// Returns a new request id for `X-Request-Id`.
pub fn request_id(source: &Runtime) -> String {
    format!("req_{}", hex(&source.random_bytes::<12>()))
}

fn context_of(state: &ApiState, request: &Request, route: &str) -> RequestContext {
    let peer = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    let address = client_address(peer, request.headers(), |ip| (state.is_trusted_proxy)(ip));
    let id = request_id(&state.runtime);
    // An error-level span is enabled at every log level.
    let span = tracing::error_span!(
        "request",
        request.id = id,
        http.method = %request.method(),
        http.route = route,
        organization = tracing::field::Empty
    );
    RequestContext {
        client: Client {
            address,
            request_id: id.into(),
        },
        key: Arc::default(),
        span,
    }
}

/// Runs the handler with the request deadline. This is a backstop for the shorter body and database
/// deadlines.
async fn answer_in_time(state: &ApiState, request: Request, next: Next) -> Response {
    let answered = tokio::time::timeout(state.timeouts.request, next.run(request)).await;
    answered.unwrap_or_else(|_| {
        let message = "The request took too long. Send the same request again.";
        ApiError::new(Code::Unavailable, message).into_response()
    })
}

/// Writes the error body and the headers common to all responses.
fn finish(response: Response, context: &RequestContext, base_url: &str) -> Response {
    let (mut parts, body) = response.into_parts();
    let body = match parts.extensions.remove::<ApiError>() {
        None => body,
        Some(error) => {
            let json = HeaderValue::from_static("application/json");
            parts.headers.insert(header::CONTENT_TYPE, json);
            parts.headers.remove(header::CONTENT_LENGTH);
            Body::from(error.body(&context.client.request_id))
        }
    };
    let headers = &mut parts.headers;
    if let Ok(id) = HeaderValue::from_str(&context.client.request_id) {
        headers.insert(X_REQUEST_ID, id);
    }
    let mut default = |name: HeaderName, value: &'static str| {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    };
    default(header::CACHE_CONTROL, "no-store");
    default(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    default(header::REFERRER_POLICY, "strict-origin-when-cross-origin");
    default(
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    );
    default(
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    );
    if base_url.starts_with("https://") {
        default(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
    Response::from_parts(parts, body)
}

/// Turns a caught panic into a 500. The panic hook has logged the message.
pub(crate) fn after_panic(_panic: Box<dyn std::any::Any + Send + 'static>) -> Response {
    tracing::error!("handler panicked");
    ApiError::internal().into_response()
}

/// Responds to an unknown path.
pub(crate) async fn no_such_path() -> ApiError {
    ApiError::new(
        Code::NotFound,
        "No such path. /api/v1/docs lists the available endpoints.",
    )
}

/// Responds to a method that the path does not support.
pub(crate) async fn no_such_method() -> ApiError {
    ApiError::new(
        Code::MethodNotAllowed,
        "This path does not support this method. The Allow header lists the supported methods.",
    )
}
