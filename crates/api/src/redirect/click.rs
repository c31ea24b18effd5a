//! `GET /c/{idOrSlug}` — a tap on an `app_install` link: to the store of whatever it was tapped on.

use super::arrival::Arrival;
use super::tap::arrive;
use super::{landing, redirect};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::click::destination::Destination;
use tributary_domain::link::LinkKind;

pub(super) async fn tap(State(state): State<ApiState>, arrival: Arrival) -> Response {
    let arrived = match arrive(&state, &arrival, LinkKind::AppInstall).await {
        Ok(arrived) => arrived,
        Err(page) => return page,
    };
    match arrived.destination(&arrival) {
        Destination::Redirect(url) => redirect(&url),
        Destination::Page => landing::page(&state, &arrival, &arrived),
    }
}
