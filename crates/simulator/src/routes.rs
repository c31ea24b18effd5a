//! The simulator's routes.

use crate::state::SimulatorState;
use crate::{control, network_a, network_b, network_c, network_d, page, reports};
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use std::sync::Arc;

pub(crate) fn router(world: Arc<SimulatorState>) -> Router {
    let ours = Router::new()
        .route("/", get(page::show))
        .route("/simulator.css", get(page::style))
        .route("/page/faults", post(page::inject))
        .route("/page/clear", post(page::clear))
        .merge(control::router())
        .layer(middleware::from_fn(same_site));
    Router::new()
        .route("/{version}/{pixel_id}/events", post(network_a::events))
        .route("/{pixel_id}/events", post(network_a::without_version))
        .route("/v1/events:ingest", post(network_b::ingest))
        .route("/v1/requestStatus:retrieve", get(network_b::retrieve))
        .route("/token", post(network_b::issue))
        .route("/open_api/v1.3/event/track/", post(network_c::track))
        .route("/v1/events", post(network_d::events))
        .route("/{version}/{pixel_id}/insights", get(reports::insights))
        .route(
            "/{version}/customers/{customer}/googleAds:search",
            post(reports::search),
        )
        .route(
            "/open_api/v1.3/report/integrated/get/",
            get(reports::integrated),
        )
        .merge(ours)
        .with_state(world)
}

/// Prevents other sites from controlling the simulator through a visitor's browser.
async fn same_site(request: Request, next: Next) -> Response {
    let site = request.headers().get("sec-fetch-site");
    if site.is_none_or(|site| site == "same-origin" || site == "none") {
        return next.run(request).await;
    }
    StatusCode::FORBIDDEN.into_response()
}
