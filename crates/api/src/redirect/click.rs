//! `GET /c/{idOrSlug}` — a tap on an `app_install` link: to the store of whatever it was tapped on.

use super::tap::resolve_tap;
use super::tap_request::TapRequest;
use super::{landing, redirect};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::click::destination::Destination;
use tributary_domain::link::LinkKind;

pub(super) async fn tap(State(state): State<ApiState>, arrival: TapRequest) -> Response {
    let arrived = match resolve_tap(&state, &arrival, LinkKind::AppInstall).await {
        Ok(arrived) => arrived,
        Err(page) => return page,
    };
    match arrived.destination(&arrival) {
        Destination::Redirect(url) => redirect(&url),
        Destination::Page => landing::page(&state, &arrival, &arrived),
    }
}
