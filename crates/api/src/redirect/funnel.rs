//! `GET /w/{idOrSlug}` — a tap on a `web_funnel` link. Redirects to one of the operator's web
//! pages.

use super::click_request::ClickRequest;
use super::tap::resolve_tap;
use super::{page, redirect};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::click::destination::Destination;
use tributary_domain::link::LinkKind;

pub(super) async fn tap(State(state): State<ApiState>, request: ClickRequest) -> Response {
    let tap = match resolve_tap(&state, &request, LinkKind::WebFunnel).await {
        Ok(tap) => tap,
        Err(page) => return page,
    };
    match tap.destination(&request) {
        Destination::Redirect(url) => redirect(&url),
        // Unreachable: a web funnel link cannot be stored without a destination.
        Destination::Page => page::no_such_link(),
    }
}
