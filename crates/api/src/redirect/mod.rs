//! The doors that people tap on: `/c/{link}`, `/w/{link}` and `/g/{link}`.
//!
//! A tap was paid for, so two things hold here that hold nowhere else. The click is recorded before the
//! person is sent on; but a database that cannot commit, or cannot even be asked for the link, costs the
//! click its record and not the person the way. And where somebody is sent is decided by
//! [`tributary_domain::click::destination`] from what the operator configured, never by the request.
//!
//! These are doors for people, so they are not in the description of the interface, and what goes wrong is
//! told on a page. The two kinds of links have paths of their own because an installed app claims `/c/*`.

mod assets;
mod click;
mod find;
mod funnel;
mod hints;
mod landing;
mod page;
mod tap;
mod tap_request;

#[cfg(test)]
pub(crate) use tap::tests::tracked;

use crate::state::ApiState;
use axum::Router;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

/// What a browser is asked to tell with its next request: Chrome's user agent names neither model nor
/// version any more.
const ACCEPT_CH: (HeaderName, HeaderValue) = (
    HeaderName::from_static("accept-ch"),
    HeaderValue::from_static("Sec-CH-UA-Model, Sec-CH-UA-Platform-Version"),
);

/// A page or a redirect of today says nothing about tomorrow's, and each tap counts.
const NO_STORE: (HeaderName, HeaderValue) =
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// The doors. A slug has no dot, so the files of the landing page can live beside the links. Whoever types or
/// pastes a link may end it with a slash: it is the same link.
pub(crate) fn router() -> Router<ApiState> {
    Router::new()
        .route("/c/{id}", get(click::tap))
        .route("/c/{id}/", get(click::tap))
        .route("/w/{id}", get(funnel::tap))
        .route("/w/{id}/", get(funnel::tap))
        .route("/g/{id}", get(landing::show))
        .route("/g/{id}/", get(landing::show))
        .route("/g/{id}/hints", post(hints::add))
        .route(assets::STYLE_PATH, get(assets::style))
        .route(assets::SCRIPT_PATH, get(assets::script))
}

/// Sends somebody on.
fn redirect(url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else {
        // A URL that was accepted is ASCII, and whatever is added to it is encoded.
        tracing::error!("a destination is no header value");
        return page::internal_error();
    };
    let headers = [(header::LOCATION, location), NO_STORE, ACCEPT_CH];
    (StatusCode::FOUND, headers).into_response()
}
