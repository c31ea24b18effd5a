//! `GET /c/{idOrSlug}` — a tap on an `app_install` link. Redirects to the app store for the
//! visitor's device.

use super::click_request::ClickRequest;
use super::tap::resolve_tap;
use super::{landing, redirect};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::click::destination::Destination;
use tributary_domain::link::LinkKind;

pub(super) async fn tap(State(state): State<ApiState>, request: ClickRequest) -> Response {
    let tap = match resolve_tap(&state, &request, LinkKind::AppInstall).await {
        Ok(tap) => tap,
        Err(page) => return page,
    };
    match tap.destination(&request) {
        Destination::Redirect(url) => redirect(&url),
        Destination::Page => landing::page(&state, &request, &tap),
    }
}
