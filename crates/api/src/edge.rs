//! The one middleware that every request passes: request id, roles, rate limit per address, deadline,
//! panics, error bodies, common headers, log line and metrics.
//!
//! It is a single `tower` service instead of a stack of layers, because each layer of the router
//! costs a few allocations per request.

use crate::error::{ApiError, Code};
use crate::metrics::RouteMetrics;
use crate::request::{RequestContext, RequestLog};
use crate::response_headers::ResponseHeaders;
use crate::state::ApiState;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use pin_project_lite::pin_project;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};
use tower::{Layer, Service};
use tracing::instrument::{Instrument as _, Instrumented};

/// Route label of requests to unknown paths.
const NO_ROUTE: &str = "(none)";

/// Wraps each route in an [`Edge`].
#[derive(Clone)]
pub(crate) struct EdgeLayer(ApiState);

impl EdgeLayer {
    /// Creates the layer.
    pub(crate) const fn new(state: ApiState) -> Self {
        Self(state)
    }
}

impl<S> Layer<S> for EdgeLayer {
    type Service = Edge<S>;

    fn layer(&self, route: S) -> Edge<S> {
        Edge {
            route,
            state: self.0.clone(),
            metrics: Arc::default(),
        }
    }
}

/// A route behind the middleware. The router clones it for every request.
#[derive(Clone)]
pub(crate) struct Edge<S> {
    route: S,
    state: ApiState,
    /// Metrics of this route, created by its first request. The router applies the layer to each
    /// route, so all requests here have the same template.
    metrics: Arc<OnceLock<RouteMetrics>>,
}

impl<S> Service<Request> for Edge<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = EdgeFuture<S::Future>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.route.poll_ready(task)
    }

    fn call(&mut self, mut request: Request) -> EdgeFuture<S::Future> {
        let state = &self.state;
        let matched = request.extensions().get::<MatchedPath>();
        let route = matched.map_or(NO_ROUTE, MatchedPath::as_str);
        let missing_role = matched.and_then(|path| state.roles.missing_for(path.as_str()));
        self.metrics.get_or_init(|| RouteMetrics::new(route));
        let context = RequestContext::new(state, &request, route);
        let headers = ResponseHeaders::new(context.client.request_id, request.uri(), state);
        let metrics = self.metrics.clone();
        let log = RequestLog::new(context.clone(), request.method().clone(), metrics);
        let (address, started) = (context.client.address, context.started);
        let admitted = match missing_role {
            None => state.limits.count_address(address, started),
            Some(role) => Err(ApiError::missing_role(role)),
        };
        let answer = match admitted {
            Ok(()) => {
                request.extensions_mut().insert(context.client);
                request.extensions_mut().insert(context);
                let span = log.context.span.clone();
                Answer::Pending {
                    handler: self.route.call(request).instrument(span),
                    deadline: None,
                }
            }
            Err(error) => Answer::Refused { error: Some(error) },
        };
        EdgeFuture {
            answer,
            timeout: state.timeouts.request,
            headers,
            log: Some(log),
        }
    }
}

pin_project! {
    /// Response of an [`Edge`].
    pub(crate) struct EdgeFuture<F> {
        // First, so that a disconnect drops the handler before the log line is written.
        #[pin]
        answer: Answer<F>,
        timeout: Duration,
        headers: ResponseHeaders,
        log: Option<RequestLog>,
    }
}

pin_project! {
    #[project = AnswerProjection]
    enum Answer<F> {
        // The handler runs. It gets a deadline when it has to wait for the first time.
        Pending {
            #[pin]
            handler: Instrumented<F>,
            #[pin]
            deadline: Option<Sleep>,
        },
        // The node lacks the role, or the request is over a limit. Empty after the response.
        Refused { error: Option<ApiError> },
    }
}

impl<F> Future for EdgeFuture<F>
where
    F: Future<Output = Result<Response, Infallible>>,
{
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let response = match this.answer.as_mut().project() {
            AnswerProjection::Pending { handler, deadline } => {
                ready!(poll_in_time(handler, deadline, *this.timeout, task))
            }
            AnswerProjection::Refused { error } => {
                let error = error.take().unwrap_or_else(ApiError::internal);
                error.into_response()
            }
        };
        // Drop the handler before the log line is written.
        this.answer.set(Answer::Refused { error: None });
        let response = finish(response, this.headers);
        if let Some(log) = this.log.take() {
            log.finish(response.status().as_u16());
        }
        Poll::Ready(Ok(response))
    }
}

/// Polls the handler. A panic becomes a 500, and the deadline a 503.
fn poll_in_time<F>(
    mut handler: Pin<&mut Instrumented<F>>,
    mut deadline: Pin<&mut Option<Sleep>>,
    timeout: Duration,
    task: &mut Context<'_>,
) -> Poll<Response>
where
    F: Future<Output = Result<Response, Infallible>>,
{
    // A handler that panicked is not polled again, so it does not matter in which state it is.
    match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(task))) {
        Ok(Poll::Ready(Ok(response))) => return Poll::Ready(response),
        Ok(Poll::Pending) => {}
        // The panic hook has logged the message.
        Err(_panic) => {
            handler
                .span()
                .in_scope(|| tracing::error!("handler panicked"));
            return Poll::Ready(ApiError::internal().into_response());
        }
    }
    if deadline.is_none() {
        deadline.set(Some(sleep(timeout)));
    }
    let Some(deadline) = deadline.as_pin_mut() else {
        return Poll::Pending;
    };
    // Without the task's budget, which a busy handler may have used up.
    let mut deadline = tokio::task::coop::unconstrained(deadline);
    Pin::new(&mut deadline).poll(task).map(|()| {
        let message = "The request took too long. Send the same request again.";
        ApiError::new(Code::Unavailable, message).into_response()
    })
}

/// Writes the error body and the headers common to all responses.
fn finish(mut response: Response, headers: &ResponseHeaders) -> Response {
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = Body::from(error.body(&headers.request_id().to_string()));
    }
    headers.add_to(response.headers_mut());
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{RateLimits, RateSettings};
    use crate::tests::handles_in;
    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::get;
    use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
    use std::future::poll_fn;
    use tower::ServiceExt as _;

    /// Returns a router with a quick and a hanging route, and a limit per address; 0 is unlimited.
    fn router(per_address: u32) -> (Router, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let mut handles = handles_in(folder.path(), Duration::from_mins(1));
        handles.limits = Arc::new(RateLimits::new(RateSettings {
            per_key: 0,
            per_address,
            failures_per_minute: 0,
        }));
        let others = Router::new()
            .route("/quick/{id}", get(|| async { "quick" }))
            .route("/api/track/quick", get(|| async { "quick" }))
            .route("/hanging", get(std::future::pending::<StatusCode>));
        (crate::router(handles.into(), others), folder)
    }

    fn request(method: &str, path: &str) -> Request {
        let request = Request::builder().method(method).uri(path);
        request.body(Body::empty()).unwrap()
    }

    fn recorder() -> PrometheusRecorder {
        PrometheusBuilder::new().build_recorder()
    }

    #[tokio::test]
    async fn requests_are_counted_by_route_method_and_status() {
        let recorder = recorder();
        let _recording = metrics::set_default_local_recorder(&recorder);
        let (router, _folder) = router(0);
        for (method, path) in [
            ("GET", "/quick/1"),
            ("GET", "/quick/2"),
            ("HEAD", "/quick/3"),
            ("POST", "/quick/4"),
            ("BREW", "/quick/5"),
            ("BOIL", "/quick/6"),
            ("GET", "/unknown"),
        ] {
            let response = router.clone().oneshot(request(method, path)).await;
            assert!(response.unwrap().headers().contains_key("x-request-id"));
        }
        let rendered = recorder.handle().render();
        let mut counted: Vec<&str> = rendered
            .lines()
            .filter_map(|line| line.strip_prefix("tributary_http_requests_total"))
            .collect();
        counted.sort_unstable();
        assert_eq!(
            counted,
            [
                r#"{method="GET",route="(none)",status="404"} 1"#,
                r#"{method="GET",route="/quick/{id}",status="200"} 2"#,
                r#"{method="HEAD",route="/quick/{id}",status="200"} 1"#,
                r#"{method="POST",route="/quick/{id}",status="405"} 1"#,
                r#"{method="other",route="/quick/{id}",status="405"} 2"#,
            ]
        );
    }

    #[tokio::test]
    async fn a_client_that_disconnects_is_counted_with_499() {
        let recorder = recorder();
        let _recording = metrics::set_default_local_recorder(&recorder);
        let (router, _folder) = router(0);
        let mut response = Box::pin(router.oneshot(request("GET", "/hanging")));
        let is_pending = poll_fn(|task| Poll::Ready(response.as_mut().poll(task).is_pending()));
        assert!(is_pending.await);
        drop(response);
        let rendered = recorder.handle().render();
        assert!(
            rendered.contains(r#"{method="GET",route="/hanging",status="499"} 1"#),
            "{rendered}"
        );
    }

    #[tokio::test]
    async fn a_request_over_the_address_limit_has_every_header() {
        let (router, _folder) = router(1);
        let get = || router.clone().oneshot(request("GET", "/api/track/quick"));
        let allowed = get().await.unwrap();
        let refused = get().await.unwrap();
        assert_eq!(allowed.status(), StatusCode::OK);
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        for response in [allowed, refused] {
            let has = |name: &str| response.headers().contains_key(name);
            assert!(has("x-request-id") && has("content-security-policy"));
            assert!(has("access-control-allow-origin") && has("content-length"));
        }
    }
}
