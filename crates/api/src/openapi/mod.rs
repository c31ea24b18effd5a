//! The machine-readable description, generated from the handlers.

mod envelopes;
pub(crate) mod errors;

use crate::state::ApiState;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use errors::ErrorEnvelope;
use tributary_domain::integration::{Network, SettingSpec, credentials_of, settings_of};
use utoipa::OpenApi as _;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Header, HeaderBuilder, OpenApi, RefOr};
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
    for item in api.paths.paths.values_mut() {
        let methods = [
            &mut item.get,
            &mut item.delete,
            &mut item.post,
            &mut item.put,
            &mut item.patch,
        ];
        for operation in methods.into_iter().flatten() {
            add_request_id(operation);
            errors::add(operation);
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

fn add_request_id(operation: &mut Operation) {
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            response
                .headers
                .insert("X-Request-Id".to_owned(), RefOr::T(request_id_header()));
        }
    }
}

fn request_id_header() -> Header {
    HeaderBuilder::new()
        .description(Some("The request, as the service's log names it."))
        .build()
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
