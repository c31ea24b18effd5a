//! `GET /c/{idOrSlug}` — a tap on an `app_install` link. Redirects to the store of the device.

use super::tap::resolve_tap;
use super::tap_request::TapRequest;
use super::{landing, redirect};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::click::destination::Destination;
use tributary_domain::link::LinkKind;

pub(super) async fn tap(State(state): State<ApiState>, request: TapRequest) -> Response {
    let tap = match resolve_tap(&state, &request, LinkKind::AppInstall).await {
        Ok(tap) => tap,
        Err(page) => return page,
    };
    match tap.destination(&request) {
        Destination::Redirect(url) => redirect(&url),
        Destination::Page => landing::page(&state, &request, &tap),
    }
}
