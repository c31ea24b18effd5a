//! The machine-readable description, generated from the handlers.

use crate::error::Code;
use crate::state::ApiState;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use serde_json::json;
use std::collections::BTreeMap;
use tributary_domain::integration::{Network, SettingSpec, credentials_of, settings_of};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, Header, HeaderBuilder, OpenApi, Ref, RefOr, ResponseBuilder, Schema,
    path::{Operation, ParameterIn},
};
use utoipa::{OpenApi as _, ToSchema};
use utoipa_axum::router::OpenApiRouter;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Tributary",
        version = "1",
        description = "App-install attribution and conversion forwarding. Lists are newest first and paged \
            by `limit` and `cursor`; one object is `{\"data\": …}`; an error is `{\"error\": …}` with a \
            `code` for programs and a `message` that says what to do.",
        license(name = "MIT", identifier = "MIT"),
    ),
    servers((url = "/", description = "This instance.")),
    security(("apiKey" = [])),
    components(schemas(ErrorEnvelope)),
    tags(
        (name = "Apps", description = "Apps and their configuration."),
        (name = "Billing", description = "Providers of subscriptions and their notifications."),
        (name = "Links", description = "Tracking links."),
        (name = "Integrations", description = "Connections to the ad networks."),
        (name = "Deliveries", description = "What the ad networks are told of events, and how that goes."),
        (name = "Conversion value", description = "SKAdNetwork and AdAttributionKit."),
        (name = "Analytics", description = "What happened, and what it is credited to."),
        (name = "Privacy", description = "Erasing people."),
        (name = "SDK", description = "What the SDK in an app calls, with the app's public key. Unknown \
            fields are ignored; missing and null are the same. Any origin may call."),
        (name = "Audit log", description = "Who changed what."),
        (name = "Operations", description = "Health. Needs no key."),
    )
)]
struct Description;

/// An error.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the envelope that ApiError writes")]
struct ErrorEnvelope {
    error: ErrorBody,
}

/// What went wrong, and what to do about it.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the envelope that ApiError writes")]
struct ErrorBody {
    /// For programs; never changes.
    code: String,
    /// For people; says what to do.
    message: String,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// The request, as the service's log names it.
    request_id: String,
    /// Every field that is at fault, where fields are.
    details: Option<Vec<ErrorDetail>>,
}

/// A field that is at fault.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the envelope that ApiError writes")]
struct ErrorDetail {
    /// The path of the field.
    field: String,
    code: String,
    message: String,
}

/// The base that the routes are added to.
pub(crate) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(Description::openapi())
}

/// Adds the keys, and to each operation the errors that it can answer.
pub(crate) fn complete(mut api: OpenApi) -> OpenApi {
    let components = api.components.get_or_insert_default();
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "A private organization key: `ak_live_…` or `ak_test_…`.",
        ))
        .build();
    components
        .security_schemes
        .insert("apiKey".to_owned(), RefOr::T(SecurityScheme::Http(scheme)));
    let sdk_key = ApiKeyValue::with_description(
        "X-Tributary-Key",
        "An SDK key of the app: `pk_live_…` or `pk_test_…`. Also taken as the query parameter `key`.",
    );
    components.security_schemes.insert(
        "sdkKey".to_owned(),
        RefOr::T(SecurityScheme::ApiKey(ApiKey::Header(sdk_key))),
    );
    for (path, item) in &mut api.paths.paths {
        let methods = [
            &mut item.get,
            &mut item.delete,
            &mut item.post,
            &mut item.put,
            &mut item.patch,
        ];
        for operation in methods.into_iter().flatten() {
            add_request_id(operation);
            add_errors(errors_of(path, operation), operation);
        }
        if let Some(operation) = &mut item.post {
            require_name(operation);
        }
        if let Some(operation) = &mut item.patch
            && operation.operation_id.as_deref() == Some("updateIntegration")
        {
            operation
                .description
                .get_or_insert_default()
                .push_str(&network_settings());
        }
    }
    api
}

/// What is made and what is changed have the same fields; the difference is that a new object needs a name.
fn require_name(operation: &mut Operation) {
    let Some(RefOr::T(body)) = &mut operation.request_body else {
        return;
    };
    for content in body.content.values_mut() {
        if let RefOr::T(content) = content
            && let Some(RefOr::T(Schema::Object(object))) = &mut content.schema
            && object.properties.contains_key("name")
        {
            object.required.push("name".to_owned());
        }
    }
}

/// Which settings and credentials each network has, as a table for people.
fn network_settings() -> String {
    let row = |network: Network| {
        let shown = |spec: &SettingSpec| {
            let expectation = spec.kind.expectation();
            format!("`{}` ({})", spec.name, expectation.trim_end_matches('.'))
        };
        let settings: Vec<String> = settings_of(network).map(shown).collect();
        let credentials: Vec<&str> = credentials_of(network).iter().map(|one| one.name).collect();
        let (settings, credentials) = (settings.join(", "), credentials.join("`, `"));
        format!("| `{}` | {settings} | `{credentials}` |", network.as_str())
    };
    let rows: Vec<String> = Network::ALL.into_iter().map(row).collect();
    let head = "| Network | `settings` | `credentials` |\n|---|---|---|";
    format!("\n\n{head}\n{}\n", rows.join("\n"))
}

/// The extension in which an operation lists its specific errors, beside its handler. Errors that follow from what it takes (a key,
/// a body, a query, ids in its path) are added here.
const OWN_ERRORS: &str = "x-errors";

/// The error of a path parameter that names nothing.
const NOT_FOUND: &[(&str, Code)] = &[
    ("appId", Code::AppNotFound),
    ("linkId", Code::LinkNotFound),
    ("network", Code::NetworkNotFound),
    ("deviceId", Code::DeviceNotFound),
    ("deliveryId", Code::DeliveryNotFound),
    ("provider", Code::NotFound),
];

/// The errors that an operation can answer.
fn errors_of(path: &str, operation: &mut Operation) -> Vec<Code> {
    let is_sdk = path.starts_with("/api/track/");
    let mut codes = vec![Code::RateLimited, Code::Internal, Code::Unavailable];
    if path.starts_with("/api/") {
        codes.extend([Code::MissingApiKey, Code::InvalidApiKey]);
    }
    if path.starts_with("/api/v1/") {
        codes.extend([Code::InsufficientPermission, Code::PrivateKeyRequired]);
    }
    if operation.request_body.is_some() {
        codes.extend([
            Code::MalformedJson,
            Code::RequestTimeout,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
            Code::ValidationFailed,
        ]);
        // The endpoints of the SDK ignore what they do not know.
        codes.extend((!is_sdk).then_some(Code::UnknownField));
    }
    for parameter in operation.parameters.iter().flatten() {
        let RefOr::T(parameter) = parameter else {
            continue;
        };
        match parameter.parameter_in {
            ParameterIn::Path => {
                let found = NOT_FOUND.iter().find(|(name, _)| *name == parameter.name);
                codes.extend(found.map(|(_, code)| *code));
            }
            ParameterIn::Query => {
                codes.push(Code::ValidationFailed);
                codes.extend((!is_sdk).then_some(Code::UnknownField));
                codes.extend((parameter.name == "cursor").then_some(Code::InvalidCursor));
            }
            // The one header that operations take is `If-Match`.
            ParameterIn::Header => codes.push(Code::VersionConflict),
            ParameterIn::Cookie | ParameterIn::QueryString => {}
        }
    }
    codes.extend(own_errors(operation));
    Code::ALL
        .iter()
        .copied()
        .filter(|code| codes.contains(code))
        .collect()
}

/// Takes the errors that an operation names itself.
fn own_errors(operation: &mut Operation) -> Vec<Code> {
    let named = operation
        .extensions
        .as_mut()
        .and_then(|extensions| extensions.remove(OWN_ERRORS));
    if operation
        .extensions
        .as_ref()
        .is_some_and(|extensions| extensions.is_empty())
    {
        operation.extensions = None;
    }
    let named = named.unwrap_or_default();
    let words = named.as_array().into_iter().flatten();
    let code = |word: &serde_json::Value| {
        let found = Code::ALL.iter().find(|code| word == code.as_str());
        debug_assert!(found.is_some(), "{word} is not a code");
        found.copied()
    };
    words.filter_map(code).collect()
}

fn add_request_id(operation: &mut Operation) {
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            response
                .headers
                .insert("X-Request-Id".to_owned(), RefOr::T(request_id_header()));
        }
    }
}

fn add_errors(codes: Vec<Code>, operation: &mut Operation) {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes {
        by_status
            .entry(code.status().as_u16())
            .or_default()
            .push(code);
    }
    for (status, codes) in by_status {
        operation
            .responses
            .responses
            .insert(status.to_string(), RefOr::T(error_response(status, &codes)));
    }
}

fn request_id_header() -> Header {
    HeaderBuilder::new()
        .description(Some("The request, as the service's log names it."))
        .build()
}

fn error_response(status: u16, codes: &[Code]) -> utoipa::openapi::Response {
    let names: Vec<String> = codes
        .iter()
        .map(|code| format!("`{}`", code.as_str()))
        .collect();
    let example = codes.first().map(|code| {
        json!({"error": {
            "code": code.as_str(),
            "message": "What to do, in words.",
            "retryable": code.retryable(),
            "requestId": "req_6f1ce0d2a47b8c3e5d9f0a1b",
        }})
    });
    let schema = Ref::from_schema_name("ErrorEnvelope");
    let content = ContentBuilder::new()
        .schema(Some(schema))
        .example(example)
        .build();
    let mut response = ResponseBuilder::new()
        .header("X-Request-Id", request_id_header())
        .description(format!("Code {}.", names.join(" or ")))
        .content("application/json", content);
    if matches!(status, 429 | 503) {
        let retry = HeaderBuilder::new()
            .description(Some("Seconds to wait."))
            .build();
        response = response.header("Retry-After", retry);
    }
    response.build()
}

/// The description as YAML, which is what is served and committed.
pub(crate) fn yaml(api: &OpenApi) -> String {
    api.to_yaml().unwrap_or_else(|error| {
        tracing::error!(%error, "the description cannot be written as YAML");
        String::new()
    })
}

/// `GET /openapi.yaml`.
pub(crate) fn serve(yaml: &'static str) -> impl IntoResponse {
    (
        [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/yaml"),
        )],
        yaml,
    )
}
