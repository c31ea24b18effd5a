//! OpenAPI description, generated from the handlers.

mod envelopes;
pub(crate) mod errors;

use crate::state::ApiState;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use bytes::Bytes;
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
        description = "App-install attribution and conversion forwarding. Lists are sorted newest \
                       first and paged with `limit` and `cursor`. A single object is returned as \
                       `{\"data\": …}`. An error is returned as `{\"error\": …}` with a \
                       machine-readable `code` and a `message` that says what to do.",
        license(name = "MIT", identifier = "MIT"),
    ),
    servers((url = "/", description = "This instance.")),
    security(("apiKey" = [])),
    components(schemas(ErrorEnvelope)),
    tags(
        (name = "Apps", description = "Apps and their settings."),
        (name = "Billing", description = "Billing providers and their notifications."),
        (name = "Links", description = "Tracking links."),
        (name = "Notices", description = "Reports and alerts by e-mail, Slack and webhook."),
        (name = "Integrations", description = "Connections to the ad networks."),
        (name = "Deliveries", description = "Events forwarded to ad networks, with their status."),
        (name = "Held installs", description = "Flagged installs that wait for a review."),
        (name = "Conversion value", description = "SKAdNetwork and AdAttributionKit."),
        (name = "Analytics", description = "Events, attribution and reports."),
        (name = "Portfolio", description = "Figures for all of the organization's apps."),
        (name = "Web events", description = "Verified events from a website's backend."),
        (name = "Privacy", description = "Erasure of personal data."),
        (name = "SDK", description = "Endpoints for the SDK, called with the app's public SDK key. \
            Unknown fields are ignored; null means missing. CORS allows every origin."),
        (name = "Keys", description = "API keys: limits, rotation and revocation."),
        (name = "Audit log", description = "History of changes."),
        (name = "Operations", description = "Health checks. No key required."),
    )
)]
struct Description;

/// Returns an empty router with the common parts of the description.
pub(crate) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(Description::openapi())
}

/// Adds the security schemes and each operation's error responses.
pub(crate) fn complete(mut api: OpenApi) -> OpenApi {
    let components = api.components.get_or_insert_default();
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "The organization's private key: `ak_live_…` or `ak_test_…`.",
        ))
        .build();
    components
        .security_schemes
        .insert("apiKey".to_owned(), RefOr::T(SecurityScheme::Http(scheme)));
    let sdk_key = ApiKeyValue::with_description(
        "X-Tributary-Key",
        "The app's SDK key: `pk_live_…` or `pk_test_…`. Also accepted as the query parameter \
         `key`.",
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

/// Returns a Markdown table of each network's settings and credentials.
fn network_settings() -> String {
    let row = |network: Network| {
        let shown = |spec: &SettingSpec| {
            let expectation = spec.kind.expectation();
            format!("`{}` ({})", spec.name, expectation.trim_end_matches('.'))
        };
        let settings: Vec<String> = settings_of(network).map(shown).collect();
        let credentials: Vec<&str> = credentials_of(network).iter().map(|one| one.name).collect();
        let (settings, credentials) = (settings.join(", "), credentials.join("`, `"));
        let (name, id) = (network.name(), network.as_str());
        format!("| {name} (`{id}`) | {settings} | `{credentials}` |")
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
        .description(Some("Id of the request in the service's log."))
        .build()
}

/// Returns the description as YAML, the form that is served and committed.
pub(crate) fn yaml(api: &OpenApi) -> String {
    api.to_yaml().unwrap_or_else(|error| {
        tracing::error!(%error, "failed to write OpenAPI description");
        String::new()
    })
}

/// `GET /openapi.yaml`.
pub(crate) fn serve(yaml: Bytes) -> impl IntoResponse {
    (
        [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/yaml"),
        )],
        yaml,
    )
}
