//! `/api/track/*`: endpoints for the SDK.
//!
//! Installed apps cannot be fixed quickly, so these endpoints are more lenient than the REST API.
//! Unknown fields are ignored, null means missing, long texts are cut where that is harmless, and
//! invalid optional fields in `configure` are ignored. The SDK does not retry after a 4xx, so the
//! server returns a 4xx only for requests that can never succeed.
//!
//! Event batches are the most frequent requests. Their JSON stays text, and only the fields that
//! the reader asks for are parsed; see [`crate::fields`].

pub(crate) mod shape;

mod attestation;
mod body;
mod caller;
mod configure;
mod configure_fields;
mod consent_fields;
mod cors;
mod erase;
mod event_fields;
mod events;
mod identify;
mod opened_link;
mod params;
mod referrer;
mod skan;
mod skan_shape;

pub(crate) use configure_fields::PlatformChoice;
pub(crate) use cors::{allow_every_origin, is_sdk_path};

use crate::state::ApiState;
use axum::routing::options;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns the routes and their OpenAPI description.
pub(crate) fn router() -> OpenApiRouter<ApiState> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(configure::configure))
        .routes(routes!(erase::erase))
        .routes(routes!(events::events))
        .routes(routes!(identify::identify))
        .routes(routes!(attestation::attestation_challenge))
        .routes(routes!(skan::skan));
    for path in PATHS {
        router = router.route(path, options(cors::preflight));
    }
    router
}

/// Paths that need a preflight handler.
const PATHS: &[&str] = &[
    "/api/track/attestation-challenge",
    "/api/track/configure",
    "/api/track/erase",
    "/api/track/events",
    "/api/track/identify",
    "/api/track/skan",
];
