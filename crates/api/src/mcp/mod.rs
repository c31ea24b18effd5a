//! `POST /mcp` — the Model Context Protocol, for agents.
//!
//! A tool call becomes one request to the REST routes inside this process, with the caller's key and
//! address. So the rules for keys, limits, tenants and errors exist once. The endpoint keeps no state:
//! each message is answered with one JSON object.

mod document_tools;
mod message;
mod result;
mod tool;
mod tool_list;
mod version;

pub(crate) use tool::RestTool;

use crate::body::{BodyLimits, content_type, is_json, read_bytes_within};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::gzip::GzipLimits;
use crate::request::RequestContext;
use crate::state::ApiState;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequestParts as _, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http_body_util::BodyExt as _;
use message::{RpcFault, RpcMessage, RpcRequest, result_response};
use result::{RpcResult, error_result, json_result};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use tower::ServiceExt as _;
use tributary_domain::access::{AnalyticsRead, AppsWrite, Scope};
use tributary_domain::audit::Client;
use version::ProtocolEra;

/// Limits for a message. The key is checked after the body is read, because the body decides what the
/// key must permit. The arguments of a tool are far smaller.
const MESSAGE_LIMITS: BodyLimits = BodyLimits {
    bytes: MESSAGE_BYTES_MAX,
    gzip: GzipLimits::unproven(MESSAGE_BYTES_MAX),
};
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Tells a model what this server is for.
const INSTRUCTIONS: &str = "Tributary attributes app installs to ad clicks and forwards conversions to ad \
    networks. A tracking link records clicks; the SDK reports installs and events; billing providers and \
    websites report payments. Each install is attributed to a click or is organic, and its events count for \
    that click's network, link and campaign. Conversions are forwarded to the networks as deliveries. Call \
    list_apps first: the other tools need an app id. Amounts are in US dollars unless a currency is given; \
    days are in the app's time zone. A live key sees live data, a test key test data. Use search_docs for \
    the meaning of figures, reasons and error codes.";

/// Resolves the tools against the OpenAPI description.
pub(crate) fn tools(api: &utoipa::openapi::OpenApi) -> Vec<RestTool> {
    match serde_json::to_value(api) {
        Ok(api) => tool::resolve(tool_list::REST_TOOLS, &api),
        Err(error) => {
            tracing::error!(%error, "failed to read OpenAPI description");
            Vec::new()
        }
    }
}

/// Builds the route. `rest` contains the REST routes without the edge, which this request has passed.
pub(crate) fn router(rest: Router, tools: &'static [RestTool]) -> Router<ApiState> {
    let receive = move |State(state): State<ApiState>, request: Request| {
        let endpoint = McpEndpoint {
            state,
            rest: rest.clone(),
            tools,
        };
        async move { endpoint.receive(request).await }
    };
    Router::new().route("/mcp", post(receive))
}

/// What a message needs.
struct McpEndpoint {
    state: ApiState,
    rest: Router,
    tools: &'static [RestTool],
}

impl McpEndpoint {
    async fn receive(&self, request: Request) -> Result<Response, ApiError> {
        let (parts, body) = request.into_parts();
        if !is_own_origin(&parts.headers, &self.state.base_url) {
            let message = "Web pages of other origins may not use this endpoint.";
            let fault = RpcFault::invalid_request(message);
            return Ok(fault.respond(StatusCode::FORBIDDEN, None));
        }
        if !parts.headers.contains_key(header::AUTHORIZATION) {
            self.authenticate(&parts).await?;
        }
        if !content_type(&parts.headers).is_some_and(is_json) {
            let message = "Send JSON with the header `Content-Type: application/json`.";
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
        let body = read_bytes_within(&parts.headers, body, &self.state, MESSAGE_LIMITS).await?;
        match RpcMessage::read(&body) {
            Ok(RpcMessage::Request(request)) => self.answer(&parts, request).await,
            Ok(RpcMessage::NoAnswer) => {
                self.authenticate(&parts).await?;
                Ok(StatusCode::ACCEPTED.into_response())
            }
            Err(fault) => {
                self.authenticate(&parts).await?;
                Ok(fault.respond(StatusCode::BAD_REQUEST, None))
            }
        }
    }

    async fn answer(&self, parts: &Parts, request: RpcRequest) -> Result<Response, ApiError> {
        let era = match ProtocolEra::of(&parts.headers, &request) {
            Ok(era) => era,
            Err(fault) => {
                self.authenticate(parts).await?;
                return Ok(fault.respond(StatusCode::BAD_REQUEST, Some(request.id)));
            }
        };
        let RpcRequest { id, method, params } = request;
        let outcome = if method == "tools/call" {
            self.call(parts, params).await?
        } else {
            self.describe(parts, era, &method, &params).await?
        };
        Ok(match outcome {
            Ok(result) => result_response(id, era.complete(&method, result)),
            Err(fault) => {
                let is_gone = era == ProtocolEra::Stateless && fault.is_unknown_method();
                let status = if is_gone {
                    StatusCode::NOT_FOUND
                } else {
                    StatusCode::OK
                };
                fault.respond(status, Some(id))
            }
        })
    }

    /// Answers everything but tool calls.
    async fn describe(
        &self,
        parts: &Parts,
        era: ProtocolEra,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<Result<RpcResult, RpcFault>, ApiError> {
        if method == "tools/list" {
            return Ok(Ok(self.list_tools(self.may_write(parts).await?)));
        }
        self.authenticate(parts).await?;
        let (documents, base_url) = (&self.state.documents, &self.state.base_url);
        let capabilities = || json!({"tools": {}, "resources": {}});
        Ok(match (method, era) {
            ("ping", _) => Ok(RpcResult::of(json!({}))),
            ("initialize", ProtocolEra::WithHandshake) => version::agree(params).map(|version| {
                RpcResult::of(json!({
                    "protocolVersion": version,
                    "capabilities": capabilities(),
                    "serverInfo": version::server_info(),
                    "instructions": INSTRUCTIONS,
                }))
            }),
            ("server/discover", ProtocolEra::Stateless) => Ok(RpcResult::of(json!({
                "supportedVersions": version::SUPPORTED,
                "capabilities": capabilities(),
                "instructions": INSTRUCTIONS,
            }))),
            ("resources/list", _) => Ok(document_tools::resources(documents, base_url)),
            ("resources/templates/list", _) => Ok(RpcResult::of(json!({"resourceTemplates": []}))),
            ("resources/read", _) => document_tools::read_resource(documents, base_url, params),
            _ => Err(RpcFault::method_not_found()),
        })
    }

    fn list_tools(&self, may_write: bool) -> RpcResult {
        let shown = self.tools.iter();
        let shown = shown.filter(|tool| may_write || tool.is_read_only());
        let mut all: Vec<Value> = shown.map(RestTool::definition).collect();
        all.extend(document_tools::definitions());
        RpcResult::of(json!({ "tools": all }))
    }

    /// Calls a tool.
    async fn call(
        &self,
        parts: &Parts,
        mut params: Map<String, Value>,
    ) -> Result<Result<RpcResult, RpcFault>, ApiError> {
        let name = params.get("name").and_then(Value::as_str);
        let name = name.unwrap_or_default().to_owned();
        let arguments = match params.remove("arguments") {
            None | Some(Value::Null) => Some(Map::new()),
            Some(Value::Object(arguments)) => Some(arguments),
            Some(_) => None,
        };
        let writes = wants_to_write(parts);
        let tool = self.tools.iter().find(|tool| tool.name() == name);
        let tool = tool.filter(|tool| writes || tool.is_read_only());
        if let (Some(tool), Some(arguments)) = (tool, arguments.clone()) {
            return self.call_rest(parts, tool, arguments).await.map(Ok);
        }
        self.authenticate(parts).await?;
        let Some(arguments) = arguments else {
            return Ok(Err(RpcFault::invalid_params(
                "`arguments` must be an object.",
            )));
        };
        let called = document_tools::call(&self.state.documents, &name, &arguments);
        let message = "There is no such tool. tools/list lists the tools; those that change something need \
                       `/mcp?write=1`.";
        Ok(called.ok_or_else(|| RpcFault::invalid_params(message)))
    }

    /// Sends the request of a tool to its endpoint, which checks the key.
    async fn call_rest(
        &self,
        parts: &Parts,
        tool: &RestTool,
        arguments: Map<String, Value>,
    ) -> Result<RpcResult, ApiError> {
        let mut request = match tool.request(arguments) {
            Ok(request) => request,
            Err(message) => {
                self.authenticate(parts).await?;
                return Ok(error_result(&message));
            }
        };
        carry_over(parts, request.headers_mut());
        *request.extensions_mut() = client_extensions(parts);
        let Ok(mut response) = self.rest.clone().oneshot(request).await;
        let status = response.status().as_u16();
        tracing::info!(tool = tool.name(), tool.status = status, "tool called");
        if let Some(error) = response.extensions_mut().remove::<ApiError>() {
            return failed(error, parts);
        }
        read_result(response.into_body()).await
    }

    /// Checks that the request has a valid key. Every key may read analytics.
    async fn authenticate(&self, parts: &Parts) -> Result<(), ApiError> {
        self.caller::<AnalyticsRead>(parts).await
    }

    /// Returns whether the client asked for tools that change something and its key permits them.
    async fn may_write(&self, parts: &Parts) -> Result<bool, ApiError> {
        if !wants_to_write(parts) {
            return self.authenticate(parts).await.map(|()| false);
        }
        match self.caller::<AppsWrite>(parts).await {
            Ok(()) => Ok(true),
            Err(error) if lacks_permission(error.code()) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Checks the key as for an endpoint that reads.
    async fn caller<S: Scope>(&self, parts: &Parts) -> Result<(), ApiError> {
        let mut reading = Request::new(Body::empty()).into_parts().0;
        reading.method = Method::GET;
        carry_over(parts, &mut reading.headers);
        reading.extensions = client_extensions(parts);
        Caller::<S>::from_request_parts(&mut reading, &self.state)
            .await
            .map(drop)
    }
}

/// Copies the caller's key.
fn carry_over(parts: &Parts, headers: &mut HeaderMap) {
    if let Some(key) = parts.headers.get(header::AUTHORIZATION) {
        headers.insert(header::AUTHORIZATION, key.clone());
    }
}

/// Returns what the edge knows about the client: address, request id and the request's log line.
fn client_extensions(parts: &Parts) -> axum::http::Extensions {
    let mut extensions = axum::http::Extensions::new();
    if let Some(context) = parts.extensions.get::<RequestContext>() {
        extensions.insert(context.clone());
    }
    if let Some(client) = parts.extensions.get::<Client>() {
        extensions.insert(*client);
    }
    if let Some(peer) = parts.extensions.get::<ConnectInfo<SocketAddr>>() {
        extensions.insert(*peer);
    }
    extensions
}

/// Turns an error of an endpoint into a result that the model sees. Without a valid key, the whole
/// request fails, because only the user can help.
fn failed(error: ApiError, parts: &Parts) -> Result<RpcResult, ApiError> {
    let code = error.code();
    if code.status() == StatusCode::UNAUTHORIZED
        || matches!(code, Code::PrivateKeyRequired | Code::AddressNotAllowed)
    {
        return Err(error);
    }
    let context = parts.extensions.get::<RequestContext>();
    let id = context.map(|context| context.client.request_id.to_string());
    Ok(error_result(&error.body(&id.unwrap_or_default())))
}

/// Reads the response of an endpoint. Its size is bounded by the limits of lists and reports.
async fn read_result(body: Body) -> Result<RpcResult, ApiError> {
    let broken = |error: &dyn std::fmt::Display| {
        tracing::error!(%error, "failed to read response of a tool's endpoint");
        ApiError::internal()
    };
    let body = body.collect().await.map_err(|error| broken(&error))?;
    let text = String::from_utf8(body.to_bytes().into()).map_err(|error| broken(&error))?;
    json_result(text).map_err(|error| broken(&error))
}

const fn lacks_permission(code: Code) -> bool {
    matches!(code, Code::InsufficientPermission | Code::LiveOnly)
}

/// Returns whether the client asked for tools that change something.
fn wants_to_write(parts: &Parts) -> bool {
    let query = parts.uri.query().unwrap_or_default();
    query.split('&').any(|pair| pair == "write=1")
}

/// Returns whether a request comes from no web page, or from one of this server. Otherwise a page
/// could reach a server in the visitor's network by changing the address of its own name.
fn is_own_origin(headers: &HeaderMap, base_url: &str) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let own = origin_of(base_url);
    origins.all(|origin| {
        let origin = origin.to_str().unwrap_or_default();
        !origin.is_empty() && origin.eq_ignore_ascii_case(own)
    })
}

/// Returns the scheme, host and port of a URL.
fn origin_of(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + "://".len());
    let path = url[host..].find('/').map(|at| host + at);
    &url[..path.unwrap_or(url.len())]
}

#[cfg(test)]
mod tests;
