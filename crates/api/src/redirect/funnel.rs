//! `GET /w/{idOrSlug}` — a tap on a `web_funnel` link: to a page of the operator's.

use super::tap::resolve_tap;
use super::tap_request::TapRequest;
use super::{page, redirect};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::click::destination::Destination;
use tributary_domain::link::LinkKind;

pub(super) async fn tap(State(state): State<ApiState>, arrival: TapRequest) -> Response {
    let arrived = match resolve_tap(&state, &arrival, LinkKind::WebFunnel).await {
        Ok(arrived) => arrived,
        Err(page) => return page,
    };
    match arrived.destination(&arrival) {
        Destination::Redirect(url) => redirect(&url),
        // A link of this kind cannot be stored without a destination.
        Destination::Page => page::no_such_link(),
    }
}
