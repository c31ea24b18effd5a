//! Around every request: its id, its client, its time, its line in the log, and the words of its errors.

use crate::client_address::client_address;
use crate::error::{ApiError, Code};
use crate::metrics;
use crate::state::ApiState;
use axum::body::Body;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
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

/// The header that names a request.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What is known of a request beside its content. Handlers find it among the extensions.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    /// Whose request it is; its id is in the log, in the answer's header and in an error's body.
    pub(crate) client: Client,
    /// Which key was used, for the log: a private key by its id, an SDK key by its app.
    key: Arc<OnceLock<String>>,
    /// What every log line about the request carries.
    span: Span,
}

impl RequestContext {
    /// Notes for the log which key was used, and the organization it belongs to.
    pub(crate) fn record_key(&self, key: impl ToString, organization: OrganizationId) {
        let _first = self.key.set(key.to_string());
        record_organization(&self.span, organization);
    }
}

/// Notes in the span of a request which organization it concerns.
pub(crate) fn record_organization(span: &Span, organization: OrganizationId) {
    span.record("organization", tracing::field::display(organization));
}

/// The line that a request leaves in the log and the metrics. It is written when the request ends, however it
/// ends: a client that goes away drops the work, and the line says so.
struct RequestLog {
    started: Instant,
    method: Method,
    /// The template, not the path: paths carry ids and whatever people type.
    route: String,
    context: RequestContext,
    status: u16,
}

/// What the log says of a request whose client did not wait for the answer.
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

/// The outermost layer.
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

/// The id of a request, which its answer carries as `X-Request-Id`.
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
    // At the level of errors, so that it is there whatever the level of the log.
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

/// The last resort: the body and the database have deadlines of their own, which are shorter.
async fn answer_in_time(state: &ApiState, request: Request, next: Next) -> Response {
    let answered = tokio::time::timeout(state.timeouts.request, next.run(request)).await;
    answered.unwrap_or_else(|_| {
        let message = "The request took too long. Send the same request again.";
        ApiError::new(Code::Unavailable, message).into_response()
    })
}

/// Writes the body of an error and the headers that every answer has.
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

/// What a caught panic becomes. Its message went to the log through the panic hook.
pub(crate) fn after_panic(_panic: Box<dyn std::any::Any + Send + 'static>) -> Response {
    tracing::error!("a handler panicked");
    ApiError::internal().into_response()
}

/// The answer to a path that does not exist.
pub(crate) async fn no_such_path() -> ApiError {
    ApiError::new(
        Code::NotFound,
        "There is nothing at this path; /api/v1/docs lists what there is.",
    )
}

/// The answer to a method that a path does not have.
pub(crate) async fn no_such_method() -> ApiError {
    ApiError::new(
        Code::MethodNotAllowed,
        "This path does not have this method; the Allow header lists those it has.",
    )
}
