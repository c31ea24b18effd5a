//! `/api/track/*`: the doors of the SDK.
//!
//! What calls here runs on phones that nobody can mend any more, so these doors are more patient than the
//! REST interface: unknown fields are ignored, missing and null are the same, a text that is too long is cut
//! where that harms nobody, and an optional field of `configure` that cannot be read is left out. A 4xx loses
//! what was sent for good, because the SDK does not try again: it is answered only to what will never be right.
//!
//! A batch of events is the hottest body there is. It stays text, and only what the reader asks for is parsed; see
//! [`crate::fields`].

pub(crate) mod shape;

mod body;
mod caller;
mod configure;
mod configure_fields;
mod cors;
mod event_fields;
mod events;
mod identify;
mod opened_link;
mod params;
mod referrer;
mod skan;
mod skan_shape;

pub(crate) use configure_fields::PlatformChoice;
pub(crate) use cors::allow_every_origin;

use crate::state::ApiState;
use axum::routing::options;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes, and with them their description.
pub(crate) fn router() -> OpenApiRouter<ApiState> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(configure::configure))
        .routes(routes!(events::events))
        .routes(routes!(identify::identify))
        .routes(routes!(skan::skan));
    for path in PATHS {
        router = router.route(path, options(cors::preflight));
    }
    router
}

/// Every path of these doors. Browsers ask each of them first whether they may.
const PATHS: &[&str] = &[
    "/api/track/configure",
    "/api/track/events",
    "/api/track/identify",
    "/api/track/skan",
];
